#!/usr/bin/env bash
# Builds the simulator's mixes with several release settings, and prints a table of build times and
# of instructions per delivered packet.
# Usage: scripts/profiles.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh instructions
scripts/setup.sh pgo
host=$(rustc -vV | sed -n 's/^host: //p')
folder=${CARGO_TARGET_DIR:-target}/profiles

build() { # name lto units flags
    CARGO_PROFILE_BENCH_LTO=$2 CARGO_PROFILE_BENCH_CODEGEN_UNITS=$3 RUSTFLAGS=$4 \
        "${CARGO:-cargo}" build --quiet --locked --profile bench --target "$host" \
        --target-dir "$folder/$1" -p udccp-scenario --bench mixes --message-format=json |
        sed -n 's/.*"name":"mixes".*"executable":"\([^"]*\)".*/\1/p'
}

row() { # title program seconds
    counts=$(mktemp)
    python3 scripts/instructions.py write "$2" "$counts" >/dev/null
    printf '| %s | %s | %s |\n' "$1" "$3" \
        "$(sed -n 's/^[a-z]\+[0-9]* \([0-9]*\)$/\1/p' "$counts" | paste -sd '|' | sed 's/|/ | /g')"
    rm "$counts"
}

measure() { # title name lto units flags
    local begun=$SECONDS program
    program=$(build "$2" "$3" "$4" "$5")
    row "$1" "$program" $((SECONDS - begun))
}

echo '| release settings | build, s | CCID 2 | NewReno | CUBIC | CCID 3 |'
echo '|---|---:|---:|---:|---:|---:|'
measure "thin LTO, 4 units" thin thin 4 ""
measure "no LTO, 16 units" none off 16 ""
measure "fat LTO, 1 unit" fat fat 1 ""
measure "fat LTO, 1 unit, panic = abort" abort fat 1 "-Cpanic=abort"
raw=$(mktemp -d)
program=$(build generate fat 1 "-Cprofile-generate=$raw")
"$program" --seconds 20 --runs 1 >/dev/null
measure "fat LTO, 1 unit, PGO of the four mixes" use fat 1 "-Cprofile-use=$(scripts/pgo.sh merge "$raw")"
rm -r "$raw" "$raw.profdata"
