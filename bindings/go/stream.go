package toolspan

import (
	"context"
	"encoding/json"
	"iter"
	"runtime"
)

// Stream is the run of [Client.Run], event by event; the last is a [DoneEvent]. The run starts when the loop does, and each loop
// over the sequence is a run of its own. An error is the last thing a loop is given. Leaving the loop, also by a panic, ends the
// run and its connection before the loop is left; a loop that reads slowly slows the sender.
func (c *Client) Stream(ctx context.Context, prompt string, toolkit *Toolkit, options ...RunOption) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		defer runtime.KeepAlive(toolkit)
		defer runtime.KeepAlive(c)
		args, err := c.args(toolkit, prompt, options)
		if err != nil {
			yield(nil, err)
			return
		}
		core := c.engine.core
		o, err := core.start(ctx, "client.stream", args)
		if err != nil {
			yield(nil, err)
			return
		}
		// Tools are called while the loop's body runs, too.
		core.keepPolling()
		left, err := core.read(o, yield)
		core.native.cancel(o.number)
		// How the stream ended says more than why it could not be read any further.
		if _, outcome := o.outcome(<-o.ended); outcome != nil {
			err = outcome
		}
		if !left && err != nil {
			yield(nil, err)
		}
	}
}

// read hands out the events of a stream until it is at its end. It says whether the loop was left before.
func (c *core) read(o *operation, yield func(Event, error) bool) (left bool, err error) {
	finished := false
	defer func() {
		if !finished {
			c.native.cancel(o.number)
			<-o.ended
		}
	}()
	for {
		var batch struct {
			Items []json.RawMessage
			End   bool
		}
		if err := c.next(o, &batch); err != nil {
			finished = true
			return false, err
		}
		for _, item := range batch.Items {
			event, err := decodeEvent(item)
			if err != nil {
				finished = true
				return false, err
			}
			if done, ok := event.(DoneEvent); ok {
				o.explain(&done.Result)
			}
			if event != nil && !yield(event, nil) {
				finished = true
				return true, nil
			}
		}
		if batch.End {
			finished = true
			return false, nil
		}
	}
}

// next waits for the next events. When the caller's context ends, it is the stream that is cancelled.
func (c *core) next(stream *operation, out any) error {
	o, err := c.start(context.WithoutCancel(stream.ctx), "stream.next", []setting{{"stream", stream.number}})
	if err != nil {
		return err
	}
	text, err := o.outcome(c.await(o, stream))
	if err != nil {
		return err
	}
	return decode(text, out)
}
