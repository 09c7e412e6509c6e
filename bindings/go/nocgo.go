//go:build !cgo

package toolspan

// The name is the message: the compiler says that it is undefined.
var _ = toolspan_needs_cgo_set_CGO_ENABLED_1_and_CC_to_a_C_compiler_for_the_target
