#!/usr/bin/env bash
# Builds the shim of the conformance suite and puts it beside the runner: shim.sh FOLDER, which also holds the library.
set -euo pipefail
package=$(cd "$(dirname "$0")/.." && pwd)
bin=$(cd "$1" && pwd)
build=$bin/../swift
export TOOLSPAN_LIBRARY_DIR=$bin
swift build --package-path "$package" --scratch-path "$build" --product toolspan-shim
built=$(swift build --package-path "$package" --scratch-path "$build" --show-bin-path)/toolspan-shim
# A toolchain that brings its own C library says how its programs are started (see .ci/languages/swift.sh).
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "${SWIFT_LOADER:-}" "$built" >"$bin/toolspan-shim-swift"
chmod +x "$bin/toolspan-shim-swift"
