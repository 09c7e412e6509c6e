module toolspan.dev/toolspan/conformance/bench

go 1.24.0

require toolspan.dev/toolspan v0.0.0

replace toolspan.dev/toolspan => ../../../bindings/go
