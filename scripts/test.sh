#!/usr/bin/env bash
# Runs all tests of the workspace. Those that work by the clock of this machine, which may be busy with
# other things just then, are tried up to three times, and it is said; all others have to pass at once.
# Usage: scripts/test.sh [FLAGS OF CARGO TEST]
set -euo pipefail
cd "$(dirname "$0")/.."
by_the_clock=" udccp udccp-agent udccp-cli udccp-dtls udccp-emu udccp-rtp "
tries=3
log=$(mktemp)
trap 'rm -f "$log"' EXIT

cargo_test() { "${CARGO:-cargo}" test --workspace --locked "$@"; }

# Cargo closes with a list of lines such as `-p udccp-cli --test parity`.
failed() { sed -n 's/^ *`-p \([a-z-]*\) \(--.*\)`$/\1 \2/p' "$log" | sort -u; }

cargo_test --no-fail-fast "$@" 2>&1 | tee "$log" && exit 0
again=()
while read -r package target; do
    [ -n "$package" ] || exit 1
    if [[ $by_the_clock != *" $package "* ]]; then
        echo "test: -p $package $target does not work by the clock: it failed" >&2
        exit 1
    fi
    again+=("$target")
done <<<"$(failed)"

for target in "${again[@]}"; do
    for ((try = 2; try <= tries; try++)); do
        echo "test: $target failed; try $try of $tries" >&2
        # In words: `--test parity`. The whole workspace, so that nothing is built anew.
        # shellcheck disable=SC2086
        cargo_test $target && continue 2
    done
    echo "test: $target failed $tries times" >&2
    exit 1
done
