"""Connections in an asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import errno
import gc
import os
import pickle
import resource
import select
import socket as std
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

import pytest
from sockets import OPTIONS, PATIENCE_S, descriptors

from udccp import Connection, Options, connect, socket, start_server
from udccp.aio import Server

T = TypeVar("T")


def run(test: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a test with a time limit, so that a hang fails."""
    return asyncio.run(asyncio.wait_for(test(), 2 * PATIENCE_S))


def loop_errors(test: Callable[[], Coroutine[Any, Any, None]]) -> list[str]:
    """Return the errors that the event loop reports during a test."""
    said: list[str] = []

    async def collect_errors() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(
            lambda _, context: said.append(str(context.get("exception", context["message"])))
        )
        await test()

    run(collect_errors)
    return said


async def echo(connection: Connection) -> None:
    """Send every message back."""
    async for message in connection:
        await connection.send(message)


@contextlib.asynccontextmanager
async def serving(
    handler: Callable[[Connection], Awaitable[object]], options: Options = OPTIONS
) -> AsyncGenerator[int, None]:
    """A server on the loopback interface; yields its port."""
    async with await start_server(handler, "127.0.0.1", service="SC:test", options=options) as one:
        yield one.addresses[0][1]


@contextlib.asynccontextmanager
async def pair(
    client: Options = OPTIONS, server: Options = OPTIONS
) -> AsyncGenerator[tuple[Connection, Connection], None]:
    """Both ends of a connection."""
    accepted: asyncio.Queue[Connection] = asyncio.Queue()
    done = asyncio.Event()

    async def keep(connection: Connection) -> None:
        accepted.put_nowait(connection)
        await done.wait()

    async with (
        serving(keep, server) as port,
        connect("127.0.0.1", port, service="SC:test", options=client) as caller,
    ):
        answerer = await accepted.get()
        try:
            yield caller, answerer
        finally:
            done.set()


def test_messages_go_both_ways_until_the_end() -> None:
    """`async for` ends when the peer closes; an empty message is a message."""

    async def main() -> None:
        async with pair() as (client, server):
            await client.send(b"one")
            await client.send(b"")
            await client.send_many([b"three", bytearray(b"four")])
            assert client.peer == server.local
            await server.send(b"back")
            assert await client.recv() == b"back"
            assert (client.service, client.stats().state) == ("SC:test", "Open")
            await client.close()
            assert [message async for message in server] == [b"one", b"", b"three", b"four"]
            assert await server.recv_many() == []
            with pytest.raises(BrokenPipeError):
                await server.send(b"late")

    run(main)


def test_a_connection_has_no_copies() -> None:
    """Regression: when a copy was collected, it closed the connection."""

    async def main() -> None:
        async with pair() as (client, server):
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="it belongs to its loop"):
                    copied(client)
            gc.collect()
            await client.send(b"on")
            assert await server.recv() == b"on"

    run(main)


def test_send_waits_for_a_slow_reader() -> None:
    """Back-pressure: the sender waits, and continues when the reader reads."""
    few = Options(send_queue_messages=4, recv_queue_messages=8, linger_s=2.0)

    async def main() -> None:
        async with pair(client=few, server=few) as (client, server):
            sent = 0

            async def flood() -> None:
                nonlocal sent
                for n in range(400):
                    await client.send(n.to_bytes(2, "big") * 500)
                    sent += 1

            flooding = asyncio.create_task(flood())
            await asyncio.sleep(0.1)
            assert not flooding.done()
            assert sent < 100
            got = 0
            while not flooding.done() or got == 0:
                with contextlib.suppress(asyncio.TimeoutError):
                    got += len(await asyncio.wait_for(server.recv_many(), 0.1))
            assert sent == 400
            assert got > 200
            client.abort()

    run(main)


def test_a_cancelled_recv_loses_nothing() -> None:
    """The receiver is cancelled repeatedly while messages arrive; each message is read once."""

    async def main() -> None:
        async with pair() as (client, server):

            async def send() -> None:
                for n in range(300):
                    await client.send(n.to_bytes(2, "big"))
                    if n % 10 == 0:
                        await asyncio.sleep(0.001)

            sending = asyncio.create_task(send())
            got: list[int] = []
            while len(got) < 300:
                receiving = asyncio.create_task(server.recv())
                await asyncio.sleep(0)
                receiving.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    message = await receiving
                    assert message is not None
                    got.append(int.from_bytes(message, "big"))
                if not got or got[-1] % 7 == 0:
                    message = await server.recv()
                    assert message is not None
                    got.append(int.from_bytes(message, "big"))
            await sending
            assert got == list(range(300))

    run(main)


def test_a_cancelled_send_did_not_send() -> None:
    """Also, a cancelled connect is withdrawn, and the server learns of it."""
    few = Options(send_queue_messages=2, recv_queue_messages=4, linger_s=2.0)

    async def main() -> None:
        async with pair(client=few, server=few) as (client, _server):

            async def fill() -> None:
                for _ in range(400):
                    await asyncio.wait_for(client.send(bytes(1000)), 0.02)

            with pytest.raises(asyncio.TimeoutError):
                await fill()
            before = client.stats()
            queued = before.send_queue_messages + before.messages_sent
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(client.send(b"not this"), 0.0)
            after = client.stats()
            assert after.send_queue_messages + after.messages_sent == queued
            client.abort()
        with std.socket(type=std.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            port = silent.getsockname()[1]
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(connect("127.0.0.1", port), 0.05)
            loop = asyncio.get_running_loop()
            silent.setblocking(False)
            types: list[int] = []
            while 7 not in types:  # Reset
                datagram = await loop.sock_recv(silent, 2000)
                types.append(datagram[8] >> 1 & 15)
            assert types[0] == 0  # Request

    run(main)


def test_a_client_has_the_local_address_that_it_asks_for() -> None:
    """The host can be a name, as in the standard library; port 0 means any."""

    async def main() -> None:
        async with serving(echo) as port:
            for host in ("127.0.0.1", "localhost"):
                async with connect(
                    "127.0.0.1",
                    port,
                    service="SC:test",
                    options=OPTIONS,
                    local_addr=(host, 0),
                ) as one:
                    assert one.local[0] == "127.0.0.1"
                    await one.send(b"hello")
                    assert await one.recv() == b"hello"
            with pytest.raises(ConnectionRefusedError):
                await connect("127.0.0.1", 0)

    run(main)


def test_errors_of_connections() -> None:
    """Refused, reset, or closed by this side: none is an asyncio bug."""

    async def main() -> None:
        async with pair() as (client, server):
            await client.send(b"before")
            await client.acknowledged()
            waiting = asyncio.create_task(client.recv())
            await asyncio.sleep(0.01)
            client.abort()
            with pytest.raises(OSError, match="Bad file descriptor"):
                await waiting
            with pytest.raises(OSError, match="Bad file descriptor"):
                await client.send(b"x")
            assert await server.recv() == b"before"
            with pytest.raises(ConnectionResetError):
                await server.recv()
            with pytest.raises(ConnectionResetError):
                await server.closed()
        async with serving(echo) as port:
            with pytest.raises(OSError, match="SC:nope") as failure:
                await connect("127.0.0.1", port, service="SC:nope", options=OPTIONS)
            assert failure.value.errno == errno.EBADRQC
        with pytest.raises(ConnectionRefusedError):
            await connect("localhost", port, service="SC:test", options=OPTIONS)
        with pytest.raises(OverflowError, match="the port must be 0-65535"):
            await connect("localhost", 70000)
        with pytest.raises(OverflowError, match="the local port must be 0-65535"):
            await connect("localhost", 5, local_addr=("localhost", 70000))
        with pytest.raises(OverflowError, match="the UDP port must be 0-65535"):
            await start_server(echo, "localhost", udp_port=70000)

    run(main)


def test_a_server_closes_what_its_handlers_leave() -> None:
    """A handler returns or raises; the loop reports the exception."""

    async def bad(connection: Connection) -> None:
        if await connection.recv() == b"raise":
            raise ValueError("mine")

    async def main() -> None:
        async with serving(bad) as port:
            for message in (b"return", b"raise"):
                async with connect("127.0.0.1", port, service="SC:test") as client:
                    await client.send(message)
                    assert await client.recv() is None

    assert loop_errors(main) == ["mine"]


def test_server_reports_errors_of_its_handlers() -> None:
    """A timeout, or another connection's refusal, does not end the client's connection."""
    gone = asyncio.Event()

    async def handler(connection: Connection) -> None:
        asked = await connection.recv()
        if asked == b"time":
            raise TimeoutError("the handler's own")
        if asked == b"other":
            raise ConnectionRefusedError("of another host")
        if asked == b"gone":
            await connection.closed()
            gone.set()
            await connection.send(b"too late")

    async def main() -> None:
        async with serving(handler) as port:
            for message in (b"time", b"other"):
                async with connect("127.0.0.1", port, service="SC:test") as client:
                    await client.send(message)
                    assert await client.recv() is None
            async with connect("127.0.0.1", port, service="SC:test") as client:
                await client.send(b"gone")
            await gone.wait()

    assert loop_errors(main) == ["the handler's own", "of another host"]


def test_aborted_clients_are_not_reported_as_errors() -> None:
    """Handlers that wait for the client's end, or send, finish without an error."""
    waiting = asyncio.Event()

    async def handler(connection: Connection) -> None:
        await connection.recv()
        waiting.set()
        await connection.recv()

    async def main() -> None:
        async with await start_server(handler, "127.0.0.1", service="SC:test") as server:
            port = server.addresses[0][1]
            client = await connect("127.0.0.1", port, service="SC:test")
            await client.send(b"one")
            await waiting.wait()
            server.abort_clients()
            with pytest.raises(ConnectionResetError):
                await client.recv()
            client.abort()

    assert not loop_errors(main)


def test_handler_must_be_a_coroutine_function() -> None:
    """Immediately if it cannot be called, otherwise when it has returned."""

    def plain(_: Connection) -> None:
        pass

    async def main() -> None:
        with pytest.raises(TypeError, match="handler must be a coroutine function, not int"):
            await start_server(cast(Any, 3), "127.0.0.1", service="SC:test")
        async with (
            serving(cast(Any, plain)) as port,
            connect("127.0.0.1", port, service="SC:test") as client,
        ):
            assert await client.recv() is None

    (said,) = loop_errors(main)
    assert said == "the handler must be a coroutine function (`async def`): it returned None"


def test_a_server_starts_and_stops() -> None:
    """serve_forever until cancelled; several service codes; clients continue after close."""

    async def main() -> None:
        server = await start_server(
            echo, "localhost", service=["SC:one", "SC:two"], start_serving=False
        )
        assert not server.is_serving()
        forever = asyncio.create_task(server.serve_forever())
        await asyncio.sleep(0.01)
        assert server.is_serving()
        host, port = server.addresses[0][:2]
        for service in ("SC:one", "SC:two"):
            async with connect(host, port, service=service) as client:
                await client.send(b"x")
                assert await client.recv() == b"x"
        client = await connect(host, port, service="SC:one")
        await client.send(b"accepted")
        assert await client.recv() == b"accepted"
        forever.cancel()
        await asyncio.wait([forever])
        assert not server.is_serving()
        await client.send(b"still")
        assert await client.recv() == b"still"
        assert len(server.connections) == 1
        server.abort_clients()
        with pytest.raises(ConnectionResetError):
            await client.recv()
        client.abort()
        await server.wait_closed()
        with pytest.raises(RuntimeError, match="closed"):
            await server.start_serving()

    run(main)


def test_server_recovers_from_a_lack_of_descriptors() -> None:
    """A client that arrives meanwhile is served."""
    complaints: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        complained = asyncio.Event()

        def complain(_: object, context: dict[str, Any]) -> None:
            complaints.append(context["message"])
            complained.set()

        loop.set_exception_handler(complain)
        async with serving(echo) as port:
            client = socket.socket(options=OPTIONS, service="SC:test")
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(("127.0.0.1", port))
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            # The lowest free number.
            with open(os.devnull, "rb") as lowest:
                limit = lowest.fileno()
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            try:
                await complained.wait()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await asyncio.to_thread(talk, client)

    def talk(client: socket.socket) -> None:
        with client:
            assert select.select([], [client], [], PATIENCE_S)[1] == [client]
            assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
            client.settimeout(PATIENCE_S)
            client.send(b"after")
            assert client.recv(100) == b"after"

    run(main)
    assert "descriptors" in complaints[0]


def test_a_listener_that_fails_is_reported_at_once() -> None:
    """The server then says that it serves nobody, and still closes."""

    class Broken:
        def __init__(self) -> None:
            self.fileno, self.close = ours.fileno, ours.close

        def accept(self, wait_s: float) -> None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    async def main() -> None:
        async with Server(echo, cast("Any", [Broken()])) as server:
            await server.start_serving()
            assert server.is_serving()
            with pytest.raises(OSError, match="descriptor"):
                await server.serve_forever()
            assert not server.is_serving()
        gc.collect()

    ours, theirs = std.socketpair()
    with theirs:
        assert loop_errors(main) == ["[Errno 9] Bad file descriptor"]


def test_busy_connection_does_not_starve_other_tasks() -> None:
    """A peer that is always readable and writable does not block the loop."""

    async def main() -> None:
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with pair() as (client, server):
            ticking = asyncio.create_task(tick())
            await client.send_many([bytes(100)] * 500)
            await client.acknowledged()
            turns = 0
            for _ in range(500):
                assert await server.recv() is not None
            ticking.cancel()
            assert turns >= 3

    run(main)


def test_waits_that_are_cancelled_keep_no_descriptors() -> None:
    """As with a time limit on a longer operation."""

    async def main() -> None:
        async with (
            serving(echo) as port,
            connect("127.0.0.1", port, service="SC:test", options=OPTIONS) as client,
        ):
            # The server, too, has everything that it needs.
            await client.send(b"hello")
            assert await client.recv() == b"hello"
            before = set[tuple[int, int, int]]()
            for _ in range(10):
                for wait in (client.recv(), client.closed(), client.event()):
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(wait, 0.01)
                before = before or descriptors()
            assert not descriptors() - before

    run(main)


def test_unclosed_connection_leaves_no_reader_in_the_loop() -> None:
    """Its descriptor numbers are reused by the next one, which must be woken normally."""

    async def main() -> None:
        async with serving(echo) as port:
            for _ in range(5):
                kept = [await connect("127.0.0.1", port, service="SC:test", options=OPTIONS)]
                for call in (kept[0].recv, kept[0].event):
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(call(), 0.02)
                del call
                # The loop releases its last callback.
                await asyncio.sleep(0)
                with pytest.warns(ResourceWarning, match="unclosed"):
                    kept.clear()
                async with connect("127.0.0.1", port, service="SC:test", options=OPTIONS) as one:
                    for _ in range(3):
                        await one.send(b"hello", token=1)
                        assert await asyncio.wait_for(one.recv(), PATIENCE_S) == b"hello"
                        assert await asyncio.wait_for(one.event(), PATIENCE_S)

    run(main)


def test_a_thousand_connections_in_one_loop() -> None:
    """Each connection sends and receives, in one Python thread."""
    # Both ends are in this process, with two descriptors each.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 5000 if hard == resource.RLIM_INFINITY else min(5000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))

    async def main() -> int:
        async with serving(echo) as port:

            async def one(n: int) -> bytes | None:
                async with connect("127.0.0.1", port, service="SC:test") as client:
                    await client.send(str(n).encode())
                    reply = await client.recv()
                    everybody.append(n)
                    while len(everybody) < 1000:
                        await asyncio.sleep(0.01)
                    return reply

            everybody: list[int] = []
            replies = await asyncio.gather(*(one(n) for n in range(1000)))
            return sum(reply == str(n).encode() for n, reply in enumerate(replies))

    assert run(main) == 1000
