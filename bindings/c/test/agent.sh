#!/usr/bin/env bash
# Runs the example against a scripted model: agent.sh FIXTURES COMMAND... must print the answer and nothing else.
set -euo pipefail
fixtures=$1
shift
coproc MODEL { exec "$fixtures" llm --script "$(dirname "$0")/model.json"; }
read -r line <&"${MODEL[0]}"
said=$(TOOLSPAN_BASE_URL=$(sed -E 's/.*"baseUrl":"([^"]+)".*/\1/' <<<"$line") TOOLSPAN_MODEL=scripted "$@" "What is 2 + 2?" 2>/dev/null)
[ "$said" = "It is 4." ] || { echo "the agent said: $said" >&2; exit 1; }
