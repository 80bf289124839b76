"""Compares the program of a release build with that of the packages (scripts/pgo.sh).

Prints a section of docs/reference/performance.md: the processor time of simulations. Both programs
alternate in rounds; a ratio is the median of the rounds' ratios.

    packages.py RELEASE PACKAGED [ROUNDS]    two programs
"""

import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROTOCOLS = {
    "CCID 2": "dccp/ccid2",
    "CCID 3": "dccp/ccid3",
    "NewReno": "tcp/newreno",
    "CUBIC": "tcp/cubic",
}
# Title, flows, Mbit/s and seconds.
PATHS = [
    ("two flows", 2, 100, 100),
    ("100 flows", 100, 100, 100),
    ("two flows, 10 Gbit/s", 2, 10_000, 4),
]
SCENARIO = """\
schema = 1
id = "packages"
[topology]
shape = "dumbbell"
access = {{ rate = "{access} Mbit/s", delay = "0 ms" }}
bottleneck = {{ rate = "{mbps} Mbit/s", rtt = "100 ms", queue = "drop-tail", limit = "1.0 bdp" }}
[time]
duration = "{seconds} s"
phase = "1 s"
measure = {{ from = "0 s", to = "{seconds} s", every = "1 s" }}
[[flow]]
name = "f"
count = {flows}
protocol = "{protocol}"
start = "0 s"
traffic = "bulk"
"""


def spent(program, scenario):
    """Seconds of processor time of one simulation."""

    def children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = children()
    subprocess.run([program, "sim", scenario], stdout=subprocess.DEVNULL, check=True)
    return children() - before


def ratios(programs, protocol, path, rounds):
    _, flows, mbps, seconds = path
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        text = SCENARIO.format(
            protocol=protocol, flows=flows, mbps=mbps, access=10 * mbps, seconds=seconds
        )
        Path(file.name).write_text(text)
        for _ in range(rounds):
            release, packaged = (spent(program, file.name) for program in programs)
            yield packaged / release


def main():
    programs, rounds = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 5
    found = {
        (path[0], title): statistics.median(ratios(programs, protocol, path, rounds))
        for path, (title, protocol) in itertools.product(PATHS, PROTOCOLS.items())
    }
    print(f"Medians of {rounds} interleaved pairs.")
    print()
    print("| processor time beside a release build | " + " | ".join(PROTOCOLS) + " |")
    print("|---|" + "---:|" * len(PROTOCOLS))
    for path, *_ in PATHS:
        cells = (f"{found[path, title]:.2f}" for title in PROTOCOLS)
        print(f"| {path} | " + " | ".join(cells) + " |")


main()
