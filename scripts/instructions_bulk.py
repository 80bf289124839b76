"""Counts the user-space instructions per bulk message, by layer.

`udccp-bench bulk` runs twice under callgrind; the difference is the steady state, without start and
set-up. It includes both ends and the benchmark itself, but not the kernel. How many messages one
call handles depends on when the kernel delivers them, so counts vary by some percent between runs,
and no check limits them.

    instructions_bulk.py PROGRAM
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from instructions import self_costs

PEERS = [("udccp", "async"), ("udccp-blocking", "blocking")]
SECONDS = (4, 16)

# The first matching part of a path determines the layer.
LAYERS = [
    ("crates/udccp/src/io", "sockets: batches, reads"),
    ("crates/udccp/src", "sockets: calls, driver"),
    ("crates/udccp-proto/src/endpoint", "dccp: endpoint"),
    ("crates/udccp-proto/src/connection/transmit", "dccp: transmit"),
    ("crates/udccp-proto/src/connection/steps", "dccp: steps"),
    ("crates/udccp-proto/src/connection/send_side", "dccp: send queue"),
    ("crates/udccp-proto/src/connection/recv_side", "dccp: receive queue"),
    ("crates/udccp-proto/src/ccid", "dccp: ccid"),
    ("crates/udccp-proto/src/ackvec", "dccp: ack vector"),
    ("crates/udccp-proto", "dccp: rest"),
    ("crates/udccp-wire", "dccp: wire"),
    ("crates/udccp-cc", "window algorithms"),
    ("crates/udccp-base", "base: time, datagrams"),
    ("crates/udccp-bench", "the benchmark"),
    ("/bytes-", "bytes: reference counts"),
    ("/quinn-udp-", "quinn-udp: system calls"),
    ("/tokio-", "tokio"),
    ("/mio-", "tokio"),
]


def layer_of(path):
    return next((name for part, name in LAYERS if part in path), None)


def run(program, peer, seconds, folder):
    profile = Path(folder) / f"{peer}.{seconds}"
    command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={profile}"]
    command += [program, "bulk", "--peer", peer, "--seconds", str(seconds)]
    done = subprocess.run(
        ["setarch", "-R", *command], stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(done.stdout)["count"], self_costs(profile, layer_of)


def measure(program, peer):
    """Instructions per message, by layer."""
    with tempfile.TemporaryDirectory() as folder:
        (fewer, short), (more, long) = (run(program, peer, s, folder) for s in SECONDS)
    return {k: (long[k] - short.get(k, 0)) / (more - fewer) for k in long}


def main():
    results = [measure(sys.argv[1], peer) for peer, _ in PEERS]
    print("| user instructions a message, both ends | " + " | ".join(n for _, n in PEERS) + " |")
    print("|---|" + "---:|" * len(PEERS))
    order = list(dict.fromkeys(name for _, name in LAYERS)) + ["standard library"]
    rows = [(layer, [max(r.get(layer, 0), 0) for r in results]) for layer in order]
    rows.append(("all without libc", [sum(column) for column in zip(*(r for _, r in rows))]))
    rows.append(("libc, most of it copies", [r.get("libc", 0) for r in results]))
    for layer, row in rows:
        if any(v >= 0.5 for v in row):
            print(f"| {layer} | " + " | ".join(f"{v:,.0f}" for v in row) + " |")


if __name__ == "__main__":
    main()
