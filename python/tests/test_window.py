"""A congestion control in Python against TCP."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from udccp import Ack, WindowAlgorithm, lab

SHORT: dict[str, lab.Value] = {
    "time.duration": "20 s",
    "time.measure.to": "20 s",
    "flow.second.protocol": "tcp/newreno",
    # Algorithms in Python count only packets sent after a cut, over DCCP too.
    "flow.first.dccp.growth_after_cut": "pauses",
}


class Exact(WindowAlgorithm):
    """NewReno with the integer arithmetic of the Rust code."""

    def __init__(self, initial_window: int) -> None:
        super().__init__(initial_window)
        self.counted = 0

    def on_ack(self, ack: Ack) -> None:
        if not ack.is_limited:
            return
        cwnd = int(self.cwnd)
        used = int(min(ack.newly_acked, max(self.ssthresh - cwnd, 0)))
        cwnd += used
        if cwnd >= self.ssthresh:
            self.counted += ack.newly_acked - used
            while self.counted >= cwnd:
                self.counted -= cwnd
                cwnd += 1
        self.cwnd = cwnd

    def on_loss(self, now_s: float, in_flight: int) -> None:
        self.cwnd = max(int(self.cwnd) // 2, 1)
        self.ssthresh = max(self.cwnd, 2)
        self.counted = 0

    def on_timeout(self, now_s: float, in_flight: int) -> None:
        self.ssthresh = max(int(self.cwnd) // 2, 2)
        self.cwnd = 1
        self.counted = 0

    def on_set(self, now_s: float) -> None:
        self.counted = 0


class Greedy(WindowAlgorithm):
    """Never reduces its window."""

    def on_loss(self, now_s: float, in_flight: int) -> None:
        self.ssthresh = self.cwnd


@pytest.mark.parametrize("flow", ["first", "second"])
def test_newreno_in_python_is_newreno(flow: str) -> None:
    """The same events, over DCCP and TCP."""
    ours = lab.run("two-flows-short", set=SHORT, algorithms={flow: Exact})
    assert ours.event_hash == lab.run("two-flows-short", set=SHORT).event_hash


def test_an_algorithm_of_ones_own_changes_the_shares() -> None:
    """A flow that never reduces its window gets nearly everything."""
    fair = lab.run("two-flows-short", set=SHORT).flow("first")["goodput_mbps"]
    greedy = lab.run("two-flows-short", set=SHORT, algorithms={"first": Greedy})
    taken = greedy.flow("first")["goodput_mbps"]
    assert fair is not None
    assert taken is not None
    assert taken > 1.2 * fair


def test_its_exceptions_end_the_run() -> None:
    """From the constructor and each method; the run stops at once."""

    class Broken(WindowAlgorithm):
        def on_ack(self, ack: Ack) -> None:
            raise ZeroDivisionError("in on_ack")

    def none(initial_window: int) -> WindowAlgorithm:
        raise LookupError(f"first window {initial_window}")

    class NoNumber(WindowAlgorithm):
        def on_ack(self, ack: Ack) -> None:
            self.cwnd = math.nan

    endless: dict[str, lab.Value] = {"time.duration": "90000 s", "time.measure.to": "90000 s"}
    with pytest.raises(ValueError, match=r"NoNumber\.cwnd must be a number of packets, not nan"):
        lab.run("two-flows-short", set=endless, algorithms={"first": NoNumber})
    with pytest.raises(ZeroDivisionError, match="in on_ack"):
        lab.run("two-flows-short", set=endless, algorithms={"first": Broken})
    with pytest.raises(LookupError, match="first window"):
        lab.run("two-flows-short", set=endless, algorithms={"second": none})


@pytest.mark.parametrize("wrong", ["x", None, [2.0], 1j])
@pytest.mark.parametrize("name", ["cwnd", "ssthresh"])
def test_non_numeric_results_are_reported_by_name(name: str, wrong: object) -> None:
    """Whatever was set is reported by the first method that set it."""

    class NoNumber(WindowAlgorithm):
        def on_ack(self, ack: Ack) -> None:
            setattr(self, name, wrong)

    words = f"NoNumber.{name} must be a number of packets, not {wrong!r}"
    with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
        lab.run("two-flows-short", algorithms={"first": NoNumber})


@pytest.mark.parametrize(
    "wrong", [10**400, -(10**400), 10**5000], ids=["400 digits", "negative", "5000 digits"]
)
def test_an_integer_beyond_every_float_is_reported_by_name(wrong: int) -> None:
    """Regression: a bare OverflowError."""

    class Huge(WindowAlgorithm):
        def on_ack(self, ack: Ack) -> None:
            self.cwnd = wrong

    with pytest.raises(ValueError, match=r"^Huge\.cwnd must be a number of packets, not "):
        lab.run("two-flows-short", algorithms={"first": Huge})


def test_algorithms_for_wrong_flows_are_rejected() -> None:
    """A missing flow, and protocols without such a window."""
    with pytest.raises(lab.ScenarioError, match='no flow "third"'):
        lab.run("two-flows-short", algorithms={"third": Exact})
    for protocol in ("dccp/ccid3", "udp"):
        changes: dict[str, lab.Value] = {"flow.first.protocol": protocol}
        if protocol == "udp":
            changes["flow.first.traffic.kind"] = "bulk"
        with pytest.raises(lab.ScenarioError):
            lab.run("two-flows-short", set=changes, algorithms={"first": Exact})


def test_a_class_of_something_else_is_named() -> None:
    """A class without the required base, and a missing flow."""

    class Alone:
        def __init__(self, initial_window: int) -> None:
            self.cwnd = float(initial_window)

    of: Any = Alone
    words = "algorithms['first']: Alone is not derived from WindowAlgorithm"
    with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
        lab.run("two-flows-short", set=SHORT, algorithms={"first": of})
    with pytest.raises(lab.ScenarioError, match=r"did you mean `first`\? flows: first, second"):
        lab.run("two-flows-short", set=SHORT, algorithms={"frist": Greedy})
