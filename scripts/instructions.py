"""Counts the processor instructions per delivered packet of a simulation.

Each mix of `crates/udccp-scenario/benches/mixes.rs` runs with two flows and with 100 under
callgrind, for 10 and for 20 simulated seconds. The difference is the steady state, without start
and set-up. Counts do not depend on the machine's load. Instructions of libc are shown but not
included in the sum: which memcpy it uses depends on the processor.

    instructions.py table PROGRAM           a table by layer
    instructions.py check PROGRAM COUNTS    compares with the committed counts, 3 % either way
    instructions.py write PROGRAM COUNTS    writes the counts
"""

import concurrent.futures
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Arguments of each mix. The name of a mix with 100 flows includes the number.
MIXES = {
    f"{mix}{name}": ["--mix", mix, *arguments]
    for name, arguments in [("", []), ("-100", ["--flows", "100"])]
    for mix in ["ccid2", "newreno", "cubic", "ccid3"]
}
SECONDS = (10, 20)
TOLERANCE = 0.03
HELD = "all without libc"

# The first matching part of a path determines the layer.
LAYERS = [
    ("crates/udccp-sim/src/events", "sim: event queue"),
    ("crates/udccp-sim/src/record", "sim: recorders"),
    ("crates/udccp-sim/src/source", "sim: sources"),
    ("crates/udccp-sim/src/application", "sim: sources"),
    ("crates/udccp-sim", "sim: engine"),
    ("crates/udccp-link/src/histogram", "sim: recorders"),
    ("crates/udccp-link", "sim: links"),
    ("crates/udccp-scenario", "scenario: transports"),
    ("crates/udccp-proto/src/endpoint", "dccp: endpoint"),
    ("crates/udccp-proto/src/connection/transmit", "dccp: transmit"),
    ("crates/udccp-proto/src/connection/steps", "dccp: steps"),
    ("crates/udccp-proto/src/ccid", "dccp: ccid"),
    ("crates/udccp-proto/src/ackvec", "dccp: ack vector"),
    ("crates/udccp-proto", "dccp: rest"),
    ("crates/udccp-wire", "dccp: wire"),
    ("crates/udccp-cc", "window algorithms"),
    ("crates/udccp-tcp", "tcp"),
    ("crates/udccp-base", "base: time, datagrams"),
    ("crates/", "other crates"),
]


def layer_of(path):
    at = path.find("crates/udccp")
    return next((name for part, name in LAYERS if at >= 0 and path[at:].startswith(part)), None)


def self_costs(profile, layer_of=layer_of):
    """Instructions by layer. Code inlined from the standard library counts for its caller."""
    names = {}

    def name(kind, text):
        number, _, given = re.fullmatch(r"\((\d+)\)( (.*))?", text).groups()
        return names.setdefault((kind, number), given)

    costs = {}
    layer, in_libc, is_call = "standard library", False, False
    for line in profile.open():
        key, is_assignment, value = line.rstrip("\n").partition("=")
        if is_assignment:
            if key == "calls":
                is_call = True
            elif key in ("ob", "cob"):
                path = name("ob", value)
                in_libc = "libc" in path if key == "ob" else in_libc
            elif key in ("fl", "fi", "fe", "cfi", "cfl"):
                found = layer_of(name("fl", value))
                if key == "fl":
                    layer = found or "standard library"
                elif key in ("fi", "fe") and found:
                    layer = found
        elif line[:1].isdigit() or line[:1] in "+-*":
            if not is_call:
                of = "libc" if in_libc else layer
                costs[of] = costs.get(of, 0) + int(line.split()[1])
            is_call = False
    return costs


def run(program, mix, seconds, folder):
    profile = Path(folder) / f"{mix}.{seconds}"
    command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={profile}"]
    command += [program, *MIXES[mix], "--seconds", str(seconds), "--runs", "1"]
    # Disables address randomisation, for the same memory layout in every run.
    done = subprocess.run(
        ["setarch", "-R", *command], stdout=subprocess.PIPE, check=True, text=True
    )
    delivered = int(re.search(r"delivered (\d+)", done.stdout)[1])
    return delivered, self_costs(profile)


def measure(program):
    """Instructions per delivered packet, by mix and layer."""
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool,
    ):
        runs = {
            (mix, seconds): pool.submit(run, program, mix, seconds, folder)
            for mix in MIXES
            for seconds in SECONDS
        }
        result = {}
        for mix in MIXES:
            (fewer, short), (more, long) = (runs[mix, s].result() for s in SECONDS)
            layers = {k: (long[k] - short.get(k, 0)) / (more - fewer) for k in long}
            layers[HELD] = sum(v for k, v in layers.items() if k != "libc")
            result[mix] = layers
    return result


def table(result):
    order = list(dict.fromkeys(name for _, name in LAYERS)) + ["standard library", HELD, "libc"]
    lines = ["| instructions a packet | " + " | ".join(MIXES) + " |"]
    lines.append("|---|" + "---:|" * len(MIXES))
    for layer in order:
        row = [result[mix].get(layer, 0) for mix in MIXES]
        if any(v >= 0.5 for v in row):
            lines.append(f"| {layer} | " + " | ".join(f"{max(v, 0):,.0f}" for v in row) + " |")
    return "\n".join(lines)


def read_counts(path):
    lines = [line.split() for line in Path(path).read_text().splitlines()]
    return {line[0]: float(line[1]) for line in lines if line and line[0] in MIXES}


def write_counts(path, result):
    text = "# Instructions a delivered packet of the mixes, libc left out; -100: with 100 flows.\n"
    text += "# Written by `scripts/instructions.sh write`; CI holds them within 3 %.\n"
    text += "".join(f"{mix} {result[mix][HELD]:.0f}\n" for mix in MIXES)
    Path(path).write_text(text)


def check(path, result):
    """Check that each mix is within the committed count's tolerance."""
    passed, failed = 0, 0
    for mix, committed in read_counts(path).items():
        now = result[mix][HELD]
        change = now / committed - 1
        line = f"{mix:11} {now:6.0f} a packet, committed {committed:6.0f} ({change:+.1%})"
        if change > TOLERANCE:
            failed += 1
            line += ": too many"
        else:
            passed += 1
            if change < -TOLERANCE:
                line += ": fewer; commit them: scripts/instructions.sh write"
        print(line)
    print(f"{passed} passed, {failed} failed")
    return failed == 0 and passed == len(MIXES)


def main():
    verb, program, *rest = sys.argv[1:]
    result = measure(program)
    print(table(result))
    if verb == "write":
        write_counts(rest[0], result)
    if verb == "check" and not check(rest[0], result):
        sys.exit(1)


if __name__ == "__main__":
    main()
