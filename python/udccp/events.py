"""What happens to a connection in addition to its messages.

The method ``event`` of a socket or of an asyncio connection gives these one after another. The
latest 64 are kept for who asks late, and the fates of messages until they are read.

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

#: What became of a message, as far as its sender can know.
Fate: TypeAlias = Literal["acknowledged", "peer-dropped", "lost", "dropped", "unknown"]

#: Why a message never left.
DropReason: TypeAlias = Literal[
    "expired", "displaced", "connection-ended", "peer-shutdown-read", "too-large", "other"
]

#: Why the peer's application did not have a message as it should (RFC 4340 section 11.7).
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
    """What became of a message that was sent with a token: exactly one for each.

    Parameters
    ----------
    token
        The number that was given to ``send``.
    fate
        ``acknowledged``: the peer's host received it, which says nothing of its application.
        ``peer-dropped``: the peer received it, and its application did not have it as it should.
        ``lost``: congestion control took it for lost; it may have arrived late. ``dropped``: it
        never left. ``unknown``: it left, and no report tells: the connection ended first, or the
        CCID does not report single packets (CCID 2 does).
    reason
        Of ``dropped`` a :data:`DropReason`, of ``peer-dropped`` a :data:`DropCode`, else None.
    """

    token: int
    fate: Fate
    reason: DropReason | DropCode | None = None


@dataclass(frozen=True)
class MessageDropped:
    """A message that was accepted will not be delivered.

    Parameters
    ----------
    reason
        Why.
    bytes
        Its length.
    """

    reason: DropReason
    bytes: int


@dataclass(frozen=True)
class PeerDropped:
    """The peer received data, but its application did not have it as it should.

    Parameters
    ----------
    code
        Why (Data Dropped, RFC 4340 section 11.7).
    messages
        How many.
    """

    code: DropCode
    messages: int


@dataclass(frozen=True)
class PeerSlow:
    """The peer can hardly keep up (Slow Receiver, RFC 4340 section 11.6)."""


@dataclass(frozen=True)
class MaxMessageSize:
    """The largest message that fits one packet is another now.

    Parameters
    ----------
    bytes
        Its length.
    """

    bytes: int


@dataclass(frozen=True)
class PeerShutdownRead:
    """The peer's application reads no more: nothing more can be sent."""


#: Any of them.
Event: TypeAlias = (
    MessageFate | MessageDropped | PeerDropped | PeerSlow | MaxMessageSize | PeerShutdownRead
)


def from_native(parts: tuple[str, int, str, str]) -> Event:
    """An event of the native half."""
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
