"""Compares the program of a release build with that of the packages (scripts/pgo.sh).

Prints a section of docs/reference/performance.md: the processor time of simulations. Both programs
alternate in rounds; a ratio is the median of the rounds' ratios.

    packages.py RELEASE PACKAGED MIXES [ROUNDS]    two programs, and the benchmark `mixes`
"""

import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# Title, and name of its mix in the benchmark `mixes`.
PROTOCOLS = {
    "CCID 2": "ccid2",
    "CCID 3": "ccid3",
    "NewReno": "newreno",
    "CUBIC": "cubic",
}
# Title, and the values of its mixes.
PATHS = [
    ("two flows", ["--flows", "2", "--mbps", "100", "--seconds", "100"]),
    ("100 flows", ["--flows", "100", "--mbps", "100", "--seconds", "100"]),
    ("two flows, 10 Gbit/s", ["--flows", "2", "--mbps", "10000", "--seconds", "4"]),
]


def spent(program, scenario):
    """Seconds of processor time of one simulation."""

    def children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = children()
    subprocess.run([program, "sim", scenario], stdout=subprocess.DEVNULL, check=True)
    return children() - before


def ratios(programs, scenario, rounds):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        Path(file.name).write_text(f'id = "mix"\n{scenario}')
        for _ in range(rounds):
            release, packaged = (spent(program, file.name) for program in programs)
            yield packaged / release


def main():
    programs, mixes = sys.argv[1:3], sys.argv[3]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5

    def median(mix, values):
        command = [mixes, "--scenario", "--mix", mix, *values]
        scenario = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
        return statistics.median(ratios(programs, scenario, rounds))

    found = {
        (path, title): median(mix, values)
        for (path, values), (title, mix) in itertools.product(PATHS, PROTOCOLS.items())
    }
    print(f"Medians of {rounds} interleaved pairs.")
    print()
    print("| processor time beside a release build | " + " | ".join(PROTOCOLS) + " |")
    print("|---|" + "---:|" * len(PROTOCOLS))
    for path, *_ in PATHS:
        cells = (f"{found[path, title]:.2f}" for title in PROTOCOLS)
        print(f"| {path} | " + " | ".join(cells) + " |")


main()
