"""Connects in an asyncio loop."""

from __future__ import annotations

import asyncio
import socket as std
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType

from udccp import _native
from udccp.aio._connection import Connection
from udccp.aio._watch import Watch
from udccp.options import Options
from udccp.socket._address import Service, check_port, service_number
from udccp.socket._clients import client_endpoint
from udccp.socket._options import Below

__all__ = ["connect"]


class _Connecting:
    """A connection to come: ``await`` it, or enter it with ``async with``."""

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
        The host, and its DCCP port.
    service
        The service code to ask for, ``"SC:echo"`` or a number.
    family
        ``AF_INET``, ``AF_INET6`` or 0 for both.
    options
        Settings of the connection.
    local_addr
        Address and port to connect from; None: any.
    udp_port
        The UDP port to call; None: the number of the DCCP port; 0: raw IP, without UDP.

    Returns
    -------
    awaitable of Connection
        Also to be entered with ``async with``. If it is cancelled, the server learns it.

    Raises
    ------
    OSError
        Of the last address: ``ECONNREFUSED``, ``EBADRQC`` (the port serves other service codes),
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
    code, settings = service_number(service), options or Options()
    below = Below(raw_ip=udp_port == 0)
    check_port(port, "the port")
    check_port(udp_port or 0, "the UDP port")
    check_port(local_addr[1] if local_addr else 0, "the local port")

    async def one(at: str, v6: bool, scope: int) -> Connection:
        own_port = None
        if local_addr:
            endpoint = _native.Endpoint(local_addr[0], local_addr[1], 0, below)
            own_port = local_addr[1] or endpoint.local_addr()[2]
        else:
            endpoint = client_endpoint(std.AF_INET6 if v6 else std.AF_INET, below)
        peer = (at, port, port if udp_port is None else udp_port, scope)
        handshake = endpoint.start_connect(peer, code, settings, own_port)
        watch = Watch.to_write(handshake.fileno())
        try:
            while True:
                try:
                    return Connection(handshake.finish(0))
                except BlockingIOError:
                    await watch.ready()
        finally:
            watch.stop()
            # Nothing of a connection that is there.
            handshake.close()

    async def any_of_them() -> Connection:
        loop = asyncio.get_running_loop()
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
