# pyright: basic
# (distributed has no types)
"""A campaign through Dask gives the bytes that ``udccp lab run`` gives."""

import os
import subprocess
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from udccp import _native, lab
from udccp.dask import run
from udccp.dask.__main__ import arguments, load, main
from udccp.dask.worker import run_task
from udccp.errors import TaskError

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
def folder(tmp_path: Path) -> Path:
    """A folder with one small experiment."""
    experiments = tmp_path / "experiments"
    experiments.mkdir()
    (experiments / "small.toml").write_text(SMALL)
    return experiments


def small(folder: Path, store: str, runs: int | None = None) -> lab.Experiment:
    """The experiment with a separate store."""
    return lab.experiment(folder / "small.toml", store=folder.parent / store, runs=runs)


def by_program(folder: Path, command: str, *flags: str, store: str) -> bytes:
    """The program's output about a store."""
    place = ["--experiments", str(folder), "--store", str(folder.parent / store)]
    line = [program(), "lab", command, "small", *flags, *place]
    return subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout


def tables(folder: Path, store: str) -> tuple[bytes, bytes, bytes]:
    """All outputs: tables, CSV, Parquet."""
    text = by_program(folder, "run", store=store)
    csv = by_program(folder, "export", "--csv", store=store)
    return text, csv, by_program(folder, "export", "--parquet", store=store)


def test_two_workers_give_the_tables_of_one_machine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line with two workers gives the same bytes, and no run is missing."""
    flags = ["--experiments", str(folder), "--store", str(folder.parent / "dask.sqlite")]
    assert main(["small", "--workers", "2", *flags]) == 0
    printed = capsys.readouterr()
    assert f"{RUNS} of {RUNS} runs" in printed.err
    assert small(folder, "dask.sqlite").missing() == []
    alone = tables(folder, "alone.sqlite")
    assert tables(folder, "dask.sqlite") == alone
    assert printed.out.strip() == alone[0].decode().strip()


def test_a_scheduler_elsewhere_and_a_store_that_has_some_runs(folder: Path) -> None:
    """Two worker processes, found through their scheduler's address."""
    assert small(folder, "dask.sqlite", runs=1).run() == RUNS // 2
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster.scheduler_address) as client:
        assert cluster.scheduler_address.startswith("tcp://")
        outcome = run(client, small(folder, "dask.sqlite"), progress=lambda _: None)
        assert (outcome.ran, outcome.failed) == (RUNS // 2, [])
        assert run(client, small(folder, "dask.sqlite")).ran == 0, "nothing is done twice"
    assert tables(folder, "dask.sqlite") == tables(folder, "alone.sqlite")


def test_what_fails_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name, a worker with another build, a modified task, an invalid store."""
    place = ["--experiments", str(folder), "--store", str(folder.parent / "dask.sqlite")]
    assert main(["smal", "--workers", "1", *place]) == 4
    assert 'no scenario or experiment "smal"' in capsys.readouterr().err
    [task, *_] = small(folder, "none.sqlite").missing()
    with pytest.raises(TaskError, match="install the same build"):
        run_task("0.0.0", task)
    with pytest.raises(TaskError, match="was changed"):
        run_task(_native.LAB_VERSION, task.replace('"seed":5', '"seed":6'))
    with pytest.raises(TaskError, match="not a result"):
        _native.ResultStore(str(folder.parent / "new.sqlite")).put("{}")
    (folder.parent / "text.sqlite").write_text("this is no store, but a text of some length\n" * 99)
    with pytest.raises(lab.StoreError):
        small(folder, "text.sqlite").run()


def test_all_means_own_and_built_in_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder experiments/ of the working directory is used, as by ``udccp lab run --all``."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/small.toml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    found = {campaign.id for campaign in load(arguments(["--all"]))}
    assert found >= {"small", "nor-2012", *lab.experiments()}
