"""A campaign through Dask gives the bytes that ``udccp lab run`` gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from udccp.dask import Amount, Laboratory, LaboratoryError, run
from udccp.dask.__main__ import main

SMALL = """schema = 1
id = "small"
asks = "Does it matter where a run is done?"
[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s" }
bottleneck = { rate = "2 Mbit/s", rtt = "$rtt", limit = "1.0 bdp" }
[time]
duration = "4 s"
phase = "500 ms"
measure = { from = "1 s", to = "4 s" }
[[flow]]
name = "first"
protocol = "dccp/ccid2"
traffic = "bulk"
[[flow]]
name = "second"
protocol = "tcp/newreno"
traffic = "bulk"
[grid]
rtt = ["20 ms", "40 ms", "60 ms"]
runs = 2
seed = 5
[[table]]
id = "shares"
metric = "goodput"
rows = "rtt"
columns = "flow"
"""
RUNS = 6


def program() -> str:
    """The program under test: ``UDCCP``, or the debug build of this repository."""
    here = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR", here / "target"))
    found = Path(os.environ.get("UDCCP", target / "debug" / "udccp"))
    assert found.exists(), f"build it first: cargo build -p udccp-cli ({found})"
    return str(found)


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    """A laboratory with one small experiment and an empty store."""
    experiments = tmp_path / "experiments"
    experiments.mkdir()
    (experiments / "small.toml").write_text(SMALL)
    return Laboratory(program(), experiments, tmp_path / "dask.sqlite")


def tables(laboratory: Laboratory, store: str) -> tuple[str, str, bytes]:
    """Everything that a reader gets: tables, CSV, Parquet."""
    other = Laboratory(laboratory.udccp, laboratory.experiments, laboratory.store.parent / store)
    experiments = ["--experiments", str(other.experiments)]

    def export(flag: str) -> bytes:
        command = other.command("export", "small", flag, *experiments)
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    text = other.tables(["small"], Amount())
    return text, export("--csv").decode(), export("--parquet")


def test_experiments_that_come_with_the_program_are_found_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of a clone, without any folder of experiments."""
    monkeypatch.chdir(tmp_path)
    tasks = Laboratory(program()).missing(["nor-2012"], Amount(runs=1))
    assert {task["experiment"] for task in tasks} == {"nor-2012"}
    assert not list(tmp_path.iterdir()), "planning writes nothing"


def test_two_workers_give_the_tables_of_one_machine(
    laboratory: Laboratory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line with two workers: the same bytes, and nothing left to do."""
    flags = ["--experiments", str(laboratory.experiments), "--store", str(laboratory.store)]
    assert main(["small", "--workers", "2", "--udccp", laboratory.udccp, *flags]) == 0
    said = capsys.readouterr()
    assert f"{RUNS} of {RUNS} runs" in said.err
    assert laboratory.missing(["small"], Amount()) == []
    alone = tables(laboratory, "alone.sqlite")
    assert tables(laboratory, "dask.sqlite") == alone
    assert said.out == alone[0]


def test_a_scheduler_elsewhere_and_a_store_that_has_some_runs(laboratory: Laboratory) -> None:
    """Workers in processes of their own, reached by the address of their scheduler."""
    laboratory.tables(["small"], Amount(runs=1))
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster.scheduler_address) as client:
        assert cluster.scheduler_address.startswith("tcp://")
        outcome = run(client, laboratory, ["small"], tell=lambda _: None)
        assert (outcome.ran, outcome.failed) == (RUNS // 2, [])
        assert run(client, laboratory, ["small"]).ran == 0, "nothing is done twice"
    assert tables(laboratory, "dask.sqlite") == tables(laboratory, "alone.sqlite")


def test_what_fails_is_told(laboratory: Laboratory, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name, a missing program, a worker without the program, no scheduler."""
    place = ["--experiments", str(laboratory.experiments), "--store", str(laboratory.store)]
    local = ["--workers", "1", "--udccp", laboratory.udccp, *place]
    assert main(["smal", *local]) == 4
    assert "did you mean `small`?" in capsys.readouterr().err
    assert main(["small", "--workers", "1", "--udccp", "no-such-program", *place]) == 10
    assert "--udccp PATH" in capsys.readouterr().err
    assert main(["small", "--worker-udccp", "no-such-program", "--retries", "0", *local]) == 1
    assert f"{RUNS} runs failed" in capsys.readouterr().err
    with laboratory.importing() as store:
        store.write("")
    with pytest.raises(LaboratoryError, match="no result"), laboratory.importing() as store:
        store.write(json.dumps({"task": {}}) + "\n")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
