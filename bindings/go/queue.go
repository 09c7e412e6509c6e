package toolspan

import (
	"sync"
	"time"
)

// queueLimit is how much a sink may lag behind, as in the library itself (SPEC 9).
const queueLimit = 8192

// queue calls functions one after another in a goroutine that lives while there is something to do.
type queue struct {
	mu      sync.Mutex
	waiting []func()
	dropped int
	// Closed when the goroutine ends; nil when there is none.
	idle chan struct{}
}

// push adds a call; beyond the limit it is dropped. lost is called with the number of those once there is room again.
func (q *queue) push(call func(), lost func(int)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= queueLimit {
		q.dropped++
		return
	}
	if q.dropped > 0 {
		count := q.dropped
		q.dropped = 0
		q.waiting = append(q.waiting, func() { lost(count) })
	}
	q.waiting = append(q.waiting, call)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.work(q.idle)
	}
}

func (q *queue) work(idle chan struct{}) {
	for {
		q.mu.Lock()
		batch := q.waiting
		q.waiting = nil
		if len(batch) == 0 {
			q.idle = nil
			close(idle)
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		for _, call := range batch {
			protected(call)
		}
	}
}

// protected calls a sink. What it panics with has nowhere to go: nobody waits for it, and it must not end the process.
func protected(call func()) {
	defer func() { _ = recover() }()
	call()
}

// drain waits until nothing is left to call, and says whether the time sufficed.
func (q *queue) drain(timeout time.Duration) bool {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return true
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}
