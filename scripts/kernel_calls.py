"""Compares the socket calls under `udccp run` with those of a kernel that has DCCP, call by call.

One program, crates/udccp-cli/tests/old_programs/every_call.py, makes the calls in every state of a
socket. It runs in the guest of `udccp linux` (`make linux` sets it up), and in a network namespace
of this machine under `udccp run --raw-ip`. Writes docs/reference/kernel-calls.md, and fails if a
difference has no reason in this file.

    UDCCP=PATH kernel_calls.py [-o PAGE]
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import guest

PROGRAM = Path("crates/udccp-cli/tests/old_programs/every_call.py").resolve()
NETWORK = """
ip link set lo up mtu 1500
ip link add v0 type veth peer name v1
ip addr add 192.0.2.2/24 dev v0
ip link set v0 up
ip link set v1 up
ip addr add 2001:db8::2/64 dev v0 nodad
ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:09 dev v0 nud permanent
ip neigh add 2001:db8::1 lladdr 02:00:00:00:00:09 dev v0 nud permanent
"""
LIMIT_S = 1200
# The program's arguments: IPv4 needs none.
VERSIONS = [[], ["IPv6"]]
OF_V6 = "IPv6 "

FAULT = "The fault {}|`--linux-fault {}` reproduces this fault of Linux."
PAIR = (
    "Poll|The program's descriptor is one end of a Unix socket pair, and the kernel answers poll. "
    "It can report a hang-up only once and for good, and no errors or shutdown of this side."
)
ENDED = (
    "Connections that have ended|Here, a connection has ended once the peer has closed it. On "
    "Linux it stays connected until the program reads the end, and then has no peer."
)
# State, call, ours, theirs, each as a pattern. The first matching row gives the reason.
REASONS = [
    (r"peer reset|refused \(not asked\)", "recv.*|twice recv", "E.*|.*", "0.*",
     FAULT.format("reset-is-end", "reset-is-end")),
    (".*", r"getsockopt\(SO_LINGER\) after .*", ".*", ".*",
     "SO_LINGER|The longest linger time depends on the kernel's clock."),
    (".*", "recvfrom", ".*address of (16|28)", ".*address of 0",
     FAULT.format("no-source", "no-source")),
    (".*", "poll", ".*", ".*", PAIR),
    ("shut for writing", "sendmsg.*", "EINVAL", "EPIPE",
     "Two errors in one call|Both are correct; Linux detects the other one first."),
    (".*", r"getsockopt\(SOL_DCCP, 12, .*", ".*", ".*", "CCID 4|CCID 4 is available here."),
    (".*", r"setsockopt\(SOL_DCCP, 1[345], 0x(02)?04\)", "0 ?", "EINVAL",
     "CCID 4|CCID 4 is available here."),
    (".*", r"getsockopt\(SOL_DCCP, 1[01]\) after .*", ".*", ".* 00000000",
     "Checksum coverage|Linux returns 0 until the handshake, because it keeps the number in too "
     "few bits. Here it is the value that was set."),
    (r"connecting|refused|refused \(not asked\)",
     r"getsockopt\(SOL_DCCP, 5, .*|getsockname|.*IP(V6)?_MTU[,)].*", ".*", ".*",
     "Before the connection|Here, local address, path MTU and message size are known only once "
     "there is a connection."),
    (".*", r"getsockopt\(SOL_DCCP, 5, .*", ".*", ".*",
     "Message size|Linux reserves a different space for options in its packets."),
    (r"peer closed.*|peer reset", r".etsockopt\((S|IPV6_V6ONLY).*", ".*", ".*", ENDED),
    (r"peer closed \(read\)|peer reset", "getpeername|shutdown.*|bind.*", ".*", ".*", ENDED),
    (r"connecting|refused \(not asked\)|peer closed \(read\)", "SIOCOUTQ", "0 0", "0 .*",
     "SIOCOUTQ|Linux also counts the memory of its Request or Close."),
    (".*", r"getsockopt\(IP(V6)?_MTU\) after .*", "0 .*", "ENOTCONN",
     "Path MTU|After some settings, Linux forgets the path until the next packet."),
    ("accepted", r"getsockopt\(IPV6_MULTICAST_HOPS, .*", ".*", ".*",
     "Multicast hops|For an accepted socket, Linux returns the hop limit of its Request."),
    ("none", "socketpair", "ESOCKTNOSUPPORT", "EOPNOTSUPP",
     "socketpair|The call goes to this machine's kernel, which has no DCCP."),
    ("none", r"socket\(\d+, 5, 33\)", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT",
     "SOCK_SEQPACKET|The guest's kernel has SCTP, so it knows the socket type and rejects only "
     "the protocol."),
]


def calls(text):
    found = collections.OrderedDict()
    for line in text.splitlines():
        if line.startswith("@ "):
            state, call, result = (line[2:].split(" | ") + [""])[:3]
            # Two names for the same number.
            found[state, call] = result.replace("ENOTSUP", "EOPNOTSUPP").strip()
    return found


def in_guest():
    """Runs as the guest's init."""
    subprocess.run(["sh", "-c", NETWORK], check=False)
    print("@@", os.uname().release, flush=True)
    for version in VERSIONS:
        subprocess.run([sys.executable, PROGRAM, *version], check=False)


def of_the_kernel():
    text = guest.run(__file__, PROGRAM, limit_s=LIMIT_S)
    release = re.search(r"^@@ (\S+)", text, re.M)
    return calls(text), release[1] if release else "unknown"


def of_udccp():
    with tempfile.TemporaryDirectory() as folder:
        script = NETWORK + "".join(
            f'"$UDCCP" run --raw-ip -- "{sys.executable}" "{PROGRAM}" {" ".join(version)}\n'
            for version in VERSIONS)
        command = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script]
        env = dict(os.environ, XDG_RUNTIME_DIR=folder)
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, timeout=LIMIT_S, text=True,
                              check=False)
    return calls(done.stdout)


def reason(state, call, ours, theirs):
    state = state.removeprefix(OF_V6)
    for patterns in REASONS:
        if all(re.fullmatch(p, text) for p, text in zip(patterns, (state, call, ours, theirs))):
            return patterns[4]
    return None


def compare(ours, theirs):
    """Group the states by reason, then by difference."""
    found = collections.OrderedDict()
    for state, call in theirs.keys() | ours.keys():
        pair = ours.get((state, call), "not made"), theirs.get((state, call), "not made")
        if pair[0] != pair[1]:
            why = reason(state, call, *pair)
            found.setdefault(why, {}).setdefault((call, *pair), []).append(state)
    return found


def rows(differences):
    """Merge calls with equal differences into one row."""
    merged = {}
    for (call, ours, theirs), states in sorted(differences.items()):
        name = re.sub(r"(room|after) .*?(\)|$)", r"\1 …\2", call)
        name = re.sub(r"(setsockopt\(SOL_DCCP, \d+), .*", r"\1, …)", name)
        row = merged.setdefault((name, ours, theirs), set())
        row.update(states)
    for (call, ours, theirs), states in sorted(merged.items()):
        states = named(states)
        states = ", ".join(states) if len(states) < 6 else f"{len(states)} states"
        yield f"| `{call}` | {states} | {ours or '0'} | {theirs or '0'} |"


def named(states):
    """Names of states; if only one IP version differs, it is included."""
    plain = sorted({state.removeprefix(OF_V6) for state in states})
    return [state if {state, OF_V6 + state} <= set(states)
            else f"{state} ({'IPv4' if state in states else 'IPv6'})" for state in plain]


def page(found, count, release):
    total = sum(len(states) for group in found.values() for states in group.values())
    lines = [
        "# Calls, compared with the kernel",
        "",
        f"The same program makes {count:,} socket calls in {len(STATES)} states of a DCCP socket",
        f"of each IP version, on Linux {release} and under",
        "[`udccp run --raw-ip`](../guides/old-programs.md): every option with wrong lengths and",
        "values, and every call with good and bad arguments. Result, errno, and what the call",
        f"wrote are equal in {count - total:,} of them. The rest differ for the reasons below.",
        "`make kernel-calls` writes this page, and fails if a difference has no reason.",
        "",
        textwrap.fill("States: " + ", ".join(STATES) + ".", 118),
        "",
        "If a call wrote a value, its length and bytes follow the result.",
    ]
    for why, differences in sorted(found.items()):
        calls_of_it = sum(len(states) for states in differences.values())
        title, text = why.split("|")
        text = textwrap.fill(f"{text} {calls_of_it} call{'s' * (calls_of_it != 1)}.", 118)
        lines += ["", f"## {title}", "", text, "", "| call | state | here | Linux |",
                  "|---|---|---|---|", *rows(differences)]
    return "\n".join(lines) + "\n"


def main():
    global STATES
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path)
    args = parser.parse_args()
    ours = of_udccp()
    theirs, release = of_the_kernel()
    if not ours or not theirs:
        sys.exit(f"calls made: {len(ours)} here, {len(theirs)} in the guest")
    states = (state.removeprefix(OF_V6) for state, _ in theirs if state != "none")
    STATES = list(collections.OrderedDict.fromkeys(states))
    found = compare(ours, theirs)
    unknown = found.get(None, {})
    for (call, x, y), states in sorted(unknown.items()):
        print(f"no reason: {call}: here {x}, Linux {y} ({', '.join(states)})")
    if unknown:
        sys.exit(1)
    text = page(found, len(theirs), release)
    if args.out:
        args.out.write_text(text)
    same = len(theirs) - sum(len(s) for group in found.values() for s in group.values())
    print(f"{same:,} of {len(theirs):,} calls are equal; each difference has a reason")


if guest.words():
    PROGRAM = Path(guest.words()[0])
    guest.play(in_guest)
else:
    main()
