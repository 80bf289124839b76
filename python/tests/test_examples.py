"""The programs of `udccp.examples` work as documented."""

from __future__ import annotations

import random
import signal
import socket as std
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from udccp.examples.graph import SHOWN, Graph
from udccp.examples.protocols import PROTOCOLS, listen, port_of

HERE = Path(__file__).parent.parent


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start one of the example programs."""
    command = [sys.executable, "-u", "-m", f"udccp.examples.{program}", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=HERE
    )


def ports() -> str:
    """The argument for three free ports."""
    for first in random.sample(range(20_000, 30_000, 3), 100):
        with suppress(OSError):
            for protocol in PROTOCOLS:
                listen(protocol, "127.0.0.1", port_of(protocol, first)).close()
            return f"--port={first}"
    raise OSError("no three free ports")


def test_rates_of_all_three_and_a_flood(tmp_path: Path) -> None:
    """Clients and a flood against one server: its graph, picture, samples and output."""
    picture, log = tmp_path / "rates.png", tmp_path / "rates.csv"
    port = ports()
    server = start(
        "server", "--host", "127.0.0.1", "--text", port, "--save", str(picture), "--log", str(log)
    )
    assert server.stdout
    lines = [server.stdout.readline()]  # The first sample: it listens.
    clients = [
        start(*f"client {name} 127.0.0.1 {port} --clients 2 --rate 2 --text".split())
        for name in ("tcp", "dccp")
    ]
    # Two samples of each show that it has started.
    while any(len([r for r in rates(lines, name) if r > 0.0]) < 2 for name in ("tcp", "dccp")):
        lines.append(server.stdout.readline())
        assert lines[-1], lines
    said, _ = start("flood", *f"127.0.0.1 {port} --rate 30 --seconds 2".split()).communicate()
    for program in (*clients, server):
        program.send_signal(signal.SIGINT)
        text, _ = program.communicate(timeout=30)
        assert program.returncode == 0, text
        lines.extend(text.splitlines() if program is server else [])
    for protocol, rate in (("tcp", 4), ("dccp", 4), ("udp", 30)):
        # A sender that starts late catches up for at most a second.
        assert 0.0 < max(rates(lines, protocol)) < rate * 3, lines
    for protocol in ("tcp", "dccp"):
        line = next(line for line in lines if line.startswith(f"{protocol}: "))
        assert "Mbit/s before the flood" in line
    assert said.startswith("sent ")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert log.read_text().startswith("second,tcp_mbps,udp_mbps,dccp_mbps\n1,")


def test_the_same_over_ipv6_until_ctrl_c() -> None:
    """Every protocol reaches a server at an IPv6 address, and a flood ends with its result."""
    port = ports()
    server = start("server", "--host", "::1", "--text", port)
    assert server.stdout
    lines = [server.stdout.readline() for _ in PROTOCOLS]
    flood = start("flood", *f"::1 {port} --rate 5 --seconds 600".split())
    clients = [
        start(*f"client {name} ::1 {port} --rate 2 --text".split()) for name in ("tcp", "dccp")
    ]
    while any(max(rates(lines, name)) == 0.0 for name in PROTOCOLS):
        lines.extend(server.stdout.readline() for _ in PROTOCOLS)
        assert lines[-1], lines
    for program in (flood, *clients, server):
        program.send_signal(signal.SIGINT)
        text, _ = program.communicate(timeout=30)
        assert program.returncode == 0, text
        assert program is not flood or text.startswith("sent "), text


def rates(lines: list[str], protocol: str) -> list[float]:
    """The samples of a protocol, in Mbit/s."""
    return [float(line.split()[1]) for line in lines if line.startswith(f"{protocol:>5} ")]


def test_errors_are_one_line() -> None:
    """No listener; UDP without a rate; a port in use; an unknown protocol."""
    with std.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments, words in (
            (f"client dccp 127.0.0.1 {ports()} --seconds 2 --text", "connection refused: nothing"),
            ("client udp 127.0.0.1", "give it a --rate"),
            (f"server tcp --host 127.0.0.1 --port {port}", f"tcp: port {port}: "),
            ("server sctp", "'sctp' is not tcp, udp or dccp"),
        ):
            text, _ = start(*arguments.split()).communicate(timeout=30)
            assert words in text
            assert "Traceback" not in text


def test_a_graph_keeps_a_hundred_samples(capsys: object) -> None:
    """The oldest samples are dropped."""
    graph = Graph(["dccp"], save=None, as_text=True)
    for rate in range(SHOWN + 50):
        graph.add({"dccp": float(rate)})
    assert list(graph.samples["dccp"]) == [float(rate) for rate in range(50, SHOWN + 50)]


def test_a_student_can_read_each() -> None:
    """Each has under a hundred lines."""
    for file in (HERE / "udccp/examples").glob("*.py"):
        assert len(file.read_text().splitlines()) < 100, file
