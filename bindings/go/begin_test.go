package toolspan

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// What the events of an engine do when they are delivered later than they came.

// late is an engine whose only tool counts its calls, with one call of it that nobody collected yet.
type late struct {
	core    *core
	call    *operation
	events  []event
	entered *atomic.Int32
}

func newLate(t *testing.T, ctx context.Context) *late {
	t.Helper()
	engine, err := NewEngine(EngineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	l := &late{core: engine.core, entered: new(atomic.Int32)}
	toolkit, err := engine.NewToolkit(context.Background(), Tools(Tool("count", "d", func(context.Context, json.RawMessage) (any, error) {
		return l.entered.Add(1), nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runtime.KeepAlive(toolkit) })
	if l.call, err = l.core.start(ctx, "toolkit.execute", []setting{toolkit.self(), {"name", "count"}}); err != nil {
		t.Fatal(err)
	}
	l.collect(t, "host_call")
	return l
}

// collect takes events, and delivers none, until one of that type is there.
func (l *late) collect(t *testing.T, until string) {
	t.Helper()
	for {
		var events []event
		if _, err := l.core.native.poll(&events); err != nil {
			t.Fatal(err)
		}
		l.events = append(l.events, events...)
		for _, e := range events {
			if e.Type == until {
				return
			}
		}
	}
}

// deliver delivers what was collected before any goroutine that this starts gets a processor.
func (l *late) deliver() {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, e := range l.events {
		l.core.deliver(e)
	}
	l.events = nil
}

func TestAToolIsNotStartedWhenItsCallIsOver(t *testing.T) {
	for want, end := range map[Code]func(*late){
		ErrCancelled: func(l *late) { l.core.native.cancel(l.call.number) },
		ErrClosed:    func(l *late) { l.core.native.close(time.Minute) },
	} {
		l := newLate(t, context.Background())
		current := goleak.IgnoreCurrent()
		end(l)
		l.collect(t, map[Code]string{ErrCancelled: "cancelled", ErrClosed: "failed"}[want])
		l.deliver()
		if _, err := l.call.outcome(<-l.call.ended); !errors.Is(err, want) {
			t.Fatalf("got %v, want %s", err, want)
		}
		goleak.VerifyNone(t, current)
		if count := l.entered.Load(); count != 0 {
			t.Fatalf("%s: the tool was called %d times", want, count)
		}
	}
}

func TestAToolIsNotStartedWhenTheContextOfItsCallerIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	l := newLate(t, ctx)
	current := goleak.IgnoreCurrent()
	cancel()
	l.deliver()
	// Nor is it answered for: that could make a failure of what was cancelled.
	goleak.VerifyNone(t, current)
	if _, err := l.core.wait(l.call); !errors.Is(err, ErrCancelled) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if count := l.entered.Load(); count != 0 {
		t.Fatalf("the tool was called %d times", count)
	}
}

func TestACloseThatFindsAnotherUnderWayKeepsToItsOwnTime(t *testing.T) {
	l := newLate(t, context.Background())
	// As while another Close waits for servers: events are still to come.
	l.core.polling = true
	complete := make(chan bool, 1)
	go func() { complete <- l.core.close(20 * time.Millisecond) }()
	select {
	case complete := <-complete:
		if complete {
			t.Fatal("it says that everything has ended")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the other")
	}
	current := goleak.IgnoreCurrent()
	l.deliver()
	goleak.VerifyNone(t, current)
	if count := l.entered.Load(); count != 0 {
		t.Fatalf("the tool was called %d times", count)
	}
	l.core.pump()
}
