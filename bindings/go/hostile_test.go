package toolspan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"toolspan.dev/toolspan"
)

// What goes wrong with libraries of this kind.

func echo(_ context.Context, args raw) (any, error) { return args, nil }

// never returns before nobody waits for it any more.
func never(entered chan<- bool) toolspan.ToolSpec {
	return tool("never", func(ctx context.Context, _ raw) (any, error) {
		entered <- true
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

func TestAContextThatEndsWithTheReplyHasOneOutcome(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	toolkit := newToolkit(t, engine, tool("echo", echo))
	const workers, rounds = 8, 12_500
	var replied, cancelled atomic.Int64
	var all sync.WaitGroup
	for worker := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := range rounds {
				ctx, cancel := context.WithCancel(context.Background())
				want := fmt.Sprintf(`{"worker":%d,"round":%d}`, worker, round)
				go func() {
					for range round % 97 {
						runtime.Gosched()
					}
					cancel()
				}()
				result, err := toolkit.Execute(ctx, "echo", raw(want))
				switch {
				case err == nil && !result.IsError && result.Output == want:
					replied.Add(1)
				case result == nil && errors.Is(err, toolspan.ErrCancelled) && errors.Is(err, context.Canceled):
					cancelled.Add(1)
				default:
					t.Errorf("got %v %v, want %s", result, err, want)
				}
				cancel()
			}
		}()
	}
	all.Wait()
	equal(t, replied.Load()+cancelled.Load(), workers*rounds)
	if replied.Load() == 0 || cancelled.Load() == 0 {
		t.Fatalf("no race: %d replies, %d cancelled", replied.Load(), cancelled.Load())
	}
	equal(t, must(engine.Counters()).Operations, 0)
}

func TestTenThousandCallsLeaveNothingBehind(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	toolkit := newToolkit(t, engine, tool("echo", echo))
	var all sync.WaitGroup
	for range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 100 {
				if result, err := toolkit.Execute(context.Background(), "echo", nil); err != nil || result.Output != "{}" {
					t.Errorf("got %v %v", result, err)
				}
			}
		}()
	}
	all.Wait()
	equal(t, must(engine.Counters()), toolspan.Counters{OpenToolkits: 1})
}

func TestCloseDuringCallsFromManyGoroutinesEndsThemAll(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	engine := must(toolspan.NewEngine(toolspan.EngineOptions{}))
	entered := make(chan bool, 320)
	toolkit := newToolkit(t, engine, never(entered), tool("echo", echo))
	codes := make(chan toolspan.Code, 320)
	for range 32 {
		go func() {
			for range 10 {
				_, err := toolkit.Execute(context.Background(), "never", nil)
				var record *toolspan.Error
				_ = errors.As(err, &record)
				codes <- record.Code
			}
		}()
	}
	for range 32 {
		within(t, entered)
	}
	closed := make(chan error)
	for range 3 {
		go func() { closed <- engine.Close() }()
	}
	for range 3 {
		if err := within(t, closed); err != nil {
			t.Fatal(err)
		}
	}
	for range 320 {
		equal(t, within(t, codes), toolspan.ErrClosed)
	}
}

func TestCloseReturnsWhileItsLastEventsAreDelivered(t *testing.T) {
	for range 30 {
		engine := must(toolspan.NewEngine(toolspan.EngineOptions{}))
		entered := make(chan bool, 200)
		toolkit := newToolkit(t, engine, never(entered))
		for range 200 {
			go toolkit.Execute(context.Background(), "never", nil)
		}
		for range 200 {
			within(t, entered)
		}
		closed := make(chan error, 1)
		go func() { closed <- engine.Close() }()
		must(0, within(t, closed))
	}
}

func TestWhatIsClosedIsGone(t *testing.T) {
	ctx := context.Background()
	engine := must(toolspan.NewEngine(toolspan.EngineOptions{}))
	toolkit := newToolkit(t, engine, tool("echo", echo))
	client := newClient(t, engine, toolspan.ClientOptions{BaseURL: "http://127.0.0.1:9", Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k")})
	other := newClient(t, engine, toolspan.ClientOptions{BaseURL: "http://127.0.0.1:9", Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k")})
	conversation := must(other.Conversation(toolkit))
	for range 2 {
		must(0, toolkit.Close())
		must(0, client.Close())
	}
	_, err := toolkit.Tools()
	refused(t, err, toolspan.ErrClosed)
	_, err = toolkit.Execute(ctx, "echo", nil)
	refused(t, err, toolspan.ErrClosed)
	_, err = client.Run(ctx, "go", nil)
	refused(t, err, toolspan.ErrClosed)
	for _, err := range client.Stream(ctx, "go", nil) {
		refused(t, err, toolspan.ErrClosed)
	}
	must(0, engine.Close())
	must(0, engine.Close())
	must(0, engine.Shutdown(ctx))
	_, err = engine.Counters()
	refused(t, err, toolspan.ErrClosed)
	_, err = engine.NewToolkit(ctx)
	refused(t, err, toolspan.ErrClosed)
	_, err = conversation.Send(ctx, "go")
	refused(t, err, toolspan.ErrClosed)
	must(0, conversation.Close())
	must(0, other.Close())
}

func TestACloseThatTakesTooLongSaysSoAndGoesOnBehind(t *testing.T) {
	s := newScenario(t, `{"mcp": {"srv": {"transport": "stdio", "tools": [{"name": "a"}], "ignoreEof": true, "ignoreTerm": true}}, "llm": {}}`)
	engine := must(toolspan.NewEngine(toolspan.EngineOptions{}))
	must(engine.NewToolkit(context.Background(), toolspan.MCPServers(map[string]toolspan.MCPServer{"srv": {Command: s.MCP["srv"].Command}})))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := engine.Shutdown(ctx); err != context.DeadlineExceeded {
		t.Fatalf("got %v", err)
	}
	// What was abandoned stays so.
	refused(t, engine.Shutdown(context.Background()), toolspan.ErrTimeout)
	s.wait(`{"mcp": "srv", "processes": 0}`)
}

func TestALogIsWrittenBeforeAnythingRuns(t *testing.T) {
	records := make(chan toolspan.LogRecord, 1)
	engine := newEngine(t, toolspan.EngineOptions{Log: func(record toolspan.LogRecord) { records <- record }})
	newClient(t, engine, toolspan.ClientOptions{BaseURL: "http://127.0.0.1:9", Style: toolspan.OpenAI, Model: "m"})
	equal(t, within(t, records).Message, "no API key for 127.0.0.1; requests carry no credentials")
}

func TestEnginesDoNotKnowEachOthersToolkits(t *testing.T) {
	one, other := newEngine(t, toolspan.EngineOptions{}), newEngine(t, toolspan.EngineOptions{})
	toolkit := newToolkit(t, other, tool("echo", echo))
	client := newClient(t, one, toolspan.ClientOptions{BaseURL: "http://127.0.0.1:9", Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k")})
	for _, of := range []*toolspan.Toolkit{toolkit, {}} {
		_, err := client.Run(context.Background(), "go", of)
		equal(t, *refused(t, err, toolspan.ErrInvalidArgument).Path, "toolkit")
		_, err = client.Conversation(of)
		refused(t, err, toolspan.ErrInvalidArgument)
	}
	_, err := toolspan.NewEngine(toolspan.EngineOptions{Workers: toolspan.Ptr(0)})
	equal(t, *refused(t, err, toolspan.ErrInvalidArgument).Path, "workers")
}

func TestNothingIsLeftWhenNothingRuns(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	// Neither of an engine that was closed ...
	engine := must(toolspan.NewEngine(toolspan.EngineOptions{Log: func(toolspan.LogRecord) {}}))
	must(newToolkit(t, engine, tool("echo", echo)).Execute(context.Background(), "echo", nil))
	must(0, engine.Close())
	// ... nor of the shared one, which never is.
	toolkit := must(toolspan.NewToolkit(context.Background(), toolspan.Tools(tool("echo", echo))))
	must(toolkit.Execute(context.Background(), "echo", nil))
	must(0, toolkit.Close())
	if version := must(toolspan.Version()); version == "" {
		t.Fatal("no version")
	}
	equal(t, len(must(toolspan.ListMCPTools(context.Background(), toolspan.MCPServers(nil))).Tools), 0)
}

func TestCollectionTakesNothingThatIsInUseAndClosesWhatIsForgotten(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	func() {
		var toolkit *toolspan.Toolkit
		// The tool refers to its own toolkit, which must not keep either of them.
		toolkit = newToolkit(t, engine, tool("slow", func(context.Context, raw) (any, error) {
			for range 20 {
				runtime.GC()
				runtime.Gosched()
			}
			tools, err := toolkit.Tools()
			return len(tools), err
		}))
		equal(t, must(toolkit.Execute(context.Background(), "slow", nil)).Output, "1")
		client := newClient(t, engine, toolspan.ClientOptions{BaseURL: "http://127.0.0.1:9", Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k")})
		must(client.Conversation(toolkit))
	}()
	deadline := time.Now().Add(limit)
	for must(engine.Counters()) != (toolspan.Counters{}) {
		if time.Now().After(deadline) {
			t.Fatalf("still open: %+v", must(engine.Counters()))
		}
		runtime.GC()
		runtime.Gosched()
	}
}

func TestAForgottenEngineIsCollected(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	gone := make(chan bool)
	func() {
		type witness struct{ text *int }
		held := &witness{new(int)}
		runtime.AddCleanup(held, func(gone chan bool) { close(gone) }, gone)
		// Which only the engine has.
		engine := must(toolspan.NewEngine(toolspan.EngineOptions{Log: func(toolspan.LogRecord) { _ = held.text }}))
		newToolkit(t, engine, tool("echo", echo))
	}()
	for deadline := time.Now().Add(limit); ; runtime.GC() {
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("the engine is still there")
			}
		}
	}
}

func TestASinkThatBlocksHoldsUpNobody(t *testing.T) {
	s := newScenario(t, replies(`{"text": "ok"}`))
	release, entered := make(chan bool), make(chan bool, 1)
	engine := newEngine(t, toolspan.EngineOptions{})
	options := s.upstream()
	options.OnMetric = func(toolspan.MetricEvent) { entered <- true; <-release }
	client := newClient(t, engine, options)
	equal(t, must(client.Run(context.Background(), "go", nil)).Text, "ok")
	within(t, entered)
	toolkit := newToolkit(t, engine, tool("echo", echo))
	equal(t, must(toolkit.Execute(context.Background(), "echo", nil)).Output, "{}")
	close(release)
	<-entered
}

func TestMetricsOfARunArriveWithoutAnotherOne(t *testing.T) {
	s := newScenario(t, `{"llm": {"main": {"style": "openai", "replies": [{"text": "ok"}], "then": "repeat"}}}`)
	engine := newEngine(t, toolspan.EngineOptions{})
	runs := make(chan bool, 1)
	options := s.upstream()
	options.OnMetric = func(event toolspan.MetricEvent) {
		if _, ok := event.(toolspan.RunMetric); ok {
			runs <- true
		}
	}
	client := newClient(t, engine, options)
	for range 200 {
		must(client.Run(context.Background(), "go", nil))
		within(t, runs)
	}
}

func TestErrorsReadAsTheContractSaysAndUnwrap(t *testing.T) {
	err := error(&toolspan.Error{Code: toolspan.ErrRateLimited, Message: "wait", Path: toolspan.Ptr("a.b"), RetryAfterMs: toolspan.Ptr(1500),
		Cause: []toolspan.Cause{{Message: "outer", Code: toolspan.ErrConnectionFailed}, {Message: "inner"}}})
	equal(t, err.Error(), "rate_limited: a.b: wait")
	wrapped := fmt.Errorf("run: %w", err)
	for code, want := range map[toolspan.Code]bool{toolspan.ErrRateLimited: true, toolspan.ErrConnectionFailed: true, toolspan.ErrTimeout: false} {
		equal(t, errors.Is(wrapped, code), want)
	}
	equal(t, []string{errors.Unwrap(err).Error(), errors.Unwrap(errors.Unwrap(err)).Error()}, []string{"outer", "inner"})
	if errors.Unwrap(errors.Unwrap(errors.Unwrap(err))) != nil {
		t.Fatal("the chain does not end")
	}
	var record *toolspan.Error
	if !errors.As(wrapped, &record) {
		t.Fatal("no record")
	}
	wait, told := record.RetryAfter()
	equal(t, []any{wait, told}, []any{1500 * time.Millisecond, true})
	_, told = (&toolspan.Error{}).RetryAfter()
	equal(t, told, false)
	// The record is what JSON has, so that it can be logged and sent on.
	var read toolspan.Error
	must(0, json.Unmarshal(must(json.Marshal(err)), &read))
	equal(t, &read, err)
}
