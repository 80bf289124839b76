"""Measures the speed of simulation, and prints that section of docs/reference/performance.md.

All cases alternate in rounds, so that changes of the machine's speed affect all alike. Processor
time is that of the whole run, sender and receiver together.

    simulator.py MIXES HOPS [ROUNDS]    the two benchmark programs
"""

import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import textwrap

NS2 = "crates/udccp-lab/benches/sim_speed/ns2.tcl"

# Title, arguments of `mixes`, goal in millions of packets per second.
MIXES = [
    (f"{title}{more}", ["--mix", mix, *arguments], goal)
    for more, arguments, goal in [
        ("", ["--seconds", "40"], 3.0),
        (", 100 flows", ["--seconds", "40", "--flows", "100"], 2.5),
        (", 10 Gbit/s", ["--seconds", "4", "--mbps", "10000"], 2.5),
    ]
    for mix, title in [
        ("ccid2", "CCID 2"),
        ("newreno", "TCP NewReno"),
        ("cubic", "TCP CUBIC"),
        ("ccid3", "CCID 3"),
    ]
]
# Title, kinds of the two flows, and the row to compare with.
NS2_MIXES = [
    ("ns-2, TCP NewReno", ["reno", "reno"], "TCP NewReno"),
    ("ns-2, TCP CUBIC", ["cubic", "cubic"], "TCP CUBIC"),
    ("ns-2, CCID 2 (TCP-like)", ["ccid2", "ccid2"], "CCID 2"),
]


def output(command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def mixes(program, arguments):
    done = output([program, *arguments, "--runs", "1"])
    return float(re.search(r"million_per_s ([0-9.]+)", done)[1])


def hops(program):
    done = output([program, "--only", "2 flows, RTT 100 ms", "--runs", "1"])
    return float(re.search(r"([0-9.]+) M hops/s", done)[1])


def ns2(kinds):
    """Millions of data packets per second of processor time; `None` if ns-2 failed."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    command = ["ns", NS2, "100", "100", "40", "2", *kinds]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True
    )
    found = re.search(r"delivered (\d+)", done.stdout)
    return int(found[1]) / (spent() - before) / 1e6 if found and done.returncode == 0 else None


def row(title, values, goal, ratio=""):
    if not values:
        return f"| {title} | gave up | | {goal} | {ratio} |"
    middle, best = statistics.median(values), max(values)
    return f"| {title} | {middle:.2f} | {best:.2f} | {goal} | {ratio} |"


def ratio(ours, theirs):
    """The median over rounds of our speed divided by theirs."""
    return f"{statistics.median(a / b for a, b in zip(ours, theirs)):.1f}" if theirs else ""


def main():
    mixes_program, hops_program, *rest = sys.argv[1:]
    rounds = int(rest[0]) if rest else 5
    has_ns2 = shutil.which("ns") is not None
    found = {}
    for _ in range(rounds):
        for title, arguments, _ in MIXES:
            found.setdefault(title, []).append(mixes(mixes_program, arguments))
        found.setdefault("hops", []).append(hops(hops_program))
        for title, kinds, _ in NS2_MIXES if has_ns2 else []:
            speed = ns2(kinds)
            found.setdefault(title, []).extend([] if speed is None else [speed])
    text = (
        f"Millions of data packets delivered in a second of processor time: {rounds} interleaved "
        f"rounds on {platform.machine()} with {os.cpu_count()} processors, two flows over 100 "
        "Mbit/s and 100 ms where the row says nothing else."
    )
    print(textwrap.fill(text, 118))
    print()
    print("| mix | median | best | goal | times ns-2 |")
    print("|---|---:|---:|---:|---:|")
    peers = {ours: theirs for theirs, _, ours in NS2_MIXES}
    for title, _, goal in MIXES:
        times = ratio(found[title], found.get(peers.get(title)))
        print(row(title, found[title], f"{goal:.1f}", times))
    for title, _, _ in NS2_MIXES if has_ns2 else []:
        print(row(title, found[title], ""))
    print(row("hops of the simulator without a protocol", found["hops"], "17"))


main()
