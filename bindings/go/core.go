package toolspan

import (
	"context"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"
)

// core is an engine as its operations and its pump see it. It outlives the [Engine] that a program holds until the pump
// has ended, and never refers to it, so that an engine that is forgotten can be collected.
type core struct {
	native native
	// Receives log records; nil when the program wants none.
	log func(LogRecord)
	// Sinks of the program are called one after another, in the order of what they are told.
	sinks queue
	// Closed once everything was collected.
	stopped chan struct{}

	mu sync.Mutex
	// The last number given to an operation or a function.
	last       uint64
	operations map[uint64]*operation
	// Functions of the program belong to the toolkits and clients they were given to: a closure over its own toolkit
	// keeps neither alive.
	handlers map[uint64]weak.Pointer[handler]
	// Accepted operations less terminal events. It may be negative for a moment: an operation can end before submit returns.
	running int
	polling bool
	// The pump has to go on until it sees the end.
	closing bool
}

// handler is a function of the program, of the type its kind of host call wants.
type handler struct{ function any }

// operation is one submit and what became of it.
type operation struct {
	number uint64
	// The caller's; its values are those that tools and hooks see.
	ctx context.Context
	// The terminal event; there is room for it, so the pump never waits.
	ended chan event

	mu sync.Mutex
	// Host calls under way, with what tells them that nobody waits any more.
	calls map[uint64]context.CancelCauseFunc
	// What functions of the program failed with, by number of the host call and by id of the tool call.
	failed     map[uint64]error
	failedTool map[string]error
	// Bodies of answers to requests of the program's own HTTP client.
	bodies map[uint64]*body
	// Nothing may be left behind any more.
	over bool
}

// event is what poll hands out.
type event struct {
	Type    string
	Op      uint64
	Call    uint64
	Handler uint64
	Kind    string
	Payload json.RawMessage
	Result  json.RawMessage
	Error   *Error
}

func newCore(options []setting, log func(LogRecord)) (*core, error) {
	text, err := object(append(options, setting{"hostCalls", slices.Sorted(maps.Keys(answers))}))
	if err != nil {
		return nil, err
	}
	native, err := newNative(text)
	if err != nil {
		return nil, err
	}
	c := &core{
		native:     native,
		log:        log,
		stopped:    make(chan struct{}),
		operations: map[uint64]*operation{},
		handlers:   map[uint64]weak.Pointer[handler]{},
	}
	if log != nil {
		// Also what needs no waiting is logged.
		c.keepPolling()
	}
	return c, nil
}

// call does an operation that needs no waiting.
func (c *core) call(op string, args []setting, out any) error {
	text, err := request(op, args)
	if err != nil {
		return err
	}
	return c.native.call(text, out)
}

func request(op string, args []setting) (json.RawMessage, error) {
	encoded, err := object(args)
	if err != nil {
		return nil, err
	}
	return object([]setting{{"op", op}, {"args", written(encoded)}})
}

// start submits an operation. It is known under its number before the library is, so that no event can come too early. Whoever
// starts one waits for it with await, or calls keepPolling.
func (c *core) start(ctx context.Context, op string, args []setting) (*operation, error) {
	if ctx.Err() != nil {
		return nil, &Error{Code: ErrCancelled, Message: "the caller's context was over before the operation began", cause: ended(ctx)}
	}
	text, err := request(op, args)
	if err != nil {
		return nil, err
	}
	o := &operation{ctx: ctx, ended: make(chan event, 1)}
	c.mu.Lock()
	c.last++
	o.number = c.last
	c.operations[o.number] = o
	c.mu.Unlock()

	err = c.native.submit(o.number, text)

	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.operations, o.number)
		return nil, err
	}
	c.running++
	return o, nil
}

// wait gives the result of an operation once its terminal event is there. When the caller's context ends first, the
// operation is cancelled; what it ended with is still for the library to say, so there is one outcome and nothing of the
// operation is left when this returns.
func (c *core) wait(o *operation) (json.RawMessage, error) {
	return o.outcome(c.await(o, o))
}

// await waits for an operation and cancels another, which may be the same, when the context of that one ends.
//
// Where nobody collects events, the caller does until its own is there: a goroutine of its own for that would cost a run two
// changes of threads more, which is most of what this package adds to one.
func (c *core) await(o, cancelled *operation) event {
	c.mu.Lock()
	lead := !c.polling
	c.polling = true
	c.mu.Unlock()
	if lead {
		return c.lead(o, cancelled)
	}
	select {
	case end := <-o.ended:
		return end
	case <-cancelled.ctx.Done():
		c.native.cancel(cancelled.number)
		return <-o.ended
	}
}

// lead collects events until one operation has ended, then leaves that to a pump if there is more to come.
func (c *core) lead(o, cancelled *operation) event {
	stop := context.AfterFunc(cancelled.ctx, func() { c.native.cancel(cancelled.number) })
	defer stop()
	for {
		select {
		case end := <-o.ended:
			c.handOver()
			return end
		default:
		}
		if !c.collect() {
			return <-o.ended
		}
	}
}

// run starts an operation and waits for it.
func (c *core) run(ctx context.Context, op string, args []setting, out any) error {
	o, err := c.start(ctx, op, args)
	if err != nil {
		return err
	}
	result, err := c.wait(o)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	return decode(result, out)
}

// outcome is what a terminal event means to the caller.
func (o *operation) outcome(end event) (json.RawMessage, error) {
	if end.Error == nil {
		return end.Result, nil
	}
	if end.Error.HostCall != nil {
		end.Error.cause = o.failure(uint64(*end.Error.HostCall))
	}
	if end.Type == "cancelled" {
		end.Error.cause = ended(o.ctx)
	}
	return nil, end.Error
}

func (o *operation) failure(call uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed[call]
}

// toolFailure is what the program's tool failed with in the call of that id.
func (o *operation) toolFailure(id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failedTool[id]
}

// onlyFailure is what the program's tool failed with in an operation that is one call.
func (o *operation) onlyFailure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, err := range o.failed {
		return err
	}
	return nil
}

// keepPolling makes sure that events are collected while nobody waits for any.
func (c *core) keepPolling() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.polling {
		c.polling = true
		go c.pump()
	}
}

// handOver starts a pump in place of the caller if one is needed.
func (c *core) handOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.polling = c.needed(); c.polling {
		go c.pump()
	}
}

// needed says whether there are events to come. The caller holds the lock.
func (c *core) needed() bool { return c.running > 0 || c.log != nil || c.closing }

// pump collects events until nothing runs any more (or, with a log, until the engine is closed).
func (c *core) pump() {
	for c.collect() {
		c.mu.Lock()
		c.polling = c.needed()
		over := !c.polling
		c.mu.Unlock()
		if over {
			return
		}
	}
}

// collect waits for events and delivers them; false at the end of the engine. It runs no function of the program. While it
// waits it holds a thread of the operating system inside the library, and no lock; one goroutine is in it at a time.
func (c *core) collect() bool {
	var events []event
	closed, err := c.native.poll(&events)
	for _, event := range events {
		c.deliver(event)
	}
	if !closed && err == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop(err)
	return false
}

// stop ends the pump for good, with the engine or after a defect. What still waits is told. The caller holds the lock.
func (c *core) stop(err error) {
	c.polling = false
	record, ok := err.(*Error)
	if !ok {
		record = &Error{Code: ErrClosed, Message: "the engine was closed"}
	}
	for number, o := range c.operations {
		delete(c.operations, number)
		o.finish()
		o.ended <- event{Type: "failed", Op: number, Error: record}
	}
	c.running = 0
	select {
	case <-c.stopped:
	default:
		close(c.stopped)
	}
}

func (c *core) deliver(e event) {
	c.mu.Lock()
	o := c.operations[e.Op]
	switch e.Type {
	case "done", "failed", "cancelled":
		delete(c.operations, e.Op)
		c.running--
	}
	c.mu.Unlock()
	switch e.Type {
	case "host_call":
		if e.Call == 0 {
			c.notify(o, e)
		} else {
			c.serve(o, e)
		}
	case "host_call_cancelled":
		if o != nil {
			o.cancelCall(e.Call)
		}
	case "done", "failed", "cancelled":
		if o != nil {
			o.finish()
			o.ended <- e
		}
	}
}

// register numbers a function of the program. It stays known as long as something holds the handler.
func (c *core) register(function any) (uint64, *handler) {
	h := &handler{function}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.handlers[c.last] = weak.Make(h)
	runtime.AddCleanup(h, c.forget, c.last)
	return c.last, h
}

func (c *core) forget(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.handlers, number)
}

func (c *core) handler(number uint64) *handler {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handlers[number].Value()
}

// close ends everything that is open and waits for what is still to be told. It says whether the time sufficed.
func (c *core) close(timeout time.Duration) bool {
	deadline := time.Now().Add(timeout)
	complete := c.native.close(timeout)
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	select {
	case <-c.stopped:
	default:
		c.keepPolling()
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-c.stopped:
		return c.sinks.drain(time.Until(deadline)) && complete
	case <-timer.C:
	}
	// What was not told in time is told later, but nothing of the program is called any more.
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.operations {
		o.finish()
	}
	return false
}
