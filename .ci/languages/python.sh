# Python: the extension module beside the package, pytest.
python_module() { install -m 755 "$BIN/lib_toolspan.so" bindings/python/python/toolspan/_toolspan.abi3.so; }

test_python() {
  local python
  have python3 && python=$(venv) || { not_run "python" "no python3 with venv"; return; }
  python_module
  step "python tests" env PYTHONPATH=bindings/python/python "$python" -m pytest -q bindings/python/tests
  PORTS+=,python
}

bench_python() {
  have python3 || { not_run "python" "no python3"; return; }
  cargo build --release --quiet -p toolspan-python
  python_module
  export PYTHONPATH=$ROOT/bindings/python/python
  row python 0.25 "python3 conformance/bench/bench.py"
}
