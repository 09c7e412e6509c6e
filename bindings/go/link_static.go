//go:build cgo && toolspan_static

package toolspan

// The library inside the program. A program can hold one Rust library in this way: see "Another Rust library" in README.md.

// #cgo linux LDFLAGS: -l:libtoolspan.a -lm -ldl -lpthread
// #cgo darwin LDFLAGS: -ltoolspan -framework Security -framework CoreFoundation -framework SystemConfiguration
import "C"
