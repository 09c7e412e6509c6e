//go:build cgo && !toolspan_static && !toolspan_pkgconfig

package toolspan

// The shared library, where the compiler looks for libraries; CGO_LDFLAGS="-L DIR" names another place.

// #cgo LDFLAGS: -ltoolspan
import "C"
