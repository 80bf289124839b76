#!/usr/bin/env bash
# The main job on real input: sends a file over real DCCP sockets between two processes, then
# simulates two published studies with the same protocol code and their full number of runs, and
# writes a report.
# Usage: scripts/demo.sh [OUT_DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-out}
port=${UDCCP_DEMO_PORT:-5001}
studies=(nor-2012 chowdhury-2011)
file_bytes=$((64 * 1024 * 1024))

scripts/setup.sh demo
mkdir -p "$out"
target=${CARGO_TARGET_DIR:-target}
bin=$target/demo/udccp
sent=$out/demo-sent.bin
received=$out/demo-received.bin

# Real input that every machine has: the compiler's libraries, cut to 64 MiB. It is assembled while
# the compiler works. (If rustup has to fetch that compiler first, it does so here.)
sysroot=$(rustc --print sysroot)
find "$sysroot/lib" -type f -size +100k -print0 | sort -z |
    { xargs -0 cat 2>/dev/null || true; } | head -c "$file_bytes" >"$sent" &
input=$!

# Cargo would print two hundred lines; a counter in one line is enough.
counted() {
    local all=$1 n=0
    while read -r _; do
        n=$((n + 1))
        [ ! -t 1 ] || printf '\r   %d of about %d parts' "$n" "$all"
    done
    [ ! -t 1 ] || printf '\r%40s\r' ''
}
what=(--locked --package udccp-cli --no-default-features)
echo "== Building the program (two to three minutes on two idle cores; the second time, seconds)"
parts=$(cargo tree --quiet "${what[@]}" --edges normal,build --prefix none | sort -u | wc -l)
cargo build --quiet --profile demo "${what[@]}" --message-format json-render-diagnostics |
    grep --line-buffered '"reason":"compiler-artifact"' | counted "$parts"
wait "$input"

echo
echo "== 1. A file over DCCP sockets, between two processes over loopback"
"$bin" cat --listen "$port" --recv-only >"$received" 2>"$out/demo-receiver.txt" &
receiver=$!
trap 'kill "$receiver" 2>/dev/null || true' EXIT
# Until the listener has bound its port, connections are refused (exit code 6).
send() { "$bin" cat 127.0.0.1 "$port" <"$sent" 2>"$out/demo-sender.txt"; }
for _ in $(seq 50); do
    code=0
    send || code=$?
    [ "$code" -eq 6 ] || break
    kill -0 "$receiver" 2>/dev/null || break
    sleep 0.1
done
[ "$code" -eq 0 ] || {
    cat "$out/demo-sender.txt" "$out/demo-receiver.txt" >&2
    echo "demo: the file did not arrive; is UDP port $port in use? UDCCP_DEMO_PORT names another" >&2
    exit "$code"
}
wait "$receiver" || {
    cat "$out/demo-receiver.txt" >&2
    exit 1
}
trap - EXIT
sed 's/^/sender:   /' "$out/demo-sender.txt"
sed 's/^/receiver: /' "$out/demo-receiver.txt"
cmp "$sent" "$received"
echo "Equal: $(wc -c <"$received") bytes. DCCP retransmits nothing. Nothing was lost, because congestion"
echo "control and a bounded receive queue slowed the sender down (docs/concepts/what-arrives.md)."
rm -f "$sent" "$received"

echo
echo "== 2. Two published studies, by simulating the same protocol code (all runs that they ask for)"
"$bin" lab run "${studies[@]}" --store "$out/lab.sqlite" >"$out/tables.txt"
index=$("$bin" lab report "${studies[@]}" --store "$out/lab.sqlite" --output "$out/report")
echo
echo "Tables and verdicts as text: $out/tables.txt"
echo "The report, with tables and figures beside the published ones: $index"
# On a desktop, open the report.
if [ -t 1 ] && [ "${UDCCP_DEMO_OPEN:-1}" = 1 ]; then
    if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null; then
        xdg-open "$index" >/dev/null 2>&1 || true
    elif [ "$(uname)" = Darwin ]; then
        open "$index" || true
    fi
fi
cat <<END

== Where to go on
cargo install --locked --path crates/udccp-cli     the optimised program, on your path
udccp sim two-flows                                one simulation, drawn in the terminal
udccp perf server, udccp perf client HOST          measure a path with DCCP
udccp lab list                                     all studies and experiments, with their times
udccp lab new my-paper                             begin your own
docs/README.md                                     all guides
END
