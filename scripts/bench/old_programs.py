"""Measures messages through `udccp run`, and prints that section of docs/reference/performance.md.

The same C program sends over plain UDP, and over DCCP under `udccp run`; the Rust program uses the
blocking sockets. All run on core 0 and alternate, so that the machine's load affects all alike. As
root, they run at real-time priority, so that it barely affects them. Processor time is that of all
processes, including the broker.

    old_programs.py UDCCP SOCKETS [ROUNDS [MESSAGES]]    the program, and the benchmark `sockets`
"""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

SOURCE = Path(__file__).with_name("messages.c")
CALLS = {"one": "a call each", "many": "32 a call"}
GOALS = {"one": 0.3, "many": 0.7}
WHO = {"udp": "plain UDP", "rust": "Rust, blocking", "dccp": "`udccp run`"}
PINGS = 3000


class Machine:
    def __init__(self, udccp, sockets, folder):
        self.udccp, self.sockets, self.folder = udccp, sockets, folder
        self.messages = f"{folder}/messages"
        subprocess.run(["cc", "-O2", "-o", self.messages, SOURCE], check=True)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=folder)
        os.makedirs(f"{folder}/udccp", mode=0o700)

    def command(self, who, work, count):
        if who == "rust":
            ping = ["ping", count, "blocking"]
            return [self.sockets, *(ping if work == "ping" else ["stream", count, work])]
        program = [self.messages, who, work, count]
        if who == "udp":
            return program
        # The broker runs on the core of its first program.
        run = ["taskset", "-c", "0", self.udccp, "run", "--udp-port", "26511", "--"]
        return run + program

    def output(self, who, work, count):
        alone = ["chrt", "-f", "10"] if os.geteuid() == 0 else []
        command = alone + [str(word) for word in self.command(who, work, count)]
        done = subprocess.run(command, env=self.env, stdout=subprocess.PIPE, check=True, text=True)
        return done.stdout

    def broker_s(self):
        """Processor time of the broker so far."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:3] == [b"broker", f"{self.folder}/udccp".encode()]:
                return int(path.with_name("schedstat").read_text().split()[0]) / 1e9
        return 0.0

    def stream(self, who, work, count):
        """Messages per second, and processor time per message in seconds."""
        if who == "dccp":
            # Start the broker before measuring.
            self.output(who, work, 100)

        def spent():
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime + (self.broker_s() if who == "dccp" else 0)

        begun = spent()
        text = self.output(who, work, count)
        rate, lost = re.search(r"messages_per_s (\d+) lost (-?\d+)", text).groups()
        arrived = count - int(lost)
        return float(rate) * arrived / count, (spent() - begun) / arrived

    def ping(self, who):
        """Median and 99th percentile of a round trip, in microseconds."""
        text = self.output(who, "ping", PINGS)
        if who != "rust":
            return [float(n) for n in re.search(r"p50_us (\S+) p99_us (\S+)", text).groups()]
        units = {"ns": 1e-3, "µs": 1, "ms": 1e3, "s": 1e6}
        found = re.findall(r"p\d+ ([0-9.]+)(ns|µs|ms|s)", text)
        return [float(number) * units[unit] for number, unit in found]


def table(streams):
    lines = ["| messages of 1,200 bytes | calls | messages/s | ratio to plain UDP | ratio to Rust "
             "| goal | processor time each |", "|---|---|---:|---:|---:|---:|---:|"]
    for work, calls in CALLS.items():
        for who, name in WHO.items():
            rate = statistics.median(rate for rate, _ in streams[who, work])
            ratios = []
            for other in ("udp", "rust"):
                pairs = zip(streams[who, work], streams[other, work])
                ratios.append(statistics.median(a[0] / b[0] for a, b in pairs))
            each = statistics.median(each for _, each in streams[who, work])
            goal = GOALS[work] if who == "dccp" else ""
            lines.append(f"| {name} | {calls} | {rate:,.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} "
                         f"| {goal} | {each * 1e6:.1f} µs |")
    return lines


def main():
    udccp, sockets = (os.path.realpath(word) for word in sys.argv[1:3])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 64_000
    streams, pings = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(udccp, sockets, folder)
        for _ in range(rounds):
            for work in CALLS:
                for who in WHO:
                    streams.setdefault((who, work), []).append(machine.stream(who, work, count))
            for who in WHO:
                pings.setdefault(who, []).append(machine.ping(who))
    median = {who: [statistics.median(n) for n in zip(*all_of)] for who, all_of in pings.items()}
    middle = statistics.median(d[1] - r[1] for d, r in zip(pings["dccp"], pings["rust"]))
    how = "at a real-time priority" if os.geteuid() == 0 else "at the usual priority"
    text = (f"Medians of {rounds} interleaved rounds of {count:,} messages, both ends on core 0, "
            f"{how}. The send queue holds 5 messages where calls send one, and 32 where they send "
            "32; that of the Rust sockets holds 512.")
    print(textwrap.fill(text, 118) + "\n")
    print(*table(streams), sep="\n")
    print("\n| round trip of 100 bytes | p50 | p99 |\n|---|---:|---:|")
    for who, (p50, p99) in median.items():
        print(f"| {WHO[who]} | {p50:.0f} µs | {p99:.0f} µs |")
    print(f"\n`udccp run` adds {middle:.0f} µs to the p99 of the Rust sockets in the median round.",
          "The goal is less than 100 µs.")


main()
