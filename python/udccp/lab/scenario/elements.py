"""What links are made of: queues, losses, delays.

Made from docs/reference/scenario.schema.json by python/tools/scenario_types.py; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from udccp.lab.scenario.base import Packets, Percent, Size, Time
from udccp.lab.scenario.table import Table


@dataclass(frozen=True, kw_only=True)
class Reorder(Table):
    """Packets that overtake others.

    Parameters
    ----------
    share
        Share of packets that overtake.
    gap
        Only every n-th packet can overtake.
    by
        By how much; default: past all packets that are being delayed.
    """

    share: Percent
    gap: int | None = None
    by: Time | None = None


@dataclass(frozen=True, kw_only=True)
class UniformDelay(Table):
    """A uniformly distributed time is added.

    Parameters
    ----------
    below
        Its upper bound.
    in_order
        Whether packets keep their order; default true.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "uniform"}
    below: Time
    in_order: bool | None = None


@dataclass(frozen=True, kw_only=True)
class NormalDelay(Table):
    """A normally distributed time is added.

    Parameters
    ----------
    deviation
        Its standard deviation.
    in_order
        Whether packets keep their order; default true.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "normal"}
    deviation: Time
    in_order: bool | None = None


@dataclass(frozen=True, kw_only=True)
class TraceDelay(Table):
    """The delay follows a file.

    Parameters
    ----------
    file
        Lines of time and delay in ms.
    in_order
        Whether packets keep their order; default true.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "trace"}
    file: str
    in_order: bool | None = None


@dataclass(frozen=True, kw_only=True)
class RandomLoss(Table):
    """Packets are lost independently of each other.

    Parameters
    ----------
    share
        Share that is lost.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "random"}
    share: Percent


@dataclass(frozen=True, kw_only=True)
class GilbertElliott(Table):
    """Losses in bursts: `share` and `burst`, or the four probabilities.

    Parameters
    ----------
    share
        Share that is lost.
    burst
        Mean length of a burst.
    p
        Probability of a change from good to bad, per packet.
    r
        Probability of a change from bad to good, per packet.
    h
        Share that arrives in the bad state; default 0 %.
    k
        Share that arrives in the good state; default 100 %.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "gilbert-elliott"}
    share: Percent | None = None
    burst: Packets | None = None
    p: Percent | None = None
    r: Percent | None = None
    h: Percent | None = None
    k: Percent | None = None


@dataclass(frozen=True, kw_only=True)
class PeriodicLoss(Table):
    """Losses at regular or given times: `every` or `at`.

    Parameters
    ----------
    every
        Every n-th packet, or a period.
    at
        The times.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "periodic"}
    every: Packets | Time | None = None
    at: Sequence[Time] | None = None


@dataclass(frozen=True, kw_only=True)
class TraceLoss(Table):
    """Losses from a file.

    Parameters
    ----------
    file
        The file.
    lists
        What it lists; flags.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "trace"}
    file: str
    lists: Literal["flags", "numbers"] | None = None


@dataclass(frozen=True, kw_only=True)
class DropTail(Table):
    """Drops packets that do not fit."""

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "drop-tail"}


@dataclass(frozen=True, kw_only=True)
class DropHead(Table):
    """Drops the oldest packets to make room for new ones."""

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "drop-head"}


@dataclass(frozen=True, kw_only=True)
class Red(Table):
    """Random early detection (Floyd and Jacobson 1993).

    Parameters
    ----------
    min
        Mean queue length at which early drops begin.
    max
        Mean queue length at which all packets are dropped, or gentle RED begins.
    target
        Mean delay that determines `min` and `max`.
    max_probability
        Drop probability at `max`; default 10 %.
    weight
        Weight of a sample in the mean, above 0, at most 1.
    gentle
        Rise to 100 % between `max` and its double; default true.
    unit
        Unit of the queue length.
    mean_packet
        Mean packet size.
    ecn
        Mark ECN-capable packets instead of dropping them.
    adaptive
        Adaptive RED (Floyd, Gummadi and Shenker 2001).
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "red"}
    min: Packets | None = None
    max: Packets | None = None
    target: Time | None = None
    max_probability: Percent | None = None
    weight: float | None = None
    gentle: bool | None = None
    unit: Literal["packets", "bytes"] | None = None
    mean_packet: Size | None = None
    ecn: bool | None = None
    adaptive: bool | None = None


@dataclass(frozen=True, kw_only=True)
class CoDel(Table):
    """CoDel (RFC 8289).

    Parameters
    ----------
    target
        Acceptable standing delay.
    interval
        Time in which the delay has to fall below it once.
    max_packet
        Largest packet.
    ecn
        Mark ECN-capable packets instead of dropping them.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "codel"}
    target: Time | None = None
    interval: Time | None = None
    max_packet: Size | None = None
    ecn: bool | None = None


@dataclass(frozen=True, kw_only=True)
class FqCoDel(Table):
    """FQ-CoDel (RFC 8290).

    Parameters
    ----------
    target
        Acceptable standing delay.
    interval
        Time in which the delay has to fall below it once.
    max_packet
        Largest packet.
    ecn
        Mark ECN-capable packets instead of dropping them.
    flows
        Number of flow queues.
    quantum
        Bytes that a flow sends per turn.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "fq-codel"}
    target: Time | None = None
    interval: Time | None = None
    max_packet: Size | None = None
    ecn: bool | None = None
    flows: int | None = None
    quantum: Size | None = None


@dataclass(frozen=True, kw_only=True)
class Pie(Table):
    """PIE (RFC 8033).

    Parameters
    ----------
    target
        Target delay.
    update
        Time between two computations of the probability.
    alpha
        Weight of the difference from the target.
    beta
        Weight of the change of the delay.
    max_burst
        Burst that is let through at the start.
    mean_packet
        Mean packet size.
    ecn
        Mark ECN-capable packets instead of dropping them.
    mark_below
        Above this probability, packets are dropped even if they can be marked.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "pie"}
    target: Time | None = None
    update: Time | None = None
    alpha: float | None = None
    beta: float | None = None
    max_burst: Time | None = None
    mean_packet: Size | None = None
    ecn: bool | None = None
    mark_below: Percent | None = None
