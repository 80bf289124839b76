#!/usr/bin/env bash
# Runs all tests of the workspace. Those that scripts/clock-tests.txt names work by the clock of this
# machine, which may be busy with other things just then: one that fails is tried again, three times
# in all, and it is said. All others have to pass at once (xtask/src/retry.rs).
# Usage: scripts/test.sh [FLAGS OF CARGO TEST]
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${CARGO:-cargo}" run --quiet --locked --package xtask -- test "$@"
