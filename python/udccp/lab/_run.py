"""Runs one scenario, or many on all cores."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, SupportsIndex, TypeAlias, TypeVar, Union, cast

from udccp import _native
from udccp.lab.record import Record
from udccp.lab.scenario import Scenario, to_plain
from udccp.window import WindowAlgorithm

#: A scenario: a path or a name, a mapping with the keys of a file, typed objects, or one that was
#: prepared.
Source: TypeAlias = Union[str, "PathLike[str]", Mapping[str, Any], Scenario, _native.Prepared]
Value: TypeAlias = str | int | float | bool | Mapping[str, Any]

#: Examples of mappings, for error messages.
EXAMPLES = {"set": '"time.duration": "60 s"', "algorithms": '"first": Mine'}


def as_text(value: Value) -> str:
    """Convert a value to its text on the command line."""
    return str(value) if isinstance(value, str) else _as_toml(value)


def _as_toml(value: object) -> str:
    """Convert a value to TOML on one line."""
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        entries = (f"{_as_toml(str(key))} = {_as_toml(one)}" for key, one in table.items())
        return f"{{ {', '.join(entries)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_as_toml, cast('Sequence[object]', value)))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def whole(key: str, value: SupportsIndex, least: int, most: int) -> int:
    """Check a whole number; the error names the key and the range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{key} must be int, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise ValueError(f"{key}={number}: must be a whole number from {least} to {most}")
    return number


T = TypeVar("T")


def by_key(name: str, given: Mapping[str, T] | None) -> Mapping[str, T]:
    """Return a mapping, empty for None; the error names the argument if it is not one."""
    if given is None:
        return {}
    kind = type(given).__name__
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{name} must be a mapping, such as {{{EXAMPLES[name]}}}, not {kind}")
    for key in given:
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{name} must have keys that are str, not {type(key).__name__}")
    return given


def _seed(value: int | None) -> int | None:
    """Check a seed; None means that of the file."""
    return None if value is None else whole("seed", value, 0, 2**64 - 1)


def threads(value: int | None) -> int:
    """Return the number of threads; by default one per core."""
    return os.cpu_count() or 1 if value is None else whole("workers", value, 1, 1024)


def prepare(
    scenario: Source,
    *,
    set: Mapping[str, Value] | None = None,
    case: str | None = None,
    variant: str | None = None,
) -> _native.Prepared:
    """Read and check a scenario once, to run it with several seeds.

    Parameters
    ----------
    scenario
        A path, the name of a scenario or experiment (in this folder or in the package), a mapping
        with the keys of a scenario file, or a :class:`~udccp.lab.Scenario`.
    set
        Changes, by dotted keys (``{"flow.second.protocol": "tcp/cubic"}``), or values of the grid
        axes of an experiment. A table is a mapping (``{"topology.bottleneck.queue": {"kind":
        "codel", "target": "9 ms"}}``).
    case, variant
        The case and the variant of an experiment.

    Raises
    ------
    ScenarioError
        The scenario has errors: all of them, with places and corrections.
    """
    changes = [(key, as_text(value)) for key, value in by_key("set", set).items()]
    if isinstance(scenario, _native.Prepared):
        if changes or case or variant:
            raise TypeError("a prepared scenario cannot change: give prepare() these arguments")
        return scenario
    if isinstance(scenario, (str, PathLike)):
        return _native.Prepared.from_file(os.fspath(scenario), changes, case, variant)
    plain = to_plain(scenario)
    if not isinstance(plain, dict):
        raise TypeError(f"a scenario must be a path, name, mapping or objects, not {scenario!r}")
    return _native.Prepared.from_json(json.dumps(plain), changes, case, variant)


def _maker(
    flow: str, algorithm: Callable[[int], WindowAlgorithm]
) -> Callable[[int], WindowAlgorithm]:
    """Create a connection's algorithm, with an error if the class is not a WindowAlgorithm."""

    def make(initial_window: int) -> WindowAlgorithm:
        made = algorithm(initial_window)
        if not isinstance(made, WindowAlgorithm):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(made).__name__
            raise TypeError(f"algorithms[{flow!r}]: {kind} is not derived from WindowAlgorithm")
        return made

    return make


def run(
    scenario: Source,
    *,
    seed: int | None = None,
    set: Mapping[str, Value] | None = None,
    case: str | None = None,
    variant: str | None = None,
    check: bool = False,
    pcap: str | PathLike[str] | None = None,
    snaplen: int | None = None,
    algorithms: Mapping[str, Callable[[int], WindowAlgorithm]] | None = None,
) -> Record:
    """Run a scenario in this process and return its record.

    The same scenario and seed give the same record on every machine, equal to that of
    ``udccp sim --json``. Other Python threads run meanwhile. Ctrl-C ends the run.

    Parameters
    ----------
    scenario
        A path, the name of a scenario or experiment (in this folder or in the package), a mapping
        with the keys of a scenario file, a :class:`~udccp.lab.Scenario`, or the result of
        :func:`prepare`.
    seed
        Seed of all random numbers, 0 to 2**64 - 1; None: that of the file.
    set
        Changes, by dotted keys (``{"flow.second.protocol": "tcp/cubic"}``), or values of the grid
        axes of an experiment. A table is a mapping (``{"topology.bottleneck.queue": {"kind":
        "codel", "target": "9 ms"}}``).
    case, variant
        The case and the variant of an experiment.
    check
        Check the invariants of the simulator at every step (a third slower).
    pcap
        Folder for the captures, one for each observation point; None: no captures.
    snaplen
        Capture at most this many bytes of each packet; None: all.
    algorithms
        Congestion control written in Python: classes derived from :class:`udccp.WindowAlgorithm`,
        by the names of flows of a TCP or ``dccp/ccid2``. An exception in one ends the run.

    Raises
    ------
    ScenarioError
        The scenario has errors: all of them, with places and corrections.
    RunError
        A capture cannot be written, or an invariant was violated.

    Examples
    --------
    >>> from udccp import lab
    >>> short = {"time.duration": "12 s", "time.measure.to": "12 s"}
    >>> record = lab.run("two-flows-short", seed=7, set=short)
    >>> record.seed, record.measured_s
    (7, (10.0, 12.0))
    >>> lab.run("two-flows-shrt")
    Traceback (most recent call last):
    ...
    udccp.errors.ScenarioError: there is no scenario or experiment "two-flows-shrt"
    hint: did you mean `two-flows-short`? choose from: ...
    """
    prepared = prepare(scenario, set=set, case=case, variant=variant)
    folder = None if pcap is None else os.fspath(pcap)
    own = list(by_key("algorithms", algorithms).items())
    for flow, algorithm in own:
        if not callable(algorithm):
            kind = type(algorithm).__name__
            raise TypeError(f"algorithms[{flow!r}] must be a class, not an object of {kind}")
    own = [(flow, _maker(flow, algorithm)) for flow, algorithm in own]
    kept = None if snaplen is None else whole("snaplen", snaplen, 0, 2**32 - 1)
    return Record(_native.run(prepared, _seed(seed), check, folder, kept, own))


def run_many(
    scenarios: Source | Sequence[Source],
    *,
    seeds: Iterable[int] | None = None,
    workers: int | None = None,
) -> list[Record]:
    """Run scenarios with each of several seeds on all cores, without the interpreter's lock.

    Parameters
    ----------
    scenarios
        One scenario or a sequence of them, each as :func:`run` takes it.
    seeds
        The seeds; None: that of each file.
    workers
        Threads, 1 to 1024; None: one per core.

    Returns
    -------
    list of Record
        In the order of the scenarios, and of the seeds of each.

    Raises
    ------
    ScenarioError, RunError
        As :func:`run`. The first failure ends all runs.

    Examples
    --------
    >>> from udccp import lab
    >>> scenario = lab.prepare(
    ...     "two-flows-short", set={"time.duration": "12 s", "time.measure.to": "12 s"}
    ... )
    >>> [record.seed for record in lab.run_many(scenario, seeds=range(1, 4))]
    [1, 2, 3]
    """
    many: Sequence[Source]
    if isinstance(scenarios, (str, PathLike, Mapping, Scenario, _native.Prepared)):
        many = [scenarios]
    else:
        many = scenarios
    if isinstance(seeds, int):
        raise TypeError("seeds must be an iterable of int, such as range(1, 4), not int")
    chosen = [None] if seeds is None else [_seed(seed) for seed in seeds]
    runs = [(one, seed) for one in map(prepare, many) for seed in chosen]
    texts = _native.run_many(runs, min(threads(workers), max(len(runs), 1)))
    return [Record(text) for text in texts]
