"""Experiments: campaigns, tables, frames and figures from the store that the program uses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from test_dask import RUNS, SMALL, by_program

from udccp import lab, plot
from udccp.lab.frames import Library

FIGURES = """
[[figure]]
id = "lines"
title = "Shares"
kind = "table"
table = "shares"
x = "rtt"
[[figure]]
id = "bars"
title = "Shares as bars"
kind = "bars"
table = "shares"
x = "rtt"
[[figure]]
id = "time"
title = "Over time"
kind = "time"
metric = ["goodput", "cwnd"]
at = { rtt = "20 ms" }
lines = "flow"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small experiment and its figures."""
    experiments = tmp_path_factory.mktemp("study") / "experiments"
    experiments.mkdir()
    (experiments / "small.toml").write_text(SMALL + FIGURES)
    return experiments


@pytest.fixture(scope="module")
def study(folder: Path) -> lab.Experiment:
    """The experiment with all of its runs."""
    study = lab.experiment(folder / "small.toml", store=folder.parent / "lab.sqlite")
    assert study.run() == RUNS
    return study


def test_the_store_is_that_of_the_program(study: lab.Experiment, folder: Path) -> None:
    """The program finds nothing left to run, and its tables equal ours."""
    assert study.run() == 0, "nothing is done twice"
    printed = by_program(folder, "run", store="lab.sqlite").decode()
    assert study.text().strip() == printed.strip()


def test_a_table_has_values_and_intervals(study: lab.Experiment) -> None:
    """One cell per point and flow, found by labels."""
    table = study.table("shares")
    assert len(table) == 6
    cell = table.at(rtt="40 ms", flow="first")
    assert (cell.unit, cell.runs, cell.runs_asked, cell.published) == ("Mbit/s", 2, 2, None)
    assert cell.mean is not None
    assert 0 < cell.mean < 2
    frame = table.frame("polars")
    assert frame.shape[0] == 6
    assert {"rtt", "flow", "mean", "verdict"} <= set(frame.columns)
    with pytest.raises(KeyError, match="choose from: shares"):
        study.table("share")
    with pytest.raises(KeyError, match=r"3 cells of shares .* rtt: 20 ms, 40 ms, 60 ms;"):
        table.at(flow="first")
    with pytest.raises(KeyError, match=r"0 cells of shares .*; flow: first, second"):
        table.at(flow="third")


def test_a_label_may_be_a_number() -> None:
    """A numeric axis is selected by numbers, although its labels are text."""

    def cell(**labels: str) -> lab.Cell:
        return lab.Cell(labels, "jain", "", 0.5, None, None, 1, 1, False, None, None, "", None)

    cells = [cell(hops="1", ecn="true"), cell(hops="2", ecn="true"), cell(hops="0.5", ecn="false")]
    table = lab.Table("shares", "Shares", cells)
    assert table.at(hops=1) is table.at(hops="1") is table.at(hops=1.0) is cells[0]
    assert table.at(hops=2, ecn=True) is cells[1]
    assert table.at(hops=0.5) is table.at(ecn=False) is cells[2]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_have_numeric_axes(study: lab.Experiment, library: Library) -> None:
    """Each axis has a label and a number with its unit."""
    frame = study.frame(library)
    assert frame.shape[0] == 2 * RUNS
    assert sorted(set(frame["rtt_s"])) == [0.02, 0.04, 0.06]
    assert study.series(library).shape[0] > 2 * RUNS
    loaded = lab.load(study.store, Path(study.store).parent / "experiments" / "small.toml")
    assert loaded.shape == frame.shape


def test_a_published_study_has_its_published_values() -> None:
    """Without runs, there are published values but none of ours."""
    table = lab.experiment("bhatti-2008", store="no-such-store.sqlite").table("table3")
    assert any(cell.published is not None for cell in table)
    assert all(cell.mean is None and cell.verdict == "" for cell in table)


def test_a_part_of_an_experiment(study: lab.Experiment) -> None:
    """Some values of an axis, and a wrong table."""
    part = study.only(set={"rtt": ["20 ms", "60 ms"]})
    assert len(part.table("shares")) == 4
    with pytest.raises(lab.ScenarioError, match="shares"):
        study.only(tables=["share"])


def test_a_part_of_a_part(study: lab.Experiment) -> None:
    """A second selection applies to the first one's result, including figures of its tables."""
    part = study.only(tables=["shares"])
    drawn = set(part.figures)
    assert drawn <= set(study.figures)
    again = part.only(set={"rtt": ["20 ms", "60 ms"]})
    assert list(again.tables) == ["shares"]
    assert set(again.figures) == drawn
    published = lab.experiment("bhatti-2008", store="no-such-store.sqlite")
    assert list(published.only(tables=["table3"]).figures) == ["figure2"]


def test_missing_names_are_reported(tmp_path: Path) -> None:
    """No experiment, no store, no runs, no figure."""
    with pytest.raises(lab.ScenarioError, match="did you mean `bhatti-2008`"):
        lab.experiment("bhati-2008")
    with pytest.raises(lab.StoreError, match="no result store"):
        lab.load(tmp_path / "none.sqlite", "bhatti-2008")
    empty = lab.experiment("bhatti-2008", store=tmp_path / "none.sqlite")
    with pytest.raises(KeyError, match="figure2"):
        plot.figure(empty, "figure22")


def test_every_kind_of_figure_is_drawn(study: lab.Experiment, tmp_path: Path) -> None:
    """Vector PDF files, one per figure, with the reports' line colours."""
    written = plot.save_all(study, tmp_path, ["pdf"])
    assert [path.name for path in written] == [
        f"small-{id}.pdf" for id in ("lines", "bars", "time")
    ]
    assert all(path.read_bytes().startswith(b"%PDF") for path in written)
    drawn = plot.figure(study, "lines")
    colours = {line.get_color() for line in drawn.axes[0].get_lines()}
    known = lab.protocols()
    assert {known["dccp/ccid2"].colour, known["tcp/newreno"].colour} <= colours


def test_every_figure_of_the_studies_is_drawn(tmp_path: Path) -> None:
    """Only published values and curves if nothing has been run."""
    kinds: set[str] = set()
    for name in lab.experiments():
        study = lab.experiment(name, store=tmp_path / "none.sqlite")
        for id in study.figures:
            try:
                charts = study.charts(id)
            except ValueError:
                continue
            drawn = plot.draw(charts)
            assert isinstance(drawn, Figure)
            kinds.update("shapes" if chart["shapes"] else "lines" for chart in charts)
            pyplot.close(drawn)
    assert "lines" in kinds


def test_each_protocol_has_a_line_style(tmp_path: Path) -> None:
    """All colours and markers of the Rust table can be drawn."""
    rates = {name: [float(i), i + 1.0] for i, name in enumerate(lab.protocols())}
    drawn = plot.sweep([0.0, 1.0], rates, x_name="RTT, s", y_name="Goodput, Mbit/s")
    plot.save(drawn, tmp_path / "all.pdf", tmp_path / "all.svg")
    assert (tmp_path / "all.svg").read_text().startswith("<?xml")


def test_undrawable_figures_report_what_can_be_drawn() -> None:
    """An unknown protocol, a line of another length, no charts; no figure remains open."""
    before = pyplot.get_fignums()
    with pytest.raises(ValueError, match=r"protocol='dccp/ccid5': use one of .*dccp/ccid2"):
        plot.protocol_style("dccp/ccid5")
    with pytest.raises(ValueError, match=r"protocol='DCCP': use one of .*dccp/ccid2"):
        plot.sweep([0.0], {"DCCP": [1.0]}, x_name="x", y_name="y")
    with pytest.raises(ValueError, match=r"lines\['udp'\] has 1 values, but x has 2"):
        plot.sweep([0.0, 1.0], {"udp": [1.0]}, x_name="x", y_name="y")
    with pytest.raises(ValueError, match="no charts to draw"):
        plot.draw([])
    with pytest.raises(TypeError, match=r"record must be the Record of lab\.run, not list"):
        plot.over_time([])  # type: ignore[arg-type]
    assert pyplot.get_fignums() == before


def test_plotting_does_not_change_the_backend_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook's backend turns the interactive mode on when the first figure is created."""
    subplots: Callable[..., Any] = pyplot.subplots

    def loads_a_backend(*args: object, **kwargs: object) -> object:
        matplotlib.interactive(True)
        return subplots(*args, **kwargs)

    monkeypatch.setattr(pyplot, "subplots", loads_a_backend)
    assert not matplotlib.is_interactive()
    try:
        drawn = plot.sweep([0.0, 1.0], {"udp": [1.0, 2.0]}, x_name="x", y_name="y")
        assert matplotlib.is_interactive()
        pyplot.close(drawn)
    finally:
        matplotlib.interactive(False)


@pytest.mark.skipif(shutil.which("xelatex") is None, reason="PGF needs a LaTeX")
def test_pgf_for_latex(tmp_path: Path) -> None:
    """A file for LaTeX."""
    drawn = plot.sweep([0.0, 1.0], {"udp": [1.0, 2.0]}, x_name="x", y_name="y")
    plot.save(drawn, tmp_path / "figure.pgf")
    assert "pgfpicture" in (tmp_path / "figure.pgf").read_text()


def test_a_campaign_ends_with_control_c(folder: Path) -> None:
    """Finished runs are stored, and the next call continues."""
    code = """
import signal, sys, threading, time
from udccp import lab
study = lab.experiment(sys.argv[1], store=sys.argv[2], runs=400)
def press() -> None:
    time.sleep(1.0)
    signal.raise_signal(signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    study.run(workers=2)
except KeyboardInterrupt:
    print(len(study.missing()))
"""
    store = folder.parent / "stopped.sqlite"
    command = [sys.executable, "-c", code, str(folder / "small.toml"), str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert 0 < int(done.stdout) <= 3 * 400
