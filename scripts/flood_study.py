"""Repeats the experiment of van Tonder and Esterhuizen (2011) with the programs `udccp.examples`,
in network namespaces of this kernel with a token bucket. Writes docs/reference/flood-programs.md
and its pictures. Needs root and three minutes. Usage: scripts/flood_study.py PYTHON
"""

import csv
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/reference/flood-programs.md"
IMAGES = ROOT / "docs/images"
RATE_MBPS = 100
FLOOD_MBPS = 120
SENDER, ROUTER, RECEIVER = "flood-s", "flood-r", "flood-d"
HOST = "10.77.2.2"

#: Start and end in s, program and arguments, of each sequence of events.
SEQUENCES = {
    "dccp": (45, [(0, "client dccp {host} --seconds 45"), (10, "flood {host} --seconds 15")]),
    "tcp": (45, [(0, "client tcp {host} --seconds 45"), (10, "flood {host} --seconds 15")]),
    "all": (
        60,
        [
            (0, "client dccp {host} --clients 3 --rate 12 --seconds 60"),
            (0, "client dccp {host} --clients 3 --rate 12 --seconds 20"),
            (10, "client tcp {host} --seconds 50"),
            (30, "flood {host} --seconds 10"),
        ],
    ),
}


def run(command: str) -> None:
    """Run a command of the system."""
    subprocess.run(command.split(), check=True)


def build() -> None:
    """Create three hosts: a sender, a router with the bottleneck, a receiver."""
    for host in (SENDER, ROUTER, RECEIVER):
        subprocess.run(["ip", "netns", "del", host], stderr=subprocess.DEVNULL)
        run(f"ip netns add {host}")
        run(f"ip -n {host} link set lo up")
    for left, right, net in ((SENDER, ROUTER, 1), (ROUTER, RECEIVER, 2)):
        run(f"ip -n {left} link add a{net} type veth peer name b{net} netns {right}")
        for host, device, number in ((left, f"a{net}", 1), (right, f"b{net}", 2)):
            run(f"ip -n {host} address add 10.77.{net}.{number}/24 dev {device}")
            run(f"ip -n {host} link set {device} up")
            # Single packets as on a wire, instead of batches.
            if shutil.which("ethtool"):
                run(f"ip netns exec {host} ethtool -K {device} tso off gso off gro off")
    run(f"ip -n {SENDER} route add default via 10.77.1.2")
    run(f"ip -n {RECEIVER} route add default via 10.77.2.1")
    run(f"ip netns exec {ROUTER} sysctl -qw net.ipv4.ip_forward=1")
    queue = 250 * 1514
    run(f"tc -n {ROUTER} qdisc add dev a2 root tbf rate {RATE_MBPS}mbit burst 20k limit {queue}")


def program(python: str, host: str, arguments: str) -> subprocess.Popen[str]:
    """Start one of the programs on a host."""
    name, *rest = arguments.format(host=HOST).split()
    command = ["ip", "netns", "exec", host, python, "-m", f"udccp.examples.{name}", *rest]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def sequence(python: str, name: str) -> tuple[list[dict[str, float]], list[str]]:
    """Run a sequence of events. Returns the server's samples and its final report."""
    length, events = SEQUENCES[name]
    log = Path(f"/tmp/flood-{name}.csv")
    picture = IMAGES / f"flood-programs-{name}.png"
    ours = f"server --seconds {length + 3} --log {log} --save {picture} --text"
    server = program(python, RECEIVER, ours)
    time.sleep(2)
    begun, running = time.monotonic(), []
    for start, arguments in events:
        time.sleep(max(0.0, begun + start - time.monotonic()))
        if arguments.startswith("flood"):
            arguments += f" --rate {FLOOD_MBPS}"
        running.append(program(python, SENDER, arguments))
    said, _ = server.communicate()
    for one in running:
        one.communicate()
    with log.open() as lines:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(lines)]
    return rows, [line for line in said.splitlines() if "before the flood" in line]


def average(rows: list[dict[str, float]], name: str, start: int, end: int) -> str:
    """Mean rate of a protocol in a period of the sequence, which starts after two seconds."""
    return f"{mean(row[f'{name}_mbps'] for row in rows if start < row['second'] - 2 <= end):.1f}"


def page(dccp: tuple, tcp: tuple, together: tuple) -> str:
    """Write the page: the study's observations and our measurements."""
    d, t, a = dccp[0], tcp[0], together[0]
    times = ((2, 10), (12, 25), (35, 45))
    rows = [
        (
            "DCCP; a UDP flood begins and ends (section 4.2.1)",
            "DCCP falls at once to about 0.5 MB/s; after the flood it does *not* recover",
            "DCCP {} before, {} during, {} Mbit/s after".format(
                *(average(d, "dccp", *of) for of in times)
            ),
        ),
        (
            "TCP; a UDP flood begins and ends (section 4.2.2)",
            "TCP takes a sharp dive; after the flood it recovers",
            "TCP {} before, {} during, {} Mbit/s after".format(
                *(average(t, "tcp", *of) for of in times)
            ),
        ),
        (
            "Two batches of DCCP; TCP joins (section 5)",
            "TCP still operates at a reasonable rate",
            f"DCCP {average(a, 'dccp', 12, 20)}, TCP {average(a, 'tcp', 12, 20)} Mbit/s",
        ),
        (
            "One batch ends",
            "TCP's rate rises",
            f"DCCP {average(a, 'dccp', 22, 30)}, TCP {average(a, 'tcp', 22, 30)} Mbit/s",
        ),
        (
            "A UDP flood",
            "the flood suppresses both",
            f"DCCP {average(a, 'dccp', 32, 40)}, TCP {average(a, 'tcp', 32, 40)}, "
            f"UDP {average(a, 'udp', 32, 40)} Mbit/s",
        ),
        (
            "The flood ends",
            "TCP recovers, DCCP does not",
            f"DCCP {average(a, 'dccp', 50, 60)}, TCP {average(a, 'tcp', 50, 60)} Mbit/s",
        ),
    ]
    table = "\n".join(f"| {event} | {seen} | {here} |" for event, seen, here in rows)
    said = "\n".join(f"- {line}" for line in dccp[1] + tcp[1])
    return f"""# A UDP flood, with programs in Python

R. van Tonder and A. Esterhuizen (*Datagram Congestion Control*, 2011) wrote Python servers and
clients for TCP, UDP and DCCP that show a graph while they run, and flooded a 1 Gbit/s network.
This page repeats the same events with
[`udccp.examples`](../guides/python.md#three-protocols-and-a-flood).
The link has {RATE_MBPS} Mbit/s and a queue of 250 packets, between namespaces of one kernel. The
flood sends {FLOOD_MBPS} Mbit/s of data. TCP is that of the kernel.

`scripts/flood_study.py`, run as root, writes this page. Rates are means at the receiving server.

| event | the study saw | here |
|---|---|---|
{table}

The server's report at the end of the first two runs:

{said}

The study used the DCCP of a Linux kernel of 2011, and its authors could not tell whether the
missing recovery was intended. By RFC 4341, DCCP recovers: a timeout sends a packet, and slow start
follows. For more, see the [simulation of the study](../../experiments/van-tonder-2011.toml) at its
own rates.

![DCCP and a UDP flood](../images/flood-programs-dccp.png)

![TCP and a UDP flood](../images/flood-programs-tcp.png)

![Two batches of DCCP, TCP and a UDP flood](../images/flood-programs-all.png)
"""


def main() -> None:
    """Build, run, write."""
    python = sys.argv[1]
    build()
    try:
        PAGE.write_text(page(*(sequence(python, name) for name in SEQUENCES)))
    finally:
        for host in (SENDER, ROUTER, RECEIVER):
            run(f"ip netns del {host}")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
