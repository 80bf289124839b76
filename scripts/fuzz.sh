#!/usr/bin/env bash
# Runs each fuzz target for SECONDS_EACH seconds (default 60), or those named as arguments.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${SECONDS_EACH:-60}
host=$(rustc -vV | sed -n 's/^host: //p')

cargo fuzz --version >/dev/null 2>&1 || {
    echo "fuzz: installing cargo-fuzz" >&2
    cargo install cargo-fuzz --locked --quiet
}

# Builds and runs the target for whole connections. There is no unsafe code for a sanitizer, and
# coverage is per function: per-edge coverage takes half of the time. COVERAGE=3 enables it for
# deeper inputs.
stories() {
    local llvm=-Cllvm-args=-sanitizer-coverage
    RUSTFLAGS="-Cpasses=sancov-module $llvm-level=${COVERAGE:-1} $llvm-inline-8bit-counters \
        $llvm-pc-table --cfg fuzzing -Ccodegen-units=1" \
        cargo +nightly build --release --target "$host" --bin connection
    mkdir -p corpus/connection artifacts/connection
    "${CARGO_TARGET_DIR:-target}/$host/release/connection" corpus/connection \
        -artifact_prefix=artifacts/connection/ -max_len=128 -use_counters=0 -entropic=0 \
        -reduce_inputs=0 -max_total_time="$seconds" -print_final_stats=1
}

for target in ${*:-$(cargo +nightly fuzz list)}; do
    echo "fuzz: $target" >&2
    if [ "$target" = connection ]; then
        stories
    else
        cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -print_final_stats=1
    fi
done
