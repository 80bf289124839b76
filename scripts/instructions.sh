#!/usr/bin/env bash
# Counts the instructions per delivered packet of a simulation, by layer (scripts/instructions.py),
# or per bulk message over the sockets, for both ends (scripts/instructions_bulk.py; must be allowed
# to create network namespaces). Installs valgrind if it is missing.
# Usage: scripts/instructions.sh [table|check|write|bulk]
set -euo pipefail
cd "$(dirname "$0")/.."
verb=${1:-table}
scripts/setup.sh instructions
if [ "$verb" = bulk ]; then
    "${CARGO:-cargo}" build --quiet --locked --profile bench -p udccp-bench
    exec python3 scripts/instructions_bulk.py "${CARGO_TARGET_DIR:-target}/release/udccp-bench"
fi
built=$("${CARGO:-cargo}" build --quiet --locked --profile bench -p udccp-scenario --bench mixes \
    --message-format=json)
program=$(sed -n 's/.*"name":"mixes".*"executable":"\([^"]*\)".*/\1/p' <<<"$built")
exec python3 scripts/instructions.py "$verb" "$program" scripts/instructions.txt
