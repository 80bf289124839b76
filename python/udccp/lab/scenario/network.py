"""The network: links and changes.

Made from docs/reference/scenario.schema.json by python/tools/scenario_types.py; do not edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from udccp.lab.scenario.base import Limit, Percent, Rate, Size, Time
from udccp.lab.scenario.elements import (
    CoDel,
    DropHead,
    DropTail,
    FqCoDel,
    GilbertElliott,
    NormalDelay,
    PeriodicLoss,
    Pie,
    RandomLoss,
    Red,
    Reorder,
    TraceDelay,
    TraceLoss,
    UniformDelay,
)
from udccp.lab.scenario.table import Table


@dataclass(frozen=True, kw_only=True)
class Topology(Table):
    """The network between the hosts.

    Parameters
    ----------
    shape
        Its shape.
    access
        The link between each host and its router.
    bottleneck
        The link between the routers, or each of them.
    reverse
        The direction from right to left, where it differs from `bottleneck`.
    hops
        Number of equal hops of a chain.
    hop
        Hops that differ.
    change
        What changes, and when.
    """

    shape: Literal["dumbbell", "chain", "parking-lot"]
    access: AccessLink
    bottleneck: Link | None = None
    reverse: ReverseLink | None = None
    hops: int | None = None
    hop: Sequence[Hop] | None = None
    change: Sequence[Change] | None = None


@dataclass(frozen=True, kw_only=True)
class AccessLink(Table):
    """The link between a host and its router.

    Parameters
    ----------
    rate
        Its rate.
    delay
        Its propagation delay, one way; default 0 s.
    limit
        The limit of its queue; default unlimited.
    trace
        File of transmission opportunities, instead of `rate`.
    queue
        Queue discipline; default drop-tail.
    loss
        Random loss, forward only.
    jitter
        Each packet is delayed by a uniformly random time below this.
    delay_distribution
        How the delay of a packet differs from that of the link.
    reorder
        Packets that overtake others.
    duplicate
        Packets that arrive twice.
    corrupt
        Packets that are damaged, and so dropped.
    mtu
        Larger packets are dropped.
    token_bucket
        Size of a token bucket, which limits the rate instead of a transmitter.
    delay_tick
        Delays end at multiples of this.
    interrupt_moderation
        Least time between two interrupts of the network card at the far end.
    """

    rate: Rate | None = None
    delay: Time | None = None
    limit: Limit | None = None
    trace: str | None = None
    queue: (
        Literal["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"]
        | DropTail
        | DropHead
        | Red
        | CoDel
        | FqCoDel
        | Pie
        | None
    ) = None
    loss: Percent | RandomLoss | GilbertElliott | PeriodicLoss | TraceLoss | None = None
    jitter: Time | None = None
    delay_distribution: UniformDelay | NormalDelay | TraceDelay | None = None
    reorder: Reorder | None = None
    duplicate: Percent | None = None
    corrupt: Percent | None = None
    mtu: Size | None = None
    token_bucket: Size | None = None
    delay_tick: Time | None = None
    interrupt_moderation: Time | None = None


@dataclass(frozen=True, kw_only=True)
class Link(Table):
    """A link between two routers.

    Parameters
    ----------
    limit
        The limit of its queue.
    rate
        Its rate.
    rtt
        Round-trip time of the whole path, instead of `delay`.
    delay
        Its propagation delay, one way, instead of `rtt`.
    trace
        File of transmission opportunities, instead of `rate`.
    queue
        Queue discipline; default drop-tail.
    loss
        Random loss, forward only.
    jitter
        Each packet is delayed by a uniformly random time below this.
    delay_distribution
        How the delay of a packet differs from that of the link.
    reorder
        Packets that overtake others.
    duplicate
        Packets that arrive twice.
    corrupt
        Packets that are damaged, and so dropped.
    mtu
        Larger packets are dropped.
    token_bucket
        Size of a token bucket, which limits the rate instead of a transmitter.
    delay_tick
        Delays end at multiples of this.
    interrupt_moderation
        Least time between two interrupts of the network card at the far end.
    """

    limit: Limit
    rate: Rate | None = None
    rtt: Time | None = None
    delay: Time | None = None
    trace: str | None = None
    queue: (
        Literal["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"]
        | DropTail
        | DropHead
        | Red
        | CoDel
        | FqCoDel
        | Pie
        | None
    ) = None
    loss: Percent | RandomLoss | GilbertElliott | PeriodicLoss | TraceLoss | None = None
    jitter: Time | None = None
    delay_distribution: UniformDelay | NormalDelay | TraceDelay | None = None
    reorder: Reorder | None = None
    duplicate: Percent | None = None
    corrupt: Percent | None = None
    mtu: Size | None = None
    token_bucket: Size | None = None
    delay_tick: Time | None = None
    interrupt_moderation: Time | None = None


@dataclass(frozen=True, kw_only=True)
class ReverseLink(Table):
    """What differs from right to left.

    Parameters
    ----------
    rate
        Its rate.
    rtt
        Round-trip time of the whole path, instead of `delay`.
    delay
        Its propagation delay, one way, instead of `rtt`.
    limit
        The limit of its queue, where it differs.
    trace
        File of transmission opportunities, instead of `rate`.
    queue
        Queue discipline; default drop-tail.
    loss
        Random loss, forward only.
    jitter
        Each packet is delayed by a uniformly random time below this.
    delay_distribution
        How the delay of a packet differs from that of the link.
    reorder
        Packets that overtake others.
    duplicate
        Packets that arrive twice.
    corrupt
        Packets that are damaged, and so dropped.
    mtu
        Larger packets are dropped.
    token_bucket
        Size of a token bucket, which limits the rate instead of a transmitter.
    delay_tick
        Delays end at multiples of this.
    interrupt_moderation
        Least time between two interrupts of the network card at the far end.
    """

    rate: Rate | None = None
    rtt: Time | None = None
    delay: Time | None = None
    limit: Limit | None = None
    trace: str | None = None
    queue: (
        Literal["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"]
        | DropTail
        | DropHead
        | Red
        | CoDel
        | FqCoDel
        | Pie
        | None
    ) = None
    loss: Percent | RandomLoss | GilbertElliott | PeriodicLoss | TraceLoss | None = None
    jitter: Time | None = None
    delay_distribution: UniformDelay | NormalDelay | TraceDelay | None = None
    reorder: Reorder | None = None
    duplicate: Percent | None = None
    corrupt: Percent | None = None
    mtu: Size | None = None
    token_bucket: Size | None = None
    delay_tick: Time | None = None
    interrupt_moderation: Time | None = None


@dataclass(frozen=True, kw_only=True)
class Hop(Table):
    """One hop of a chain.

    Parameters
    ----------
    limit
        The limit of its queue.
    rate
        Its rate.
    delay
        Its propagation delay, one way, instead of `rtt`.
    trace
        File of transmission opportunities, instead of `rate`.
    queue
        Queue discipline; default drop-tail.
    loss
        Random loss, forward only.
    jitter
        Each packet is delayed by a uniformly random time below this.
    delay_distribution
        How the delay of a packet differs from that of the link.
    reorder
        Packets that overtake others.
    duplicate
        Packets that arrive twice.
    corrupt
        Packets that are damaged, and so dropped.
    mtu
        Larger packets are dropped.
    token_bucket
        Size of a token bucket, which limits the rate instead of a transmitter.
    delay_tick
        Delays end at multiples of this.
    interrupt_moderation
        Least time between two interrupts of the network card at the far end.
    reverse
        What differs from right to left.
    """

    limit: Limit
    rate: Rate | None = None
    delay: Time | None = None
    trace: str | None = None
    queue: (
        Literal["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"]
        | DropTail
        | DropHead
        | Red
        | CoDel
        | FqCoDel
        | Pie
        | None
    ) = None
    loss: Percent | RandomLoss | GilbertElliott | PeriodicLoss | TraceLoss | None = None
    jitter: Time | None = None
    delay_distribution: UniformDelay | NormalDelay | TraceDelay | None = None
    reorder: Reorder | None = None
    duplicate: Percent | None = None
    corrupt: Percent | None = None
    mtu: Size | None = None
    token_bucket: Size | None = None
    delay_tick: Time | None = None
    interrupt_moderation: Time | None = None
    reverse: ReverseLink | None = None


@dataclass(frozen=True, kw_only=True)
class Change(Table):
    """A change of a link during the run.

    Parameters
    ----------
    at
        When.
    link
        bottleneck, hop 2 reverse, access, first sender, ....
    rate
        The new rate; 0 bit/s stops the link.
    delay
        The new delay, one way.
    loss
        The new loss.
    down
        Whether the link is down.
    """

    at: Time
    link: str
    rate: Rate | None = None
    delay: Time | None = None
    loss: Percent | RandomLoss | GilbertElliott | PeriodicLoss | TraceLoss | None = None
    down: bool | None = None
