# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the keyword arguments of matplotlib have no types)
"""Figures of experiments and of other data in the style of a publication (extra ``plot``).

Each protocol has one colour and one marker, the same as in reports. ``figure`` draws any figure of
an experiment: tables as lines, bars or ranges beside the published values, runs over time, computed
curves. ``save`` writes PDF, PGF (for LaTeX), PNG or SVG, depending on the file's name.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from udccp.lab.protocols import Protocol, protocols
from udccp.lab.record import Record
from udccp.lab.study import Experiment

try:
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.path import Path as Outline
except ImportError as error:
    raise ImportError("udccp.plot needs matplotlib: pip install 'udccp[plot]'") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Marker: TypeAlias = Union[str, "Outline"]

#: Width of a column on a two-column page, in inches.
COLUMN_IN = 3.5
#: Width of a chart in a report, in pixels; widths of bars refer to it.
CHART_PX = 1040.0

#: The publication style: serif text as in a paper, thin axes, ticks inside.
STYLE: dict[Any, Any] = {
    "font.family": "serif",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.linewidth": 0.3,
    "grid.alpha": 0.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.0,
    "lines.markersize": 4.5,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "pdf.fonttype": 42,
    "pgf.rcfonts": False,
}

#: The markers that are not polygons.
_ROUND: Mapping[str, Marker] = {
    "Circle": "o",
    "Cross": "x",
    "Plus": "+",
    "Arch": Outline.wedge(0.0, 180.0),
}


def _marker(name: str | None, outline: Sequence[Sequence[float]] | None) -> Marker:
    if name is None:
        return "None"
    if not outline:
        return _ROUND[name]
    # In reports y increases downwards. The first corner also closes a polygon of matplotlib.
    corners = [(x, -y) for x, y in outline]
    return Outline([*corners, corners[0]], closed=True)


def _known(protocol: str) -> Protocol:
    """Return a protocol by its name in scenarios; ``ValueError`` with the names if unknown."""
    known = protocols()
    if protocol not in known:
        raise ValueError(f"protocol={protocol!r}: use one of {', '.join(known)}")
    return known[protocol]


def protocol_style(protocol: str) -> dict[str, Any]:
    """Return colour and marker of a protocol, as arguments of ``Axes.plot``.

    Parameters
    ----------
    protocol
        Its name in scenarios.

    Raises
    ------
    ValueError
        There is no such protocol.

    Examples
    --------
    >>> protocol_style("dccp/ccid2")
    {'color': '#0072b2', 'marker': 'o'}
    """
    row = _known(protocol)
    return {"color": row.colour, "marker": _marker(row.marker, row.outline)}


def _dash(text: str) -> Any:  # noqa: ANN401 (a line style of matplotlib)
    if not text:
        return "-"
    return (0, tuple(float(part) / 2 for part in text.split()))


def _draw_line(axes: Axes, line: Mapping[str, Any]) -> None:
    points: list[list[Any]] = line["points"]
    if not points:
        return
    x, y, low, high = ([point[i] for point in points] for i in range(4))
    is_published = bool(line["published"])
    axes.plot(
        x,
        y,
        color=line["colour"],
        marker=_marker(line["marker"], line["outline"]),
        markerfacecolor="none" if is_published else line["colour"],
        linestyle=_dash(line["dash"]),
        linewidth=0.7 if is_published else 1.0,
        label=line["label"],
    )
    bars = [i for i, bound in enumerate(low) if bound is not None]
    if bars:
        axes.errorbar(
            [x[i] for i in bars],
            [y[i] for i in bars],
            [[y[i] - low[i] for i in bars], [high[i] - y[i] for i in bars]],
            fmt="none",
            ecolor=line["colour"],
            elinewidth=0.6,
            capsize=2,
        )
    if line["band"]:
        at, lower, upper = zip(*line["band"], strict=True)
        axes.fill_between(at, lower, upper, color=line["colour"], alpha=0.2, linewidth=0)


def _draw_shape(axes: Axes, shape: Mapping[str, Any], per_px: float) -> None:
    middle = shape["x"] + shape["shift_px"] * per_px
    width = 2 * shape["half_px"] * per_px
    axes.bar(
        middle,
        shape["high"] - shape["low"],
        width,
        bottom=shape["low"],
        facecolor="none" if shape["is_hollow"] else shape["colour"],
        edgecolor=shape["colour"],
        linewidth=0.7,
    )
    if shape["interval"] is not None:
        low, high = shape["interval"]
        axes.vlines(middle, low, high, color="black", linewidth=0.6)


def _draw_chart(axes: Axes, chart: Mapping[str, Any]) -> None:
    axes.set_xlabel(chart["x_name"])
    axes.set_ylabel(chart["y_name"])
    if chart["panel"]:
        axes.set_title(chart["panel"])
    if chart["x_is_log"]:
        axes.set_xscale("log")
    if chart["y_is_log"]:
        axes.set_yscale("log")
    axes.set_xlim(*chart["x"])
    axes.set_ylim(*chart["y"])
    if chart["x_ticks"]:
        places, labels = zip(*chart["x_ticks"], strict=True)
        axes.set_xticks(list(places), list(labels))
        axes.minorticks_off()
    if chart["level"] is not None:
        axes.axhline(chart["level"], color="0.4", linewidth=0.6, linestyle=":")
    if chart["shaded"]:
        begin, end, words = chart["shaded"]
        axes.axvspan(begin, end, color="0.9", linewidth=0, label=words)
    for at, _ in chart["events"]:
        axes.axvline(at, color="0.6", linewidth=0.4)
    per_px = (chart["x"][1] - chart["x"][0]) / CHART_PX
    for shape in chart["shapes"]:
        _draw_shape(axes, shape, per_px)
    for line in chart["lines"]:
        _draw_line(axes, line)


@contextmanager
def _styled() -> Generator[None, None, None]:
    """Apply the style for a while.

    Other settings are not restored: the first figure loads the backend, and that of notebooks turns
    on the interactive mode, with which cells show figures.
    """
    before = {key: matplotlib.rcParams[key] for key in STYLE}
    matplotlib.rcParams.update(STYLE)
    try:
        yield
    finally:
        matplotlib.rcParams.update(before)


def draw(charts: Sequence[Mapping[str, Any]], *, width_in: float = COLUMN_IN) -> Figure:
    """Draw the charts of :meth:`udccp.lab.Experiment.charts`, each as a panel.

    Parameters
    ----------
    charts
        The charts.
    width_in
        Width of a panel in inches.

    Raises
    ------
    ValueError
        There are no charts.
    """
    if not charts:
        raise ValueError("no charts to draw: give those of Experiment.charts")
    across = min(len(charts), 3)
    down = -(-len(charts) // across)
    with _styled():
        figure, grid = pyplot.subplots(
            down,
            across,
            figsize=(width_in * across, 0.68 * width_in * down),
            squeeze=False,
            layout="constrained",
        )
        panels: list[Axes] = list(grid.flat)
        for axes, chart in zip(panels, charts, strict=False):
            _draw_chart(axes, chart)
        for axes in panels[len(charts) :]:
            axes.set_axis_off()
        labels: dict[str, Any] = {}
        for axes in panels:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                labels.setdefault(label, handle)
        if len(labels) > 1:
            figure.legend(
                labels.values(),
                labels.keys(),
                loc="outside lower center",
                ncols=min(len(labels), 2),
            )
    return figure


def figure(experiment: Experiment, id: str, *, width_in: float = COLUMN_IN) -> Figure:
    """Draw a figure of an experiment from its stored runs, beside the published values.

    Parameters
    ----------
    experiment
        The experiment. Call its ``run`` before.
    id
        Id of the figure.
    width_in
        Width of a panel in inches.

    Raises
    ------
    KeyError, ValueError
        There is no such figure, or it has no stored runs yet.
    """
    return draw(experiment.charts(id), width_in=width_in)


def over_time(
    record: Record, metric: str = "goodput_mbps", *, width_in: float = COLUMN_IN
) -> Figure:
    """Draw the flows of a run over time.

    Parameters
    ----------
    record
        The run.
    metric
        ``throughput_mbps``, ``goodput_mbps``, ``cwnd_packets``, ``srtt_ms``, ``allowed_rate_mbps``
        or ``loss_event_percent``.
    width_in
        Width in inches.

    Raises
    ------
    TypeError
        `record` is not a single run, but for example a frame of many.
    ValueError
        There is no such metric, or no flow has it.

    Examples
    --------
    >>> from udccp import lab
    >>> short = {"time.duration": "12 s", "time.measure.to": "12 s"}
    >>> drawn = over_time(lab.run("two-flows-short", set=short))
    >>> [line.get_label() for line in drawn.axes[0].get_lines()]
    ['first: DCCP CCID 2', 'second: TCP CUBIC (2007)']
    >>> over_time(lab.run("two-flows-short", set=short), "goodput")
    Traceback (most recent call last):
    ...
    ValueError: metric='goodput': use one of throughput_mbps, goodput_mbps, cwnd_packets, srtt_ms, \
allowed_rate_mbps, loss_event_percent
    >>> over_time(lab.run("two-flows-short", set=short), "allowed_rate_mbps")
    Traceback (most recent call last):
    ...
    ValueError: metric='allowed_rate_mbps': no flow of this run has it
    """
    words = {
        "throughput_mbps": "Throughput, Mbit/s",
        "goodput_mbps": "Goodput, Mbit/s",
        "cwnd_packets": "Congestion window, packets",
        "srtt_ms": "Smoothed round-trip time, ms",
        "allowed_rate_mbps": "Allowed rate, Mbit/s",
        "loss_event_percent": "Loss event rate, %",
    }
    if not isinstance(record, Record):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(record).__name__
        raise TypeError(f"record must be the Record of lab.run, not {kind}: it shows one run")
    if metric not in words:
        raise ValueError(f"metric={metric!r}: use one of {', '.join(words)}")
    if not any(metric in flow["series"] for flow in record.flows):
        raise ValueError(f"metric={metric!r}: no flow of this run has it")
    with _styled():
        drawn, axes = pyplot.subplots(figsize=(width_in, 0.68 * width_in), layout="constrained")
        for flow in record.flows:
            series: Mapping[str, Any] = dict[str, Any](flow["series"])
            if metric not in series:
                continue
            row = protocols()[flow["protocol"]]
            label = f"{flow['name']}: {row.title}"
            axes.plot(series["t_s"], series[metric], color=row.colour, label=label)
        axes.set_xlabel("Time, s")
        axes.set_ylabel(words[metric])
        axes.set_ylim(bottom=0)
        drawn.legend(loc="outside lower center", ncols=2)
    return drawn


def sweep(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    x_name: str,
    y_name: str,
    width_in: float = COLUMN_IN,
) -> Figure:
    """Plot one line per protocol against a parameter that was varied.

    Parameters
    ----------
    x
        Values of the parameter, shape ``(points,)``.
    lines
        Results of shape ``(points,)``, by name of the protocol.
    x_name, y_name
        Names of the axes, with units.
    width_in
        Width in inches.

    Raises
    ------
    ValueError
        There is no such protocol, or a line does not have as many values as `x`.
    """
    # Before the figure is created, which would be left open.
    titles = {name: _known(name).title for name in lines}
    for name, values in lines.items():
        if len(values) != len(x):
            raise ValueError(f"lines[{name!r}] has {len(values)} values, but x has {len(x)}")
    with _styled():
        drawn, axes = pyplot.subplots(figsize=(width_in, 0.68 * width_in), layout="constrained")
        for name, values in lines.items():
            axes.plot(x, values, label=titles[name], **protocol_style(name))
        axes.set_xlabel(x_name)
        axes.set_ylabel(y_name)
        drawn.legend(loc="outside lower center", ncols=2)
    return drawn


def save(figure: Figure, *paths: str | PathLike[str]) -> None:
    """Write a figure to files: ``.pdf``, ``.pgf``, ``.png`` or ``.svg``.

    PGF needs LaTeX (``xelatex`` or ``pdflatex``) to measure text.
    """
    with _styled():
        for path in paths:
            Path(fspath(path)).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(fspath(path))


def save_all(
    experiment: Experiment, folder: str | PathLike[str], kinds: Iterable[str]
) -> list[Path]:
    """Draw every figure of an experiment that has stored runs, and write it in each format.

    Parameters
    ----------
    experiment
        The experiment.
    folder
        The folder to write to, created if it does not exist.
    kinds
        File name extensions: ``("pdf", "pgf")``.

    Returns
    -------
    list of Path
        The files written.
    """
    written: list[Path] = []
    endings = list(kinds)
    for id in experiment.figures:
        try:
            drawn = figure(experiment, id)
        except ValueError:
            continue
        for kind in endings:
            written.append(Path(fspath(folder)) / f"{experiment.id}-{id}.{kind}")
            save(drawn, written[-1])
        pyplot.close(drawn)
    return written
