"""Events of connections other than messages.

The method ``event`` of a socket or of an asyncio connection returns them one after another. Up to
64 unread events are kept, of more the newest; the fates of messages are all kept until they are
read.

Examples
--------
>>> from udccp import socket
>>> with socket.create_server(("127.0.0.1", 0)) as server:
...     with socket.create_connection(server.getsockname()) as client:
...         size = client.send(b"frame", token=17)
...         client.event()
MessageFate(token=17, fate='acknowledged', reason=None)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

__all__ = [
    "DropCode",
    "DropReason",
    "Event",
    "Fate",
    "MaxMessageSize",
    "MessageDropped",
    "MessageFate",
    "PeerDropped",
    "PeerShutdownRead",
    "PeerSlow",
]

#: What happened to a message, as far as its sender can know.
Fate: TypeAlias = Literal["acknowledged", "peer-dropped", "lost", "dropped", "unknown"]

#: Why a message was never sent.
DropReason: TypeAlias = Literal[
    "expired", "displaced", "connection-ended", "peer-shutdown-read", "too-large", "other"
]

#: Why the peer did not deliver a message, or only damaged (RFC 4340 section 11.7).
DropCode: TypeAlias = Literal[
    "protocol-constraints",
    "application-not-listening",
    "receive-buffer",
    "corrupt",
    "delivered-corrupt",
    "reserved",
]


@dataclass(frozen=True)
class MessageFate:
    """What happened to a message that was sent with a token: exactly one event for each.

    Parameters
    ----------
    token
        The number that was given to ``send``.
    fate
        ``acknowledged``: the peer's host received it, which says nothing about its application.
        ``peer-dropped``: the peer received it but did not deliver it to its application, or only
        damaged. ``lost``: it counts as lost, though it may have arrived late. ``dropped``: it was
        never sent. ``unknown``: it was sent, and nothing reported what happened to it, because
        the connection ended first or the CCID does not report single packets (CCID 2 does).
    reason
        A :data:`DropReason` for ``dropped``, a :data:`DropCode` for ``peer-dropped``, otherwise
        None.
    """

    token: int
    fate: Fate
    reason: DropReason | DropCode | None = None


@dataclass(frozen=True)
class MessageDropped:
    """A message that was queued was dropped and will not be delivered.

    Parameters
    ----------
    reason
        Why.
    bytes
        Its length in bytes.
    """

    reason: DropReason
    bytes: int


@dataclass(frozen=True)
class PeerDropped:
    """The peer received data but did not deliver it to its application, or only damaged.

    Parameters
    ----------
    code
        Why (Data Dropped, RFC 4340 section 11.7).
    messages
        How many messages.
    """

    code: DropCode
    messages: int


@dataclass(frozen=True)
class PeerSlow:
    """The peer can hardly keep up (Slow Receiver, RFC 4340 section 11.6): do not send faster."""


@dataclass(frozen=True)
class MaxMessageSize:
    """The size of the largest message that fits in one packet has changed.

    Parameters
    ----------
    bytes
        The new size in bytes.
    """

    bytes: int


@dataclass(frozen=True)
class PeerShutdownRead:
    """The peer's application reads no more. Nothing more can be sent."""


#: Any of these events.
Event: TypeAlias = (
    MessageFate | MessageDropped | PeerDropped | PeerSlow | MaxMessageSize | PeerShutdownRead
)


def from_native(parts: tuple[str, int, str, str]) -> Event:
    """Convert an event of the native module."""
    kind, number, what, why = parts
    match kind:
        case "message-fate":
            reason = cast("DropReason | DropCode | None", why or None)
            return MessageFate(number, cast("Fate", what), reason)
        case "message-dropped":
            return MessageDropped(cast("DropReason", what), number)
        case "peer-dropped":
            return PeerDropped(cast("DropCode", what), number)
        case "peer-slow":
            return PeerSlow()
        case "max-message-size":
            return MaxMessageSize(number)
        case _:
            return PeerShutdownRead()
