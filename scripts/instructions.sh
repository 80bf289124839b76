#!/usr/bin/env bash
# Counts the instructions that the simulation of a delivered packet takes, by layer
# (scripts/instructions.py). Installs valgrind where it is missing.
# Usage: scripts/instructions.sh [table|check|write]
set -euo pipefail
cd "$(dirname "$0")/.."
verb=${1:-table}
scripts/setup.sh instructions
built=$("${CARGO:-cargo}" build --quiet --locked --profile bench -p udccp-scenario --bench mixes \
    --message-format=json)
program=$(sed -n 's/.*"name":"mixes".*"executable":"\([^"]*\)".*/\1/p' <<<"$built")
exec python3 scripts/instructions.py "$verb" "$program" scripts/instructions.txt
