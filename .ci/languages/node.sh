# Node: the native module beside the package, its tests and type checks.
node_module() { install -m 755 "$BIN/libtoolspan_node.so" bindings/node/toolspan.node; }

test_node() {
  have node && have npm || { not_run "node" "no node with npm"; return; }
  node_module
  step "node packages" npm --prefix bindings/node ci --silent --no-audit --no-fund
  step "node tests" npm --prefix bindings/node test --silent
  PORTS+=,node
}

bench_node() {
  have node || { not_run "node" "no node"; return; }
  cargo build --release --quiet -p toolspan-node
  node_module
  row node 0.25 "node conformance/bench/bench.mjs"
  SIZES+=("$BIN/libtoolspan_node.so")
}
