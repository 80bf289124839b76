#!/usr/bin/env bash
# The libraries compile without warnings for systems that no test runs on. For Windows only the
# protocol core does: the sockets wait with poll(2), their readiness descriptors are Unix sockets, and
# they read errors and routes with calls that Windows does not have.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
core=(-p udccp-base -p udccp-packet -p udccp-wire -p udccp-cc -p udccp-proto)
installed=$(rustup target list --installed 2>/dev/null || true)

check() { # target, packages
    local target=$1
    shift
    grep -qx "$target" <<<"$installed" || rustup target add "$target" >/dev/null
    "$CARGO" clippy --quiet --locked --target "$target" "$@" -- -D warnings
    echo "$target: ok"
}

check x86_64-unknown-freebsd "${core[@]}" -p udccp
check aarch64-apple-darwin "${core[@]}" -p udccp
check x86_64-pc-windows-gnu "${core[@]}"
