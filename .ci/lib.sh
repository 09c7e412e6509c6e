# Shared by the scripts behind `make`: steps with a summary, and what this machine has.
set -uo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target} PYO3_BUILD_EXTENSION_MODULE=1
BIN=$CARGO_TARGET_DIR/debug
LOGS=$CARGO_TARGET_DIR/logs
mkdir -p "$LOGS"

have() { command -v "$1" >/dev/null 2>&1; }

ROWS=()
FAILED=0

# step NAME COMMAND...: runs it, keeps its output, shows it only when it fails.
step() {
  local name=$1 start=$SECONDS log=$LOGS/${1//[^A-Za-z0-9]/-}.log
  shift
  printf '%-44s' "$name"
  if "$@" >"$log" 2>&1 </dev/null; then
    ROWS+=("$name|passed|$((SECONDS - start)) s")
    echo "ok   $((SECONDS - start)) s"
  else
    ROWS+=("$name|FAILED|$((SECONDS - start)) s")
    FAILED=$((FAILED + 1))
    echo "FAILED   $((SECONDS - start)) s"
    tail -n 60 "$log"
  fi
}

# not_run NAME REASON: a part that this machine cannot run; never counted as passed.
not_run() {
  printf '%-44snot run: %s\n' "$1" "$2"
  ROWS+=("$1|not run|$2")
}

# venv: a Python environment of the tests' own, with what they need. Prints its python.
venv() {
  local dir=$CARGO_TARGET_DIR/venv
  if [ ! -x "$dir/bin/python" ]; then
    python3 -m venv "$dir" >&2 || return 1
  fi
  if ! cmp -s bindings/python/requirements-test.txt "$dir/requirements.done"; then
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check -r bindings/python/requirements-test.txt >&2 || return 1
    cp bindings/python/requirements-test.txt "$dir/requirements.done"
  fi
  echo "$dir/bin/python"
}

# What each language does in `make test` and `make bench`: functions test_NAME and bench_NAME.
LANGUAGES=(c python node jvm go dotnet swift)
for language in "${LANGUAGES[@]}"; do . "$ROOT/.ci/languages/$language.sh"; done
