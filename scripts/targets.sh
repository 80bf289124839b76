#!/usr/bin/env bash
# The libraries compile without warnings for systems that no test runs on. Windows is missing: the
# sockets wait with poll(2), and their descriptors are Unix sockets.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
targets=(x86_64-unknown-freebsd aarch64-apple-darwin)
installed=$(rustup target list --installed 2>/dev/null || true)
for target in "${targets[@]}"; do
    grep -qx "$target" <<<"$installed" || rustup target add "$target" >/dev/null
    "$CARGO" clippy --quiet --locked --target "$target" -p udccp-base -p udccp-wire -p udccp-cc \
        -p udccp-proto -p udccp -- -D warnings
    echo "$target: ok"
done
