"""What applications send.

Made from docs/reference/scenario.schema.json by python/tools/scenario_types.py; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from udccp.lab.scenario.base import Rate, Size, Time
from udccp.lab.scenario.table import Table


@dataclass(frozen=True, kw_only=True)
class Bulk(Table):
    """As much as the flow can send."""

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "bulk"}


@dataclass(frozen=True, kw_only=True)
class ConstantRate(Table):
    """Messages of one size at regular intervals.

    Parameters
    ----------
    rate
        Payload rate while it sends.
    size
        Payload of one message.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "constant-rate"}
    rate: Rate
    size: Size


@dataclass(frozen=True, kw_only=True)
class OnOff(Table):
    """Constant rate alternating with silence.

    Parameters
    ----------
    rate
        Payload rate while it sends.
    size
        Payload of one message.
    on
        Length of an on period.
    off
        Length of a silent period.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "on-off"}
    rate: Rate
    size: Size
    on: Time | ConstantTime | ExponentialTime | ParetoTime | LognormalTime
    off: Time | ConstantTime | ExponentialTime | ParetoTime | LognormalTime


@dataclass(frozen=True, kw_only=True)
class ParetoOnOff(Table):
    """Constant rate alternating with silence, both Pareto distributed.

    Parameters
    ----------
    rate
        Payload rate while it sends.
    size
        Payload of one message.
    on
        Mean length of an on period.
    off
        Mean length of a silent period.
    shape
        Its shape, above 1.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "pareto"}
    rate: Rate
    size: Size
    on: Time
    off: Time
    shape: float


@dataclass(frozen=True, kw_only=True)
class Transfer(Table):
    """A fixed number of bytes.

    Parameters
    ----------
    size
        How much.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "transfer"}
    size: Size


@dataclass(frozen=True, kw_only=True)
class Poisson(Table):
    """Transfers that arrive at random, each over its own connection.

    Parameters
    ----------
    every
        Mean time between arrivals.
    size
        Size of a transfer.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "poisson"}
    every: Time
    size: Size | ConstantSize | ExponentialSize | ParetoSize | LognormalSize


@dataclass(frozen=True, kw_only=True)
class Voip(Table):
    """A voice call.

    Parameters
    ----------
    codec
        The codec.
    packet
        Speech in a packet, in whole frames of 10 ms; default 20 ms.
    silence
        Model of the speaker's pauses; default none.
    patience
        How long a packet may wait; default 150 ms.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "voip"}
    codec: Literal["g711", "g729"]
    packet: Time | None = None
    silence: Literal["none", "p59"] | Silence | None = None
    patience: Time | None = None


@dataclass(frozen=True, kw_only=True)
class Video(Table):
    """Live video with a regular pattern.

    Parameters
    ----------
    every
        Time between frames.
    rate
        Mean payload rate.
    group
        Frames in a group; default 1.
    ratio
        Size of an I frame relative to a P frame; default 1.
    patience
        How long a frame may wait; default 400 ms.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "video"}
    every: Time
    rate: Rate
    group: int | None = None
    ratio: float | None = None
    patience: Time | None = None


@dataclass(frozen=True, kw_only=True)
class VideoTrace(Table):
    """Live video with the frame sizes of a file.

    Parameters
    ----------
    every
        Time between frames.
    trace
        File of frame sizes in bytes, one per line.
    patience
        How long a frame may wait; default 400 ms.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "video"}
    every: Time
    trace: str
    patience: Time | None = None


@dataclass(frozen=True, kw_only=True)
class RequestResponse(Table):
    """Requests, each followed by its response.

    Parameters
    ----------
    request
        Size of a request.
    response
        Size of a response.
    think
        Time from a response to the next request; default 0 s.
    timeout
        When a response is given up, if data can be lost; default 5 s.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "request-response"}
    request: Size | ConstantSize | ExponentialSize | ParetoSize | LognormalSize
    response: Size | ConstantSize | ExponentialSize | ParetoSize | LognormalSize
    think: Time | ConstantTime | ExponentialTime | ParetoTime | LognormalTime | None = None
    timeout: Time | None = None


@dataclass(frozen=True, kw_only=True)
class Silence(Table):
    """Exponential talk-spurts and pauses.

    Parameters
    ----------
    talk
        Mean talk-spurt.
    pause
        Mean pause.
    """

    talk: Time
    pause: Time


@dataclass(frozen=True, kw_only=True)
class ConstantTime(Table):
    """A constant.

    Parameters
    ----------
    value
        The value.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "constant"}
    value: Time


@dataclass(frozen=True, kw_only=True)
class ExponentialTime(Table):
    """Exponentially distributed.

    Parameters
    ----------
    mean
        Its mean.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "exponential"}
    mean: Time


@dataclass(frozen=True, kw_only=True)
class ParetoTime(Table):
    """Pareto distributed.

    Parameters
    ----------
    mean
        Its mean.
    shape
        Its shape, above 1.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "pareto"}
    mean: Time
    shape: float


@dataclass(frozen=True, kw_only=True)
class LognormalTime(Table):
    """Log-normally distributed.

    Parameters
    ----------
    mean
        Its mean.
    sigma
        Standard deviation of the logarithm.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "lognormal"}
    mean: Time
    sigma: float


@dataclass(frozen=True, kw_only=True)
class ConstantSize(Table):
    """A constant.

    Parameters
    ----------
    value
        The value.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "constant"}
    value: Size


@dataclass(frozen=True, kw_only=True)
class ExponentialSize(Table):
    """Exponentially distributed.

    Parameters
    ----------
    mean
        Its mean.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "exponential"}
    mean: Size


@dataclass(frozen=True, kw_only=True)
class ParetoSize(Table):
    """Pareto distributed.

    Parameters
    ----------
    mean
        Its mean.
    shape
        Its shape, above 1.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "pareto"}
    mean: Size
    shape: float


@dataclass(frozen=True, kw_only=True)
class LognormalSize(Table):
    """Log-normally distributed.

    Parameters
    ----------
    mean
        Its mean.
    sigma
        Standard deviation of the logarithm.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"kind": "lognormal"}
    mean: Size
    sigma: float
