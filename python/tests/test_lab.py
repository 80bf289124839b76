"""Scenarios in this process: records equal to the program's, errors with places, interruption."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from udccp import WindowAlgorithm, _native, lab
from udccp.errors import InternalError
from udccp.lab import scenario as typed
from udccp.lab.frames import Library
from udccp.lab.record import Flow, FlowSeries, Link, LinkSeries, Quantiles, System

ROOT = Path(__file__).resolve().parents[2]
SHORT: dict[str, lab.Value] = {"time.duration": "12 s", "time.measure.to": "12 s"}


def program() -> str:
    """The program under test: ``UDCCP``, or the debug build of this repository."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = Path(os.environ.get("UDCCP", target / "debug" / "udccp"))
    assert found.exists(), f"build it first: cargo build -p udccp-cli ({found})"
    return str(found)


def plain() -> dict[str, Any]:
    """A small scenario as a mapping."""
    return {
        "schema": 1,
        "id": "plain",
        "topology": {
            "shape": "dumbbell",
            "access": {"rate": "100 Mbit/s"},
            "bottleneck": {"rate": "2 Mbit/s", "rtt": "40 ms", "limit": "1.0 bdp"},
        },
        "time": {"duration": "4 s", "phase": "500 ms"},
        "flow": [
            {"name": "a", "protocol": "dccp/ccid2", "traffic": "bulk"},
            {
                "name": "b",
                "protocol": "udp",
                "traffic": {"kind": "constant-rate", "rate": "1 Mbit/s", "size": "1000 B"},
            },
        ],
    }


def objects() -> lab.Scenario:
    """The same scenario as typed objects."""
    return typed.Scenario(
        id="plain",
        topology=typed.Topology(
            shape="dumbbell",
            access=typed.AccessLink(rate="100 Mbit/s"),
            bottleneck=typed.Link(rate="2 Mbit/s", rtt="40 ms", limit="1.0 bdp"),
        ),
        time=typed.Times(duration="4 s", phase="500 ms"),
        flow=[
            typed.Flow(name="a", protocol="dccp/ccid2", traffic="bulk"),
            typed.Flow(
                name="b",
                protocol="udp",
                traffic=typed.ConstantRate(rate="1 Mbit/s", size="1000 B"),
            ),
        ],
    )


def without_cost(record: dict[str, Any]) -> dict[str, Any]:
    """A record without its processor time."""
    cost = {key: value for key, value in record["cost"].items() if key != "cpu_s"}
    return {**record, "cost": cost}


def test_a_record_is_that_of_the_program() -> None:
    """Every value and name is equal for the same seed."""
    flags = [word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")]
    command = [program(), "sim", "two-flows-short", "--seed", "7", "--json", *flags]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    ours = lab.run("two-flows-short", seed=7, set=SHORT)
    assert without_cost(dict(ours)) == without_cost(printed)


def test_a_change_may_be_a_table() -> None:
    """Changes as mappings, as text, and nested equal those in a file."""
    short: dict[str, lab.Value] = {"time.duration": "12 s", "time.measure.to": "12 s"}
    key = "topology.bottleneck.queue"

    def hashed(queue: lab.Value) -> str:
        return str(lab.run("two-flows-short", set={**short, key: queue})["event_hash"])

    late = {"kind": "codel", "target": "40 ms", "ecn": False}
    assert hashed(late) == hashed('{ kind = "codel", target = "40 ms", ecn = false }')
    assert hashed(late) != hashed("codel") == hashed({"kind": "codel"})
    size = {"kind": "exponential", "mean": "20 kB"}
    web = {"kind": "poisson", "every": "1 s", "size": size}
    record = lab.run("two-flows-short", set={**short, "flow.second.traffic": web})
    assert record.flow("second").get("transfers") is not None
    with pytest.raises(lab.ScenarioError, match="did you mean `target`"):
        hashed({"kind": "codel", "tarjet": "5 ms"})


def test_the_types_of_a_record_have_its_names() -> None:
    """The types have all keys of a record, and no others."""
    short: dict[str, lab.Value] = {"time.duration": "22 s", "time.measure.to": "22 s"}
    changes = {**short, "flow.file.start": "2 s", "flow.call.protocol": "dccp/ccid4"}
    record = lab.run("media", set=changes)
    flows: set[str] = {key for flow in record.flows for key in flow}
    assert flows == set(Flow.__annotations__)
    series: set[str] = {key for flow in record.flows for key in flow["series"]}
    assert series == set(FlowSeries.__annotations__)
    assert set(record.flows[0]["delay_quantiles_ms"]) == set(Quantiles.__annotations__)
    assert set(record.system) == set(System.__annotations__)
    assert set(record.links[0]) == set(Link.__annotations__)
    assert set(record.links[0]["series"]) == set(LinkSeries.__annotations__)


def test_a_path_a_mapping_and_objects_are_one_scenario(tmp_path: Path) -> None:
    """The same run from a file, a mapping, typed objects and a prepared scenario."""
    text = """schema = 1
id = "plain"
[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s" }
bottleneck = { rate = "2 Mbit/s", rtt = "40 ms", limit = "1.0 bdp" }
[time]
duration = "4 s"
phase = "500 ms"
[[flow]]
name = "a"
protocol = "dccp/ccid2"
traffic = "bulk"
[[flow]]
name = "b"
protocol = "udp"
traffic = { kind = "constant-rate", rate = "1 Mbit/s", size = "1000 B" }
"""
    path = tmp_path / "plain.toml"
    path.write_text(text)
    sources: list[Any] = [path, str(path), plain(), objects(), lab.prepare(path)]
    hashes = {lab.run(source, seed=3).event_hash for source in sources}
    assert len(hashes) == 1
    assert lab.run(path, seed=4).event_hash not in hashes


def test_many_runs_are_those_of_one_at_a_time() -> None:
    """Results are in the order of scenarios and seeds, for any number of threads."""
    other = plain()
    other["flow"][0]["protocol"] = "tcp/cubic"
    one_by_one = [lab.run(s, seed=n).event_hash for s in (plain(), other) for n in (1, 2, 3)]
    assert len(set(one_by_one)) == 6
    for workers in (1, 2, None):
        many = lab.run_many([plain(), other], seeds=[1, 2, 3], workers=workers)
        assert [record.event_hash for record in many] == one_by_one


def test_wrong_argument_types_are_reported_by_name() -> None:
    """Errors describe valid arguments: a mapping, a class, several seeds, a list of tables."""
    wrong: Any = "time.duration=60 s"
    one: Any = 1
    gentle: Any = WindowAlgorithm(2)
    study = lab.experiment("bhatti-2008")
    calls: list[tuple[str, Callable[[], object]]] = [
        ("set must be a mapping, such as {\"time.duration", lambda: lab.run(plain(), set=wrong)),
        ("set must have keys that are str, not int", lambda: lab.run(plain(), set={one: 2})),
        ("set must be a mapping", lambda: study.only(set=wrong)),
        ("algorithms must be a mapping", lambda: lab.run(plain(), algorithms=wrong)),
        ("algorithms['a'] must be a class, not an object of WindowAlgorithm",
         lambda: lab.run(plain(), algorithms={"a": gentle})),
        ("seeds must be an iterable of int", lambda: lab.run_many(plain(), seeds=one)),
        ("tables=['table3']", lambda: study.only(tables="table3")),
    ]  # fmt: skip
    for words, call in calls:
        with pytest.raises(TypeError, match=re.escape(words)):
            call()


def test_invalid_numbers_are_reported_with_key_and_range() -> None:
    """Of a seed, a snap length, threads and runs, instead of the native module's error."""
    calls: list[tuple[str, int, str, Callable[[Any], object]]] = [
        ("seed", 2**64, "0 to 18446744073709551615", lambda n: lab.run(plain(), seed=n)),
        ("seed", 2**64, "0 to 18446744073709551615", lambda n: lab.run_many(plain(), seeds=[n])),
        ("snaplen", 2**32, "0 to 4294967295", lambda n: lab.run(plain(), pcap="x", snaplen=n)),
        ("workers", 0, "1 to 1024", lambda n: lab.run_many(plain(), workers=n)),
        ("workers", 0, "1 to 1024", lambda n: lab.experiment("nor-2012").run(workers=n)),
        ("runs", 0, "1 to 100000", lambda n: lab.experiment("nor-2012", runs=n)),
    ]
    for key, beyond, limits, call in calls:
        for number in (-1, beyond):
            told = f"^{key}={number}: must be a whole number from {limits}$"
            with pytest.raises(ValueError, match=told):
                call(number)
        with pytest.raises(TypeError, match=f"^{key} must be int, not float$"):
            call(1.5)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_have_numbers_and_units(library: Library) -> None:
    """One row per flow, and one per sample."""
    record = lab.run(plain())
    runs = record.frame(library)
    assert runs.shape[0] == 2
    assert {"flow", "protocol", "goodput_mbps", "delay_p95_ms", "packets_sent"} <= set(runs.columns)
    assert "float" in str(runs["goodput_mbps"].dtype).lower()
    series = record.series(library)
    rates = ["t_s", "throughput_mbps", "goodput_mbps"]
    believed = ["cwnd_packets", "srtt_ms"]
    assert list(series.columns) == ["flow", "protocol", *rates, *believed]
    assert series.shape == (2 * 4, 7)
    assert list(series["t_s"])[:4] == [1.0, 2.0, 3.0, 4.0]


def test_errors_have_places_and_fixes(tmp_path: Path) -> None:
    """In a file, a mapping, a change, or a missing grid axis."""
    path = tmp_path / "wrong.toml"
    path.write_text("schema = 1\nid = 'x'\n[time]\nduraton = '4 s'\n")
    with pytest.raises(lab.ScenarioError) as of_file:
        lab.run(path)
    unknown = [d for d in of_file.value.diagnostics if "duraton" in d.message]
    assert [(d.file, d.line, d.column) for d in unknown] == [(str(path), 4, 1)]
    assert "did you mean `duration`?" in str(unknown[0].hint)

    wrong = plain()
    wrong["flow"][1]["protocol"] = "tcp/cubik"
    with pytest.raises(lab.ScenarioError, match="did you mean `tcp/cubic`") as of_mapping:
        lab.run(wrong)
    [only] = of_mapping.value.diagnostics
    assert only.file == "<scenario>"
    assert 'protocol = "tcp/cubik"' in str(of_mapping.value)

    with pytest.raises(lab.ScenarioError) as of_change:
        lab.run(plain(), set={"flow.c.protocol": "udp"})
    assert of_change.value.diagnostics[0].file == "set"
    with pytest.raises(lab.ScenarioError, match="`second`, `rtt`: choose one value") as of_axes:
        lab.run("bhatti-2008")
    hint = str(of_axes.value.diagnostics[0].hint)
    assert hint.startswith('set={"second": "')
    assert all(part in hint for part in (', "rtt": "', "choose from second: ", "; rtt: "))
    with pytest.raises(lab.ScenarioError, match="no variant"):
        lab.run("bhatti-2008", variant="none")
    with pytest.raises(lab.ScenarioError, match="no case"):
        lab.run(plain(), case="none")
    with pytest.raises(TypeError, match="prepared"):
        lab.run(lab.prepare(plain()), set={"time.duration": "1 s"})
    with pytest.raises(TypeError):
        lab.run(7)  # type: ignore[arg-type]
    with pytest.raises(lab.RunError, match="cannot write captures"):
        lab.run(plain(), pcap=path)


def test_captures_are_written(tmp_path: Path) -> None:
    """One file per observation point."""
    lab.run(plain(), pcap=tmp_path / "out", snaplen=96)
    assert len(list((tmp_path / "out").glob("*.pcap"))) >= 2


ENDLESS = """
import signal, sys, threading, time
from udccp import lab
wait = float(sys.argv[1])
def press() -> None:
    time.sleep(wait)
    signal.raise_signal(signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    if sys.argv[2] == "run":
        lab.run("two-flows", set={"time.duration": "100000 s", "time.measure.to": "100000 s"})
    else:
        long = lab.prepare(
            "two-flows", set={"time.duration": "100000 s", "time.measure.to": "100000 s"}
        )
        lab.run_many(long, seeds=range(50))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("how", ["run", "many"])
def test_control_c_ends_a_run(how: str) -> None:
    """KeyboardInterrupt is raised, and the process ends: no thread remains."""
    command = [sys.executable, "-c", ENDLESS, "1", how]
    # The runs would take hours, so a hang fails.
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "interrupted\n"


def test_other_threads_run_meanwhile() -> None:
    """The interpreter lock is released during a run."""
    import threading

    ticks = 0
    over = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not over.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    record = lab.run("two-flows-short")
    over.set()
    thread.join()
    cost: dict[str, float] = record["cost"]
    assert ticks > 20 * cost["cpu_s"], f"{ticks} ticks in {cost['cpu_s']} s"


def test_a_panic_is_an_error_that_asks_for_a_report() -> None:
    """Both in the calling thread and in the thread that runs."""
    for where in ("here", "thread"):
        with pytest.raises(InternalError, match=r"a test.*Please report it") as caught:
            _native.panic_for_test(where)
        assert isinstance(caught.value, RuntimeError)


def test_protocols_are_those_of_the_program() -> None:
    """Each has one colour and one marker."""
    known = lab.protocols()
    assert len(known) > 20
    assert len({p.colour for p in known.values()}) == len(known)
    assert len({p.marker for p in known.values()}) == len(known)
    assert known["dccp/ccid2"].colour == "#0072b2"
