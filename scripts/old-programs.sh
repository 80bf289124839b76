#!/usr/bin/env bash
# Runs programs from Debian packages that open SOCK_DCCP under `udccp run`, many times each.
# Writes docs/reference/old-programs.md.
#
#   UDCCP=PATH  the program (default: built here)    RUNS=N  runs of each (default 100)
#   ONLY=NAME   run only this one, and print its row instead of writing the page
#   SEED=N      seed of the times at which programs are killed (default: random, printed)
#   ROWS=FOLDER keep each program's row there, and skip programs whose row exists: run several at
#               the same time with ONLY, and then write the page
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
for pair in socat:socat stress-ng:stress-ng ITGSend:d-itg netperfmeter:netperfmeter perl:perl-base \
    python3:python3 cvlc:vlc-bin; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
[[ " ${missing[*]} " != *" vlc-bin "* ]] || missing+=(vlc-plugin-base)
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing: ${missing[*]}"
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null
fi
if [ -z "${UDCCP:-}" ]; then
    cargo build --release --locked -p udccp-cli
    UDCCP="${CARGO_TARGET_DIR:-target}/release/udccp"
fi
UDCCP=$(realpath "$UDCCP") exec python3 scripts/old_programs.py \
    --runs "${RUNS:-100}" ${ONLY:+--only "$ONLY"} ${ROWS:+--rows "$ROWS"} -o docs/reference/old-programs.md
