"""Connects from an asyncio event loop."""

from __future__ import annotations

import asyncio
import errno
import socket as std
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import cast

from udccp import _native
from udccp._arguments import settings
from udccp.aio._connection import Connection
from udccp.aio._watch import Watch
from udccp.options import Options
from udccp.socket._address import Service, check_port, service_number
from udccp.socket._clients import client_endpoint
from udccp.socket._options import EndpointSettings, fail

__all__ = ["connect"]


class _Connecting:
    """A future connection: ``await`` it, or use it in ``async with``."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._connection: Connection | None = None

    def __await__(self) -> Generator[object, None, Connection]:
        return self._connect().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self._connect()
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._connection:
            await self._connection.__aexit__(kind, error, traceback)


def _checked_local(local_addr: object) -> tuple[str, int] | None:
    """Check the host and port to connect from; None if there are none."""
    if local_addr is None:
        return None
    parts = cast(tuple[object, ...], local_addr) if isinstance(local_addr, tuple) else ()
    if len(parts) != 2:
        raise TypeError(f"local_addr must be a tuple (host, port), not {local_addr!r}")
    host, port = parts
    if not isinstance(host, str):
        raise TypeError(f"the local host must be str, not {type(host).__name__}")
    return host, check_port(port, "the local port")


async def _first_address(host: str, family: int) -> tuple[str, int]:
    """Return the IP address and scope of a host in this family."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, None, family=family, type=std.SOCK_DGRAM
    )
    at = found[0][4]
    return str(at[0]).partition("%")[0], int(at[3]) if len(at) == 4 else 0


def connect(
    host: str,
    port: int,
    *,
    service: Service = 0,
    family: int = 0,
    options: Options | None = None,
    local_addr: tuple[str, int] | None = None,
    udp_port: int | None = None,
) -> _Connecting:
    """Connect to a host by name or address, trying its addresses in turn.

    Parameters
    ----------
    host, port
        The host and its DCCP port.
    service
        The service code to connect to, ``"SC:echo"`` or a number.
    family
        ``AF_INET``, ``AF_INET6`` or 0 for both.
    options
        Settings of the connection; None: the defaults.
    local_addr
        Host and port to connect from; None: any address and port.
    udp_port
        The UDP port to connect to; None: the same number as the DCCP port; 0: raw IP, without UDP.

    Returns
    -------
    awaitable of Connection
        Can also be used in ``async with``. Cancelling it cancels the handshake and sends the
        server a Reset.

    Raises
    ------
    OSError
        For the last address: ``ECONNREFUSED``, ``EBADRQC`` (service code not served there),
        ``ETIMEDOUT`` (no answer), ``EHOSTUNREACH``, ...

    Examples
    --------
    >>> from udccp import start_server
    >>> async def main():
    ...     async def echo(client):
    ...         async for message in client:
    ...             await client.send(message)
    ...     async with await start_server(echo, "127.0.0.1", service="SC:echo") as server:
    ...         _, port = server.addresses[0]
    ...         async with connect("127.0.0.1", port, service="SC:echo") as connection:
    ...             await connection.send(b"hello")
    ...             return await connection.recv()
    >>> asyncio.run(main())
    b'hello'
    """
    code, given = service_number(service), settings(options)
    endpoint_settings = EndpointSettings(raw_ip=udp_port == 0)
    check_port(port, "the port")
    check_port(0 if udp_port is None else udp_port, "the UDP port")
    own = _checked_local(local_addr)

    async def one(at: str, v6: bool, scope: int) -> Connection:
        own_port, found = None, std.AF_INET6 if v6 else std.AF_INET
        if own:
            ip, own_scope = await _first_address(own[0], found)
            endpoint = _native.Endpoint(ip, own[1], own_scope, endpoint_settings)
            own_port = own[1] or endpoint.local_addr()[2]
        else:
            endpoint = client_endpoint(found, endpoint_settings)
        peer = (at, port, port if udp_port is None else udp_port, scope)
        handshake = endpoint.start_connect(peer, code, given, own_port)
        watch = Watch.to_write(handshake.fileno())
        try:
            while True:
                try:
                    return Connection(handshake.finish(0))
                except BlockingIOError:
                    pass
                await watch.ready()
        finally:
            watch.stop()
            # Has no effect if the connection exists.
            handshake.close()

    async def any_of_them() -> Connection:
        loop = asyncio.get_running_loop()
        if port == 0:
            raise fail(errno.ECONNREFUSED)
        failure: OSError | None = None
        for found, _, _, _, at in await loop.getaddrinfo(
            host, port, family=family, type=std.SOCK_DGRAM
        ):
            v6 = found == std.AF_INET6
            try:
                ip = str(at[0]).partition("%")[0]
                return await one(ip, v6, int(at[3]) if len(at) == 4 else 0)
            except OSError as e:
                failure = e
        raise failure or OSError("getaddrinfo returns an empty list")

    return _Connecting(any_of_them)
