// The Go column of the conformance suite: does what stdin says with the package's public API, answers on stdout.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"toolspan.dev/toolspan"
)

type raw = json.RawMessage

var (
	engine *toolspan.Engine
	out    sync.Mutex
	// What follows is guarded by mu.
	mu      sync.Mutex
	calls   = []any{}
	logs    = []any{}
	metrics = []any{}
	objects []any
	running = map[int]context.CancelFunc{}
)

// step is a line of stdin. The keys of args that options have are read by the package's own types.
type step struct {
	Step     int
	Op       string
	Args     raw
	Handlers map[int]struct {
		Kind      string
		Behaviour raw
	}
}

func keep(object any) int {
	mu.Lock()
	defer mu.Unlock()
	objects = append(objects, object)
	return len(objects)
}

func known[T any](number int) (none T) {
	mu.Lock()
	defer mu.Unlock()
	if number == 0 {
		return none
	}
	return objects[number-1].(T)
}

func add(list *[]any, item any) {
	mu.Lock()
	defer mu.Unlock()
	*list = append(*list, item)
}

// perform does a step; partial is what was delivered before an error.
func (s step) perform(ctx context.Context, a args) (result, partial any, err error) {
	toolkit, client, conversation := known[*toolspan.Toolkit](a.Toolkit), known[*toolspan.Client](a.Client), known[*toolspan.Conversation](a.Conversation)
	empty := map[string]any{}
	switch s.Op {
	case "toolkit.create":
		var o args
		check(json.Unmarshal(a.Options, &o))
		options := config[toolspan.ToolkitOption](o)
		for _, definition := range o.Tools {
			options = append(options, toolspan.Tools(s.tool(definition)))
		}
		if o.DisableTools != nil {
			options = append(options, toolspan.DisableTools(o.DisableTools...))
		}
		options = set(options, o.ValidateArguments, toolspan.ValidateArguments)
		made, err := engine.NewToolkit(ctx, options...)
		return named("toolkit", made, err)
	case "toolkit.tools":
		tools, err := toolkit.Tools()
		return map[string]any{"tools": tools}, nil, err
	case "toolkit.status":
		servers, err := toolkit.Status()
		return map[string]any{"servers": servers}, nil, err
	case "toolkit.get":
		tool, err := toolkit.Get(a.Name)
		return map[string]any{"tool": tool}, nil, err
	case "toolkit.execute":
		var value any
		if a.Args != nil {
			value = a.Args
		}
		result, err := toolkit.Execute(ctx, a.Name, value, set(nil, ms(a.TimeoutMs), timeout[toolspan.ExecuteOption])...)
		return result, nil, err
	case "toolkit.register":
		registered, err := toolkit.Register(s.tool(a.Tool))
		return map[string]any{"registered": registered}, nil, err
	case "toolkit.adapt":
		adapted, err := toolkit.Adapt(toolspan.Provider(a.Provider))
		return adapted, nil, err
	case "toolkit.close":
		return empty, nil, toolkit.Close()
	case "mcp.list":
		inventory, err := engine.ListMCPTools(ctx, config[toolspan.ListOption](a)...)
		return inventory, nil, err
	case "client.create":
		made, err := engine.NewClient(s.clientOptions(a.Options))
		return named("client", made, err)
	case "client.close":
		return empty, nil, client.Close()
	case "client.run", "client.ask":
		prompt, options := runOptions(a)
		run := client.Run
		if s.Op == "client.ask" {
			run = func(ctx context.Context, prompt string, toolkit *toolspan.Toolkit, options ...toolspan.RunOption) (*toolspan.RunResult, error) {
				return client.Ask(ctx, a.ID, prompt, toolkit, options...)
			}
		}
		result, err := run(ctx, prompt, toolkit, options...)
		return result, nil, err
	case "client.stream":
		prompt, options := streamOptions(a)
		events := []any{}
		for event, err := range client.Stream(ctx, prompt, toolkit, options...) {
			if err != nil {
				return nil, map[string]any{"events": events}, err
			}
			if events = append(events, event); len(events) == a.StopAfter {
				break
			}
		}
		return map[string]any{"events": events}, nil, nil
	case "conversation.create":
		options := []toolspan.ConversationOption{}
		if a.ID != "" {
			options = append(options, toolspan.ConversationID(a.ID))
		}
		made, err := client.Conversation(toolkit, options...)
		return named("conversation", made, err)
	case "conversation.send":
		prompt, parts := promptOf(a)
		result, err := conversation.Send(ctx, prompt, parts...)
		return result, nil, err
	case "conversation.messages":
		messages, err := conversation.Messages(ctx)
		return map[string]any{"messages": messages}, nil, err
	case "conversation.reset":
		return empty, nil, conversation.Reset(ctx)
	case "store.get":
		transcript, err := client.ConversationStore().Get(ctx, a.ID)
		return map[string]any{"transcript": transcript}, nil, err
	case "store.save":
		return empty, nil, client.ConversationStore().Save(ctx, a.ID, a.Messages)
	case "client.metrics":
		text, err := client.Metrics()
		return map[string]any{"text": text}, nil, err
	case "counters":
		counters, err := engine.Counters()
		return counters, nil, err
	case "version":
		version, err := engine.Version()
		return map[string]any{"version": version}, nil, err
	case "cancel":
		mu.Lock()
		defer mu.Unlock()
		if cancel := running[a.Step]; cancel != nil {
			cancel()
		}
		return empty, nil, nil
	case "host.reset":
		mu.Lock()
		defer mu.Unlock()
		calls, logs, metrics = []any{}, []any{}, []any{}
		return empty, nil, nil
	}
	mu.Lock()
	defer mu.Unlock()
	lists := map[string][]any{"host.calls": calls, "host.logs": logs, "host.metrics": metrics}
	if list, ok := lists[s.Op]; ok {
		return slices.Clone(list), nil, nil
	}
	return nil, nil, fmt.Errorf("no such operation: %s", s.Op)
}

func named(kind string, made any, err error) (any, any, error) {
	if err != nil {
		return nil, nil, err
	}
	return map[string]int{kind: keep(made)}, nil, nil
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func say(line map[string]any) {
	out.Lock()
	defer out.Unlock()
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(line))
}

func (s step) answer(ctx context.Context) {
	var a args
	check(json.Unmarshal(s.Args, &a))
	result, partial, err := s.perform(ctx, a)
	mu.Lock()
	delete(running, s.Step)
	mu.Unlock()
	line := map[string]any{"step": s.Step, "ok": result}
	if err != nil {
		var record *toolspan.Error
		if !errors.As(err, &record) {
			record = &toolspan.Error{Code: "shim", Message: err.Error()}
		}
		line = map[string]any{"step": s.Step, "error": record}
		if partial != nil {
			line["partial"] = partial
		}
	}
	say(line)
}

func main() {
	var err error
	engine, err = toolspan.NewEngine(toolspan.EngineOptions{Log: func(record toolspan.LogRecord) { add(&logs, record) }})
	check(err)
	version, err := engine.Version()
	check(err)
	say(map[string]any{"ready": map[string]string{"language": "go", "version": version}})
	for lines := json.NewDecoder(os.Stdin); ; {
		var s step
		if lines.Decode(&s) != nil {
			break
		}
		ctx, cancel := context.WithCancel(context.Background())
		mu.Lock()
		running[s.Step] = cancel
		mu.Unlock()
		go s.answer(ctx)
	}
	check(engine.Close())
}
