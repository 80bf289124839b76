#!/usr/bin/env bash
# Compares the public interface with that of a released version. Usage: scripts/semver.sh REV
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:-}
[ -n "$base" ] || {
    echo "semver: which version? make semver BASE=v0.1.0" >&2
    exit 1
}
cargo semver-checks --version >/dev/null 2>&1 || {
    echo "semver: installing cargo-semver-checks (minutes)" >&2
    "${CARGO:-cargo}" install cargo-semver-checks --locked --quiet
}
exec "${CARGO:-cargo}" semver-checks --package udccp --baseline-rev "$base"
