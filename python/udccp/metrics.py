"""The metrics of the reports, for any measurements.

The functions are those of the reports (the crate ``udccp-metrics``), so that your values and those
of the laboratory follow the same definitions. Inputs are sequences or arrays of numbers (lists,
numpy arrays, columns of frames); numpy is not needed. If a value does not exist, a function raises
:class:`UndefinedError` with the reason; none returns NaN.

The papers and equations are in docs/reference/metrics.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from udccp import _native
from udccp.errors import UndefinedError

__all__ = [
    "THRESHOLD_DB",
    "FlowNru",
    "Summary",
    "SystemNru",
    "UndefinedError",
    "aggressiveness",
    "arrival_gap_jitter_ms",
    "coefficient_of_variation",
    "convergence_time",
    "delta_fair_time",
    "epsilon",
    "equation_ratio",
    "flow_nru",
    "geometric_mean",
    "harm",
    "jain",
    "jain_over_time",
    "jitter_rfc3550_ms",
    "largest_reduction",
    "log_utility",
    "max_min_shares",
    "nru_of_mean",
    "potential_delay",
    "power",
    "quantile",
    "responsiveness",
    "settling_time",
    "smoothness",
    "summary",
    "system_nru",
    "tcp_friendly_rate",
]


@runtime_checkable
class SupportsTolist(Protocol):
    """An array that can be converted to a list, such as a numpy array or a pandas series."""

    def tolist(self) -> Any:  # noqa: ANN401 (nested lists of numbers)
        """Give the values as a list."""
        ...


Values: TypeAlias = Iterable[float] | SupportsTolist

#: The threshold of the study of convergence, in dB: a share of 0.9 (Bhatti et al. 2008).
THRESHOLD_DB: float = _native.THRESHOLD_DB


def _no_numbers(values: object, wanted: str, columns: str) -> TypeError | None:
    # Types that do not iterate over their values: text iterates over letters, a mapping over keys,
    # a frame over column names.
    kind, way = type(values).__name__, None
    if isinstance(values, (str, bytes, bytearray)):
        way = ""
    elif isinstance(values, Mapping):
        way = ": give its values()"
    elif hasattr(values, "columns"):
        way = f": give {columns}"
    return None if way is None else TypeError(f"expected {wanted}, not {kind}{way}")


def _list(values: Values) -> list[float]:
    wrong = _no_numbers(values, "numbers", "one of its columns")
    if wrong is not None:
        raise wrong
    if isinstance(values, SupportsTolist):
        return [float(value) for value in values.tolist()]
    return [float(value) for value in values]


def _lists(series: Iterable[Values]) -> list[list[float]]:
    wrong = _no_numbers(series, "a series for each flow", "[frame[name] for name in frame.columns]")
    if wrong is not None:
        raise wrong
    return [_list(values) for values in series]


def _share(value: float, name: str) -> float:
    what = f"{name} must be a number, 0 to 1, not {value!r}"
    try:
        if 0 <= value <= 1:
            return value
    except TypeError:
        raise TypeError(what) from None
    raise UndefinedError(what)


def jain(shares: Values) -> float:
    """Jain's fairness index: 1 for equal shares, 1/n if one flow has everything.

    Parameters
    ----------
    shares
        Shape ``(flows,)``, any unit, not negative.

    Examples
    --------
    >>> jain([1.0, 1.0, 1.0])
    1.0
    >>> round(jain([9.0, 3.0]), 2)
    0.8
    >>> jain([0.0, 0.0])
    Traceback (most recent call last):
    ...
    udccp.errors.UndefinedError: ...
    """
    return _native.metric_of_values("jain", _list(shares))


def jain_over_time(series: Iterable[Values]) -> list[float | None]:
    """Jain's index of each interval; None for an interval in which no flow sent anything.

    Parameters
    ----------
    series
        Shape ``(flows, intervals)``: rates of each flow, in one unit, as many for each flow.
    """
    return _native.jain_over_time(_lists(series))


def epsilon(rates: Values) -> float:
    """How far the smallest rate, of shape ``(flows,)``, is below the largest: 1 - min/max.

    Examples
    --------
    >>> epsilon([10.0, 8.0])
    0.19999999999999996
    """
    return _native.metric_of_values("epsilon", _list(rates))


def log_utility(rates: Values) -> float:
    """Sum of the natural logarithms of rates of shape ``(flows,)``: proportional fairness."""
    return _native.metric_of_values("log_utility", _list(rates))


def geometric_mean(rates: Values) -> float:
    """Geometric mean of rates of shape ``(flows,)``, in their unit: the product measure."""
    return _native.metric_of_values("geometric_mean", _list(rates))


def potential_delay(rates: Values) -> float:
    """Mean time to move one unit of data at rates of shape ``(flows,)``."""
    return _native.metric_of_values("potential_delay", _list(rates))


def max_min_shares(capacity: float, demands: Iterable[float | None]) -> list[float]:
    """Max-min fair shares of a link; a demand of None takes as much as it gets.

    Examples
    --------
    >>> max_min_shares(10.0, [2.0, None, None])
    [2.0, 4.0, 4.0]
    """
    return _native.max_min_shares(capacity, list(demands))


def harm(alone: float, beside: float, *, more_is_better: bool = True) -> float:
    """Harm by a rival (Ware et al. 2019): 0 is none, 1 the most; negative if the flow gains.

    Parameters
    ----------
    alone, beside
        The metric of the flow alone and beside its rival, in the same unit.
    more_is_better
        True for rates, False for delays.

    Examples
    --------
    >>> harm(10.0, 2.5)
    0.75
    >>> harm(20.0, 80.0, more_is_better=False)
    0.75
    """
    name = "harm_more_is_better" if more_is_better else "harm_less_is_better"
    return _native.metric_of_numbers(name, [alone, beside])


@dataclass(frozen=True)
class FlowNru:
    """Normalised Resource Usage of a flow.

    Parameters
    ----------
    values_db
        Shape ``(intervals,)``, in dB: 0 is a fair share.
    mean_db
        The flow NRU, in dB.
    stability
        Standard deviation divided by the absolute mean; smaller is more stable. None for one
        interval or a mean of zero.
    """

    values_db: list[float]
    mean_db: float
    stability: float | None


def flow_nru(rates: Values, expected: float, *, least: float) -> FlowNru:
    """Normalised Resource Usage over time (Bhatti et al. 2008, equations 3 to 9).

    Parameters
    ----------
    rates
        Shape ``(intervals,)``: the flow's rate in each interval.
    expected
        The rate that it would get among flows of its own kind, in the same unit.
    least
        The rate of one packet in an interval, to which smaller rates are raised.

    Examples
    --------
    >>> nru = flow_nru([5.0, 5.0], expected=10.0, least=0.012)
    >>> round(nru.mean_db, 2), nru.stability
    (-3.01, 0.0)
    """
    weight = _native.metric_of_numbers("weight", [expected])
    return FlowNru(*_native.flow_nru(_list(rates), weight, least))


def nru_of_mean(mean_rate: float, expected: float) -> float:
    """Normalised Resource Usage of a mean rate, in dB; both rates in the same unit."""
    weight = _native.metric_of_numbers("weight", [expected])
    return _native.metric_of_numbers("usage_of_mean", [mean_rate, weight])


@dataclass(frozen=True)
class SystemNru:
    """The system NRU of all flows.

    Parameters
    ----------
    fair_db, unfair_db
        Means of the flows at or above a fair share, and of those below it, in dB; None if there
        are no such flows.
    mean_db
        Mean of all flows, in dB.
    case
        The case of Table II of the study: A to E.
    """

    fair_db: float | None
    unfair_db: float | None
    mean_db: float
    case: str


def system_nru(means_db: Values, *, zero_within_db: float = 0.05) -> SystemNru:
    """System NRU of the flows' means, of shape ``(flows,)`` in dB.

    Parameters
    ----------
    means_db
        The flow NRU of each flow.
    zero_within_db
        What counts as zero, in dB; the study rounds to one decimal.

    Examples
    --------
    >>> system_nru([1.0, -2.0]).fair_db
    1.0
    """
    return SystemNru(*_native.system_nru(_list(means_db), zero_within_db))


def convergence_time(
    flows_db: Iterable[Values],
    times_s: Values,
    *,
    epoch_s: float,
    threshold_db: float = THRESHOLD_DB,
) -> float:
    """Seconds from the epoch until all flows first reach the threshold.

    Parameters
    ----------
    flows_db
        Shape ``(flows, intervals)``: NRU of each flow in dB.
    times_s
        Shape ``(intervals,)``: the end of each interval in s, rising.
    epoch_s
        When the time starts to count, in s.
    threshold_db
        What each flow has to reach, in dB.

    Examples
    --------
    >>> convergence_time([[-9.0, -3.0, 0.0], [1.0, 0.5, 0.0]], [1.0, 2.0, 3.0], epoch_s=0.0)
    3.0
    """
    return _native.convergence(_lists(flows_db), _list(times_s), epoch_s, threshold_db, False)


def settling_time(
    flows_db: Iterable[Values],
    times_s: Values,
    *,
    epoch_s: float,
    threshold_db: float = THRESHOLD_DB,
) -> float:
    """Seconds until all flows reach the threshold and stay there; see :func:`convergence_time`."""
    return _native.convergence(_lists(flows_db), _list(times_s), epoch_s, threshold_db, True)


def delta_fair_time(
    first: Values, second: Values, times_s: Values, *, epoch_s: float, delta: float = 0.1
) -> float:
    """Seconds until the smaller of two rates is at least (1 - delta)/2 of their sum.

    Parameters
    ----------
    first, second
        Shape ``(intervals,)``: rates in the same unit.
    times_s
        Shape ``(intervals,)``: the end of each interval in s, rising.
    epoch_s
        When the time starts to count, in s.
    delta
        0 to 1.
    """
    rates = [_list(first), _list(second)]
    return _native.delta_fair_time(rates, _list(times_s), epoch_s, _share(delta, "delta"))


def coefficient_of_variation(values: Values) -> float:
    """Standard deviation over mean of values of shape ``(n,)``.

    Examples
    --------
    >>> round(coefficient_of_variation([1.0, 2.0, 3.0]), 3)
    0.5
    """
    return _native.metric_of_values("coefficient_of_variation", _list(values))


def smoothness(rates: Values) -> float:
    """Smoothness of a rate over intervals, of shape ``(intervals,)``: smaller is smoother."""
    return coefficient_of_variation(rates)


def responsiveness(rates: Values) -> float:
    """Round trips until the rate halves; ``rates`` is the rate before, then one per round trip."""
    return _native.metric_of_values("responsiveness", _list(rates))


def aggressiveness(rates: Values) -> float:
    """Largest increase from one round trip to the next, in the unit of ``rates``."""
    return _native.metric_of_values("aggressiveness", _list(rates))


def largest_reduction(rates: Values) -> float:
    """Largest decrease from one round trip to the next, in the unit of ``rates``."""
    return _native.metric_of_values("largest_reduction", _list(rates))


def power(throughput_mbps: float, delay_ms: float) -> float:
    """Throughput divided by delay, in Mbit/s per ms."""
    return _native.metric_of_numbers("power", [throughput_mbps, delay_ms])


def tcp_friendly_rate(rtt_s: float, loss: float) -> float:
    """Packets per second of a TCP at this round-trip time and loss (0 to 1): 1.2/(R sqrt(p)).

    Examples
    --------
    >>> round(tcp_friendly_rate(0.1, 0.01))
    120
    """
    return _native.metric_of_numbers("tcp_friendly_rate", [rtt_s, _share(loss, "loss")])


def equation_ratio(packets_per_s: float, rtt_s: float, loss: float) -> float:
    """Packets per second over those of the TCP throughput equation (RFC 5348 section 3.1)."""
    numbers = [packets_per_s, rtt_s, _share(loss, "loss")]
    return _native.metric_of_numbers("equation_ratio", numbers)


@dataclass(frozen=True)
class Summary:
    """Statistics of one value over repeated runs.

    Parameters
    ----------
    n
        Number of runs.
    mean
        Their mean.
    stddev
        Sample standard deviation; None for one run.
    ci95
        Half the width of the 95 % interval of the mean, by Student's t; None for fewer than three
        runs.
    """

    n: int
    mean: float
    stddev: float | None
    ci95: float | None


def summary(values: Values) -> Summary:
    """Mean and 95 % interval of a value over runs, of shape ``(runs,)``.

    Examples
    --------
    >>> two = summary([1.0, 2.0])
    >>> two.mean, two.ci95
    (1.5, None)
    """
    return Summary(*_native.summary(_list(values)))


def quantile(values: Values, p: float) -> float:
    """Quantile ``p`` (0 to 1) of values of shape ``(n,)`` in any order.

    Examples
    --------
    >>> quantile([3.0, 1.0, 2.0], 0.5)
    2.0
    """
    return _native.quantile(_list(values), _share(p, "p"))


def jitter_rfc3550_ms(transits_s: Values) -> float:
    """Interarrival jitter of RFC 3550 after the last packet, in ms.

    Parameters
    ----------
    transits_s
        Shape ``(packets,)``: one-way transit times in s. An offset between the clocks does not
        matter.
    """
    return _native.jitter_rfc3550_ms(_list(transits_s))


def arrival_gap_jitter_ms(arrivals_s: Values) -> float:
    """Mean change of the gap between arrivals, in ms; arrival times in s, shape ``(packets,)``.

    Examples
    --------
    >>> arrival_gap_jitter_ms([0.0, 0.010, 0.022])
    2.0
    """
    return _native.arrival_gap_jitter_ms(_list(arrivals_s))
