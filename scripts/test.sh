#!/usr/bin/env bash
# Runs all tests of the workspace. The results of those in scripts/clock-tests.txt depend on the
# timing of this machine, which may be busy: if one fails, it is run up to three times in total,
# which is reported. All others must pass the first time (xtask/src/retry.rs).
# Usage: scripts/test.sh [FLAGS OF CARGO TEST]
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${CARGO:-cargo}" run --quiet --locked --package xtask -- test "$@"
