"""Metrics equal a report's for the same run, accept all kinds of arrays, explain missing values."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from typing import Any

import numpy
import pandas
import polars
import pytest

from udccp import lab, metrics


def test_they_are_the_numbers_of_a_record() -> None:
    """Fairness and smoothness computed from the series equal the record's."""
    record = lab.run("two-flows-short")
    means = [flow["goodput_mbps"] or 0.0 for flow in record.flows]
    assert metrics.jain(means) == pytest.approx(record.system["jain_goodput_of_means"], rel=1e-6)
    assert metrics.epsilon(means) == pytest.approx(record.system["epsilon"], rel=1e-6)
    assert metrics.log_utility(means) == pytest.approx(record.system["log_utility"], rel=1e-6)
    begin, end = record.measured_s
    for flow in record.flows:
        series = flow["series"]
        samples = zip(series["t_s"], series["throughput_mbps"], strict=True)
        measured = [rate for at, rate in samples if begin < at <= end]
        assert metrics.smoothness(measured) == pytest.approx(flow["smoothness"], rel=1e-6)


@pytest.mark.parametrize("kind", [list, tuple, numpy.array, pandas.Series, polars.Series])
def test_any_array_type_is_accepted(kind: Any) -> None:  # noqa: ANN401 (a constructor)
    """Lists, arrays and columns, including integers."""
    assert metrics.jain(kind([9, 3])) == pytest.approx(0.8)
    assert metrics.jain(array("d", [9.0, 3.0])) == pytest.approx(0.8)
    rates = [kind([1.0, 4.0]), kind([1.0, 0.0])]
    assert metrics.jain_over_time(rates) == [1.0, 0.5]


def test_undefined_values_report_their_reason() -> None:
    """NaN is neither returned nor accepted."""
    for values in ([], [0.0, 0.0], [1.0, float("nan")], [-1.0]):
        with pytest.raises(metrics.UndefinedError):
            metrics.jain(values)
    with pytest.raises(metrics.UndefinedError):
        metrics.harm(0.0, 1.0)
    with pytest.raises(metrics.UndefinedError):
        metrics.convergence_time([[-9.0, -9.0]], [1.0, 2.0], epoch_s=0.0)
    with pytest.raises(ValueError, match="could not convert"):
        metrics.jain(["a"])  # type: ignore[list-item]
    with pytest.raises((TypeError, ValueError)):
        metrics.jain("ab")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("12", "expected numbers, not str"),
        (b"12", "expected numbers, not bytes"),
        ({1: 9.0, 2: 3.0}, "expected numbers, not dict: give its values()"),
        (pandas.DataFrame({"a": [1]}), "expected numbers, not DataFrame: give one of its columns"),
        (polars.DataFrame({"a": [1]}), "expected numbers, not DataFrame: give one of its columns"),
    ],
)
def test_iterables_without_numbers_are_rejected(wrong: Any, words: str) -> None:  # noqa: ANN401
    """An index of a mapping's keys, or of a text's digits, would look like a result."""
    with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
        metrics.jain(wrong)
    with pytest.raises(TypeError, match=r"^expected a series for each flow, not "):
        metrics.jain_over_time(wrong)


def test_series_of_different_lengths_have_no_fairness_over_time() -> None:
    """No values are silently ignored."""
    with pytest.raises(metrics.UndefinedError, match="different lengths"):
        metrics.jain_over_time([[1.0, 2.0], [1.0]])
    assert metrics.jain_over_time([]) == []


def test_jitter_asks_for_no_common_clock() -> None:
    """Transit times between two clocks can be negative; NaN is not a transit time."""
    for offset in (0.0, -5.0, 1.7e9):
        transits = [offset + transit for transit in (0.010, 0.026, 0.010)]
        assert metrics.jitter_rfc3550_ms(transits) == pytest.approx(1.9375, abs=1e-3)
        arrivals = [offset + at for at in (0.0, 0.010, 0.015, 0.035)]
        assert metrics.arrival_gap_jitter_ms(arrivals) == pytest.approx(10.0, abs=1e-3)
    for bad in (float("nan"), float("inf"), -float("inf")):
        for jitter in (metrics.jitter_rfc3550_ms, metrics.arrival_gap_jitter_ms):
            for at in range(3):
                values = [0.1, 0.2, 0.4]
                values[at] = bad
                with pytest.raises(metrics.UndefinedError, match="not a finite number"):
                    jitter(values)


def test_quantiles_of_negative_values() -> None:
    """Decibels can be negative, and so can delays between two clocks."""
    assert metrics.quantile([1.0, -3.0, -2.0], 0.25) == -2.5


def test_share_errors_name_the_argument() -> None:
    """Arguments documented as 0 to 1 are checked."""
    none: Any = "x"
    for wrong in (1.5, -0.5, float("nan"), none):
        calls: list[tuple[str, Callable[[float], object]]] = [
            ("p", lambda x: metrics.quantile([1.0, 2.0], x)),
            ("delta", lambda x: metrics.delta_fair_time([1], [1], [1], epoch_s=0.0, delta=x)),
            ("loss", lambda x: metrics.tcp_friendly_rate(0.1, x)),
            ("loss", lambda x: metrics.equation_ratio(1.0, 0.1, x)),
        ]
        for name, call in calls:
            words = f"{name} must be a number, 0 to 1, not {wrong!r}"
            error = TypeError if wrong is none else metrics.UndefinedError
            with pytest.raises(error, match=f"^{re.escape(words)}$"):
                call(wrong)


def test_times_of_convergence() -> None:
    """The first time, the time after which it lasts, and the delta-fair time."""
    flows = [[-9.0, 0.0, -9.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    times = [1.0, 2.0, 3.0, 4.0]
    assert metrics.convergence_time(flows, times, epoch_s=0.5) == 1.5
    assert metrics.settling_time(flows, times, epoch_s=0.5) == 3.5
    first, second = [9.0, 6.0, 5.0], [1.0, 4.0, 5.0]
    assert metrics.delta_fair_time(first, second, times[:3], epoch_s=0.0, delta=0.1) == 3.0
    assert metrics.delta_fair_time(first, second, times[:3], epoch_s=0.0, delta=0.2) == 2.0


def test_other_metrics_call_their_definition() -> None:
    """One value each, computed manually."""
    assert metrics.geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert metrics.potential_delay([2.0, 4.0]) == pytest.approx(0.375)
    assert metrics.power(10.0, 5.0) == 2.0
    assert metrics.responsiveness([8.0, 6.0, 4.0]) == 2.0
    assert metrics.aggressiveness([1.0, 4.0, 5.0]) == 3.0
    assert metrics.largest_reduction([5.0, 4.0, 1.0]) == 3.0
    assert metrics.equation_ratio(1.0, 1.0, 1.0) == pytest.approx(243.33, rel=1e-3)
    assert metrics.nru_of_mean(5.0, 10.0) == pytest.approx(-3.0103)
    system = metrics.system_nru([1.0, 3.0, -2.0])
    assert (system.fair_db, system.unfair_db, system.case) == (2.0, -2.0, "B")
    three = metrics.summary([1.0, 2.0, 3.0])
    assert (three.n, three.mean, three.stddev) == (3, 2.0, 1.0)
    assert three.ci95 == pytest.approx(2.484, rel=1e-3)
    assert metrics.jitter_rfc3550_ms([0.010, 0.026]) == pytest.approx(1.0)
