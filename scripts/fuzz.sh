#!/usr/bin/env bash
# Runs each fuzz target for SECONDS_EACH seconds (default 60).
set -euo pipefail
cd "$(dirname "$0")/.."
cargo fuzz --version >/dev/null 2>&1 || {
    echo "fuzz: installing cargo-fuzz" >&2
    cargo install cargo-fuzz --locked --quiet
}
for target in $(cargo +nightly fuzz list); do
    echo "fuzz: $target" >&2
    cargo +nightly fuzz run "$target" -- -max_total_time="${SECONDS_EACH:-60}" -print_final_stats=1
done
