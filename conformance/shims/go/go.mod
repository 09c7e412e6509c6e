module toolspan.dev/toolspan/conformance/shim

go 1.24.0

require toolspan.dev/toolspan v0.0.0

replace toolspan.dev/toolspan => ../../../bindings/go
