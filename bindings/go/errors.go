package toolspan

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Code says what went wrong. The list is closed and equal in every language (SPEC 8); its values are the Err constants,
// which are errors themselves, so that errors.Is(err, toolspan.ErrRateLimited) asks for one.
type Code string

// Error is the code's text.
func (c Code) Error() string { return string(c) }

// Error reads "code: path: message" (SPEC 8).
func (e *Error) Error() string {
	if e.Path != nil {
		return fmt.Sprintf("%s: %s: %s", e.Code, *e.Path, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Is reports whether target is the code of this error.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap gives what lies below: what a function of the program returned (or a [*PanicError] for its panic), or why the
// caller's context ended (then [context.Canceled] or [context.DeadlineExceeded] is in the chain), or else the chain of
// the library.
func (e *Error) Unwrap() error {
	if e.cause != nil {
		return e.cause
	}
	if len(e.Cause) == 0 {
		return nil
	}
	return chain(e.Cause)
}

// RetryAfter is how long to wait before trying again, where the provider said so.
func (e *Error) RetryAfter() (time.Duration, bool) {
	if e.RetryAfterMs == nil {
		return 0, false
	}
	return time.Duration(*e.RetryAfterMs) * time.Millisecond, true
}

// chain is a cause of the library with those below it.
type chain []Cause

func (c chain) Error() string { return c[0].Message }

func (c chain) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == c[0].Code
}

func (c chain) Unwrap() error {
	if len(c) == 1 {
		return nil
	}
	return c[1:]
}

// PanicError is the panic of a function of the program, such as a tool. It was recovered; the process goes on.
type PanicError struct {
	// Value is what was given to panic.
	Value any
	// Stack is that of the goroutine, as [runtime/debug.Stack] writes it.
	Stack []byte
}

// Error is the value's text.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap gives the value where it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// errGoexit is what a function of the program fails with that ended its goroutine.
var errGoexit = errors.New("the function ended its goroutine (runtime.Goexit) instead of returning")

// ended is why a context is over; both its error and its cause are in the chain.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func invalid(path, format string, args ...any) *Error {
	return &Error{Code: ErrInvalidArgument, Path: &path, Message: fmt.Sprintf(format, args...)}
}
