#!/usr/bin/env bash
# Builds a Debian package of the program (the build of scripts/pgo.sh), with its manual pages and
# completions.
# Usage: scripts/deb.sh [FILE OR FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
scripts/setup.sh deb
built=$(scripts/pgo.sh program)
# The paths in the crate's manifest are fixed, wherever the build is.
assets=target/deb
program=$assets/udccp
rm -rf "$assets"
mkdir -p "$assets/man" "$assets/completions"
cp "$built" "$program"
"$program" man --out "$assets/man"
gzip -9n "$assets"/man/*.1
"$program" completions bash >"$assets/completions/udccp"
"$program" completions zsh >"$assets/completions/_udccp"
"$program" completions fish >"$assets/completions/udccp.fish"
cargo deb --package udccp-cli --no-build --no-strip --locked --output "${1:-$target/debian}"
