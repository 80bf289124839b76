"""Fates of messages, and other events of connections."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from sockets import OPTIONS, PATIENCE_S, connected, listening, repeated

from udccp import Options, connect, events, socket, start_server
from udccp.events import Event, MessageDropped, MessageFate, PeerDropped, PeerShutdownRead

#: Fills up soon.
FEW = Options(send_queue_messages=4, recv_queue_messages=8, linger_s=2.0)


def fate(end: socket.socket) -> MessageFate:
    """The next fate; other events are skipped."""
    while True:
        event = end.event()
        assert event is not None, "the connection ended before"
        if isinstance(event, MessageFate):
            return event


def told(attempt: Callable[[], object], wanted: object) -> None:
    """Repeat up to five times until the result is `wanted`.

    On a busy machine, a packet may count as lost because its report comes after the transmit timer.
    """
    got: list[object] = []
    while wanted not in got and len(got) < 5:
        got.append(attempt())
    assert wanted in got, got


def test_each_message_with_a_token_has_one_fate() -> None:
    """In any order, with repeated tokens and the largest; messages without token have no event."""
    tokens = [0, 1, 1, 2**64 - 1]

    def attempt() -> set[str]:
        with connected() as (client, server):
            client.send(b"without")
            for token in tokens:
                client.send(b"with", token=token)
            client.send(b"urgent", priority=3, lifetime_s=60.0, token=5)
            assert len([server.recv(10) for _ in range(6)]) == 6
            got = [fate(client) for _ in range(5)]
            assert sorted(one.token for one in got) == sorted([*tokens, 5])
            client.settimeout(0.0)
            with pytest.raises(BlockingIOError):
                client.event()
            client.settimeout(0.01)
            with pytest.raises(TimeoutError):
                client.event()
            server.close()
            client.settimeout(PATIENCE_S)
            assert client.event() is None
            return {one.fate for one in got}

    told(attempt, {"acknowledged"})


def test_a_message_that_never_left_was_dropped_and_the_reason_is_told() -> None:
    """Its lifetime ends while it is queued behind others for a peer that does not read."""

    def attempt() -> list[MessageFate]:
        with connected(server=FEW) as (client, server):
            repeated(200, lambda: client.send(b"first"))
            client.send(b"late", lifetime_s=0.001, token=1)
            time.sleep(0.005)
            client.send(b"last", token=2)
            while server.recv(10) != b"last":
                pass
            return [fate(client), fate(client)]

    told(attempt, [MessageFate(1, "dropped", "expired"), MessageFate(2, "acknowledged")])


def test_queued_messages_are_reported_when_the_connection_ends() -> None:
    """Dropped, with the reason, after a reset by the peer."""

    def attempt() -> tuple[bool, set[str], set[int]]:
        with connected(client=FEW, server=FEW) as (client, server):
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                repeated(1000, lambda: client.send(b"full", token=9))
            client.settimeout(PATIENCE_S)
            server.abort()
            got: list[Event] = []
            while (event := client.event()) is not None:
                got.append(event)
        drops = [one for one in got if isinstance(one, MessageDropped)]
        ended = MessageFate(9, "dropped", "connection-ended") in got
        return ended, {one.reason for one in drops}, {one.bytes for one in drops}

    told(attempt, (True, {"connection-ended"}, {4}))


def test_stopped_reading_of_the_peer_is_an_event() -> None:
    """Data that the peer does not want are not delivered."""

    def attempt() -> set[Event | None]:
        with connected() as (client, server):
            server.shutdown(socket.SHUT_RD)
            client.send(b"unwanted", token=4)
            return {client.event() for _ in range(3)}

    unwanted = MessageFate(4, "peer-dropped", "application-not-listening")
    told(attempt, {PeerDropped("application-not-listening", 1), PeerShutdownRead(), unwanted})


def test_invalid_tokens_are_rejected() -> None:
    """Only 64-bit numbers are accepted; otherwise nothing is sent."""
    wrong: list[tuple[Any, type[Exception]]] = [
        (-1, OverflowError), (2**64, OverflowError), ("1", TypeError), (1.5, TypeError),
    ]  # fmt: skip
    with connected() as (client, _):
        for token, error in wrong:
            with pytest.raises(error):
                client.send(b"", token=token)
        assert client.stats().messages_sent == 0
    with socket.socket() as fresh, pytest.raises(OSError, match="not connected"):
        fresh.event()


def test_every_word_has_an_event() -> None:
    """Events that do not occur on a loopback interface."""
    for native, event in (
        (("message-fate", 7, "lost", ""), MessageFate(7, "lost")),
        (("peer-dropped", 2, "corrupt", ""), PeerDropped("corrupt", 2)),
        (("peer-slow", 0, "", ""), events.PeerSlow()),
        (("max-message-size", 1200, "", ""), events.MaxMessageSize(1200)),
    ):
        assert events.from_native(native) == event


def test_fates_in_asyncio() -> None:
    """Waiting before and after they occur; a cancelled wait loses none."""

    async def main() -> None:
        async with await start_server(lambda one: one.closed(), "127.0.0.1") as server:
            port = server.addresses[0][1]
            async with connect("127.0.0.1", port, options=OPTIONS) as client:
                waiting = asyncio.create_task(client.event())
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting])
                later = asyncio.create_task(client.event())
                await client.send(b"first", token=1)
                assert await later in (MessageFate(1, "acknowledged"), MessageFate(1, "lost"))
                await client.send(b"second", token=2)
                await client.acknowledged()
                assert await client.event() in (
                    MessageFate(2, "acknowledged"),
                    MessageFate(2, "lost"),
                )
                last = asyncio.create_task(client.event())
                await asyncio.sleep(0)
                server.abort_clients()
                assert await last is None
                assert await client.event() is None
                client.abort()
            with pytest.raises(OSError, match="Bad file"):
                await client.event()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_a_close_ends_a_wait_for_events() -> None:
    """EBADF in another thread and in another task."""
    with listening() as door, socket.socket(options=OPTIONS) as client:
        client.connect(door.getsockname())
        failures: list[int | None] = []

        def wait() -> None:
            try:
                client.event()
            except OSError as e:
                failures.append(e.errno)

        thread = threading.Thread(target=wait)
        thread.start()
        client.close()
        thread.join(PATIENCE_S)
        assert failures == [errno.EBADF]

    async def main() -> None:
        async with await start_server(lambda one: one.closed(), "127.0.0.1") as server:
            client = await connect("127.0.0.1", server.addresses[0][1], options=OPTIONS)
            waiting = asyncio.create_task(client.event())
            await asyncio.sleep(0)
            await client.close()
            with pytest.raises(OSError, match="Bad file"):
                await waiting

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
