package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"toolspan.dev/toolspan"
)

// The program's functions, as a case describes them.

type behaviour struct {
	Return   raw
	Echo     bool
	Throw    *string
	Hang     bool
	Sequence []raw
	HTTP     bool
	Store    bool
	Edit     *struct {
		Set              raw
		Drop             []string
		AppendToLastUser *string
	}
}

// counts are the calls of each function with a sequence.
var counts sync.Map

func (s step) behaviour(number int) (b behaviour) {
	check(json.Unmarshal(s.Handlers[number].Behaviour, &b))
	return b
}

// call records a call of a function and does what the case wants.
func (s step) call(ctx context.Context, number int, payload raw) (raw, error) {
	return s.callAs(ctx, s.Handlers[number].Kind, number, payload)
}

func (s step) callAs(ctx context.Context, kind string, number int, payload raw) (raw, error) {
	add(&calls, map[string]any{"handler": number, "kind": kind, "payload": payload})
	b := s.behaviour(number)
	if b.Sequence != nil {
		count, _ := counts.LoadOrStore(fmt.Sprint(s.Step, "/", number), new(int))
		mu.Lock()
		at := min(*count.(*int), len(b.Sequence)-1)
		*count.(*int)++
		mu.Unlock()
		next := b.Sequence[at]
		b = behaviour{}
		check(json.Unmarshal(next, &b))
	}
	switch {
	case b.Throw != nil:
		return nil, errors.New(*b.Throw)
	case b.Hang:
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case b.Echo:
		return payload, nil
	case b.Edit != nil:
		return b.edit(payload), nil
	}
	return b.Return, nil
}

// typed calls a function with a record and reads its answer as one.
func typed[In, Out any](s step, number int) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		payload, err := json.Marshal(in)
		check(err)
		answer, err := s.call(ctx, number, payload)
		if err == nil && answer != nil {
			err = json.Unmarshal(answer, &out)
		}
		return out, err
	}
}

func (s step) function(options *toolspan.ClientOptions, key string, number int) {
	switch key {
	case "bodyTransform":
		options.BodyTransform = func(ctx context.Context, body raw) (raw, error) { return s.call(ctx, number, body) }
	case "onError":
		options.OnError = typed[toolspan.RequestFailure, toolspan.Decision](s, number)
	case "beforeLLM":
		options.Hooks.BeforeLLM = typed[toolspan.BeforeLLM, *toolspan.LLMChange](s, number)
	case "afterLLM":
		call := typed[toolspan.AfterLLM, any](s, number)
		options.Hooks.AfterLLM = func(ctx context.Context, about toolspan.AfterLLM) error { _, err := call(ctx, about); return err }
	case "beforeTool":
		options.Hooks.BeforeTool = typed[toolspan.BeforeTool, *toolspan.CallChange](s, number)
	case "afterTool":
		call := typed[toolspan.AfterTool, struct{ Result *toolspan.ToolResult }](s, number)
		options.Hooks.AfterTool = func(ctx context.Context, about toolspan.AfterTool) (*toolspan.ToolResult, error) {
			change, err := call(ctx, about)
			return change.Result, err
		}
	case "onMetric":
		options.OnMetric = func(event toolspan.MetricEvent) {
			payload, err := json.Marshal(event)
			check(err)
			add(&metrics, event)
			_, _ = s.call(context.Background(), number, payload)
		}
	case "httpClient":
		options.HTTPClient = &http.Client{Transport: transport{s, number}}
	case "store":
		options.Store = &store{step: s, number: number, kept: map[string]raw{}}
	}
}

// transport sends requests with the language's own client.
type transport struct {
	step   step
	number int
}

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	payload, err := json.Marshal(map[string]string{"method": request.Method, "url": request.URL.String()})
	check(err)
	if _, err := t.step.call(request.Context(), t.number, payload); err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("x-injected", "1")
	return http.DefaultTransport.RoundTrip(request)
}

// store is one of the program.
type store struct {
	step   step
	number int
	mu     sync.Mutex
	kept   map[string]raw
}

func (st *store) Get(ctx context.Context, id string) (raw, error) {
	return st.use(ctx, "store.get", map[string]any{"id": id})
}

func (st *store) Save(ctx context.Context, id string, transcript raw) error {
	_, err := st.use(ctx, "store.save", map[string]any{"id": id, "messages": transcript})
	return err
}

func (st *store) use(ctx context.Context, kind string, about map[string]any) (raw, error) {
	payload, err := json.Marshal(about)
	check(err)
	answer, err := st.step.callAs(ctx, kind, st.number, payload)
	if err != nil || !st.step.behaviour(st.number).Store {
		return answer, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	id := about["id"].(string)
	if transcript, ok := about["messages"].(raw); ok {
		st.kept[id] = transcript
	}
	return st.kept[id], nil
}

// edit changes a body and leaves the order of what it does not change.
func (b behaviour) edit(body raw) raw {
	o := read(body)
	if b.Edit.Set != nil {
		changes := read(b.Edit.Set)
		for _, key := range changes.keys {
			o.set(key, changes.values[key])
		}
	}
	for _, key := range b.Edit.Drop {
		delete(o.values, key)
	}
	if more := b.Edit.AppendToLastUser; more != nil {
		var messages []raw
		check(json.Unmarshal(o.values["messages"], &messages))
		for i := len(messages) - 1; i >= 0; i-- {
			message := read(messages[i])
			if string(message.values["role"]) != `"user"` {
				continue
			}
			var text string
			if json.Unmarshal(message.values["content"], &text) == nil {
				message.set("content", write(text+*more))
			} else {
				var parts []raw
				check(json.Unmarshal(message.values["content"], &parts))
				message.set("content", write(append(parts, write(map[string]string{"type": "text", "text": *more}))))
			}
			messages[i] = message.text()
			break
		}
		o.set("messages", write(messages))
	}
	return o.text()
}

// ordered is a JSON object.
type ordered struct {
	keys   []string
	values map[string]raw
}

func read(text raw) *ordered {
	o := &ordered{values: map[string]raw{}}
	decoder := json.NewDecoder(bytes.NewReader(text))
	_, err := decoder.Token()
	check(err)
	for decoder.More() {
		key, err := decoder.Token()
		check(err)
		var value raw
		check(decoder.Decode(&value))
		o.set(key.(string), value)
	}
	return o
}

func (o *ordered) set(key string, value raw) {
	if _, known := o.values[key]; !known {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

func (o *ordered) text() raw {
	var out bytes.Buffer
	for _, key := range o.keys {
		if value, kept := o.values[key]; kept {
			fmt.Fprintf(&out, ",%s:%s", write(key), value)
		}
	}
	return raw("{" + string(bytes.TrimPrefix(out.Bytes(), []byte(","))) + "}")
}

func write(value any) raw {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(value))
	return bytes.TrimSpace(out.Bytes())
}
