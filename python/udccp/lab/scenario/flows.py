"""Times and flows.

Made from docs/reference/scenario.schema.json by python/tools/scenario_types.py; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from udccp.lab.scenario.base import Packets, Percent, Rate, Service, Size, StartWindow, Time
from udccp.lab.scenario.network import AccessLink, Topology
from udccp.lab.scenario.table import Table
from udccp.lab.scenario.traffic import (
    Bulk,
    ConstantRate,
    OnOff,
    ParetoOnOff,
    Poisson,
    RequestResponse,
    Transfer,
    Video,
    VideoTrace,
    Voip,
)


@dataclass(frozen=True, kw_only=True)
class Scenario(Table):
    """One run, without its seed: a network, times and flows.

    Parameters
    ----------
    id
        Name of the scenario.
    topology
        The network.
    time
        Duration and measured interval.
    flow
        The flows.
    asks
        The question in one sentence.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"schema": 1}
    id: str
    topology: Topology
    time: Times
    flow: Sequence[Flow]
    asks: str | None = None


@dataclass(frozen=True, kw_only=True)
class Times(Table):
    """Duration and measured interval.

    Parameters
    ----------
    duration
        Length of the run.
    phase
        Each flow starts later by a random time below this, drawn from the seed.
    measure
        The measured interval; default: the whole run.
    """

    duration: Time
    phase: Time | None = None
    measure: Measure | None = None


@dataclass(frozen=True, kw_only=True)
class Measure(Table):
    """The measured interval.

    Parameters
    ----------
    from_
        Begin.
    to
        End.
    every
        Length of one sample of the series; default 1 s.
    """

    _names: ClassVar[Mapping[str, str]] = {"from_": "from"}
    from_: Time
    to: Time
    every: Time | None = None


@dataclass(frozen=True, kw_only=True)
class Flow(Table):
    """A flow from its sender to its receiver, or a group of equal flows.

    Parameters
    ----------
    name
        Its name: letters, digits, - and _.
    protocol
        Its protocol.
    traffic
        What its application sends.
    start
        When it starts; default 0 s.
    stop
        When its application stops; default: at the end of the run.
    count
        How many flows this stands for.
    every
        Time between the starts of the flows of a group.
    direction
        Direction of its data.
    enters
        Leftmost router that it uses, from 1.
    leaves
        Rightmost router that it uses.
    access
        The sender's access link.
    receiver_access
        The receiver's access link.
    packet
        Largest IP packet, 200 B to 65535 B; default 1500 B.
    dccp
        Options if the protocol is DCCP.
    tcp
        Options if the protocol is TCP.
    """

    name: str
    protocol: Literal[
        "dccp/ccid2",
        "dccp/ccid3",
        "dccp/cubic",
        "dccp/bbr",
        "dccp/ccid4",
        "tcp/newreno",
        "tcp/bic",
        "tcp/cubic",
        "tcp/cubic-rfc9438",
        "tcp/highspeed",
        "tcp/htcp",
        "tcp/hybla",
        "tcp/illinois",
        "tcp/lp",
        "tcp/scalable",
        "tcp/vegas",
        "tcp/veno",
        "tcp/westwood",
        "tcp/yeah",
        "tcp/compound",
        "tcp/bbr",
        "udp",
    ]
    traffic: (
        Literal["bulk"]
        | Bulk
        | ConstantRate
        | OnOff
        | ParetoOnOff
        | Transfer
        | Poisson
        | Voip
        | Video
        | VideoTrace
        | RequestResponse
    )
    start: Time | None = None
    stop: Time | None = None
    count: int | None = None
    every: Time | None = None
    direction: Literal["forward", "reverse"] | None = None
    enters: int | None = None
    leaves: int | None = None
    access: AccessLink | None = None
    receiver_access: AccessLink | None = None
    packet: Size | None = None
    dccp: DccpOptions | None = None
    tcp: TcpOptions | None = None


@dataclass(frozen=True, kw_only=True)
class DccpOptions(Table):
    """Options of a DCCP flow; an option that is left out has the default of the protocol.

    Parameters
    ----------
    profile
        The implementation whose CCID 2 applies unless changed here; default: this one.
    ack_ratio
        Ack Ratio: packets per acknowledgement; default: adapted as in RFC 4341.
    initial_window
        First congestion window.
    window_cut
        Part of the window by which a congestion event reduces it.
    growth_after_cut
        Whether packets sent before a cut let the window grow after it.
    sequence_window
        First Sequence Window in packets.
    max_window
        Upper bound of the congestion window.
    min_rto
        Lower bound of the retransmission timeout.
    ecn
        Explicit congestion notification.
    oscillation_reduction
        CCIDs 3 and 4: lower the rate while the round-trip time is above its mean.
    history_discounting
        CCIDs 3 and 4: old loss intervals count less during a long loss interval.
    timer_tick
        Timers fire only at multiples of this.
    timers
        How the host waits for its timers.
    wakes_every
        The host also wakes at multiples of this.
    send_buffer
        Send buffer of the host's socket.
    host_loss
        Packets on the sender's access link lost at random.
    send_queue
        Length of the send queue in messages.
    service
        Service code; default SC:PERF.
    nat
        Which hosts are behind a NAT (RFC 5597).
    quick_start
        Rate requested by Quick-Start (RFC 5634).
    invite
        The receiver invites the sender (RFC 5596).
    """

    profile: Literal["linux-2.6.22"] | None = None
    ack_ratio: int | None = None
    initial_window: StartWindow | None = None
    window_cut: Percent | None = None
    growth_after_cut: Literal["pauses", "continues"] | None = None
    sequence_window: int | None = None
    max_window: Packets | None = None
    min_rto: Time | None = None
    ecn: bool | None = None
    oscillation_reduction: bool | None = None
    history_discounting: bool | None = None
    timer_tick: Time | None = None
    timers: Literal["exact", "epoll"] | None = None
    wakes_every: Time | None = None
    send_buffer: Size | None = None
    host_loss: Percent | None = None
    send_queue: Packets | None = None
    service: Service | None = None
    nat: Literal["sender", "receiver", "both"] | None = None
    quick_start: Rate | None = None
    invite: bool | None = None


@dataclass(frozen=True, kw_only=True)
class TcpOptions(Table):
    """Options of a TCP flow; an option that is left out is that of the profile.

    Parameters
    ----------
    profile
        The host whose settings apply unless changed here.
    delayed_ack
        Acknowledge every second segment instead of every segment.
    ack_counting
        How acknowledgements are counted.
    window_reduction
        How the window is reduced.
    loss_detection
        How losses are detected.
    initial_window
        First congestion window.
    window_cut
        Part of the window by which a congestion event reduces it (NewReno only).
    max_window
        Upper bound of the congestion window.
    initial_ssthresh
        Slow start threshold that the host remembers from an earlier connection.
    receive_buffer
        The largest window advertised.
    send_buffer
        Send buffer.
    min_rto
        Lower bound of the retransmission timeout.
    timestamps
        Timestamps (RFC 7323): 12 bytes of every packet.
    offload
        Paced segments leave in trains; default true.
    small_queues
        Segments wait in the socket, not in the host's queue.
    ecn
        Explicit congestion notification.
    """

    profile: Literal["modern", "linux-2.6.22", "rfc"] | None = None
    delayed_ack: bool | None = None
    ack_counting: (
        Literal["segments", "at-most-two", "one-per-ack", "one-in-slow-start", "one-in-avoidance"]
        | None
    ) = None
    window_reduction: Literal["at-once", "proportional", "rate-halving"] | None = None
    loss_detection: Literal["sack", "rack-tlp"] | None = None
    initial_window: StartWindow | None = None
    window_cut: Percent | None = None
    max_window: Packets | None = None
    initial_ssthresh: Packets | None = None
    receive_buffer: Size | None = None
    send_buffer: Size | None = None
    min_rto: Time | None = None
    timestamps: bool | None = None
    offload: bool | None = None
    small_queues: bool | None = None
    ecn: bool | None = None
