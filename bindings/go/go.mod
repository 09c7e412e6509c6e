module toolspan.dev/toolspan

go 1.24.0
