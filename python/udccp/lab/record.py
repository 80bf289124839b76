"""Results of a run, with the names of ``udccp sim --json`` (docs/reference/record.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from udccp.lab.frames import Frame, Library, make_frame


class Quantiles(TypedDict):
    """Quantiles of a delay in ms; None without samples."""

    p50: float | None
    p95: float | None
    p99: float | None


class _FlowSeries(TypedDict):
    """The series that every flow has."""

    t_s: list[float]
    throughput_mbps: list[float]
    goodput_mbps: list[float]
    cwnd_packets: list[float | None]


class FlowSeries(_FlowSeries, total=False):
    """A flow over time; lists of shape ``(intervals,)``.

    ``t_s`` is the end of each interval in s. The sender's estimates are those at the end of the
    interval, and None if unknown. Only CCIDs 3 and 4 have lists of the allowed rate (X, of payload)
    and the loss event rate (p) of RFC 5348.
    """

    srtt_ms: list[float | None]
    allowed_rate_mbps: list[float | None]
    loss_event_percent: list[float | None]


class _Flow(TypedDict):
    """The values that every flow has."""

    name: str
    protocol: str
    start_s: float
    packet_bytes: int
    throughput_mbps: float | None
    goodput_mbps: float | None
    router_throughput_mbps: float | None
    router_both_ways_mbps: float | None
    goodput_ratio_percent: float | None
    smoothness: float | None
    loss_percent: float | None
    loss_on_all_links_percent: float | None
    loss_event_percent: float | None
    equation_ratio: float | None
    equation_ratio_of_events: float | None
    delay_ms: float | None
    delay_both_ways_ms: float | None
    delay_quantiles_ms: Quantiles
    jitter_ms: float | None
    jitter_transit_ms: float | None
    jitter_arrival_gap_ms: float | None
    jitter_per_number_ms: float | None
    packets_sent: int
    packets_delivered: int
    goodput_bytes: int
    congestion_events: int
    timeouts: int
    retransmits: int
    crossings: list[dict[str, float]]
    series: FlowSeries


class Flow(_Flow, total=False):
    """One flow; units are in the names (``_mbps`` is 10^6 bit/s).

    ``messages``, ``responses`` and ``transfers`` exist only for traffic that has them.
    """

    messages: dict[str, Any]
    responses: dict[str, Any]
    transfers: dict[str, Any]


class System(TypedDict):
    """The network and all flows together."""

    jain: float | None
    jain_goodput: float | None
    jain_of_means: float | None
    jain_goodput_of_means: float | None
    max_min_ratio: float | None
    epsilon: float | None
    log_utility: float | None
    utilisation_percent: float | None
    queue_delay_ms: Quantiles
    packets_dropped: int


class LinkSeries(TypedDict):
    """A link over time; lists of shape ``(intervals,)``."""

    t_s: list[float]
    throughput_mbps: list[float]
    queue_packets: list[int]
    dropped: list[int]


class Link(TypedDict):
    """One direction of a link between routers."""

    name: str
    utilisation_percent: float
    throughput_mbps: float
    loss_percent: float
    queue_delay_ms: Quantiles
    packets_arrived: int
    packets_departed: int
    packets_duplicated: int
    packets_dropped: int
    dropped_by: dict[str, int]
    packets_marked: int
    series: LinkSeries


class Record(Mapping[str, Any]):
    """One run: a mapping by the names of ``udccp sim --json``, with the common parts typed.

    Examples
    --------
    >>> from udccp import lab
    >>> short = {"time.duration": "12 s", "time.measure.to": "12 s"}
    >>> record = lab.run("two-flows-short", set=short)
    >>> record["schema"], [flow["protocol"] for flow in record.flows]
    (1, ['dccp/ccid2', 'tcp/cubic'])
    >>> record.flow("first")["goodput_mbps"] > 0
    True
    """

    def __init__(self, text: str) -> None:
        self._data: dict[str, Any] = json.loads(text)

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (a JSON value)
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        flows = ", ".join(flow["name"] for flow in self.flows)
        return f"<Record of {self.scenario}, seed {self.seed}: {flows}>"

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self._data["scenario"])

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return int(self._data["seed"])

    @property
    def event_hash(self) -> str:
        """Hash over the log of all events: the same for identical runs."""
        return str(self._data["event_hash"])

    @property
    def measured_s(self) -> tuple[float, float]:
        """Start and end of the measured interval, in s."""
        begin, end = self._data["measured_s"]
        return float(begin), float(end)

    @property
    def flows(self) -> list[Flow]:
        """The flows, in the order of the scenario."""
        flows: list[Flow] = self._data["flows"]
        return flows

    @property
    def system(self) -> System:
        """The network and all flows together."""
        system: System = self._data["system"]
        return system

    @property
    def links(self) -> list[Link]:
        """The links between routers, hop by hop, forward before reverse."""
        links: list[Link] = self._data["links"]
        return links

    @property
    def undefined(self) -> dict[str, str]:
        """The reason for each value that is None, by its path (``flows.first.jitter_ms``)."""
        undefined: dict[str, str] = self._data["undefined"]
        return undefined

    def flow(self, name: str) -> Flow:
        """Return the flow of this name.

        Raises
        ------
        KeyError
            There is no flow of this name.
        """
        for flow in self.flows:
            if flow["name"] == name:
                return flow
        known = ", ".join(flow["name"] for flow in self.flows)
        raise KeyError(f"no flow {name!r}; choose from: {known}")

    def frame(self, library: Library | None = None) -> Frame:
        """Return a table with a row for each flow, of shape ``(flows, values)``.

        Parameters
        ----------
        library
            ``"polars"`` or ``"pandas"``; by default the one that is installed.
        """
        return runs_frame([self], library)

    def series(self, library: Library | None = None) -> Frame:
        """Return the flows over time, with a row for each interval of each flow.

        Names of columns include units. A flow that lacks the list of a column has no value there.

        Parameters
        ----------
        library
            ``"polars"`` or ``"pandas"``; by default the one that is installed.
        """
        flows = [(flow, dict[str, Any](flow["series"])) for flow in self.flows]
        names = dict.fromkeys(name for _, series in flows for name in series)
        columns: dict[str, list[Any]] = {"flow": [], "protocol": []}
        for flow, series in flows:
            intervals = len(series["t_s"])
            columns["flow"] += [flow["name"]] * intervals
            columns["protocol"] += [flow["protocol"]] * intervals
            for name in names:
                columns.setdefault(name, []).extend(series.get(name, [None] * intervals))
        return make_frame(columns, library)


def runs_frame(records: list[Record], library: Library | None = None) -> Frame:
    """Make a table with a row for each flow of each run.

    Parameters
    ----------
    records
        The runs.
    library
        ``"polars"`` or ``"pandas"``; by default the one that is installed.

    Returns
    -------
    Frame
        Columns ``scenario``, ``seed``, ``flow`` and the single values of a flow, with its delay
        quantiles as ``delay_p50_ms`` and so on.
    """
    rows: list[dict[str, Any]] = []
    for record in records:
        for flow in record.flows:
            row: dict[str, Any] = {"scenario": record.scenario, "seed": record.seed}
            row["flow"] = flow["name"]
            for key, value in flow.items():
                if key == "delay_quantiles_ms":
                    for quantile, number in flow["delay_quantiles_ms"].items():
                        row[f"delay_{quantile}_ms"] = number
                elif key != "name" and not isinstance(value, (dict, list)):
                    row[key] = value
            rows.append(row)
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return make_frame({name: [row.get(name) for row in rows] for name in names}, library)
