"""Bad input to every call of a socket: the documented exception, never a hang, never a panic."""

from __future__ import annotations

import asyncio
import errno
import inspect
import math
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sockets import OPTIONS, PATIENCE_S, connected, listening

from udccp import InternalError, Options, connect, socket, start_server

#: What a call may raise, by what it is given.
DOCUMENTED = (OSError, TypeError, ValueError, OverflowError, BufferError)

#: Arguments that hardly any call wants.
STRANGE: list[object] = [
    None, True, -1, 0, 1, 3, 2**31, 2**40, 2**70, -(2**70), 1.5, float("nan"), float("inf"), -0.1,
    "", "text", "SC:echo", b"", b"bytes", bytearray(b"room"), bytes(70_000), object(), {}, (), [],
    memoryview(b"abcd")[::2], memoryview(bytearray(8)).cast("I"), [b""], [b"a", "b"], [1, 2],
    [bytearray(3)], ("127.0.0.1",), ("127.0.0.1", 0), ("127.0.0.1", 70_000), ("127.0.0.1", "9"),
    ("::1", 9, 0, 0), ("no such host.invalid", 1), (b"127.0.0.1", 1), ("127.0.0.1", 9, 9, 9, 9),
    ("", 1), 269,
]  # fmt: skip

#: All that a socket can be asked to do, but for what ends or waits by design.
METHODS = sorted(
    name
    for name, member in inspect.getmembers(socket.socket)
    if callable(member) and not name.startswith("_") and name not in {"close", "abort"}
)


def ends() -> list[Callable[[], socket.socket]]:
    """Sockets in every state."""

    def closed() -> socket.socket:
        one = socket.socket()
        one.close()
        return one

    return [lambda: socket.socket(options=OPTIONS), closed]


def attempt(call: Callable[..., object], *arguments: object) -> None:
    """Call, and accept every documented exception."""
    try:
        call(*arguments)
    except InternalError as e:
        pytest.fail(f"{call} {arguments}: {e}")
    except DOCUMENTED:
        pass


@pytest.mark.parametrize("name", METHODS)
def test_every_call_rejects_invalid_arguments(name: str) -> None:
    """Invalid arguments, alone, in pairs and missing, in every state of a socket."""
    chance = random.Random(name)
    with connected() as (client, _server), listening() as door:
        for end in [client, door, *(make() for make in ends())]:
            method = getattr(end, name)
            end.settimeout(0.0)
            attempt(method)
            for one in STRANGE:
                for arguments in ((one,), (one, chance.choice(STRANGE)), (1, one, one)):
                    if name in {"settimeout", "setblocking"}:
                        attempt(method, *arguments)
                        end.settimeout(0.0)
                        continue
                    attempt(method, *arguments)
            end.close()


def test_wrong_types_are_type_errors() -> None:
    """Errors name the argument and its type."""
    with connected() as (client, _):
        calls: list[tuple[type[BaseException], Callable[..., Any], tuple[object, ...]]] = [
            (TypeError, client.send, ("text",)),
            (TypeError, client.send, (None,)),
            (TypeError, client.send_many, ([b"a", 1],)),
            (TypeError, client.send_many, (5,)),
            (TypeError, client.sendmsg, (["x"],)),
            (TypeError, client.recv, ("1",)),
            (ValueError, client.recv, (-1,)),
            (OverflowError, client.recv, (2**70,)),
            (ValueError, client.recv_many, (0,)),
            (TypeError, client.recv_into, (b"read only",)),
            (ValueError, client.recv_into, (bytearray(3), 4)),
            (ValueError, client.recv_into, (bytearray(3), -4)),
            (TypeError, client.recv_many_into, ([],)),
            (TypeError, client.bind, ("127.0.0.1:9",)),
            (OverflowError, client.bind, (("127.0.0.1", 65_536),)),
            (TypeError, client.settimeout, ("1",)),
            (ValueError, client.settimeout, (-1,)),
            (ValueError, client.settimeout, (float("nan"),)),
            (OverflowError, client.settimeout, (1e300,)),
            (ValueError, lambda: socket.socket(service="echo"), ()),
            (ValueError, lambda: socket.socket(service=2**32 - 1), ()),
            (OverflowError, lambda: socket.socket(udp_port=65_536), ()),
        ]
        for error, call, arguments in calls:
            with pytest.raises(error):
                call(*arguments)


def test_errors_name_the_argument_and_what_it_takes() -> None:
    """Instead of a missing operator or a name of the native module."""
    strange: Any = "text"
    nothing: Any = None
    single: Any = b"message"
    with connected() as (client, _):
        calls: list[tuple[type[BaseException], str, Callable[[], object]]] = [
            (TypeError, "recv(): the size must be int, not str", lambda: client.recv(strange)),
            (TypeError, "the flags must be int, not NoneType", lambda: client.recv(9, nothing)),
            (TypeError, "the flags must be int, not NoneType", lambda: client.send(b"", nothing)),
            (OSError, "Operation not supported", lambda: client.recv(9, 2**31)),
            (TypeError, "recvmsg(): the size must be int", lambda: client.recvmsg(strange)),
            (TypeError, "the count must be int, not str", lambda: client.recv_many(strange)),
            (TypeError, "not bytes: [message] is a list", lambda: client.send_many(single)),
            (TypeError, "the address must be tuple, not str", lambda: client.sendto(b"", strange)),
            (TypeError, "the level must be int, not str", lambda: client.getsockopt(strange, 1)),
            (TypeError, "the option must be int", lambda: client.setsockopt(1, strange, 1)),
            (TypeError, "what to shut down must be int", lambda: client.shutdown(strange)),
            (TypeError, "the flag must be int, not str", lambda: client.setblocking(strange)),
            (TypeError, "the family must be int, not str", lambda: socket.socket(strange)),
            (TypeError, "the protocol must be int", lambda: socket.socket(2, -1, strange)),
            (TypeError, "the backlog must be int", lambda: socket.socket().listen(strange)),
            (TypeError, "must be udccp.Options, not str", lambda: socket.socket(options=strange)),
        ]
        for error, words, call in calls:
            with pytest.raises(error, match=re.escape(words)):
                call()


def test_send_errors_name_the_argument() -> None:
    """Errors describe valid values; also for values out of range, on sockets and in asyncio."""
    wrong: list[tuple[type[BaseException], str, dict[str, Any]]] = [
        (OverflowError, "token must be int, 0 to 2**64 - 1, or None, not -1", {"token": -1}),
        (OverflowError, "token must be int, 0 to 2**64 - 1, or None", {"token": 2**64}),
        (TypeError, "token must be int, 0 to 2**64 - 1, or None, not 1.5", {"token": 1.5}),
        (OverflowError, "priority must be int, 0 to 2**32 - 1, not -1", {"priority": -1}),
        (OverflowError, "priority must be int, 0 to 2**32 - 1, not", {"priority": 2**32}),
        (TypeError, "priority must be int, 0 to 2**32 - 1, not None", {"priority": None}),
        (ValueError, "lifetime_s must be a time in s, or None, not -1", {"lifetime_s": -1}),
        (ValueError, "lifetime_s must be a time in s, or None, not nan", {"lifetime_s": math.nan}),
        (TypeError, "lifetime_s must be a time in s, or None, not '1'", {"lifetime_s": "1"}),
    ]

    async def main() -> None:
        async with await start_server(lambda one: one.closed(), "127.0.0.1") as server:
            port = server.addresses[0][1]
            async with await connect("127.0.0.1", port, options=OPTIONS) as connection:
                for error, words, numbers in wrong:
                    with pytest.raises(error, match=f"^{re.escape(words)}"):
                        await connection.send(b"", **numbers)

    asyncio.run(main())
    with connected() as (client, _):
        for error, words, numbers in wrong:
            with pytest.raises(error, match=f"^{re.escape(words)}"):
                client.send(b"", **numbers)


def test_integer_types_of_other_libraries_are_accepted() -> None:
    """As in the standard module: anything with `__index__`, such as integers of NumPy."""

    class Nine:
        def __index__(self) -> int:
            return 9

    nine: Any = Nine()
    with socket.socket(options=OPTIONS) as client, pytest.raises(ConnectionRefusedError):
        client.connect(("127.0.0.1", nine))
    with connected() as (client, server):
        server.send(b"a long message")
        assert client.recv(nine) == b"a long me"


def test_setting_errors_name_the_setting() -> None:
    """The error is raised when they are used, not where they are given."""
    wrong: list[tuple[type[BaseException], str, dict[str, Any]]] = [
        (TypeError, "tx_ccids must be a tuple of CCIDs, such as (2, 3), not 5", {"tx_ccids": 5}),
        (TypeError, "linger_s must be a time in s, not '1'", {"linger_s": "1"}),
        (ValueError, "linger_s must be a time in s, not -1", {"linger_s": -1}),
        (ValueError, "idle_limit_s must be a time in s, or None, not -1", {"idle_limit_s": -1}),
        (OverflowError, "send_coverage must be int, 0 to 15, not 300", {"send_coverage": 300}),
        (TypeError, "ecn must be True or False, not 1", {"ecn": 1}),
        *(
            (ValueError, f"{limit} must be int, 1 or more, not 0", {limit: 0})
            for end in ("send", "recv")
            for limit in (f"{end}_queue_messages", f"{end}_queue_bytes")
        ),
    ]
    for error, words, fields in wrong:
        with pytest.raises(error, match=re.escape(f"Options.{words}")):
            socket.create_server(("127.0.0.1", 0), options=Options(**fields))


def test_settings_that_cannot_be_used_are_refused() -> None:
    """The error is raised when the connection or listener is created, with the reason."""
    wrong: list[dict[str, Any]] = [
        {"tx_ccids": (9,)},
        {"tx_ccids": ()},
        {"tx_ccids": (300,)},
        {"linger_s": -1.0},
        {"linger_s": float("nan")},
        {"keep_alive_s": 200.0},
        {"send_coverage": 16},
        {"path_mtu": -1},
        {"recv_queue_messages": "many"},
    ]
    with listening() as door:
        for fields in wrong:
            options = Options(**fields)
            with pytest.raises((OSError, TypeError, ValueError, OverflowError)):
                socket.create_server(("127.0.0.1", 0), options=options)
            with socket.socket(options=options) as client, pytest.raises(DOCUMENTED):
                client.connect(door.getsockname())


#: Arguments that each call takes which needs a socket that is open.
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "accept": (),
    "bind": (("127.0.0.1", 0),),
    "connect": (("127.0.0.1", 9),),
    "event": (),
    "flush": (),
    "getpeername": (),
    "getsockname": (),
    "getsockopt": (socket.SOL_DCCP, socket.DCCP_SOCKOPT_SERVICE),
    "listen": (),
    "recv": (10,),
    "recv_into": (bytearray(10),),
    "recv_many": (10,),
    "recv_many_into": ([bytearray(10)],),
    "recvfrom": (10,),
    "recvfrom_into": (bytearray(10),),
    "recvmsg": (10,),
    "recvmsg_into": ([bytearray(10)],),
    "send": (b"",),
    "send_many": ([b""],),
    "sendall": (b"",),
    "sendmsg": ([b""],),
    "sendto": (b"", ("127.0.0.1", 9)),
    "setsockopt": (socket.SOL_DCCP, socket.DCCP_SOCKOPT_SERVICE, 1),
    "shutdown": (socket.SHUT_RD,),
    "stats": (),
    "wait_acknowledged": (),
}

#: Calls that a closed socket answers as the standard module's does, or always refuses.
NEED_NO_SOCKET = {
    "connect_ex", "detach", "dup", "fileno", "get_inheritable", "getblocking", "gettimeout",
    "makefile", "sendfile", "set_inheritable", "setblocking", "settimeout",
}  # fmt: skip

#: Calls that wait for the peer to do something.
WAIT_FOR_PEER = [name for name in ARGUMENTS if name == "event" or name.startswith("recv")]


def call(end: socket.socket, name: str) -> object:
    """Make the call with valid arguments."""
    return getattr(end, name)(*ARGUMENTS[name])


def test_every_call_is_known() -> None:
    """Every method is covered by the tests below."""
    assert {*ARGUMENTS, *NEED_NO_SOCKET} == set(METHODS)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_everything_is_refused_after_close(name: str) -> None:
    """EBADF from each call that needs the socket, for a client and for a listener."""
    with connected() as (client, _), listening() as door:
        for end in (client, door):
            end.close()
            with pytest.raises(OSError, match="Bad file descriptor"):
                call(end, name)
            assert end.fileno() == -1
            assert end.connect_ex(("127.0.0.1", 9)) == errno.EBADF


@pytest.mark.parametrize("name", WAIT_FOR_PEER)
def test_every_wait_ends_at_its_timeout(name: str) -> None:
    """``TimeoutError``, or ``BlockingIOError`` if non-blocking."""
    with connected() as (client, _server):
        client.settimeout(0.01)
        with pytest.raises(TimeoutError, match="timed out"):
            call(client, name)
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            call(client, name)


@pytest.mark.parametrize("name", [one for one in WAIT_FOR_PEER if one != "event"])
def test_every_read_reports_a_reset(name: str) -> None:
    """Earlier messages are read first; then ``ConnectionResetError``, every time."""
    with connected() as (client, server):
        server.send(b"before")
        server.flush()
        server.abort()
        call(client, name)
        for _ in range(2):
            with pytest.raises(ConnectionResetError):
                call(client, name)


@pytest.mark.parametrize("name", ["send", "send_many", "sendall", "sendmsg", "sendto"])
def test_every_send_reports_a_reset(name: str) -> None:
    """``ConnectionResetError`` first, then ``BrokenPipeError`` as in Linux; never a hang."""
    with connected() as (client, server):
        server.abort()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        for _ in range(2):
            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                call(client, name)


def test_a_message_that_is_too_large_is_refused_and_the_next_one_goes() -> None:
    """EMSGSIZE with both sizes, for one message and in a batch, also in asyncio."""
    with connected() as (client, server):
        largest = client.max_message_size
        with pytest.raises(OSError, match=f"{largest + 1} bytes exceeds the maximum of {largest}"):
            client.send(bytes(largest + 1))
        assert client.send_many([b"a", bytes(100_000), b"b"]) == 1
        client.send(b"c")
        assert server.recv_many(1) + server.recv_many(1) == [b"a", b"c"]


def test_several_threads_call_everything_at_once() -> None:
    """Calls in random order while the peer resets and the socket is closed: no hang, no panic."""
    with connected() as (client, server):
        client.settimeout(0.01)
        failed: list[BaseException] = []
        until = time.monotonic() + 0.4

        def work(seed: int) -> None:
            chance = random.Random(seed)
            names = [name for name in METHODS if name not in {"settimeout", "setblocking"}]
            try:
                while time.monotonic() < until:
                    method = getattr(client, chance.choice(names))
                    count = chance.randrange(3)
                    attempt(method, *(chance.choice(STRANGE) for _ in range(count)))
                    attempt(client.send, b"x" * chance.randrange(1000))
                    attempt(client.recv, 10)
            except BaseException as e:
                failed.append(e)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.15)
        server.abort()
        time.sleep(0.1)
        client.close()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads)
        assert failed == []


def test_a_peer_that_resets_ends_what_waits() -> None:
    """A waiting reader learns of it at once, and so does a writer with a full queue."""
    few = Options(send_queue_messages=2, recv_queue_messages=4, linger_s=2.0)
    with connected(client=few, server=few) as (client, server):
        outcomes: list[type[BaseException] | None] = []

        def keep(call: Callable[[], object]) -> None:
            try:
                while True:
                    call()
            except OSError as e:
                outcomes.append(type(e))

        threads = [
            threading.Thread(target=keep, args=(call,))
            for call in (lambda: client.recv(10), lambda: client.send(bytes(1000)))
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        server.abort()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert outcomes == [ConnectionResetError, ConnectionResetError]


def test_asyncio_refuses_the_same() -> None:
    """Wrong types, closed connections, huge messages."""

    async def main() -> None:
        async with await start_server(lambda one: one.closed(), "127.0.0.1") as server:
            port = server.addresses[0][1]
            connection = await connect("127.0.0.1", port, options=OPTIONS)
            strange: Any = "text"
            single: Any = b"message"
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: connection.send(strange),
                lambda: connection.send_many([b"", strange]),
                lambda: connect(strange, strange),
                lambda: connect("127.0.0.1", 70_000),
                lambda: connect("127.0.0.1", port, service="no code"),
                lambda: connect("127.0.0.1", port, local_addr=strange),
                lambda: connect("127.0.0.1", port, local_addr=("127.0.0.1", strange)),
                lambda: connect("127.0.0.1", port, options=strange),
                lambda: connect("127.0.0.1", 0),
                lambda: start_server(strange, "127.0.0.1", backlog=strange),
                lambda: start_server(strange, "127.0.0.1", options=strange),
                lambda: connection.recv_many(strange),
                lambda: connection.send_many(single),
                lambda: connection.recv_many(0),
                lambda: connection.send(b"", priority=-1),
                lambda: connection.send(b"", lifetime_s=-1.0),
                lambda: connection.send(bytes(70_000)),
            ]
            for call in calls:
                with pytest.raises(DOCUMENTED):
                    await call()
            await connection.close()
            await connection.close()
            calls = [
                lambda: connection.send(b""),
                connection.recv,
                lambda: connection.send_many([b""]),
                connection.recv_many,
            ]
            for call in calls:
                with pytest.raises(OSError, match="Bad file descriptor"):
                    await call()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
