"""The socket class, which works like the standard module's on top of the native module."""

from __future__ import annotations

import errno
import io
import socket as std
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn, cast

from udccp import _native
from udccp._arguments import message_list, number, size
from udccp.events import Event, from_native
from udccp.options import ConnectionStats
from udccp.socket import _constants as c
from udccp.socket._address import Address
from udccp.socket._base import Base
from udccp.socket._options import fail

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["socket"]

#: Flags that change nothing here.
_HARMLESS = std.MSG_NOSIGNAL | std.MSG_EOR | std.MSG_WAITALL | getattr(std, "MSG_CMSG_CLOEXEC", 0)
# As int: the complement of a flags type lacks unnamed bits, which have to be refused too.
_FOR_SEND = int(std.MSG_DONTWAIT | _HARMLESS)
_FOR_RECV = int(std.MSG_DONTWAIT | std.MSG_PEEK | std.MSG_TRUNC | _HARMLESS)


def _control(message: object) -> tuple[int, int, bytes]:
    """Return level, type and data of a control message."""
    parts = cast(tuple[object, ...], message) if isinstance(message, tuple) else ()
    if len(parts) != 3:
        raise TypeError("sendmsg() argument 2 must be an iterable of (level, type, data)")
    level, kind, data = parts
    if not isinstance(level, int) or not isinstance(kind, int):
        raise TypeError("level and type of a control message must be int")
    return level, kind, bytes(memoryview(cast("ReadableBuffer", data)))


class socket(Base):
    """A DCCP socket that works like :class:`socket.socket`.

    Each ``send`` sends one message, and each ``recv`` returns one. ``recv`` returns ``b""`` at the
    end; if the peer sends empty messages, :meth:`recvmsg` tells them from the end. Unlike the
    kernel's, ``send`` waits while the send queue is full, ``close`` still delivers what was sent,
    and ``recv`` raises if the connection was lost.

    Parameters
    ----------
    family
        ``AF_INET`` or ``AF_INET6``.
    type, proto
        ``SOCK_DCCP`` and ``IPPROTO_DCCP``, or the defaults.
    fileno
        Must be None: a DCCP socket lives in its process, not in a descriptor.
    service
        The service code to connect to or to serve, ``"SC:echo"`` or a number
        (``DCCP_SOCKOPT_SERVICE``).
    options
        Settings of the connection; None: the defaults.
    udp_port
        The UDP port to connect to, or to bind; None: the same number as the DCCP port; 0: raw IP,
        without UDP.

    Examples
    --------
    >>> with socket() as server, socket() as client:
    ...     server.bind(("127.0.0.1", 0))
    ...     server.listen()
    ...     client.connect(server.getsockname())
    ...     size = client.send(b"hello")
    ...     peer, address = server.accept()
    ...     with peer:
    ...         peer.recv(100)
    b'hello'
    """

    __slots__ = ()

    def _wait_s(self, flags: int) -> float | None:
        return 0.0 if flags & std.MSG_DONTWAIT else self._timeout

    def _to_send(self, flags: int) -> _native.Connection:
        """Return the connection, or raise why nothing can be sent."""
        self._check_open()
        if number(flags, "the flags") & ~_FOR_SEND:
            raise fail(errno.EOPNOTSUPP)
        if self._is_write_shut or not (self._connection or self._handshake) or self._has_failed:
            raise fail(errno.EPIPE)
        return self._connection or self._finish(self._wait_s(flags))

    def _to_receive(self, flags: int) -> _native.Connection:
        """Return the connection, or raise why nothing can be received."""
        self._check_open()
        if number(flags, "the flags") & ~_FOR_RECV:
            raise fail(errno.EOPNOTSUPP)
        if not (self._connection or self._handshake) or self._has_failed:
            raise fail(errno.ENOTCONN)
        return self._connection or self._finish(self._wait_s(flags))

    def send(
        self,
        data: ReadableBuffer,
        flags: int = 0,
        *,
        priority: int = 0,
        lifetime_s: float | None = None,
        token: int | None = None,
    ) -> int:
        """Send one message, waiting while the send queue is full.

        Parameters
        ----------
        data
            The message, at most ``max_message_size`` bytes.
        flags
            ``MSG_DONTWAIT`` or 0.
        priority
            Messages of higher priority leave first, 0 (the default) to 2**32 - 1.
        lifetime_s
            The message is dropped if it has not left after this time, in s; None: never.
        token
            A number, 0 to 2**64 - 1, with which :meth:`event` reports what happened to the message.
            Numbers may repeat. None: no report.

        Returns
        -------
        int
            Its length in bytes.

        Raises
        ------
        BlockingIOError, TimeoutError
            There was no room in time. The message was not sent.
        OSError
            ``EMSGSIZE`` if it does not fit in one packet; ``EPIPE`` if not connected, or closed;
            ``ECONNRESET``, ``ETIMEDOUT`` and others if the connection was lost.
        """
        connection = self._connection
        if connection is None or flags != 0 or self._is_write_shut:
            connection = self._to_send(flags)
        if flags or priority != 0 or lifetime_s is not None or token is not None:
            return connection.send_with(data, self._wait_s(flags), priority, lifetime_s, token)
        return connection.send(data, self._timeout)

    def sendall(self, data: ReadableBuffer, flags: int = 0) -> None:
        """Send one message. It is sent whole or not at all."""
        self.send(data, flags)

    def sendto(self, data: ReadableBuffer, *flags_and_address: int | Address) -> int:
        """Send one message to the peer. As in Linux, another address is ignored."""
        if not 1 <= len(flags_and_address) <= 2:
            count = 1 + len(flags_and_address)
            raise TypeError(f"sendto() takes 2 or 3 arguments ({count} given)")
        address = flags_and_address[-1]
        if not isinstance(address, tuple):
            raise TypeError(f"sendto(): the address must be tuple, not {type(address).__name__}")
        flags = flags_and_address[0] if len(flags_and_address) == 2 else 0
        return self.send(data, number(flags, "the flags"))

    def sendmsg(
        self,
        buffers: Iterable[ReadableBuffer],
        ancdata: Iterable[tuple[int, int, ReadableBuffer]] = (),
        flags: int = 0,
        address: Address | None = None,
    ) -> int:
        """Send one message that is gathered from several buffers.

        `ancdata` may contain a priority: ``(SOL_DCCP, DCCP_SCM_PRIORITY, four bytes)``, for a
        socket with ``DCCPQ_POLICY_PRIO``.

        Raises
        ------
        OSError
            ``EINVAL`` for any other control message of ``SOL_DCCP``; see :meth:`send`.
        """
        if address is not None and not isinstance(cast(object, address), tuple):
            raise TypeError(f"the address must be tuple, not {type(address).__name__}")
        priority = 0
        for control in ancdata:
            level, kind, raw = _control(control)
            if level != c.SOL_DCCP:
                continue
            known = kind == c.DCCP_SCM_PRIORITY and len(raw) == 4
            if not known or not self._options.options.drop_lowest:
                raise fail(errno.EINVAL)
            priority = int.from_bytes(raw, sys.byteorder)
        data = b"".join(bytes(memoryview(piece)) for piece in buffers)
        return self.send(data, flags, priority=priority)

    def send_many(self, messages: Sequence[ReadableBuffer], flags: int = 0) -> int:
        """Send messages in order, with as few system calls as possible.

        Returns
        -------
        int
            How many were queued. All, if no message fails and the socket has no timeout; otherwise
            those before the timeout or the message that failed, at least one. To get the error,
            send the next one.

        Raises
        ------
        BlockingIOError, TimeoutError, OSError
            As :meth:`send`, for the first message.
        """
        connection = self._to_send(flags)
        return connection.send_many(message_list(messages), self._wait_s(flags))

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Receive the next message, cut to `bufsize` bytes; empty at the end.

        Raises
        ------
        BlockingIOError, TimeoutError
            There was none in time.
        OSError
            ``ENOTCONN`` if it was never connected; ``ECONNRESET``, ``ETIMEDOUT`` and others if the
            connection was lost, after everything that arrived was read.
        """
        connection = self._connection
        if type(bufsize) is not int or bufsize < 0:
            bufsize = size(bufsize, "recv")
        if connection is None or flags != 0:
            connection = self._to_receive(flags)
            peek = bool(flags & std.MSG_PEEK)
            received = connection.recv(bufsize, self._wait_s(flags), peek)
            return received[0] if received else b""
        return connection.recv_data(bufsize, self._timeout)

    def recvfrom(self, bufsize: int, flags: int = 0) -> tuple[bytes, Address]:
        """As :meth:`recv`; also returns the peer's address."""
        data = self.recv(bufsize, flags)
        return data, self.getpeername()

    def recv_into(self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0) -> int:
        """Receive the next message into `buffer`, at most `nbytes` of it unless `nbytes` is 0.

        Returns
        -------
        int
            Bytes copied, or the length of the whole message with ``MSG_TRUNC``; 0 at the end.
        """
        copied, whole, _ = self._recv_into(buffer, nbytes, flags)
        return whole if flags & std.MSG_TRUNC else copied

    def _recv_into(self, buffer: WriteableBuffer, nbytes: int, flags: int) -> tuple[int, int, bool]:
        """Return bytes copied, length of the message, and whether there was one."""
        nbytes = size(nbytes, "recv_into")
        connection = self._to_receive(flags)
        peek = bool(flags & std.MSG_PEEK)
        received = connection.recv_into(buffer, nbytes, self._wait_s(flags), peek)
        return (received[0], received[1], True) if received else (0, 0, False)

    def recvfrom_into(
        self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0
    ) -> tuple[int, Address]:
        """As :meth:`recv_into`; also returns the peer's address."""
        return self.recv_into(buffer, nbytes, flags), self.getpeername()

    def recvmsg(
        self, bufsize: int, ancbufsize: int = 0, flags: int = 0
    ) -> tuple[bytes, list[tuple[int, int, bytes]], int, Address]:
        """Receive the next message; return it, control messages, flags and the peer's address.

        There are no control messages. The flags are ``MSG_EOR`` for a message, also an empty one,
        plus ``MSG_TRUNC`` if it was cut, and 0 at the end.
        """
        bufsize = size(bufsize, "recvmsg")
        if number(ancbufsize, "ancbufsize") < 0:
            raise ValueError("invalid ancillary data buffer length")
        connection = self._to_receive(flags)
        peek = bool(flags & std.MSG_PEEK)
        received = connection.recv(bufsize, self._wait_s(flags), peek)
        peer = self.getpeername()
        if not received:
            return b"", [], 0, peer
        data, whole, _ = received
        return data, [], std.MSG_TRUNC if whole > len(data) else std.MSG_EOR, peer

    def recvmsg_into(
        self, buffers: Iterable[WriteableBuffer], ancbufsize: int = 0, flags: int = 0
    ) -> tuple[int, list[tuple[int, int, bytes]], int, Address]:
        """As :meth:`recvmsg`, into several buffers, one after the other."""
        if number(ancbufsize, "ancbufsize") < 0:
            raise ValueError("invalid ancillary data buffer length")
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        if any(view.readonly for view in views):
            raise TypeError("recvmsg_into() needs writable buffers")
        whole = bytearray(sum(len(view) for view in views))
        copied, length, is_message = self._recv_into(whole, 0, flags)
        at = 0
        for view in views:
            part = whole[at : min(at + len(view), copied)]
            view[: len(part)] = part
            at += len(part)
        whole_message = std.MSG_EOR if is_message else 0
        flags = std.MSG_TRUNC if length > copied else whole_message
        return copied, [], flags, self.getpeername()

    def recv_many(self, count: int, flags: int = 0) -> list[bytes]:
        """Receive up to `count` messages, waiting for the first; an empty list at the end.

        Raises
        ------
        BlockingIOError, TimeoutError, OSError
            As :meth:`recv`.
        """
        if number(count, "the count") < 1:
            raise ValueError("recv_many() takes a count of 1 or more")
        return self._to_receive(flags).recv_many(count, self._wait_s(flags))

    def recv_many_into(self, buffers: Sequence[WriteableBuffer], flags: int = 0) -> list[int]:
        """Receive a message into each buffer, waiting for the first.

        Returns
        -------
        list of int
            Lengths in bytes of the messages received; one that is longer than its buffer was cut.
            Empty at the end.
        """
        return self._to_receive(flags).recv_many_into(list(buffers), self._wait_s(flags))

    # What DCCP adds.

    @property
    def max_message_size(self) -> int:
        """The largest message that fits in one packet of this path now, in bytes."""
        return int(self.getsockopt(c.SOL_DCCP, c.DCCP_SOCKOPT_GET_CUR_MPS))

    def stats(self) -> ConnectionStats:
        """Return state and statistics of the connection.

        Raises
        ------
        OSError
            ``ENOTCONN``.
        """
        return ConnectionStats(**self._connected().stats())

    def event(self) -> Event | None:
        """Return the next event (anything but a message), waiting for it.

        Returns
        -------
        Event or None
            One of :mod:`udccp.events`; None after the connection has ended and all were read.

        Raises
        ------
        BlockingIOError, TimeoutError
            There was none in time.
        OSError
            ``ENOTCONN``.
        """
        parts = self._connected().event(self._timeout)
        return parts and from_native(parts)

    def flush(self) -> None:
        """Wait until everything sent so far has been handed to the network or dropped.

        Raises
        ------
        TimeoutError, OSError
            The timeout is over; the connection ended first.
        """
        self._to_send(0).waiter("flushed").wait(self._timeout)

    def wait_acknowledged(self) -> None:
        """Wait until the peer has reported everything sent so far, or it counts as lost.

        Raises
        ------
        TimeoutError, OSError
            The timeout is over; the connection ended first.
        """
        self._to_send(0).waiter("acknowledged").wait(self._timeout)

    # What is not supported.

    def makefile(self, *_: object, **__: object) -> NoReturn:
        """Not supported: messages are not a stream."""
        raise io.UnsupportedOperation(
            "a DCCP socket carries messages with boundaries, which a file has not: "
            "use recv() and send()"
        )

    def sendfile(self, *_: object, **__: object) -> NoReturn:
        """Not supported: messages are not a stream."""
        raise ValueError("only SOCK_STREAM type sockets are supported")

    def detach(self) -> NoReturn:
        """Not supported: the socket lives in this process, not in a descriptor."""
        raise fail(errno.EOPNOTSUPP, "a DCCP socket cannot leave its process")

    def dup(self) -> NoReturn:
        """Not supported: see :meth:`detach`."""
        raise fail(errno.EOPNOTSUPP, "a DCCP socket has no descriptor to duplicate")

    def get_inheritable(self) -> bool:
        """Return False: child processes do not inherit it."""
        return False

    def set_inheritable(self, inheritable: bool) -> None:
        """Accepts only False."""
        if inheritable:
            raise fail(errno.EOPNOTSUPP, "a DCCP socket cannot leave its process")
