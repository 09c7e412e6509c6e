package toolspan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toolspan.dev/toolspan"
)

// chunk is one piece of an answer of an OpenAI-style stream.
func chunk(text string) string {
	return `{"data": {"choices": [{"index": 0, "delta": {"content": "` + text + `"}}]}}`
}

func TestARunCallsTheProgramsToolAndGivesTheAnswer(t *testing.T) {
	s := newScenario(t, replies(`{"calls": [{"id": "c1", "name": "add", "args": {"a": 1, "b": 2}}]}, {"text": "three"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	type in struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	toolkit := newToolkit(t, engine, toolspan.Tool("add", "Add", func(_ context.Context, in in) (int, error) { return in.A + in.B, nil }))
	result, err := newClient(t, engine, s.upstream()).Run(context.Background(), "1 + 2?", toolkit)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, result.ToolCalls, []toolspan.ToolCall{{ID: "c1", Name: "add", Args: raw(`{"a":1,"b":2}`), Output: "3"}})
	equal(t, []any{result.Text, result.Status, result.Turns, result.Model, len(result.Messages)}, []any{"three", toolspan.RunDone, 2, "m", 4})
	equal(t, result.Usage, toolspan.Usage{PromptTokens: 20, CompletionTokens: 10, TotalTokens: 30})
}

func TestWhatAToolFailsWithInARunIsKept(t *testing.T) {
	s := newScenario(t, oneCall("fails", "{}"))
	engine := newEngine(t, toolspan.EngineOptions{})
	own := errors.New("too far")
	toolkit := newToolkit(t, engine, tool("fails", func(context.Context, raw) (any, error) { return nil, own }))
	result := must(newClient(t, engine, s.upstream()).Run(context.Background(), "go", toolkit))
	equal(t, []any{result.ToolCalls[0].Output, result.ToolCalls[0].IsError, result.Text}, []any{"too far", true, "done"})
	if result.ToolCalls[0].Err != own {
		t.Fatalf("got %v", result.ToolCalls[0].Err)
	}
}

func TestAStreamGivesTheEventsOfTheRun(t *testing.T) {
	s := newScenario(t, replies(`{"calls": [{"id": "c1", "name": "add", "args": {"a": 1}}]}, {"text": "so be it"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	own := errors.New("no")
	toolkit := newToolkit(t, engine, tool("add", func(context.Context, raw) (any, error) { return nil, own }))
	stream := newClient(t, engine, s.upstream()).Stream(context.Background(), "go", toolkit)
	if n := len(s.bodies("main")); n != 0 {
		t.Fatalf("%d requests before the loop", n)
	}
	var kinds []string
	var text strings.Builder
	var done *toolspan.RunResult
	for event, err := range stream {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case toolspan.TextEvent:
			text.WriteString(event.Delta)
		case toolspan.ToolCallEvent:
			kinds = append(kinds, "call "+event.Name+string(event.Args))
		case toolspan.ToolResultEvent:
			kinds = append(kinds, "result "+event.ID+event.Output)
		case toolspan.DoneEvent:
			done = &event.Result
		}
	}
	equal(t, kinds, []string{`call add{"a":1}`, "result c1no"})
	equal(t, []string{text.String(), done.Text}, []string{"so be it", "so be it"})
	if done.ToolCalls[0].Err != own {
		t.Fatalf("got %v", done.ToolCalls[0].Err)
	}
}

func TestLeavingTheLoopClosesTheSocket(t *testing.T) {
	s := newScenario(t, replies(`{"sse": [`+chunk("a")+`, {"hang": true}]}, {"sse": [`+chunk("a")+`, {"hang": true}]}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	client := newClient(t, engine, s.upstream())
	for event, err := range client.Stream(context.Background(), "go", nil) {
		equal(t, []any{event, err}, []any{toolspan.TextEvent{Delta: "a"}, nil})
		break
	}
	equal(t, must(engine.Counters()), toolspan.Counters{OpenClients: 1})
	s.wait(`{"llm": "main", "connections": 0}`)
	func() {
		defer func() { equal(t, recover(), "out") }()
		for range client.Stream(context.Background(), "go", nil) {
			panic("out")
		}
	}()
	equal(t, must(engine.Counters()), toolspan.Counters{OpenClients: 1})
	s.wait(`{"llm": "main", "connections": 0}`)
}

func TestAStreamThatIsCutFailsAfterTheEventsThatCame(t *testing.T) {
	s := newScenario(t, replies(`{"sse": [`+chunk("a")+`, {"cut": true}]}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	events, failures := []toolspan.Event{}, []error{}
	for event, err := range newClient(t, engine, s.upstream()).Stream(context.Background(), "go", nil) {
		if err != nil {
			failures = append(failures, err)
		} else {
			events = append(events, event)
		}
	}
	equal(t, events, []toolspan.Event{toolspan.TextEvent{Delta: "a"}})
	equal(t, len(failures), 1)
	refused(t, failures[0], toolspan.ErrStreamInterrupted)
}

func TestAContextEndsAStreamThatWaits(t *testing.T) {
	s := newScenario(t, replies(`{"sse": [`+chunk("a")+`, {"hang": true}]}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	for event, err := range newClient(t, engine, s.upstream()).Stream(ctx, "go", nil) {
		if last = err; event != nil {
			cancel()
		}
	}
	refused(t, last, toolspan.ErrCancelled)
	if !errors.Is(last, context.Canceled) {
		t.Fatalf("got %v", last)
	}
	s.wait(`{"llm": "main", "connections": 0}`)
}

// flood is a body that never ends: each read is one event.
type flood struct{ reads atomic.Int64 }

func (f *flood) Read(piece []byte) (int, error) {
	f.reads.Add(1)
	const head, tail = `data: {"choices":[{"index":0,"delta":{"content":"`, "\"}}]}\n\n"
	n := copy(piece, head)
	for ; n < len(piece)-len(tail); n++ {
		piece[n] = 'x'
	}
	return n + copy(piece[n:], tail), nil
}

func (f *flood) Close() error { return nil }

func TestAReaderThatStopsReadingStopsTheSender(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	body := new(flood)
	client := newClient(t, engine, toolspan.ClientOptions{
		BaseURL: "http://127.0.0.1:9/v1", Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k"),
		HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
		})},
	})
	for _, err := range client.Stream(context.Background(), "go", nil) {
		if err != nil {
			t.Fatal(err)
		}
		// The reader stands still; how far the sender gets meanwhile is the subject.
		for last := int64(-1); last != body.reads.Load(); time.Sleep(100 * time.Millisecond) {
			if last = body.reads.Load(); last > 1000 {
				t.Fatal("the sender goes on")
			}
		}
		break
	}
}

func TestAContextEndsTheRequestAndTheClientGoesOn(t *testing.T) {
	s := newScenario(t, replies(`{"hang": true}, {"hang": true}, {"text": "next"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	client := newClient(t, engine, s.upstream())
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error)
	go func() { _, err := client.Run(ctx, "go", nil); ended <- err }()
	s.wait(`{"llm": "main", "requests": 1}`)
	cancel(why)
	err := within(t, ended)
	refused(t, err, toolspan.ErrCancelled)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	s.wait(`{"llm": "main", "connections": 0}`)

	late, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	_, err = client.Run(late, "go", nil)
	refused(t, err, toolspan.ErrCancelled)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	equal(t, must(client.Run(context.Background(), "go", nil)).Text, "next")
}

func TestAContextThatWasOverBeforeStartsNothing(t *testing.T) {
	s := newScenario(t, replies(`{"text": "unsaid"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	client := newClient(t, engine, s.upstream())
	_, err := client.Run(ctx, "go", nil)
	refused(t, err, toolspan.ErrCancelled)
	for _, err := range client.Stream(ctx, "go", nil) {
		refused(t, err, toolspan.ErrCancelled)
	}
	equal(t, len(s.bodies("main")), 0)
}

func TestACancelReachesTheProgramsToolAndTheMCPServer(t *testing.T) {
	s := newScenario(t, `{"mcp": {"srv": {"transport": "http", "tools": [{"name": "slow", "does": {"hang": true}}]}},
		"llm": {"main": {"style": "openai", "replies": [{"calls": [{"id": "a", "name": "srv_slow", "args": {}}, {"id": "b", "name": "own", "args": {}}]}]}}}`)
	engine := newEngine(t, toolspan.EngineOptions{})
	entered, told := make(chan bool), make(chan error, 1)
	toolkit, err := engine.NewToolkit(context.Background(),
		toolspan.MCPServers(map[string]toolspan.MCPServer{"srv": {URL: toolspan.Ptr(s.MCP["srv"].URL)}}),
		toolspan.Tools(tool("own", func(ctx context.Context, _ raw) (any, error) {
			close(entered)
			<-ctx.Done()
			told <- context.Cause(ctx)
			return nil, ctx.Err()
		})))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, must(toolkit.Status())["srv"].State, toolspan.ServerConnected)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error)
	client := newClient(t, engine, s.upstream())
	go func() { _, err := client.Run(ctx, "go", toolkit); ended <- err }()
	within(t, entered)
	s.wait(`{"mcp": "srv", "method": "tools/call"}`)
	cancel(why)
	refused(t, within(t, ended), toolspan.ErrCancelled)
	if err := within(t, told); !errors.Is(err, why) {
		t.Fatalf("the tool was told %v", err)
	}
	s.wait(`{"mcp": "srv", "method": "notifications/cancelled"}`)
	if err := toolkit.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestACancelledHookIsACancelledRun(t *testing.T) {
	s := newScenario(t, replies(`{"text": "unsaid"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	options := s.upstream()
	entered := make(chan bool, 1)
	options.Hooks.BeforeLLM = func(ctx context.Context, _ toolspan.BeforeLLM) (*toolspan.LLMChange, error) {
		entered <- true
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client := newClient(t, engine, options)
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		go func() { within(t, entered); cancel() }()
		_, err := client.Run(ctx, "go", nil)
		refused(t, err, toolspan.ErrCancelled)
	}
}

func TestWhatAHookReturnsEndsTheRunAndIsItsCause(t *testing.T) {
	s := newScenario(t, replies(`{"text": "unsaid"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	own := errors.New("not today")
	options := s.upstream()
	options.Hooks.BeforeLLM = func(context.Context, toolspan.BeforeLLM) (*toolspan.LLMChange, error) { return nil, own }
	client := newClient(t, engine, options)
	_, err := client.Run(context.Background(), "go", nil)
	refused(t, err, toolspan.ErrHostFailed)
	if !errors.Is(err, own) {
		t.Fatalf("got %v", err)
	}
	for _, err := range client.Stream(context.Background(), "go", nil) {
		refused(t, err, toolspan.ErrHostFailed)
		if !errors.Is(err, own) {
			t.Fatalf("got %v", err)
		}
	}
	equal(t, len(s.bodies("main")), 0)
}

func TestHooksAndBodyTransformSeeAndChangeARun(t *testing.T) {
	s := newScenario(t, oneCall("echo", `{"q": 1}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	var mu sync.Mutex
	seen := []string{}
	see := func(what string) { mu.Lock(); defer mu.Unlock(); seen = append(seen, what) }
	options := s.upstream()
	options.RequestParams = raw(`{"z": 1.0, "a": {"k": 12345678901234567890}}`)
	options.Hooks = toolspan.Hooks{
		BeforeLLM: func(context.Context, toolspan.BeforeLLM) (*toolspan.LLMChange, error) {
			see("beforeLLM")
			return nil, nil
		},
		AfterLLM: func(context.Context, toolspan.AfterLLM) error { see("afterLLM"); return nil },
		BeforeTool: func(_ context.Context, about toolspan.BeforeTool) (*toolspan.CallChange, error) {
			see("beforeTool " + string(about.Args))
			return &toolspan.CallChange{Args: raw(`{"q":2}`)}, nil
		},
		AfterTool: func(_ context.Context, about toolspan.AfterTool) (*toolspan.ToolResult, error) {
			see("afterTool " + about.Result.Output)
			return &toolspan.ToolResult{Output: about.Result.Output + "!"}, nil
		},
	}
	options.BodyTransform = func(_ context.Context, body raw) (raw, error) {
		return append(body[:len(body)-1:len(body)-1], `,"seed":7}`...), nil
	}
	toolkit := newToolkit(t, engine, tool("echo", func(_ context.Context, args raw) (any, error) { return args, nil }))
	result := must(newClient(t, engine, options).Run(context.Background(), "go", toolkit))
	equal(t, result.ToolCalls[0].Output, `{"q":2}!`)
	equal(t, seen, []string{"beforeLLM", "afterLLM", `beforeTool {"q":1}`, `afterTool {"q":2}`, "beforeLLM", "afterLLM"})
	for _, body := range s.bodies("main") {
		if !strings.HasSuffix(body, `,"z":1.0,"a":{"k":12345678901234567890},"seed":7}`) && !strings.HasSuffix(body, `,"z": 1.0,"a": {"k": 12345678901234567890},"seed":7}`) {
			t.Fatalf("the body lost its order or its numbers: %s", body)
		}
	}
}

func TestOnErrorIsGivenTheErrorAndDecides(t *testing.T) {
	s := newScenario(t, replies(`{"status": 503, "json": {}}, {"status": 503, "json": {}}, {"text": "at last"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	options := s.upstream()
	decision, asked := toolspan.Fail, 0
	options.RetryBase = toolspan.Ptr(time.Millisecond)
	options.OnError = func(_ context.Context, failure toolspan.RequestFailure) (toolspan.Decision, error) {
		asked++
		equal(t, []any{failure.Error.Code, *failure.Error.HTTPStatus, failure.Retryable}, []any{toolspan.ErrProviderUnavailable, 503, true})
		return decision, nil
	}
	client := newClient(t, engine, options)
	_, err := client.Run(context.Background(), "go", nil)
	equal(t, *refused(t, err, toolspan.ErrProviderUnavailable).HTTPStatus, 503)
	decision = toolspan.Retry
	equal(t, must(client.Run(context.Background(), "go", nil)).Text, "at last")
	equal(t, asked, 2)
}

func TestZeroIsSaidAndNilIsNot(t *testing.T) {
	s := newScenario(t, replies(`{"status": 503, "json": {}}, {"status": 503, "json": {}}, {"text": "second"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	options := s.upstream()
	options.RetryBase = toolspan.Ptr(time.Duration(0))
	options.Retries = toolspan.Ptr(0)
	_, err := newClient(t, engine, options).Run(context.Background(), "go", nil)
	refused(t, err, toolspan.ErrProviderUnavailable)
	equal(t, len(s.bodies("main")), 1)
	options.Retries = nil
	equal(t, must(newClient(t, engine, options).Run(context.Background(), "go", nil)).Text, "second")

	for path, change := range map[string]func(*toolspan.ClientOptions){
		"apiKey":    func(o *toolspan.ClientOptions) { o.APIKey = toolspan.Ptr("") },
		"maxTurns":  func(o *toolspan.ClientOptions) { o.MaxTurns = toolspan.Ptr(0) },
		"store":     func(o *toolspan.ClientOptions) { o.Store = toolspan.NamedStore("redis") },
		"timeoutMs": func(o *toolspan.ClientOptions) { o.Timeout = toolspan.Ptr(-time.Second) },
	} {
		options := s.upstream()
		change(&options)
		_, err := engine.NewClient(options)
		var record *toolspan.Error
		if !errors.As(err, &record) || record.Path == nil || *record.Path != path {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// transport is a function as http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestAClientOfTheProgramSendsTheRequestsAndReadsPieceByPiece(t *testing.T) {
	s := newScenario(t, replies(`{"text": "one two"}, {"text": "three four", "chunkBytes": 7}, {"status": 307, "headers": {"location": "/elsewhere"}, "raw": ""}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	options := s.upstream()
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	sent := 0
	options.HTTPClient = &http.Client{Transport: transport(func(request *http.Request) (*http.Response, error) {
		sent++
		return own.RoundTrip(request)
	})}
	client := newClient(t, engine, options)
	equal(t, must(client.Run(context.Background(), "go", nil)).Text, "one two")
	var last toolspan.Event
	for event, err := range client.Stream(context.Background(), "go", nil) {
		if last = event; err != nil {
			t.Fatal(err)
		}
	}
	equal(t, last.(toolspan.DoneEvent).Result.Text, "three four")
	equal(t, sent, 2)
	// A redirect is the library's business: it is not followed behind its back.
	_, err := client.Run(context.Background(), "go", nil)
	if err == nil || sent != 3 {
		t.Fatalf("%d requests, %v", sent, err)
	}
}

func TestAFailingClientOfTheProgramIsTheCauseOfAConnectionError(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	own := errors.New("no route")
	client := newClient(t, engine, toolspan.ClientOptions{
		BaseURL: "http://127.0.0.1:9/v1", Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k"), Retries: toolspan.Ptr(0),
		HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) { return nil, own })},
	})
	_, err := client.Run(context.Background(), "go", nil)
	refused(t, err, toolspan.ErrConnectionFailed)
	if !errors.Is(err, own) {
		t.Fatalf("got %v", err)
	}
}

// endless is a body that says one thing and then waits for its end.
type endless struct {
	first  io.Reader
	ctx    context.Context
	closed chan bool
}

func (e *endless) Read(piece []byte) (int, error) {
	if n, _ := e.first.Read(piece); n > 0 {
		return n, nil
	}
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func (e *endless) Close() error { close(e.closed); return nil }

func TestLeavingAStreamClosesTheBodyOfTheProgramsClient(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	closed := make(chan bool)
	client := newClient(t, engine, toolspan.ClientOptions{
		BaseURL: "http://127.0.0.1:9/v1", Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k"),
		HTTPClient: &http.Client{Transport: transport(func(request *http.Request) (*http.Response, error) {
			first := strings.NewReader("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: &endless{first, request.Context(), closed}}, nil
		})},
	})
	for event := range client.Stream(context.Background(), "go", nil) {
		equal(t, event, toolspan.TextEvent{Delta: "a"})
		break
	}
	within(t, closed)
}

// memory is a store of the program.
type memory struct {
	mu   sync.Mutex
	kept map[string]raw
	err  error
}

func (m *memory) Get(_ context.Context, id string) (raw, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[id], m.err
}

func (m *memory) Save(_ context.Context, id string, transcript raw) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[id] = transcript
	return m.err
}

func TestAskRemembersInTheProgramsOwnStore(t *testing.T) {
	s := newScenario(t, replies(`{"text": "1"}, {"text": "2"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	store := &memory{kept: map[string]raw{}}
	options := s.upstream()
	options.Store = store
	client := newClient(t, engine, options)
	ctx := context.Background()
	equal(t, must(client.Ask(ctx, "x", "one", nil)).ConversationID, "x")
	equal(t, len(must(client.Ask(ctx, "x", "two", nil)).Messages), 4)
	var kept struct {
		Version  int
		Messages []raw
	}
	must(0, json.Unmarshal(must(client.ConversationStore().Get(ctx, "x")), &kept))
	equal(t, []int{kept.Version, len(kept.Messages)}, []int{1, 4})
	equal(t, must(client.ConversationStore().Get(ctx, "y")), nil)
	must(0, client.ConversationStore().Save(ctx, "y", raw(`[{"role":"user","content":"hi"}]`)))
	if !strings.Contains(string(store.kept["y"]), `"content":"hi"`) {
		t.Fatalf("got %s", store.kept["y"])
	}
	store.err = errors.New("disk is full")
	_, err := client.Ask(ctx, "x", "three", nil)
	refused(t, err, toolspan.ErrStoreFailed)
	if !errors.Is(err, store.err) {
		t.Fatalf("got %v", err)
	}
	_, err = toolspan.NamedStore("memory").Get(ctx, "x")
	refused(t, err, toolspan.ErrUnsupported)
	refused(t, toolspan.NamedStore("memory").Save(ctx, "x", nil), toolspan.ErrUnsupported)
}

func TestAConversationGoesOnUntilItIsReset(t *testing.T) {
	s := newScenario(t, replies(`{"text": "1"}, {"text": "2"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	ctx := context.Background()
	conversation := must(newClient(t, engine, s.upstream()).Conversation(nil, toolspan.ConversationID("mine")))
	equal(t, must(conversation.Send(ctx, "one")).ConversationID, "mine")
	equal(t, must(conversation.Send(ctx, "two", toolspan.TextPart("and more"))).Text, "2")
	messages := must(conversation.Messages(ctx))
	equal(t, len(messages), 4)
	if !strings.Contains(string(messages[2]), "two") || !strings.Contains(string(messages[2]), "and more") {
		t.Fatalf("got %s", messages[2])
	}
	must(0, conversation.Reset(ctx))
	equal(t, len(must(conversation.Messages(ctx))), 0)
	must(0, conversation.Close())
	_, err := conversation.Messages(ctx)
	if err == nil {
		t.Fatal("a closed conversation goes on")
	}
}

func TestOptionsOfARunReachTheModel(t *testing.T) {
	s := newScenario(t, replies(`{"text": "ok"}, {"text": "ok"}`))
	engine := newEngine(t, toolspan.EngineOptions{})
	client := newClient(t, engine, s.upstream())
	must(client.Run(context.Background(), "look", nil, toolspan.Model("other"), toolspan.SystemPrompt("be kind <now>"), toolspan.MaxTurns(1),
		toolspan.Timeout(time.Minute), toolspan.History(raw(`{"role":"user","content":"a","x":1.50}`), raw(`{"role":"assistant","content":"b"}`)),
		toolspan.Parts(toolspan.ContentPart{Type: "image", MIMEType: toolspan.Ptr("image/png"), URL: toolspan.Ptr("http://img.test/a.png")})))
	body := s.bodies("main")[0]
	for _, part := range []string{`"model":"other"`, `be kind <now>`, `{"role":"user","content":"a","x":1.50}`, `"text":"look"`, `http://img.test/a.png`} {
		if !strings.Contains(body, part) {
			t.Fatalf("%s is missing in %s", part, body)
		}
	}
	_, err := client.Run(context.Background(), "", nil, toolspan.History())
	if err == nil {
		t.Fatal("neither prompt nor history")
	}
}

func TestMetricsAndLogsReachTheProgramAndASinkThatPanicsHarmsNobody(t *testing.T) {
	s := newScenario(t, replies(`{"text": "ok"}, {"text": "ok"}`))
	var out bytes.Buffer
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})
	engine := must(toolspan.NewEngine(toolspan.EngineOptions{Log: toolspan.LogTo(handler), LogLevel: toolspan.Ptr(toolspan.LogInfo)}))
	kinds := []string{}
	options := s.upstream()
	options.OnMetric = func(event toolspan.MetricEvent) {
		switch event.(type) {
		case toolspan.LLMMetric:
			kinds = append(kinds, "llm")
		case toolspan.RunMetric:
			kinds = append(kinds, "run")
		}
		panic("full")
	}
	client := newClient(t, engine, options)
	for range 2 {
		equal(t, must(client.Run(context.Background(), "go", nil)).Text, "ok")
	}
	if text := must(client.Metrics()); !strings.HasPrefix(text, "# HELP toolspan_") {
		t.Fatalf("got %s", text)
	}
	same := tool("a", func(context.Context, raw) (any, error) { return nil, nil })
	equal(t, must(newToolkit(t, engine, same).Register(same)), false)
	must(0, engine.Close())
	// Nothing comes after close, so these need no lock.
	equal(t, kinds, []string{"llm", "run", "llm", "run"})
	if !strings.Contains(out.String(), "level=WARN") || !strings.Contains(out.String(), "target=toolkit") {
		t.Fatalf("got %s", out.String())
	}
}

func TestTheInventoryOfAConfiguration(t *testing.T) {
	s := newScenario(t, `{"mcp": {"srv": {"transport": "stdio", "tools": [{"name": "a"}]}}, "llm": {}}`)
	engine := newEngine(t, toolspan.EngineOptions{})
	ctx := context.Background()
	servers := map[string]toolspan.MCPServer{"srv": {Command: s.MCP["srv"].Command, Tools: map[string]bool{}, InheritEnv: toolspan.InheritNone, Timeout: toolspan.Ptr(20 * time.Second)}}
	inventory := must(engine.ListMCPTools(ctx, toolspan.MCPServers(servers)))
	equal(t, []string{inventory.Tools["srv"][0].Name, inventory.Tools["srv"][0].ExposedName}, []string{"a", "srv_a"})
	equal(t, inventory.Status, map[string]toolspan.ServerStatus{"srv": {State: toolspan.ServerConnected, Tools: toolspan.Ptr(1)}})
	document := must(json.Marshal(map[string]any{"mcpServers": servers}))
	equal(t, must(engine.ListMCPTools(ctx, toolspan.MCPConfigText(document))), inventory)
	equal(t, must(engine.ListMCPTools(ctx, toolspan.MCPDocument(raw(document)))), inventory)
	// The empty filter is said, and loads nothing; nil is not said, and loads all.
	equal(t, len(must(must(engine.NewToolkit(ctx, toolspan.MCPServers(servers))).Tools())), 0)
	servers["srv"] = toolspan.MCPServer{Command: s.MCP["srv"].Command, InheritEnv: toolspan.InheritNames{"PATH"}}
	all := must(must(engine.NewToolkit(ctx, toolspan.MCPServers(servers))).Tools())
	equal(t, []any{len(all), all[0].Source, all[0].OriginalName}, []any{1, toolspan.SourceMCP, "a"})
	_, err := engine.NewToolkit(ctx, toolspan.MCPConfig("nowhere.json"))
	if err == nil || !strings.Contains(err.Error(), "nowhere.json") {
		t.Fatalf("got %v", err)
	}
}

func TestAContextEndsTheBuildOfAToolkitAtOnce(t *testing.T) {
	s := newScenario(t, `{"mcp": {"srv": {"transport": "http", "hang": ["initialize"]}}, "llm": {}}`)
	engine := newEngine(t, toolspan.EngineOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := engine.NewToolkit(ctx, toolspan.MCPServers(map[string]toolspan.MCPServer{"srv": {URL: toolspan.Ptr(s.MCP["srv"].URL)}}))
		ended <- err
	}()
	s.wait(`{"mcp": "srv", "method": "initialize"}`)
	cancel()
	refused(t, within(t, ended), toolspan.ErrCancelled)
	s.wait(`{"mcp": "srv", "connections": 0}`)
	equal(t, must(engine.Counters()), toolspan.Counters{})
}

func TestToolsAreAdaptedToAProvider(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	toolkit := newToolkit(t, engine, toolspan.Tool("t", "d", func(context.Context, raw) (any, error) { return nil, nil },
		toolspan.InputSchema(raw(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`))))
	adapted := must(toolkit.Adapt(toolspan.ProviderGemini))
	equal(t, len(adapted.Tools), 1)
	equal(t, slices.ContainsFunc(adapted.Losses, func(loss toolspan.Loss) bool { return loss.Tool == "t" && loss.Action == toolspan.ActionConverted }), true)
}
