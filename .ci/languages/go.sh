# Go: format, vet, tests, the race detector and the checks of what crosses into C.
test_go() {
  have go && have cc || { not_run "go" "no go with a C compiler"; return; }
  step "go tests" make -C bindings/go BUILD="$BIN" test
  step "go race and pointer checks" make -C bindings/go BUILD="$BIN" race
  PORTS+=,go
}

bench_go() {
  have go && have cc || { not_run "go" "no go with a C compiler"; return; }
  cargo build --release --quiet -p toolspan-capi
  make --no-print-directory -s -C bindings/go BUILD="$BIN" OUT="$CARGO_TARGET_DIR/go" bench
  row go 0.10 "$CARGO_TARGET_DIR/go/bench"
}
