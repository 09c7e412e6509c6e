//go:build cgo && toolspan_pkgconfig && !toolspan_static

package toolspan

// #cgo pkg-config: toolspan
import "C"
