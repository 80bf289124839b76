"""Connections in an asyncio event loop."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import errno
import socket as std
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from udccp import _native
from udccp._arguments import message_list, number
from udccp.aio._async_context import AsyncContext
from udccp.aio._watch import Watch, condition_met
from udccp.events import Event, from_native
from udccp.options import ConnectionStats
from udccp.socket._address import Address, Parts, from_parts
from udccp.socket._options import fail

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from typing_extensions import Self

__all__ = ["Connection", "address_of"]

#: Messages taken from the native module at a time, after which other tasks may run.
BATCH = 64


def address_of(parts: Parts) -> Address:
    """Convert an address to the form of the standard module."""
    return from_parts(std.AF_INET6 if ":" in parts[0] else std.AF_INET, parts)


class Connection(AsyncContext):
    """A connection in an asyncio event loop, from :func:`connect` or :func:`start_server`.

    Each ``send`` sends one message; each ``recv`` returns one, or None at the end. Use it in
    ``async with``, which closes it, and iterate over its messages with ``async for``.

    Any number of tasks may send and receive. All must run in the event loop that created it.
    """

    def __init__(self, native: _native.Connection) -> None:
        self._native = native
        fd = native.fileno()
        self._readable, self._writable = Watch.to_read(fd), Watch.to_write(fd)
        self._arrived: collections.deque[bytes] = collections.deque()
        self._taken = 0
        self._sent = 0
        self._is_closed = False
        # Created when needed, because they use two more descriptors.
        self._events: tuple[_native.Events, Watch] | None = None

    async def _leave(self, error: BaseException | None) -> None:
        if error is None:
            await self.close()
        else:
            # An error of the close is less important than that one.
            with contextlib.suppress(OSError):
                await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        message = await self.recv()
        if message is None:
            raise StopAsyncIteration
        return message

    def __getstate__(self) -> NoReturn:
        # A copy would close the connection when it is collected.
        raise TypeError("cannot copy or pickle a DCCP connection: it belongs to its loop")

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"laddr={self.local}, raddr={self.peer}"
        return f"<udccp.Connection {state}>"

    def __del__(self) -> None:
        if getattr(self, "_is_closed", True):
            return
        # Its descriptor numbers may be reused by the next connection, and the loop would take them
        # for ones that it watches already.
        self._readable.forget()
        self._writable.forget()
        if self._events:
            self._events[1].forget()
        self._native.close()
        # Last, because it raises if warnings are errors.
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)

    def fileno(self) -> int:
        """Return the descriptor that the event loop waits on."""
        return self._native.fileno()

    @property
    def local(self) -> Address:
        """Our address and DCCP port."""
        return address_of(self._native.local_addr())

    @property
    def peer(self) -> Address:
        """The peer's address and DCCP port."""
        return address_of(self._native.peer_addr())

    @property
    def service(self) -> str:
        """The service code that both sides agreed on, as RFC 4340 section 8.1.2 writes it."""
        return _native.service_text(self._native.service())

    @property
    def max_message_size(self) -> int:
        """The largest message that fits in one packet of this path now, in bytes."""
        return self._native.max_message_size()

    def stats(self) -> ConnectionStats:
        """Return state and statistics of the connection."""
        return ConnectionStats(**self._native.stats())

    def _check_open(self) -> None:
        if self._is_closed:
            raise fail(errno.EBADF)

    async def send(
        self,
        data: ReadableBuffer,
        *,
        priority: int = 0,
        lifetime_s: float | None = None,
        token: int | None = None,
    ) -> None:
        """Send one message, waiting while the send queue is full.

        If the call is cancelled, the message was not sent.

        Parameters
        ----------
        data
            The message, at most :attr:`max_message_size` bytes.
        priority
            Messages of higher priority leave first, 0 (the default) to 2**32 - 1.
        lifetime_s
            The message is dropped if it has not left after this time, in s; None: never.
        token
            A number, 0 to 2**64 - 1, with which :meth:`event` reports what happened to the message.
            Numbers may repeat. None: no report.

        Raises
        ------
        OSError
            ``EMSGSIZE`` if it does not fit in one packet; ``EPIPE`` if the connection was closed;
            ``ECONNRESET``, ``ETIMEDOUT`` and others if it was lost.
        """
        self._check_open()
        self._sent += 1
        if self._sent % BATCH == 0:
            await asyncio.sleep(0)
        while True:
            try:
                self._native.send_with(data, 0, priority, lifetime_s, token)
                return
            except BlockingIOError:
                pass  # A wait in here would keep this error and its frames with its own.
            await self._writable.ready()
            self._check_open()

    async def send_many(self, messages: Iterable[ReadableBuffer]) -> None:
        """Send messages in order, with as few system calls as possible.

        If the call is cancelled, the first ones may have been sent, in order.

        Raises
        ------
        OSError
            As :meth:`send`; the messages before the one that failed were sent.
        """
        self._check_open()
        rest = message_list(messages)
        await asyncio.sleep(0)
        while rest:
            try:
                del rest[: self._native.send_many(rest, 0)]
                continue
            except BlockingIOError:
                pass
            await self._writable.ready()
            self._check_open()

    async def recv(self) -> bytes | None:
        """Receive the next message; None at the end.

        Raises
        ------
        OSError
            ``ECONNRESET``, ``ETIMEDOUT`` and others if the connection was lost, after everything
            that arrived was read.
        """
        if not self._arrived and not await self._take():
            return None
        return self._arrived.popleft()

    async def recv_many(self, count: int = BATCH) -> list[bytes]:
        """Receive up to `count` messages, waiting for the first; an empty list at the end.

        Raises
        ------
        OSError
            As :meth:`recv`.
        """
        if number(count, "the count") < 1:
            raise ValueError("recv_many() takes a count of 1 or more")
        if not self._arrived and not await self._take(count):
            return []
        return [self._arrived.popleft() for _ in range(min(count, len(self._arrived)))]

    async def _take(self, count: int = BATCH) -> bool:
        """Wait for messages, which are kept if the call is cancelled. Return False at the end."""
        self._check_open()
        if self._taken >= BATCH:
            # A fast stream of messages must not keep other tasks from running.
            self._taken = 0
            await asyncio.sleep(0)
        while not self._arrived:
            try:
                messages = self._native.recv_many(count, 0)
            except BlockingIOError:
                messages = None
            if messages is None:
                await self._readable.ready()
                self._check_open()
                continue
            if not messages:
                return False
            self._taken += len(messages)
            self._arrived.extend(messages)
        return True

    async def event(self) -> Event | None:
        """Return the next event (anything but a message), waiting for it.

        If the call is cancelled, no event is lost.

        Returns
        -------
        Event or None
            One of :mod:`udccp.events`; None after the connection has ended and all were read.
        """
        self._check_open()
        if self._events is None:
            native = self._native.events()
            self._events = native, Watch.to_read(native.fileno())
        native, watch = self._events
        while True:
            try:
                parts = native.next()
                return parts and from_native(parts)
            except BlockingIOError:
                pass
            await watch.ready()
            self._check_open()

    async def flushed(self) -> None:
        """Wait until everything sent so far has been handed to the network or dropped.

        Raises
        ------
        OSError
            The connection ended first.
        """
        await condition_met(self._native.waiter("flushed"))

    async def acknowledged(self) -> None:
        """Wait until the peer has reported everything sent so far, or it counts as lost.

        Raises
        ------
        OSError
            The connection ended first.
        """
        await condition_met(self._native.waiter("acknowledged"))

    async def closed(self) -> None:
        """Wait until the connection has ended, whichever side ends it.

        Raises
        ------
        OSError
            It was not closed in order.
        """
        await condition_met(self._native.waiter("closed"))

    async def close(self) -> None:
        """Send what is queued, tell the peer, and wait until it has confirmed.

        The peer has ``Options.linger_s`` to confirm, or 14 round-trip times if that is longer.
        After that time, and if the call is cancelled, the close goes on in the background. Other
        tasks that wait on this connection get ``EBADF``.

        Raises
        ------
        OSError
            ``ETIMEDOUT`` if not everything was sent within ``Options.linger_s``, or the peer did
            not confirm; ``ECONNRESET`` and others if the connection was lost before.
        """
        if self._is_closed:
            return
        self._release()
        await condition_met(self._native.waiter("close"))

    def abort(self) -> None:
        """End the connection at once with a Reset. Queued messages are dropped."""
        self._native.abort()
        self._release()

    def _release(self) -> None:
        self._is_closed = True
        self._readable.stop()
        self._writable.stop()
        if self._events:
            self._events[1].stop()
        self._native.close()
