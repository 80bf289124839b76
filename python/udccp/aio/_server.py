"""Serves clients in an asyncio event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import inspect
import socket as std
from collections.abc import Awaitable, Callable, Iterable

from udccp import _native
from udccp._arguments import number, settings
from udccp.aio._async_context import AsyncContext
from udccp.aio._connection import Connection, address_of
from udccp.aio._watch import Watch
from udccp.options import Options
from udccp.socket._address import Address, Service, check_port, service_number
from udccp.socket._options import EndpointSettings

__all__ = ["Server", "start_server"]

#: Errors that pass when other programs or connections release resources.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

#: Time after which accepting is then tried again, in s.
_RETRY_S = 1.0


def _report(message: str, error: Exception) -> None:
    context = {"message": message, "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)


def _retrieve(task: asyncio.Task[None]) -> None:
    """Take the error of a task, which was reported where it arose."""
    if not task.cancelled():
        task.exception()


class Server(AsyncContext):
    """Serves clients, each in a task of its own; from :func:`start_server`."""

    def __init__(
        self,
        handler: Callable[[Connection], Awaitable[object]],
        listeners: list[_native.Listener],
    ) -> None:
        self._handler, self._listeners = handler, listeners
        self._watches = [Watch.to_read(listener.fileno()) for listener in listeners]
        self._accepting: list[asyncio.Task[None]] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._connections: set[Connection] = set()
        self._aborted: set[Connection] = set()
        self._is_closed = False

    async def _leave(self, error: BaseException | None) -> None:
        self.close()
        await self.wait_closed()

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The addresses that it listens on."""
        return tuple(address_of(listener.local_addr()) for listener in self._listeners)

    @property
    def connections(self) -> frozenset[Connection]:
        """The connections of the clients that are served now."""
        return frozenset(self._connections)

    def is_serving(self) -> bool:
        """Whether it accepts clients."""
        return any(not task.done() for task in self._accepting) and not self._is_closed

    async def start_serving(self) -> None:
        """Start to accept clients; no effect if it does so already."""
        if self._is_closed:
            raise RuntimeError("the server is closed")
        if not self._accepting:
            both = zip(self._listeners, self._watches, strict=True)
            self._accepting = [asyncio.create_task(self._accept(*one)) for one in both]
            for task in self._accepting:
                task.add_done_callback(_retrieve)

    async def serve_forever(self) -> None:
        """Accept clients until the call is cancelled, which closes the server."""
        await self.start_serving()
        try:
            await asyncio.gather(*self._accepting)
        finally:
            self.close()

    async def _accept(self, listener: _native.Listener, watch: Watch) -> None:
        native: _native.Connection | None = None
        while True:
            try:
                native = native or listener.accept(0)
                connection = Connection(native)
            except BlockingIOError:
                await watch.ready()
                continue
            except OSError as e:
                if e.errno not in _SHORTAGES:
                    _report("the server accepts no more clients at one of its addresses", e)
                    raise
                _report("no client can be accepted for want of descriptors or memory", e)
                # The client waits in the backlog meanwhile.
                await asyncio.sleep(_RETRY_S)
                continue
            self._connections.add(connection)
            task = asyncio.create_task(self._serve(native, connection))
            native = None
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _serve(self, native: _native.Connection, connection: Connection) -> None:
        try:
            # Errors of the close are not reported: no one would handle them.
            with contextlib.suppress(OSError):
                async with connection:
                    await self._handle(native, connection)
        finally:
            self._connections.discard(connection)
            self._aborted.discard(connection)

    async def _handle(self, native: _native.Connection, connection: Connection) -> None:
        try:
            job = self._handler(connection)
            if not inspect.isawaitable(job):
                wants = "the handler must be a coroutine function (`async def`)"
                raise TypeError(f"{wants}: it returned {job!r}")
            await job
        except Exception as e:
            if connection in self._aborted:
                is_end = isinstance(e, OSError)
            else:
                has_ended = native.end_errno() is not None
                is_end = has_ended and isinstance(e, (ConnectionError, TimeoutError))
            # A lost client is not an error of the handler; everything else is.
            if not is_end:
                _report(f"Unhandled exception in {self._handler!r}", e)

    def close(self) -> None:
        """Stop accepting clients. Those that are connected are still served."""
        if self._is_closed:
            return
        self._is_closed = True
        for task in self._accepting:
            task.cancel()
        for watch in self._watches:
            watch.stop()
        for listener in self._listeners:
            listener.close()
        self._listeners = []

    async def wait_closed(self) -> None:
        """Wait until the server is closed and all clients have been served."""
        if self._accepting:
            await asyncio.wait(self._accepting)
        while self._serving:
            await asyncio.wait(self._serving)

    def abort_clients(self) -> None:
        """End all connections at once with a Reset."""
        self._aborted |= self._connections
        for connection in self._connections:
            connection.abort()


async def start_server(
    handler: Callable[[Connection], Awaitable[object]],
    host: str | None = None,
    port: int = 0,
    *,
    service: Service | Iterable[Service] = 0,
    family: int = 0,
    backlog: int = 1024,
    options: Options | None = None,
    reuse_port: bool = False,
    udp_port: int | None = None,
    start_serving: bool = True,
) -> Server:
    """Serve clients: each gets a task that calls `handler` with its connection.

    The connection is closed when the handler returns.

    Parameters
    ----------
    handler
        A coroutine function of one argument, the :class:`Connection`.
    host, port
        Where to listen; without a host, on every address; port 0 picks any free one.
    service
        The service code to serve, ``"SC:echo"`` or a number, or several.
    family
        ``AF_INET``, ``AF_INET6`` or 0 for both.
    backlog
        Connections that may be in the handshake or wait to be accepted.
    options
        Settings of the connections; None: the defaults.
    reuse_port
        Share the UDP port with other servers that set this too.
    udp_port
        The UDP port to bind; None: the same number as the DCCP port; 0: raw IP, without UDP.
    start_serving
        Accept clients at once. If False, call ``start_serving`` or ``serve_forever`` for that.

    Raises
    ------
    OSError
        ``EADDRINUSE``, ``EADDRNOTAVAIL``, ``EACCES``, ...
    """
    if not callable(handler):
        kind = type(handler).__name__
        raise TypeError(f"the handler must be a coroutine function, not {kind}")
    several = [service] if isinstance(service, (str, int)) else list(service)
    codes, given = [service_number(one) for one in several], settings(options)
    endpoint_settings = EndpointSettings(raw_ip=udp_port == 0, reuse_port=reuse_port)
    check_port(port, "the port")
    check_port(0 if udp_port is None else udp_port, "the UDP port")
    backlog = max(number(backlog, "the backlog"), 1)
    loop = asyncio.get_running_loop()
    flags = std.AI_PASSIVE
    # "::" also serves IPv4.
    everywhere = "::" if family != std.AF_INET and std.has_ipv6 else "0.0.0.0"
    found = await loop.getaddrinfo(
        host or everywhere, port, family=family, type=std.SOCK_DGRAM, flags=flags
    )
    listeners: list[_native.Listener] = []
    for at in dict.fromkeys(one[4] for one in found):
        ip = str(at[0]).partition("%")[0]
        scope = int(at[3]) if len(at) == 4 else 0
        endpoint = _native.Endpoint(
            ip, port if udp_port is None else udp_port, scope, endpoint_settings
        )
        own = port or endpoint.local_addr()[2]
        listeners.append(endpoint.listen(own, codes, given, backlog))
    server = Server(handler, listeners)
    if start_serving:
        await server.start_serving()
    return server
