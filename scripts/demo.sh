#!/usr/bin/env bash
# The main job on real input: a file over real DCCP sockets between two processes, then every
# published table and figure by simulating the same protocol code, and a report of them.
# Usage: scripts/demo.sh [OUT_DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-out}
port=${UDCCP_DEMO_PORT:-5001}
file_bytes=$((64 * 1024 * 1024))

scripts/setup.sh demo
mkdir -p "$out"
echo "== Building (release; some minutes the first time)"
cargo build --release --locked --package udccp-cli
bin=${CARGO_TARGET_DIR:-target}/release/udccp

echo
echo "== 1. A file over DCCP sockets, between two processes over loopback"
# Real input that every machine has: the compiler's own libraries, cut at 64 MiB.
sent=$out/demo-sent.bin
received=$out/demo-received.bin
find "$(rustc --print sysroot)/lib" -type f -size +100k -print0 | sort -z |
    { xargs -0 cat 2>/dev/null || true; } | head -c "$file_bytes" >"$sent"
"$bin" cat --listen "$port" --recv-only >"$received" 2>"$out/demo-receiver.txt" &
receiver=$!
trap 'kill "$receiver" 2>/dev/null || true' EXIT
# Until the listener has bound its port, the answer is "unreachable" (exit code 5).
send() { "$bin" cat 127.0.0.1 "$port" <"$sent" 2>"$out/demo-sender.txt"; }
code=5
for _ in $(seq 50); do
    code=0
    send || code=$?
    [ "$code" -eq 5 ] || break
    sleep 0.1
done
[ "$code" -eq 0 ] || {
    cat "$out/demo-sender.txt" >&2
    exit "$code"
}
wait "$receiver" || {
    cat "$out/demo-receiver.txt" >&2
    exit 1
}
trap - EXIT
sed 's/^/sender:   /' "$out/demo-sender.txt"
sed 's/^/receiver: /' "$out/demo-receiver.txt"
hash_of() { sha256sum <"$1" | cut -d' ' -f1; }
echo "SHA-256 sent      $(hash_of "$sent")"
echo "SHA-256 received  $(hash_of "$received")"
cmp "$sent" "$received"
echo "equal: $(stat -c %s "$received") bytes. DCCP retransmits nothing; nothing was lost because"
echo "congestion control and the bounded receive queue slowed the sender down (docs/concepts/what-arrives.md)."
rm -f "$sent" "$received"

echo
echo "== 2. The tables and figures of all experiments, by simulating the same protocol code (few runs)"
"$bin" lab run --all --quick --store "$out/lab.sqlite"
"$bin" lab report --store "$out/lab.sqlite" --output "$out/report"
echo
echo "The report, with tables and figures beside the published ones: $out/report/index.html"
