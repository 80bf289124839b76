"""The programs of `udccp.examples` do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from udccp.examples.graph import SHOWN, Graph

HERE = Path(__file__).parent.parent


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start one of the programs."""
    command = [sys.executable, "-u", "-m", f"udccp.examples.{program}", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=HERE
    )


def test_rates_of_all_three_and_a_flood(tmp_path: Path) -> None:
    """Clients and a flood at one server: its graph, its picture, its samples, what it says."""
    picture, log = tmp_path / "rates.png", tmp_path / "rates.csv"
    server = start(
        "server", "--host", "127.0.0.1", "--seconds", "9", "--text",
        "--save", str(picture), "--log", str(log),
    )  # fmt: skip
    assert server.stdout
    server.stdout.readline()  # The first sample: it listens.
    senders = [
        start(*f"client {name} 127.0.0.1 --clients 2 --rate 2 --seconds 6 --text".split())
        for name in ("tcp", "dccp")
    ]
    senders.append(start(*["flood", "127.0.0.1", "--rate", "30", "--seconds", "2", "--after", "3"]))
    said = [sender.communicate(timeout=30)[0] for sender in senders]
    text, _ = server.communicate(timeout=30)
    assert server.returncode == 0, text
    for protocol, rate in (("tcp", 4), ("dccp", 4), ("udp", 30)):
        lines = [line for line in text.splitlines() if line.startswith(f"{protocol:>5} ")]
        most = max(float(line.split()[1]) for line in lines)
        assert rate * 0.5 < most < rate * 2, (protocol, text)
    for protocol in ("tcp", "dccp"):
        assert f"{protocol}: " in text
        assert "Mbit/s before the flood" in text
    assert said[2].startswith("sent ")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert log.read_text().startswith("second,tcp_mbps,udp_mbps,dccp_mbps\n1,")


def test_what_is_wrong_is_said_in_a_line() -> None:
    """Nobody listens; UDP without a rate."""
    for arguments, words in (
        ("dccp 127.0.0.1 --seconds 2 --text", "connection refused: nothing listens on UDP port"),
        ("udp 127.0.0.1", "give it a --rate"),
    ):
        text, _ = start("client", *arguments.split()).communicate(timeout=30)
        assert words in text
        assert "Traceback" not in text


def test_a_graph_keeps_a_hundred_samples(capsys: object) -> None:
    """The oldest go."""
    graph = Graph(["dccp"], save=None, as_text=True)
    for rate in range(SHOWN + 50):
        graph.add({"dccp": float(rate)})
    assert list(graph.samples["dccp"]) == [float(rate) for rate in range(50, SHOWN + 50)]


def test_a_student_can_read_each() -> None:
    """Under a hundred lines."""
    for file in (HERE / "udccp/examples").glob("*.py"):
        assert len(file.read_text().splitlines()) < 100, file
