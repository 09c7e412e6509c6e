package toolspan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"toolspan.dev/toolspan"
)

func TestWhatAToolReturnsBecomesItsOutput(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	failed := toolspan.ToolResult{Output: "no", IsError: true, Metadata: raw(`{"n":1}`)}
	for name, want := range map[string]struct {
		returned any
		result   toolspan.ToolResult
	}{
		"text":    {"plain <b>", toolspan.ToolResult{Output: "plain <b>"}},
		"number":  {4, toolspan.ToolResult{Output: "4"}},
		"object":  {raw(`{"b":1.0,"a":[null]}`), toolspan.ToolResult{Output: `{"b":1.0,"a":[null]}`}},
		"nothing": {nil, toolspan.ToolResult{}},
		"result":  {failed, failed},
		"pointer": {&failed, failed},
		"no_ptr":  {(*toolspan.ToolResult)(nil), toolspan.ToolResult{}},
	} {
		toolkit := newToolkit(t, engine, tool(name, func(context.Context, raw) (any, error) { return want.returned, nil }))
		equal(t, must(toolkit.Execute(context.Background(), name, nil)), want.result)
	}
}

func TestWhatAToolFailsWithIsItsTextAndIsKept(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	own := errors.New("too far")
	toolkit := newToolkit(t, engine, tool("fails", func(context.Context, raw) (any, error) { return "unused", fmt.Errorf("walk: %w", own) }))
	result := must(toolkit.Execute(context.Background(), "fails", nil))
	equal(t, result, toolspan.ToolResult{Output: "walk: too far", IsError: true})
	if !errors.Is(result.Err, own) {
		t.Fatalf("the tool's error is not kept: %v", result.Err)
	}
}

// silent is an error whose own method panics.
type silent struct{}

func (silent) Error() string { panic("no text") }

func TestAPanicInAToolIsAnErrorResultWithItsStack(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	own := errors.New("broken")
	toolkit := newToolkit(t, engine,
		tool("value", func(context.Context, raw) (any, error) { panic("boom") }),
		tool("error", func(context.Context, raw) (any, error) { panic(own) }),
		tool("runtime", func(context.Context, raw) (any, error) { var m map[string]int; m["x"] = 1; return nil, nil }),
		tool("encode", func(context.Context, raw) (any, error) { return shy{}, nil }),
		tool("silent", func(context.Context, raw) (any, error) { return nil, silent{} }),
		tool("empty", func(context.Context, raw) (any, error) { return nil, errors.New("") }),
		tool("after", func(context.Context, raw) (any, error) { return "alive", nil }),
	)
	execute := func(name string) *toolspan.ToolResult { return must(toolkit.Execute(context.Background(), name, nil)) }

	result := execute("value")
	var panicked *toolspan.PanicError
	if result.Output != "panic: boom" || !result.IsError || !errors.As(result.Err, &panicked) || panicked.Value != "boom" {
		t.Fatalf("got %+v", result)
	}
	if !strings.Contains(string(panicked.Stack), "tool_test.go") {
		t.Fatalf("the stack does not say where: %s", panicked.Stack)
	}
	if result := execute("error"); !errors.Is(result.Err, own) {
		t.Fatalf("got %v", result.Err)
	}
	var runtimeError runtime.Error
	if result := execute("runtime"); !errors.As(result.Err, &runtimeError) {
		t.Fatalf("got %v", result.Err)
	}
	equal(t, execute("encode").Output, "panic: no JSON today")
	if result := execute("silent"); !result.IsError || !strings.Contains(result.Output, "no text") {
		t.Fatalf("got %+v", result)
	}
	equal(t, execute("empty").Output, "The tool failed without saying why.")
	equal(t, execute("after").Output, "alive")
}

// shy is a value that cannot be written.
type shy struct{}

func (shy) MarshalJSON() ([]byte, error) { panic("no JSON today") }

func TestAToolThatEndsItsGoroutineIsAnsweredFor(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	toolkit := newToolkit(t, engine, tool("exits", func(context.Context, raw) (any, error) { runtime.Goexit(); return nil, nil }))
	result := must(toolkit.Execute(context.Background(), "exits", nil))
	if !result.IsError || !strings.Contains(result.Output, "runtime.Goexit") {
		t.Fatalf("got %+v", result)
	}
}

func TestAValueThatJSONCannotHoldIsTheToolsFailure(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	type circle struct{ Self any }
	round := &circle{}
	round.Self = round
	for name, value := range map[string]any{"channel": make(chan int), "circle": round} {
		toolkit := newToolkit(t, engine, tool(name, func(context.Context, raw) (any, error) { return value, nil }))
		result := must(toolkit.Execute(context.Background(), name, nil))
		if !result.IsError || result.Err == nil {
			t.Fatalf("%s: got %+v", name, result)
		}
	}
}

type length struct {
	A     int                `json:"a" jsonschema:"How long, at most"`
	Unit  string             `json:"unit,omitempty" jsonschema:"description=The unit\\, if any,enum=m,enum=ft,default=m"`
	Steps []float64          `json:"steps,omitzero" jsonschema:"minItems=1"`
	Map   map[string]uint8   `json:"map,omitempty"`
	When  *time.Time         `json:"when"`
	Inner struct{ X bool }   `json:"inner,omitzero"`
	Any   any                `json:"any,omitempty"`
	Raw   json.RawMessage    `json:"raw,omitempty"`
	Bytes []byte             `json:"bytes,omitempty"`
	Skip  func()             `json:"-"`
	low   int                //nolint:unused // not exported, so not part of it
	embed                    // its fields are its own
	_     [0]map[string]bool // nothing
}

type embed struct{ Deep int8 }

func TestAStructDescribesTheArguments(t *testing.T) {
	spec := toolspan.Tool("length", "d", func(_ context.Context, in length) (string, error) { return "", nil })
	want := `{"type":"object","properties":{"a":{"type":"integer","description":"How long, at most"},` +
		`"unit":{"type":"string","description":"The unit, if any","default":"m","enum":["m","ft"]},` +
		`"steps":{"type":"array","items":{"type":"number"},"minItems":1},` +
		`"map":{"type":"object","additionalProperties":{"type":"integer","minimum":0}},` +
		`"when":{"type":"string","format":"date-time"},` +
		`"inner":{"type":"object","properties":{"X":{"type":"boolean"}},"required":["X"]},` +
		`"any":{},"raw":{},"bytes":{"type":"string","contentEncoding":"base64"},"Deep":{"type":"integer"}},"required":["a","Deep"]}`
	if got := string(spec.InputSchema); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func TestATypeIsDescribedAsEncodingJSONReadsIt(t *testing.T) {
	type deep struct{ Shared, Twice, Deep int8 }
	type tagged struct {
		Named uint `json:"Twice"`
	}
	type in struct {
		ID     int64    `json:"id,string" jsonschema:"enum=1,enum=2"`
		Ratio  *float64 `json:"ratio,string"`
		Any    any      `json:"any,string"`
		deep            // Twice is that of tagged, which has a tag ...
		tagged          //
		Shared bool     // ... and Shared this one, which is less deep.
	}
	spec := toolspan.Tool("t", "d", func(_ context.Context, in in) (any, error) {
		return []any{in.ID, *in.Ratio, in.deep.Twice, in.Named, in.deep.Shared, in.Shared}, nil
	})
	equal(t, spec.InputSchema, raw(`{"type":"object","properties":{"id":{"type":"string","enum":["1","2"]},"ratio":{"type":"string"},`+
		`"any":{},"Deep":{"type":"integer"},"Twice":{"type":"integer","minimum":0},"Shared":{"type":"boolean"}},`+
		`"required":["id","any","Deep","Twice","Shared"]}`))
	toolkit := newToolkit(t, newEngine(t, toolspan.EngineOptions{}), spec)
	args := raw(`{"id":"2","ratio":"1.5","any":0,"Deep":1,"Twice":3,"Shared":true}`)
	equal(t, must(toolkit.Execute(context.Background(), "t", args)).Output, "[2,1.5,0,3,0,true]")
}

func TestFieldsThatHideEachOtherAreNoArguments(t *testing.T) {
	type one struct{ A, B int }
	type other struct{ A, C int }
	spec := toolspan.Tool("t", "d", func(context.Context, struct {
		one
		other
	}) (any, error) {
		return nil, nil
	})
	equal(t, spec.InputSchema, raw(`{"type":"object","properties":{"B":{"type":"integer"},"C":{"type":"integer"}},"required":["B","C"]}`))
}

func TestArgumentsThatDoNotFitAreSaidToTheModel(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	type in struct {
		A int    `json:"a"`
		B string `json:"b,omitempty"`
	}
	add := toolspan.Tool("add", "d", func(_ context.Context, in in) (int, error) { return in.A + 1, nil })
	toolkit := must(engine.NewToolkit(context.Background(), toolspan.Tools(add), toolspan.ValidateArguments(false)))
	for args, want := range map[string]toolspan.ToolResult{
		`{"a":1}`:         {Output: "2"},
		`"{\"a\":1}"`:     {Output: "2"},
		`{"A":1}`:         {Output: "2"},
		`{"a":"one"}`:     {Output: "Invalid arguments. a: string does not fit int", IsError: true},
		`{"a":1.5}`:       {Output: "Invalid arguments. a: number 1.5 does not fit int", IsError: true},
		`{"b":"x"}`:       {Output: "Invalid arguments. a: is missing", IsError: true},
		`{"a":1,"b":"é"}`: {Output: "2"},
	} {
		equal(t, must(toolkit.Execute(context.Background(), "add", raw(args))), want)
	}
}

func TestTypesThatAreNoArgumentsAreRefusedWithTheirPath(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	type loop struct{ Next *loop }
	type odd struct {
		A string `jsonschema:"colour=red"`
	}
	type quotes struct {
		A string `json:",string"`
	}
	for want, spec := range map[string]toolspan.ToolSpec{
		"which string is not": toolspan.Tool("t", "d", func(context.Context, string) (any, error) { return nil, nil }),
		"contains itself":     toolspan.Tool("t", "d", func(context.Context, loop) (any, error) { return nil, nil }),
		"hold a chan int":     toolspan.Tool("t", "d", func(context.Context, struct{ C chan int }) (any, error) { return nil, nil }),
		"inside a string":     toolspan.Tool("t", "d", func(context.Context, quotes) (any, error) { return nil, nil }),
		`no keyword "colour"`: toolspan.Tool("t", "d", func(context.Context, odd) (any, error) { return nil, nil }),
		"unsupported type":    toolspan.Tool("t", "d", func(context.Context, string) (any, error) { return nil, nil }, toolspan.InputSchema(func() {})),
	} {
		_, err := engine.NewToolkit(context.Background(), toolspan.Tools(spec))
		record := refused(t, err, toolspan.ErrInvalidArgument)
		if record.Path == nil || *record.Path != "tools.t.inputSchema" || !strings.Contains(record.Message, want) {
			t.Fatalf("got %v, want %s", err, want)
		}
		_, err = newToolkit(t, engine).Register(spec)
		refused(t, err, toolspan.ErrInvalidArgument)
	}
}

func TestAToolIsToldItsCallAndTheCallersValues(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	type key struct{}
	deadline := time.Now().Add(limit)
	toolkit := newToolkit(t, engine, tool("who", func(ctx context.Context, _ raw) (any, error) {
		about, ok := toolspan.InvocationFrom(ctx)
		told, _ := ctx.Deadline()
		return fmt.Sprint(about.Name, about.Timeout, ok, ctx.Value(key{}), told.Equal(deadline)), nil
	}))
	var all sync.WaitGroup
	for _, who := range []string{"ann", "bob", "cy"} {
		all.Add(1)
		go func() {
			defer all.Done()
			ctx, cancel := context.WithDeadline(context.WithValue(context.Background(), key{}, who), deadline)
			defer cancel()
			result, err := toolkit.Execute(ctx, "who", nil, toolspan.Timeout(20*time.Second))
			if want := "who20strue" + who + "true"; err != nil || strings.ReplaceAll(result.Output, " ", "") != want {
				t.Errorf("got %v %v, want %s", result, err, want)
			}
		}()
	}
	all.Wait()
	if _, ok := toolspan.InvocationFrom(context.Background()); ok {
		t.Fatal("a context of no call tells one")
	}
}

func TestAToolMayCallItsOwnToolkit(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	var toolkit *toolspan.Toolkit
	toolkit = newToolkit(t, engine,
		tool("outer", func(ctx context.Context, _ raw) (any, error) {
			result, err := toolkit.Execute(ctx, "inner", nil)
			if err != nil {
				return nil, err
			}
			return "<" + result.Output + ">", nil
		}),
		tool("inner", func(context.Context, raw) (any, error) { return "x", nil }))
	equal(t, must(toolkit.Execute(context.Background(), "outer", nil)).Output, "<x>")
}

func TestToolsAreListedFoundAndRegistered(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	says := func(name, text string) toolspan.ToolSpec {
		return tool(name, func(context.Context, raw) (any, error) { return text, nil })
	}
	toolkit := newToolkit(t, engine, says("first", "1"))
	first := toolspan.ToolInfo{Name: "first", Description: "first", InputSchema: raw(`{"type":"object","properties":{}}`), Source: toolspan.SourceNative}
	equal(t, must(toolkit.Tools()), []toolspan.ToolInfo{first})
	equal(t, must(toolkit.Get("first")), first)
	equal(t, must(toolkit.Get("second")), nil)
	equal(t, must(toolkit.Register(says("second", "2"))), true)
	equal(t, must(toolkit.Register(says("first", "other"))), false)
	runtime.GC()
	for name, want := range map[string]string{"first": "1", "second": "2", "third": "Unknown tool: third"} {
		equal(t, must(toolkit.Execute(context.Background(), name, nil)).Output, want)
	}
}

func TestATypeMayBringItsOwnSchemaAndHints(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	spec := toolspan.Tool("t", "d", func(context.Context, raw) (any, error) { return nil, nil },
		toolspan.InputSchema(raw(`{"type":"object","z":1.0,"a":2}`)), toolspan.DeclareHints(toolspan.Hints{ReadOnly: true}))
	got := must(newToolkit(t, engine, spec).Get("t"))
	equal(t, got.InputSchema, raw(`{"type":"object","z":1.0,"a":2,"properties":{}}`))
	equal(t, got.Hints, toolspan.Hints{ReadOnly: true})
}

func TestLargeDeepAndUnusualTextsPassOrAreRefused(t *testing.T) {
	engine := newEngine(t, toolspan.EngineOptions{})
	toolkit := newToolkit(t, engine, tool("echo", func(_ context.Context, args raw) (any, error) { return args, nil }))
	for _, args := range []string{
		`{"text":"` + strings.Repeat("x", 4<<20) + `"}`,
		`{"nul":"\u0000","emoji":"😀","html":"<&>"}`,
		`{"b":1,"a":18446744073709551616,"c":0.10}`,
	} {
		result, err := toolkit.Execute(context.Background(), "echo", raw(args))
		if err != nil || result.Output != args {
			t.Fatalf("got %.200v %v, want %.200s", result, err, args)
		}
	}
	// What no reader takes is not executed, and the model is told.
	for _, args := range []string{`{"half":"\ud83d"}`, `{"d":1E400}`} {
		equal(t, must(toolkit.Execute(context.Background(), "echo", raw(args))).IsError, true)
	}
	_, err := toolkit.Execute(context.Background(), "echo", raw(strings.Repeat(`{"d":`, 500)+"1"+strings.Repeat("}", 500)))
	refused(t, err, toolspan.ErrLimitExceeded)
	_, err = toolkit.Execute(context.Background(), "echo", raw(`{"cut`))
	refused(t, err, toolspan.ErrInvalidArgument)
	_, err = toolkit.Execute(context.Background(), "echo", func() {})
	equal(t, *refused(t, err, toolspan.ErrInvalidArgument).Path, "args")
	equal(t, must(toolkit.Execute(context.Background(), "echo", map[string]string{"bad": "\xff"})).Output, `{"bad":"\ufffd"}`)
}
