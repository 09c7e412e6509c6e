package toolspan

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"time"
)

// closeTimeout is how long [Engine.Close] waits; [Engine.Shutdown] waits as long as its context.
const closeTimeout = 5 * time.Second

// EngineOptions are the options of [NewEngine].
type EngineOptions struct {
	// Log receives the library's log records, one after another and off the caller's goroutines; the library prints
	// nothing. [LogTo] makes one of a [log/slog.Handler].
	Log func(record LogRecord) `json:"-"`
	// LogLevel is the least level wanted. Every record when nil.
	LogLevel *LogLevel `json:"log,omitzero"`
	// Workers is the number of threads. The library's own choice when nil.
	Workers *int `json:"workers,omitzero"`
}

// Engine has threads, toolkits, clients and logs of its own. Most programs use [NewToolkit] and [NewClient] and never make
// one. All methods may be called from any goroutine.
type Engine struct{ core *core }

// NewEngine makes an engine. Nothing is started before there is something to do, but for what hands records to a log.
//
// Errors: [ErrABIMismatch] when the library that was loaded does not belong to this package, [ErrInvalidArgument] with the path
// of the option.
func NewEngine(options EngineOptions) (*Engine, error) {
	if err := checkLibrary(); err != nil {
		return nil, err
	}
	if options.Log != nil && options.LogLevel == nil {
		options.LogLevel = Ptr(LogDebug)
	}
	core, err := newCore(settingsOf(options), options.Log)
	if err != nil {
		return nil, err
	}
	engine := &Engine{core}
	runtime.AddCleanup(engine, native.free, core.native)
	return engine, nil
}

var shared = sync.OnceValues(func() (*Engine, error) { return NewEngine(EngineOptions{}) })

// Counters tells what is open and running in this engine.
func (e *Engine) Counters() (Counters, error) {
	var counters Counters
	err := e.core.call("counters", nil, &counters)
	runtime.KeepAlive(e)
	return counters, err
}

// Version is that of the library.
func (e *Engine) Version() (string, error) {
	var about struct{ Version string }
	err := e.core.call("version", nil, &about)
	runtime.KeepAlive(e)
	return about.Version, err
}

// Close ends everything that is open, also what runs: that fails with [ErrClosed]. It waits up to five seconds, and gives
// [ErrTimeout] when that was not enough and it goes on behind. Nothing of the program is called after it has returned, but for
// sinks and tools that do not return themselves. It may be called again.
func (e *Engine) Close() error { return e.close(closeTimeout) }

// Shutdown is Close that waits as long as ctx allows. It gives the error of ctx when that was not enough, and [ErrTimeout] when an
// earlier Close has abandoned something.
func (e *Engine) Shutdown(ctx context.Context) error {
	timeout := time.Duration(math.MaxInt64)
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	done := make(chan error, 1)
	go func() { done <- e.close(timeout) }()
	select {
	case err := <-done:
		// Both look at the same clock, and it is the error of ctx that was promised.
		if deadline, ok := ctx.Deadline(); err == nil || !ok || time.Now().Before(deadline) {
			return err
		}
		<-ctx.Done()
	case <-ctx.Done():
	}
	return ended(ctx)
}

func (e *Engine) close(timeout time.Duration) error {
	defer runtime.KeepAlive(e)
	if !e.core.close(timeout) {
		return &Error{Code: ErrTimeout, Message: "not everything had ended in time; what is left was abandoned"}
	}
	return nil
}

// Version is that of the library.
func Version() (string, error) {
	engine, err := shared()
	if err != nil {
		return "", err
	}
	return engine.Version()
}

// Ptr points to a value: for options that tell nothing from a zero, such as ClientOptions{Retries: toolspan.Ptr(0)}.
func Ptr[T any](value T) *T { return &value }

// owned is a toolkit, client or conversation of the library, with the functions of the program that were given to it.
type owned struct {
	engine  *Engine
	kind    string
	number  uint64
	net     runtime.Cleanup
	closing func() error

	mu       sync.Mutex
	handlers []*handler
}

// adopt makes o, a part of object, the counterpart of a number of the library. It is closed when object is collected: a net for
// programs that forget, no more.
func adopt[T any](object *T, o *owned, engine *Engine, kind string, number uint64, handlers []*handler) {
	o.engine, o.kind, o.number, o.handlers = engine, kind, number, handlers
	o.closing = sync.OnceValue(o.end)
	core := engine.core
	o.net = runtime.AddCleanup(object, func(number uint64) {
		// Nobody waits; when the engine is closed, so is this.
		if _, err := core.start(context.Background(), kind+".close", []setting{{kind, number}}); err == nil {
			core.keepPolling()
		}
	}, number)
}

func (o *owned) self() setting { return setting{o.kind, o.number} }

// call does an operation of the object that needs no waiting.
func (o *owned) call(op string, out any, args ...setting) error {
	return o.engine.core.call(op, append([]setting{o.self()}, args...), out)
}

// run does an operation of the object and waits for it.
func (o *owned) run(ctx context.Context, op string, out any, args ...setting) error {
	return o.engine.core.run(ctx, op, append([]setting{o.self()}, args...), out)
}

// end closes the counterpart.
func (o *owned) end() error {
	o.net.Stop()
	err := o.run(context.Background(), o.kind+".close", nil)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handlers = nil
	// With the engine everything of it was closed.
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}
