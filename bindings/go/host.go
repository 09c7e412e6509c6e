package toolspan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// The program's functions as the library calls them: one entry per kind of host call.

// hostCall is one call of a function of the program.
type hostCall struct {
	operation *operation
	number    uint64
	ctx       context.Context
	function  any
	payload   json.RawMessage
}

// errUnwanted ends a call that nobody waits for any more before the program's function is entered.
var errUnwanted = errors.New("nobody waits for this call any more")

// begin reads what a function is told. It is the last step before the function: one whose call was taken back, or whose operation
// or engine has ended, is not entered.
func begin[T any](call hostCall) (T, error) {
	about, err := decoded[T](call.payload)
	if err == nil && !call.operation.wants(call.number) {
		err = errUnwanted
	}
	return about, err
}

// answers are the kinds that want an answer.
var answers map[string]func(hostCall) (any, error)

// notices are the kinds that want none. Each gives what there is to call, in order and off the pump.
var notices map[string]func(c *core, function any, payload json.RawMessage) func()

func init() {
	answers = map[string]func(hostCall) (any, error){
		"tool.execute":    executeTool,
		"hook.beforeLLM":  hook[BeforeLLM, *LLMChange],
		"hook.afterLLM":   afterLLM,
		"hook.beforeTool": hook[BeforeTool, *CallChange],
		"hook.afterTool":  afterTool,
		"bodyTransform":   transformBody,
		"onError":         decide,
		"store.get":       loadTranscript,
		"store.save":      saveTranscript,
		"http.send":       sendRequest,
		"http.read":       readBody,
	}
	notices = map[string]func(*core, any, json.RawMessage) func(){
		"metric": metricNotice,
		"log":    logNotice,
	}
}

// ToolInvocation is what a tool may know about the call it serves.
type ToolInvocation struct {
	// Name is that of the tool.
	Name string
	// CallID is the id the model gave the call; empty outside a run.
	CallID string
	// Timeout is the budget of the call; 0 where it has none.
	Timeout time.Duration
}

type invocationKey struct{}

// InvocationFrom gives what a tool may know about the call it serves, out of the context the tool was given.
func InvocationFrom(ctx context.Context) (ToolInvocation, bool) {
	about, ok := ctx.Value(invocationKey{}).(ToolInvocation)
	return about, ok
}

func executeTool(call hostCall) (any, error) {
	about, err := begin[struct {
		Name      string
		Args      json.RawMessage
		CallID    string
		TimeoutMs int64
	}](call)
	// Its effects would come behind the end that the caller asked for. Other functions go on: a store keeps what was done.
	if err == nil && call.operation.ctx.Err() != nil {
		err = errUnwanted
	}
	if err != nil {
		return nil, err
	}
	ctx := context.WithValue(call.ctx, invocationKey{}, ToolInvocation{
		Name: about.Name, CallID: about.CallID, Timeout: time.Duration(about.TimeoutMs) * time.Millisecond,
	})
	value, err := call.function.(toolFunction)(ctx, about.Args)
	if err != nil {
		return nil, err
	}
	switch result := value.(type) {
	case ToolResult:
		return struct {
			Result ToolResult `json:"result"`
		}{result}, nil
	case *ToolResult:
		if result != nil {
			return struct {
				Result *ToolResult `json:"result"`
			}{result}, nil
		}
	}
	return struct {
		Value any `json:"value"`
	}{value}, nil
}

func hook[In, Out any](call hostCall) (any, error) {
	about, err := begin[In](call)
	if err != nil {
		return nil, err
	}
	return call.function.(func(context.Context, In) (Out, error))(call.ctx, about)
}

func afterLLM(call hostCall) (any, error) {
	about, err := begin[AfterLLM](call)
	if err != nil {
		return nil, err
	}
	return nil, call.function.(func(context.Context, AfterLLM) error)(call.ctx, about)
}

func afterTool(call hostCall) (any, error) {
	result, err := hook[AfterTool, *ToolResult](call)
	if err != nil || result.(*ToolResult) == nil {
		return nil, err
	}
	return &CallChange{Result: result.(*ToolResult)}, nil
}

func transformBody(call hostCall) (any, error) {
	about, err := begin[struct{ Body json.RawMessage }](call)
	if err != nil {
		return nil, err
	}
	return call.function.(func(context.Context, json.RawMessage) (json.RawMessage, error))(call.ctx, about.Body)
}

func decide(call hostCall) (any, error) {
	decision, err := hook[RequestFailure, Decision](call)
	if err != nil || decision == NoDecision {
		return nil, err
	}
	return decision, nil
}

func loadTranscript(call hostCall) (any, error) {
	about, err := begin[struct{ ID string }](call)
	if err != nil {
		return nil, err
	}
	return call.function.(ConversationStore).Get(call.ctx, about.ID)
}

func saveTranscript(call hostCall) (any, error) {
	about, err := begin[struct {
		ID         string
		Transcript json.RawMessage
	}](call)
	if err != nil {
		return nil, err
	}
	return nil, call.function.(ConversationStore).Save(call.ctx, about.ID, about.Transcript)
}

func metricNotice(_ *core, function any, payload json.RawMessage) func() {
	metric, err := decodeMetricEvent(payload)
	if err != nil || metric == nil || function == nil {
		return nil
	}
	return func() { function.(func(MetricEvent))(metric) }
}

func logNotice(c *core, _ any, payload json.RawMessage) func() {
	record, err := decoded[LogRecord](payload)
	if err != nil || c.log == nil {
		return nil
	}
	return func() { c.log(record) }
}

// notify hands the program something that wants no answer.
func (c *core) notify(o *operation, e event) {
	if e.Kind == "http.close" {
		if o != nil {
			go o.closeBody(e.Payload)
		}
		return
	}
	notice := notices[e.Kind]
	if notice == nil {
		return
	}
	var function any
	if h := c.handler(e.Handler); h != nil {
		function = h.function
	}
	if call := notice(c, function, e.Payload); call != nil {
		c.sinks.push(call, c.lost)
	}
}

// lost tells the log how much the program's sinks missed.
func (c *core) lost(count int) {
	if c.log != nil {
		c.log(LogRecord{Level: LogWarn, Target: "bridge", Message: fmt.Sprintf(
			"%d log and metric events were dropped because the program's sinks lag behind", count)})
	}
}

// serve answers a host call in a goroutine of its own.
func (c *core) serve(o *operation, e event) {
	h := c.handler(e.Handler)
	if o == nil {
		// The operation has ended meanwhile, and nobody waits.
		return
	}
	call := hostCall{operation: o, number: e.Call, ctx: o.startCall(e.Call), payload: e.Payload}
	go func() {
		var reply json.RawMessage
		err := errGoexit
		// Deferred, so that a function that ends its goroutine is answered for as well.
		defer func() {
			if err == errUnwanted {
				return
			}
			if err != nil {
				o.fail(e.Call, e.Payload, err)
				reply = failure(err)
			}
			if o.endCall(e.Call) {
				// Refused when nobody waits any more, or when the library could not read it and has failed the call.
				_ = c.native.respond(e.Call, reply)
			}
		}()
		reply, err = answer(call, e.Kind, h)
	}()
}

// answer is the reply of a function of the program. Its panic is a failure like any other.
func answer(call hostCall, kind string, h *handler) (reply json.RawMessage, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = &PanicError{Value: panicked, Stack: debug.Stack()}
		}
	}()
	if h == nil {
		return nil, errors.New("nothing of the program serves this call any more")
	}
	call.function = h.function
	value, err := answers[kind](call)
	if err != nil {
		return nil, err
	}
	encoded, err := encode(value)
	if err != nil {
		return nil, err
	}
	return object([]setting{{"ok", written(encoded)}})
}

// failure is the reply that says a function of the program failed. Formatting survives whatever the error does.
func failure(err error) json.RawMessage {
	reply, _ := object([]setting{{"error", map[string]string{"message": fmt.Sprintf("%v", err), "type": fmt.Sprintf("%T", err)}}})
	return reply
}

// startCall is the context of a host call: the caller's values and deadline, ended by the library alone. Were it also ended by
// the caller's context, a function that gives up at once could make a cancelled operation look like a failed one.
func (o *operation) startCall(call uint64) context.Context {
	ctx, cancel := context.WithCancelCause(callContext{context.WithoutCancel(o.ctx), o.ctx})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == nil {
		o.calls = map[uint64]context.CancelCauseFunc{}
	}
	o.calls[call] = cancel
	return ctx
}

// callContext tells the caller's deadline.
type callContext struct {
	context.Context
	caller context.Context
}

func (c callContext) Deadline() (time.Time, bool) { return c.caller.Deadline() }

// wants says whether somebody waits for a call. That the caller's context is over takes nothing back by itself: a store still keeps
// what was done.
func (o *operation) wants(call uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[call] != nil && !o.over
}

// endCall says whether an answer is still wanted.
func (o *operation) endCall(call uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	cancel, wanted := o.calls[call]
	if wanted {
		delete(o.calls, call)
		cancel(nil)
	}
	return wanted
}

// cancelCall tells a function that nobody waits for it any more.
func (o *operation) cancelCall(call uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cancel := o.calls[call]; cancel != nil {
		delete(o.calls, call)
		cancel(o.reason())
	}
}

// finish ends what an operation that has ended left behind: functions that still run, and bodies that were not read.
func (o *operation) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	for call, cancel := range o.calls {
		delete(o.calls, call)
		cancel(o.reason())
	}
	for number, b := range o.bodies {
		if b != nil {
			o.bodies[number] = nil
			go b.Close()
		}
	}
}

// reason is why nobody waits for a function any more.
func (o *operation) reason() error {
	if cause := ended(o.ctx); cause != nil {
		return cause
	}
	return ErrCancelled
}

// fail keeps what a function of the program failed with, for the caller of the operation.
func (o *operation) fail(call uint64, payload json.RawMessage, err error) {
	var about struct{ CallID string }
	_ = json.Unmarshal(payload, &about)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed, o.failedTool = map[uint64]error{}, map[string]error{}
	}
	o.failed[call] = err
	if about.CallID != "" {
		o.failedTool[about.CallID] = err
	}
}
