#!/usr/bin/env bash
# Checks that portable crates compile without warnings for systems on which CI runs no tests.
# scripts/windows.sh runs tests under Wine.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
libraries=(-p udccp-base -p udccp-packet -p udccp-wire -p udccp-cc -p udccp-proto -p udccp)
# The program, which includes simulator and laboratory.
program=(-p udccp-rtp -p udccp-dtls -p udccp-cli)
bindings=(-p udccp-capi -p udccp-python)
installed=$(rustup target list --installed 2>/dev/null || true)

check() { # target, packages
    local target=$1 name=${1//-/_}
    shift
    grep -qx "$target" <<<"$installed" || rustup target add "$target" >/dev/null
    # Nothing is linked, so C code (SQLite and zstd) needs no compiler for that system.
    env "CC_$name=true" "AR_$name=true" \
        "$CARGO" clippy --quiet --locked --target "$target" "$@" -- -D warnings
    echo "$target: ok"
}

check x86_64-unknown-freebsd "${libraries[@]}"
check aarch64-apple-darwin "${libraries[@]}" "${program[@]}" "${bindings[@]}"
check x86_64-pc-windows-gnu "${libraries[@]}" "${program[@]}" -p udccp-capi
