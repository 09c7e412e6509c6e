# C: the header, the example, leaks.
test_c() {
  have cc || { not_run "c" "no C compiler"; return; }
  step "c build" make -C bindings/c BUILD="$BIN"
  step "c tests" make -C bindings/c BUILD="$BIN" test
  if have valgrind; then
    step "c leak check" make -C bindings/c BUILD="$BIN" valgrind
  else
    not_run "c leak check" "no valgrind"
  fi
  PORTS+=,c
}

bench_c() {
  have cc || { not_run "c" "no C compiler"; return; }
  cargo build --release --quiet -p toolspan-capi
  cc -O2 -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -Ibindings/c/include -Ibindings/c/examples \
    conformance/bench/bench.c -o "$BIN/bench-c" -L"$BIN" -ltoolspan_capi -Wl,-rpath,"$BIN"
  # The library is named as it will be installed.
  ln -sf libtoolspan_capi.so "$BIN/libtoolspan.so.0"
  row c 0.10 "$BIN/bench-c"
  SIZES+=("$BIN/libtoolspan_capi.so")
}
