#!/usr/bin/env bash
# The libraries compile without warnings for systems that CI runs no test on. scripts/windows.sh runs
# the tests of the sockets under Wine.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
libraries=(-p udccp-base -p udccp-packet -p udccp-wire -p udccp-cc -p udccp-proto -p udccp)
installed=$(rustup target list --installed 2>/dev/null || true)

check() { # target, packages
    local target=$1
    shift
    grep -qx "$target" <<<"$installed" || rustup target add "$target" >/dev/null
    "$CARGO" clippy --quiet --locked --target "$target" "$@" -- -D warnings
    echo "$target: ok"
}

check x86_64-unknown-freebsd "${libraries[@]}"
check aarch64-apple-darwin "${libraries[@]}"
check x86_64-pc-windows-gnu "${libraries[@]}"
