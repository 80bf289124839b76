"""Everything that waits: select, selectors, the event loop's own calls, threads, signals."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import resource
import select
import selectors
import signal
import socket as std
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sockets import (
    OPTIONS,
    PATIENCE_S,
    connected,
    descriptors,
    eventually,
    fastest,
    listening,
    repeated,
)

from udccp import Options, socket


def ready(end: socket.socket, timeout_s: float = 0.0) -> tuple[bool, bool]:
    """Whether `select` reports it as readable and writable."""
    readable, writable, _ = select.select([end], [end], [], timeout_s)
    return bool(readable), bool(writable)


def test_select_agrees_with_the_calls() -> None:
    """Readable with a message, the end or a client; writable with room."""
    with connected() as (client, server), listening() as door:
        assert ready(server) == (False, True)
        client.send(b"x")
        assert select.select([server], [], [], PATIENCE_S)[0]
        server.recv(10)
        assert ready(server) == (False, True)
        client.close()
        assert select.select([server], [], [], PATIENCE_S)[0]
        assert server.recv(10) == b""
        assert ready(door) == (False, False)
        with socket.create_connection(door.getsockname()[:2], options=OPTIONS):
            assert select.select([door], [], [], PATIENCE_S)[0]
            door.accept()[0].close()
            assert ready(door) == (False, False)


def test_writable_goes_and_comes_with_the_room() -> None:
    """A full queue is not writable until a reader makes room."""
    few = Options(send_queue_messages=4, recv_queue_messages=8, linger_s=2.0)
    with connected(client=few, server=few) as (client, server):
        client.setblocking(False)

        def full() -> bool:
            with pytest.raises(BlockingIOError):
                repeated(1000, lambda: client.send(bytes(1000)))
            # An acknowledgement or a timer may already have made room again.
            return ready(client) == (False, False)

        assert eventually(full)
        reading = threading.Thread(target=lambda: iter(lambda: server.recv(2000), b"").__next__())
        reading.start()
        assert select.select([], [client], [], PATIENCE_S)[1]
        reading.join()


def test_a_descriptor_stays_the_same_from_before_connect() -> None:
    """`fileno` of a new socket shows no event, and later is that of the connection."""
    with listening() as door, socket.socket(options=OPTIONS) as client:
        client.setblocking(False)
        fd = client.fileno()
        assert ready(client) == (False, False)
        assert client.connect_ex(door.getsockname()) in (0, errno.EINPROGRESS)
        assert client.fileno() == fd
        assert ready(client, PATIENCE_S)[1]
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        assert client.getpeername() == door.getsockname()
        assert client.fileno() == fd
        client.close()
        assert client.fileno() == -1
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_descriptors_registered_before_connect_and_listen_become_ready() -> None:
    """As with a kernel socket, it can be registered with a selector as soon as it exists."""
    with (
        socket.socket(options=OPTIONS, service="SC:test") as door,
        socket.socket(options=OPTIONS, service="SC:test") as client,
        selectors.DefaultSelector() as selector,
    ):
        for end, what in ((door, selectors.EVENT_READ), (client, selectors.EVENT_WRITE)):
            end.setblocking(False)
            selector.register(end, what)
        assert selector.select(0) == []
        door.bind(("127.0.0.1", 0))
        door.listen()
        assert client.connect_ex(door.getsockname()) in (0, errno.EINPROGRESS)

        def told(end: socket.socket) -> bool:
            return any(key.fileobj is end for key, _ in selector.select(PATIENCE_S))

        assert eventually(lambda: told(client))
        assert eventually(lambda: told(door))
        with door.accept()[0] as server:
            server.send(b"hello")
            selector.modify(client, selectors.EVENT_READ)
            assert eventually(lambda: told(client))
            assert client.recv(100) == b"hello"
        selector.unregister(client)
        selector.unregister(door)


def test_a_refused_connect_is_shown() -> None:
    """The descriptor becomes ready, SO_ERROR has the error, and the socket can try again."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = nobody.getsockname()
    with listening() as door, socket.socket(options=OPTIONS) as client:
        client.setblocking(False)
        error = client.connect_ex(address)
        if error == errno.EINPROGRESS:  # The answer may have arrived already.
            assert select.select([client], [client], [], PATIENCE_S)[1]
            error = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        assert error == errno.ECONNREFUSED
        client.settimeout(PATIENCE_S)
        client.connect(door.getsockname())


def test_selectors_serve_many() -> None:
    """An echo server for ten clients on one selector."""
    with listening() as door, selectors.DefaultSelector() as selector:
        door.setblocking(False)
        selector.register(door, selectors.EVENT_READ)
        clients = [
            socket.create_connection(door.getsockname()[:2], options=OPTIONS) for _ in range(10)
        ]
        for n, client in enumerate(clients):
            client.send(str(n).encode())
        echoed = 0
        while echoed < 10:
            for key, _ in selector.select(PATIENCE_S):
                end = key.fileobj
                assert isinstance(end, socket.socket)
                if end is door:
                    accepted, _ = door.accept()
                    accepted.setblocking(False)
                    selector.register(accepted, selectors.EVENT_READ)
                else:
                    end.send(end.recv(100))
                    echoed += 1
        assert [client.recv(100) for client in clients] == [str(n).encode() for n in range(10)]
        for key in list(selector.get_map().values()):
            selector.unregister(key.fileobj)
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        for client in clients:
            client.close()


def test_the_loop_s_own_calls_take_these_sockets() -> None:
    """`sock_accept`, `sock_connect`, `sock_sendall`, `sock_recv`, `sock_recv_into` of asyncio."""

    def as_std(one: socket.socket) -> std.socket:
        return one  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        with listening() as door, socket.socket(options=OPTIONS) as client:
            door.setblocking(False)
            client.setblocking(False)
            accepting = asyncio.create_task(loop.sock_accept(as_std(door)))
            await loop.sock_connect(as_std(client), door.getsockname())
            server, _ = await accepting
            server.setblocking(False)
            room = bytearray(10)
            reading = asyncio.create_task(loop.sock_recv_into(server, room))
            await asyncio.sleep(0.01)
            await loop.sock_sendall(as_std(client), b"ping")
            assert await reading == 4
            await loop.sock_sendall(server, b"pong")
            with server:
                return await loop.sock_recv(as_std(client), 100)

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE_S)) == b"pong"


def test_threads_share_a_connection() -> None:
    """Two senders and two receivers: everything arrives exactly once."""
    with connected() as (client, server), ThreadPoolExecutor(4) as pool:

        def send(first: int) -> None:
            for n in range(first, first + 500):
                client.send(n.to_bytes(4, "big"))

        def receive() -> list[int]:
            got: list[int] = []
            while message := server.recv(10):
                got.append(int.from_bytes(message, "big"))
            return got

        readers = [pool.submit(receive) for _ in range(2)]
        for writer in [pool.submit(send, first) for first in (0, 500)]:
            writer.result(PATIENCE_S)
        client.close()
        together = [n for reader in readers for n in reader.result(PATIENCE_S)]
        assert sorted(together) == list(range(1000))


def test_other_threads_run_while_one_waits() -> None:
    """The GIL is released meanwhile."""
    with connected() as (client, server), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(server.recv, 10)
        time.sleep(0.1)
        # A reader that kept the lock would give it back only at its time limit, with an error.
        assert not waiting.done()
        client.send(b"now")
        assert waiting.result(PATIENCE_S) == b"now"


def test_awaited_condition_ends_a_long_wait_at_once() -> None:
    """A message, room and a client, each long after the wait started."""
    few = Options(send_queue_messages=4, recv_queue_messages=8, linger_s=2.0)
    with (
        connected(client=few, server=few) as (client, server),
        ThreadPoolExecutor(1) as pool,
        listening() as door,
        socket.socket() as caller,
    ):

        def later(wait: Callable[[], object], cause: Callable[[], object]) -> None:
            waiting = pool.submit(wait)
            time.sleep(0.1)
            cause()
            waiting.result(PATIENCE_S)

        def fill() -> None:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                repeated(1000, lambda: client.send(b"full"))
            client.settimeout(PATIENCE_S)

        def room() -> None:
            fill()
            later(lambda: client.send(b"room"), lambda: server.recv_many(1000))

        def message() -> None:
            later(lambda: client.recv(10), lambda: server.send(b"late"))

        assert fastest(message, 0.3) < 0.3
        assert fastest(room, 0.3) < 0.3
        later(door.accept, lambda: caller.connect(door.getsockname()))


def call_while_closed(end: socket.socket, call: Callable[[], object]) -> OSError:
    """Return the error of a call that waits in another thread while the socket is closed."""
    with ThreadPoolExecutor(1) as pool:
        end.settimeout(None)
        waiting = pool.submit(call)
        time.sleep(0.05)
        end.close()
        error = waiting.exception(PATIENCE_S)
    assert isinstance(error, OSError)
    return error


def test_a_close_ends_the_calls_of_other_threads() -> None:
    """EBADF within a second, for a reader and a listener."""

    def reader() -> None:
        with connected() as (client, _server):
            assert call_while_closed(client, lambda: client.recv(10)).errno == errno.EBADF

    def listener() -> None:
        with listening() as door:
            assert call_while_closed(door, door.accept).errno == errno.EBADF

    for attempt in (reader, listener):
        assert fastest(attempt, 1.1) < 1.1


class Interrupt(Exception):
    """Raised by the test's signal handler."""


def test_waits_that_time_out_keep_no_descriptors() -> None:
    """A server that does other work between waits does so for days."""
    with connected() as (client, server), listening() as door:
        for end in (server, door):
            # Longer than the first phase of the wait, which needs no descriptor.
            end.settimeout(0.03)
        waits: list[Callable[[], object]] = [
            door.accept,
            lambda: server.recv(9),
            lambda: server.recv_into(bytearray(9)),
        ]
        for wait in waits:
            with pytest.raises(TimeoutError):
                wait()
        before = descriptors()
        for wait in waits * 10:
            with pytest.raises(TimeoutError):
                wait()
        assert not descriptors() - before
        # They still work.
        for end in (server, door):
            end.settimeout(PATIENCE_S)
        client.send(b"x")
        assert server.recv(9) == b"x"


def test_calls_wait_although_there_are_no_descriptors() -> None:
    """The system's sockets need no descriptor to wait."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with connected() as (client, server), listening() as door:
        threading.Timer(0.3, server.send, [b"late"]).start()
        # The lowest free number.
        with open(os.devnull, "rb") as lowest:
            limit = lowest.fileno()
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        try:
            assert client.recv(100) == b"late"
            client.settimeout(0.1)
            with pytest.raises(TimeoutError):
                client.recv(100)
            door.settimeout(0.1)
            with pytest.raises(TimeoutError):
                door.accept()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_signals_interrupt_what_waits() -> None:
    """Like Ctrl-C: a handler that raises ends recv, accept and connect at once."""

    def interrupt(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with connected() as (client, _server), listening() as door:
            client.settimeout(PATIENCE_S)

            def with_alarm(call: Callable[[], object]) -> None:
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                call()

            def interrupted(call: Callable[[], object]) -> None:
                with pytest.raises(Interrupt):
                    with_alarm(call)

            for call in (lambda: client.recv(10), door.accept, lambda: client.recv_many(3)):
                assert fastest(functools.partial(interrupted, call), 0.4) < 0.4
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_wait_goes_on_after_a_handler_that_returns() -> None:
    """PEP 475: the call waits for its remaining time."""
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: came.append(number))
    try:
        with connected() as (client, _server):
            client.settimeout(0.2)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            begun = time.monotonic()
            with pytest.raises(TimeoutError):
                client.recv(10)
            assert time.monotonic() - begun >= 0.19
            assert came == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)
