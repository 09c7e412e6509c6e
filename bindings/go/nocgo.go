//go:build !cgo

package toolspan

import "time"

// The name is the message: the compiler says that it is undefined, and nothing else.
var _ = toolspan_needs_cgo_set_CGO_ENABLED_1_and_CC_to_a_C_compiler_for_the_target

// What the rest of the package refers to, see native.go.
type native uint64

func checkLibrary() error                   { return nil }
func newNative([]byte) (native, error)      { return 0, nil }
func (native) call([]byte, any) error       { return nil }
func (native) submit(uint64, []byte) error  { return nil }
func (native) respond(uint64, []byte) error { return nil }
func (native) poll(*[]event) (bool, error)  { return true, nil }
func (native) cancel(uint64)                {}
func (native) close(time.Duration) bool     { return true }
func (native) free()                        {}
