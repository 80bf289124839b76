#!/usr/bin/env bash
# Builds a Debian package of the program, with its manual pages and completions.
# Usage: scripts/deb.sh [FILE OR FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
scripts/setup.sh deb
cargo build --release --locked --package udccp-cli
program=$target/release/udccp
assets=$target/deb
rm -rf "$assets"
mkdir -p "$assets/man" "$assets/completions"
"$program" man --out "$assets/man"
gzip -9n "$assets"/man/*.1
"$program" completions bash >"$assets/completions/udccp"
"$program" completions zsh >"$assets/completions/_udccp"
"$program" completions fish >"$assets/completions/udccp.fish"
cargo deb --package udccp-cli --no-build --no-strip --locked --output "${1:-$target/debian}"
