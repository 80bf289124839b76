#!/usr/bin/env bash
# Programs from Debian packages that open SOCK_DCCP, under `udccp run`: each many times.
# Writes docs/reference/old-programs.md.
#
#   UDCCP=PATH  the program (default: built here)    RUNS=N  runs of each (default 100)
#   ONLY=NAME   one of them, printed and not written
#   SEED=N      of the moments at which programs are killed (default: random, printed)
#   ROWS=FOLDER keeps the row of each program there, and plays none again whose row is there: many
#               runs of several programs at the same time, with ONLY, and then the page
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
