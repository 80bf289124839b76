#!/usr/bin/env bash
# Measures sections of docs/reference/performance.md, prints them and inserts them into the page. A
# section is a function of this file that prints its text.
# Usage: scripts/bench.sh [SECTION...]     sockets, simulator, instructions, bulk, release, packages,
#                                          old_programs; default: the first three
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

# Builds a benchmark and prints its path; arguments: package, name.
program() {
    "$cargo" build --quiet --locked --profile bench -p "$1" --bench "$2" --message-format=json |
        sed -n 's/.*"name":"'"$2"'".*"executable":"\([^"]*\)".*/\1/p'
}

sockets() {
    "$cargo" build --quiet --locked --release -p udccp-bench
    "${CARGO_TARGET_DIR:-target}/release/udccp-bench" --rounds "${ROUNDS:-5}"
}

simulator() {
    python3 scripts/bench/simulator.py "$(program udccp-scenario mixes)" \
        "$(program udccp-sim hops)" "${ROUNDS:-5}"
}

instructions() {
    scripts/instructions.sh table
}

bulk() {
    scripts/instructions.sh bulk
}

old_programs() {
    "$cargo" build --quiet --release --locked -p udccp-cli
    python3 scripts/bench/old_programs.py "${CARGO_TARGET_DIR:-target}/release/udccp" \
        "$(program udccp sockets)" "${ROUNDS:-5}"
}

packages() {
    "$cargo" build --quiet --release --locked -p udccp-cli
    python3 scripts/bench/packages.py "${CARGO_TARGET_DIR:-target}/release/udccp" \
        "$(scripts/pgo.sh program)" "$(program udccp-scenario mixes)" "${ROUNDS:-5}"
}

release() {
    scripts/profiles.sh
}

[ $# -gt 0 ] || set -- sockets simulator instructions
for section in "$@"; do
    echo "== $section"
    "$section" | python3 scripts/bench/page.py "$section"
done
