"""Experiments: their runs, tables and figures."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, overload

from udccp import _native
from udccp.errors import StoreError
from udccp.lab._run import Value, as_text, by_key, threads, whole
from udccp.lab.frames import Frame, Library, make_frame

#: The default store, the same as that of ``udccp lab run``.
STORE = "results/lab.sqlite"


@dataclass(frozen=True)
class Cell:
    """One value of a table.

    Parameters
    ----------
    labels
        Its grid point; also ``flow``, ``metric`` and ``case`` if the table distinguishes them.
    metric, unit
        The metric and its unit (empty for an index).
    mean
        Mean of our runs; None without runs, or if no run has a value.
    ci95_low, ci95_high
        95 % interval of the mean; None for fewer than three runs.
    runs, runs_asked
        Number of runs with a value, and the number that the experiment asks for.
    shortened
        Whether runs were shortened by ``quick``.
    published
        The published value, if there is one.
    difference
        Our value minus the published value.
    verdict
        ``agrees``, ``in interval``, ``differs``, ``not judged yet``, or empty. ``agrees,
        link-limited`` and ``neither has a value`` do not count as agreement.
    undefined
        Why a run has no value, if one has none.
    """

    labels: Mapping[str, str]
    metric: str
    unit: str
    mean: float | None
    ci95_low: float | None
    ci95_high: float | None
    runs: int
    runs_asked: int
    shortened: bool
    published: float | None
    difference: float | None
    verdict: str
    undefined: str | None


def _label(value: str | float) -> str:
    """A value of an axis as its label: labels are text, also of numbers and truth values."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


class Table(Sequence[Cell]):
    """A table of an experiment: a sequence of its cells."""

    def __init__(self, id: str, title: str, cells: list[Cell]) -> None:
        self.id = id
        self.title = title
        self._cells = cells

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        return self._cells[index]

    def __len__(self) -> int:
        return len(self._cells)

    def __repr__(self) -> str:
        return f"<Table {self.id}: {self.title}, {len(self)} cells>"

    def at(self, **labels: str | float) -> Cell:
        """Return the one cell with these labels, as ``at(rtt="40 ms", hops=2)``.

        Raises
        ------
        KeyError
            No cell has them, or several have.
        """
        texts = {key: _label(label) for key, label in labels.items()}
        found = [
            cell
            for cell in self._cells
            if all(cell.labels.get(key) == label for key, label in texts.items())
        ]
        if len(found) != 1:
            # If several match, show what distinguishes them; if none does, what there is.
            known: dict[str, list[str]] = {}
            for cell in found or self._cells:
                for key, label in cell.labels.items():
                    if label not in known.setdefault(key, []):
                        known[key].append(label)
            words = "; ".join(f"{key}: {', '.join(given)}" for key, given in known.items())
            raise KeyError(f"{len(found)} cells of {self.id} have {labels}; there are {words}")
        return found[0]

    def frame(self, library: Library | None = None) -> Frame:
        """Return the table as a frame, of shape ``(cells, labels + values)``.

        Parameters
        ----------
        library
            ``"polars"`` or ``"pandas"``; by default the one that is installed.
        """
        keys: dict[str, None] = {}
        for cell in self._cells:
            keys.update(dict.fromkeys(cell.labels))
        columns: dict[str, list[Any]] = {
            key: [cell.labels.get(key) for cell in self._cells] for key in keys
        }
        for name in list(Cell.__dataclass_fields__)[1:]:
            columns[name] = [getattr(cell, name) for cell in self._cells]
        return make_frame(columns, library)


class Experiment:
    """An experiment, with its results in a store.

    Use :func:`experiment` to read one.
    """

    def __init__(self, study: _native.Study, store: str, quick: bool, runs: int | None) -> None:
        self._study = study
        self.store = store
        self.quick = quick
        self.runs_of_point = runs

    @property
    def _place(self) -> tuple[str, bool, int | None]:
        """Return store, quick and runs in the form of the native module."""
        return self.store, self.quick, self.runs_of_point

    def __repr__(self) -> str:
        return f"<Experiment {self.id}: {self.title}>"

    @property
    def id(self) -> str:
        """Its name."""
        return self._study.id

    @property
    def title(self) -> str:
        """Its title: that of the study, or its own."""
        return self._study.title

    @property
    def asks(self) -> str:
        """The question of the experiment."""
        return self._study.asks

    @property
    def tables(self) -> dict[str, str]:
        """Titles of the tables, by id."""
        return dict(self._study.tables)

    @property
    def figures(self) -> dict[str, str]:
        """Titles of the figures, by id."""
        return dict(self._study.figures)

    def only(
        self,
        *,
        tables: Sequence[str] = (),
        set: Mapping[str, Value | Sequence[Value]] | None = None,
    ) -> Experiment:
        """Select a part: the runs of some tables, values of axes; or change other keys.

        Parameters
        ----------
        tables
            Ids of tables.
        set
            ``{"rtt": ["25 ms", "50 ms"]}`` selects values of an axis; ``{"time.duration": "60 s"}``
            changes a key of every run.

        Raises
        ------
        ScenarioError
            The experiment does not have one of the tables, axes or keys.
        """
        if isinstance(tables, str):
            raise TypeError(f"tables must be a list of ids, not str: tables=[{tables!r}]")
        changes: list[str] = []
        for key, value in by_key("set", set).items():
            values = [value] if isinstance(value, (str, int, float)) else value
            changes += [f"{key}={as_text(one)}" for one in values]
        study = self._study.narrowed(list(tables), changes)
        return Experiment(study, self.store, self.quick, self.runs_of_point)

    def run(self, *, workers: int | None = None) -> int:
        """Run what the store lacks, on all cores, and return the number of these runs.

        Each run is stored when it ends. After an interruption, the next call continues.

        Parameters
        ----------
        workers
            Threads, 1 to 1024; None: one per core.

        Raises
        ------
        RunError, StoreError
            Runs failed (all others are stored), or the store cannot be used.
        """
        ran, _ = self._study.run(self._place, threads(workers))
        return ran

    def missing(self) -> list[str]:
        """Return the missing tasks, as lines of ``udccp lab plan --missing --json``."""
        return self._study.missing(self._place)

    def table(self, id: str) -> Table:
        """Return a table with our values, their intervals, and the published values.

        Raises
        ------
        KeyError
            The experiment has no table of this id.
        """
        text = self._study.table(self._place, id)
        if text is None:
            raise KeyError(f"no table {id!r}; choose from: {', '.join(self.tables)}")
        return Table(id, self.tables[id], [Cell(**cell) for cell in json.loads(text)])

    def charts(self, id: str) -> list[dict[str, Any]]:
        """Return the content of a figure, panel by panel; :mod:`udccp.plot` draws it.

        Raises
        ------
        KeyError
            The experiment has no figure of this id.
        ValueError
            It has no stored runs yet.
        """
        if id not in self.figures:
            raise KeyError(f"no figure {id!r}; choose from: {', '.join(self.figures)}")
        text = self._study.figure(self._place, id)
        if text is None:
            raise ValueError(f"no runs of {self.id} in {self.store}: call run() first")
        charts: list[dict[str, Any]] = json.loads(text)
        return charts

    def text(self) -> str:
        """Return all tables and verdicts, as ``udccp lab run`` prints them."""
        return self._study.text(self._place)

    def records(self) -> list[dict[str, Any]]:
        """Return the records with their grid points, as ``udccp lab export --json`` does."""
        text = self._study.records(self._place)
        records: list[dict[str, Any]] = json.loads(text)
        return records

    def frame(self, library: Library | None = None) -> Frame:
        """Return a row for each flow of each run.

        Each axis of the grid has a column of labels and one of numbers.

        Parameters
        ----------
        library
            ``"polars"`` or ``"pandas"``; by default the one that is installed.
        """
        return self._frame(False, library)

    def series(self, library: Library | None = None) -> Frame:
        """Return a row for each sample of each flow of each run; see :meth:`frame`."""
        return self._frame(True, library)

    def _frame(self, series: bool, library: Library | None) -> Frame:
        return make_frame(dict(self._study.columns(self._place, series)), library)


def experiments() -> list[str]:
    """Return the names of the experiments in the package.

    Examples
    --------
    >>> "bhatti-2008" in experiments()
    True
    """
    return list(_native.EXPERIMENTS)


def experiment(
    name: str | PathLike[str],
    *,
    store: str | PathLike[str] = STORE,
    quick: bool = False,
    runs: int | None = None,
) -> Experiment:
    """Read an experiment: a published study, or a file of your own.

    Parameters
    ----------
    name
        A path, or the name of an experiment in this folder or in the package.
    store
        File of the result store, which ``udccp lab run`` also uses.
    quick
        Run each point with fewer and shorter runs.
    runs
        Number of runs of each point; None: as the experiment says.

    Raises
    ------
    ScenarioError
        The file has errors: all of them, with places and corrections.

    Examples
    --------
    >>> study = experiment("bhatti-2008")
    >>> "table3" in study.tables
    True
    """
    count = None if runs is None else whole("runs", runs, 1, 100_000)
    return Experiment(_native.Study(os.fspath(name)), os.fspath(store), quick, count)


def load(store: str | PathLike[str], name: str | PathLike[str], *, quick: bool = False) -> Frame:
    """Return the stored runs of an experiment as a frame, with a row for each flow of each run.

    Parameters
    ----------
    store
        File of the result store.
    name
        The experiment, as for :func:`experiment`.
    quick
        Load the quick runs.

    Raises
    ------
    StoreError
        There is no store, or it cannot be read.
    """
    if not os.path.exists(store):
        raise StoreError(f"no result store {os.fspath(store)}: Experiment.run creates one")
    return experiment(name, store=store, quick=quick).frame()
