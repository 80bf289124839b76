"""Blocking sockets: messages in both directions, addresses, timeouts, options, closing."""

from __future__ import annotations

import errno
import io
import os
import pickle
import socket as std
import struct
import time
import warnings

import pytest
from sockets import OPTIONS, PATIENCE_S, connected, eventually, listening, repeated

from udccp import Options, socket


def number_of(call: pytest.ExceptionInfo[OSError]) -> str:
    """The name of an error's number; ENOTSUP and EOPNOTSUPP are the same number."""
    return errno.errorcode[call.value.errno or 0]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_messages_go_both_ways_with_their_boundaries(family: int) -> None:
    """Complete and in order, including empty and largest ones."""
    with connected(family) as (client, server):
        largest = bytes(client.max_message_size)
        for message in (b"one", b"", b"three", largest):
            assert client.send(message) == len(message)
            assert server.send(message) == len(message)
        for end in (client, server):
            got = [end.recv(2000) for _ in range(4)]
            assert got == [b"one", b"", b"three", largest]
        assert client.getpeername() == server.getsockname()
        assert server.getpeername() == client.getsockname()
        assert len(client.getsockname()) == (2 if family == socket.AF_INET else 4)


def test_every_kind_of_buffer_is_a_message() -> None:
    """As in the standard module: bytes-like objects, contiguous or not, but no text."""
    with connected() as (client, server):
        array = struct.pack("2H", 1, 2)
        for message in (bytearray(b"a"), memoryview(b"bc"), memoryview(array).cast("H")):
            client.sendall(message)
            assert server.recv(100) == bytes(message)
        with pytest.raises(TypeError):
            client.send("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert client.sendmsg([b"one", bytearray(b"two")]) == 6
        assert client.sendto(b"there", ("192.0.2.1", 9)) == 5
        assert [server.recv(100) for _ in range(2)] == [b"onetwo", b"there"]


def test_received_into_buffers() -> None:
    """recv_into, recvmsg_into, recvfrom, and truncated messages."""
    with connected() as (client, server):
        for _ in range(6):
            client.send(b"0123456789")
        room = bytearray(20)
        assert server.recv_into(room) == 10
        assert bytes(room[:11]) == b"0123456789\0"
        assert server.recv_into(room, 4) == 4
        assert server.recv_into(bytearray(4), 0, socket.MSG_TRUNC) == 10
        first, second = bytearray(4), bytearray(20)
        count, controls, flags, peer = server.recvmsg_into([first, second])
        assert (count, controls, flags, peer) == (10, [], socket.MSG_EOR, client.getsockname())
        assert bytes(first + second[:6]) == b"0123456789"
        data, _, flags, _ = server.recvmsg(3)
        assert (data, flags) == (b"012", socket.MSG_TRUNC)
        assert server.recvfrom(100) == (b"0123456789", client.getsockname())


def test_a_message_stays_for_peek() -> None:
    """MSG_PEEK, and MSG_DONTWAIT without a message."""
    with connected() as (client, server):
        with pytest.raises(BlockingIOError):
            server.recv(10, socket.MSG_DONTWAIT)
        client.send(b"stay")
        assert server.recv(2, socket.MSG_PEEK) == b"st"
        assert server.recv(10) == b"stay"


def test_batches() -> None:
    """send_many and both recv_many handle what is available; an empty message is a message."""
    with connected() as (client, server):
        many = [f"{n}".encode() for n in range(300)]
        assert client.send_many(many) == 300
        got: list[bytes] = []
        while len(got) < 300:
            got += server.recv_many(64)
        assert got == many
        server.send_many([b"one", b"", b"three"])
        rooms = [bytearray(3) for _ in range(5)]
        lengths: list[int] = []
        while len(lengths) < 3:
            lengths += client.recv_many_into(rooms[len(lengths) :])
        assert lengths == [3, 0, 5]
        assert rooms[:3] == [b"one", bytes(3), b"thr"]


def test_batch_waits_for_space_or_reports_its_progress() -> None:
    """With a timeout, send_many stops when the queue is full."""
    few = Options(send_queue_messages=4, recv_queue_messages=4, recv_queue_bytes=4096)
    with connected(client=few, server=few) as (client, server):
        client.settimeout(0.2)
        many = [bytes([n % 256]) * 1000 for n in range(500)]
        queued = client.send_many(many)
        assert 0 < queued < 500
        # Occasionally a timer lets a message leave.
        client.settimeout(0.02)
        with pytest.raises(TimeoutError):
            repeated(500, lambda: client.send(b"more"))
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            repeated(500, lambda: client.send_many([b"more"]))
        assert server.recv(2000) == many[0]


def test_the_end_is_empty_and_an_empty_message_is_none() -> None:
    """``recvmsg`` distinguishes an empty message (MSG_EOR) from the end."""
    with connected() as (client, server):
        client.send(b"")
        client.send(b"last")
        client.close()
        assert server.recvmsg(10)[0:3] == (b"", [], socket.MSG_EOR)
        assert server.recv(10) == b"last"
        assert server.recvmsg(10)[0:3] == (b"", [], 0)
        assert (server.recv(10), server.recv_many(4), server.recv_into(bytearray(4))) == (
            b"",
            [],
            0,
        )
        with pytest.raises(BrokenPipeError):
            server.send(b"late")
        assert server.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


def test_what_was_sent_before_close_arrives() -> None:
    """A close sends the queue in the background."""
    with connected() as (client, server):
        for n in range(400):
            client.send(n.to_bytes(2, "big") * 300)
        client.close()
        got = [int.from_bytes(server.recv(2000)[:2], "big") for _ in range(400)]
        assert got == list(range(400))
        assert server.recv(10) == b""


def test_a_reset_of_the_peer_is_an_error_once_everything_was_read() -> None:
    """ECONNRESET from recv and send, and once from SO_ERROR."""
    with connected() as (client, server):
        client.send(b"before")
        client.wait_acknowledged()
        client.abort()
        assert server.recv(10) == b"before"
        with pytest.raises(ConnectionResetError):
            server.recv(10)
        with pytest.raises(ConnectionResetError):
            server.send(b"more")
        error = (socket.SOL_SOCKET, socket.SO_ERROR)
        assert server.getsockopt(*error) == errno.ECONNRESET
        assert server.getsockopt(*error) == 0


def test_linger() -> None:
    """SO_LINGER: 0 resets; a positive time waits for the end."""
    for seconds, end in ((0, "reset"), (5, "close")):
        with connected() as (client, server):
            value = struct.pack("ii", 1, seconds)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, value)
            assert client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == value
            client.close()
            if end == "close":
                server.settimeout(0.0)  # The connection has ended by now.
                assert server.recv(10) == b""
            else:
                with pytest.raises(ConnectionResetError):
                    server.recv(10)


def test_shutdown_stops_one_way() -> None:
    """After SHUT_WR this side can still read; after SHUT_RD there is nothing more to read."""
    with connected() as (client, server):
        client.shutdown(socket.SHUT_WR)
        with pytest.raises(BrokenPipeError):
            client.send(b"no")
        server.send(b"still")
        assert client.recv(10) == b"still"
        server.shutdown(socket.SHUT_RD)
        assert server.recv(10) == b""
        server.send(b"and still")
        assert client.recv(10) == b"and still"
        client.shutdown(socket.SHUT_RDWR)
        assert client.recv(10) == b""
        with pytest.raises(OSError, match="Invalid argument"):
            client.shutdown(7)


def test_timeouts() -> None:
    """A silent peer: accept, recv and connect raise TimeoutError after the time."""
    with connected() as (client, _server), listening() as door:
        for end in (client, door):
            end.settimeout(0.1)
            begun = time.monotonic()
            with pytest.raises(TimeoutError, match="timed out"):
                _ = end.recv(10) if end is client else end.accept()
            assert time.monotonic() - begun > 0.09
            end.setblocking(False)
            assert (end.getblocking(), end.gettimeout()) == (False, 0.0)
            with pytest.raises(BlockingIOError):
                _ = end.recv(10) if end is client else end.accept()
    # A UDP port that does not answer.
    with std.socket(type=std.SOCK_DGRAM) as silent, socket.socket(options=OPTIONS) as caller:
        silent.bind(("127.0.0.1", 0))
        caller.settimeout(0.1)
        with pytest.raises(TimeoutError, match="timed out"):
            caller.connect(silent.getsockname())
        with pytest.raises(OSError, match="already") as again:
            caller.connect(silent.getsockname())
        assert number_of(again) == "EALREADY"
        with pytest.raises(TimeoutError, match="timed out"):
            caller.send(b"waits for the handshake")
        assert caller.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


def test_default_timeout() -> None:
    """New sockets have it, and so do accepted ones."""
    socket.setdefaulttimeout(3.0)
    try:
        with connected() as (client, _), socket.socket() as fresh, listening() as door:
            assert (fresh.gettimeout(), socket.getdefaulttimeout()) == (3.0, 3.0)
            client.close()
            with socket.create_connection(door.getsockname()[:2], options=OPTIONS):
                assert door.accept()[0].timeout == 3.0
    finally:
        socket.setdefaulttimeout(None)


def test_refusals_have_the_numbers_of_linux() -> None:
    """No listener, another service code, a port in use, other CCIDs."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = nobody.getsockname()
    with socket.socket(options=OPTIONS) as caller, pytest.raises(ConnectionRefusedError):
        caller.connect(address)
    with listening(service="SC:echo") as door:
        with socket.socket(service="SC:chat", options=OPTIONS) as caller:
            with pytest.raises(OSError, match="SC:chat") as failure:
                caller.connect(door.getsockname())
            assert number_of(failure) == "EBADRQC"
            assert caller.connect_ex(door.getsockname()) == errno.EBADRQC
        with pytest.raises(OSError, match="in use") as failure:
            socket.create_server(door.getsockname())
        assert number_of(failure) == "EADDRINUSE"
    with pytest.raises(OSError, match="not an address") as failure:
        socket.create_server(("192.0.2.1", 0))
    assert number_of(failure) == "EADDRNOTAVAIL"
    with pytest.raises(TypeError, match="a service code is str or int, not bytes"):
        socket.socket(service=b"echo")  # type: ignore[arg-type]


def test_calls_of_the_wrong_state() -> None:
    """ENOTCONN, EPIPE, EINVAL, EISCONN, EBADF."""
    with connected() as (client, _server), socket.socket() as fresh, listening() as door:
        wrong: list[tuple[str, object]] = [
            ("ENOTCONN", lambda: fresh.recv(1)),
            ("ENOTCONN", fresh.getpeername),
            ("ENOTCONN", lambda: fresh.shutdown(socket.SHUT_RD)),
            ("ENOTCONN", lambda: door.recv(1)),
            ("EPIPE", lambda: fresh.send(b"")),
            ("EPIPE", lambda: door.send(b"")),
            ("EINVAL", fresh.accept),
            ("EINVAL", client.listen),
            ("EINVAL", lambda: door.bind(("127.0.0.1", 0))),
            ("EISCONN", lambda: client.connect(("127.0.0.1", 9))),
            ("EISCONN", lambda: door.connect(("127.0.0.1", 9))),
            ("ENOTSUP", lambda: client.send(b"", 1)),
            ("ENOTSUP", lambda: client.recv(1, 1)),
            ("EMSGSIZE", lambda: client.send(bytes(70_000))),
        ]
        for number, call in wrong:
            assert callable(call)
            with pytest.raises(OSError, match=r".") as failure:
                call()
            assert number_of(failure) == number, call


def test_options_of_dccp() -> None:
    """The names, numbers and errors of Linux."""
    level = socket.SOL_DCCP
    with socket.socket() as fresh:
        assert fresh.getsockopt(level, socket.DCCP_SOCKOPT_GET_CUR_MPS) == 536
        assert fresh.getsockopt(level, socket.DCCP_SOCKOPT_AVAILABLE_CCIDS, 8) == b"\2\3\4"
        codes = b"echochat"
        fresh.setsockopt(level, socket.DCCP_SOCKOPT_SERVICE, codes)
        assert fresh.getsockopt(level, socket.DCCP_SOCKOPT_SERVICE, 64) == codes
        fresh.setsockopt(level, socket.DCCP_SOCKOPT_QPOLICY_TXQLEN, 7)
        assert fresh.getsockopt(level, socket.DCCP_SOCKOPT_QPOLICY_TXQLEN) == 7
        wrong: list[tuple[str, int, int | bytes]] = [
            ("EINVAL", socket.DCCP_SOCKOPT_SERVICE, b"\xff\xff\xff\xff"),
            ("EFAULT", socket.DCCP_SOCKOPT_SERVICE, b"echo\xff\xff\xff\xff"),
            ("EINVAL", socket.DCCP_SOCKOPT_CCID, b"\x07"),
            ("EINVAL", socket.DCCP_SOCKOPT_CCID, b""),
            ("EINVAL", socket.DCCP_SOCKOPT_SEND_CSCOV, 16),
            ("EINVAL", socket.DCCP_SOCKOPT_QPOLICY_ID, 2),
            ("EINVAL", socket.DCCP_SOCKOPT_QPOLICY_TXQLEN, -1),
            ("ENOTSUP", socket.DCCP_SOCKOPT_SERVER_TIMEWAIT, 1),
            ("ENOPROTOOPT", socket.DCCP_SOCKOPT_GET_CUR_MPS, 1),
            ("ENOPROTOOPT", 99, 1),
        ]
        for number, name, value in wrong:
            with pytest.raises(OSError, match=r".") as failure:
                fresh.setsockopt(level, name, value)
            assert number_of(failure) == number, (name, value)
        for name in (socket.DCCP_SOCKOPT_TX_CCID, socket.DCCP_SOCKOPT_CCID_TX_INFO, 99):
            with pytest.raises(OSError, match=r".") as failure:
                fresh.getsockopt(level, name)
            assert number_of(failure) == "ENOPROTOOPT"


def test_a_connection_runs_with_its_options() -> None:
    """CCID 3 as requested, its info, options changed while connected, and refused ones."""
    level = socket.SOL_DCCP
    with listening() as door, socket.socket(options=OPTIONS) as client:
        client.setsockopt(level, socket.DCCP_SOCKOPT_CCID, 3)
        client.setsockopt(level, socket.DCCP_SOCKOPT_SEND_CSCOV, 2)
        client.settimeout(PATIENCE_S)
        client.connect(door.getsockname())
        server, _ = door.accept()
        with server:
            for name in (socket.DCCP_SOCKOPT_TX_CCID, socket.DCCP_SOCKOPT_RX_CCID):
                assert (client.getsockopt(level, name), server.getsockopt(level, name)) == (3, 3)
            client.send(b"x")
            info = client.getsockopt(level, socket.DCCP_SOCKOPT_CCID_TX_INFO, 40)
            assert struct.unpack_from("Q", info)[0] > 0
            assert len(server.getsockopt(level, socket.DCCP_SOCKOPT_CCID_RX_INFO, 12)) == 12
            server.setsockopt(level, socket.DCCP_SOCKOPT_SERVER_TIMEWAIT, 1)
            assert server.getsockopt(level, socket.DCCP_SOCKOPT_SERVER_TIMEWAIT) == 1
            stats = client.stats()
            assert (stats.tx_ccid, stats.messages_sent) == (3, 1)
            assert stats.state in {"PartOpen", "Open"}
            for name in (socket.DCCP_SOCKOPT_CCID, socket.DCCP_SOCKOPT_QPOLICY_ID):
                with pytest.raises(OSError, match=r".") as failure:
                    client.setsockopt(level, name, 2 if name == socket.DCCP_SOCKOPT_CCID else 1)
                assert number_of(failure) == "EISCONN"


def test_options_below() -> None:
    """Kept, applied or refused, but never silently ignored."""
    with socket.socket() as fresh:
        assert fresh.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_DCCP
        fresh.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 9)
        fresh.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        assert fresh.getsockopt(socket.IPPROTO_IP, socket.IP_TTL) == 9
        fresh.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="before bind"):
            fresh.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 10)
        with pytest.raises(OSError, match="not available"):
            fresh.setsockopt(socket.SOL_SOCKET, 4242, 1)


def test_priorities_leave_first() -> None:
    """Priorities in sendmsg's control messages with DCCPQ_POLICY_PRIO; otherwise EINVAL."""
    with connected() as (client, _):
        control = (socket.SOL_DCCP, socket.DCCP_SCM_PRIORITY, struct.pack("I", 5))
        with pytest.raises(OSError, match="Invalid") as failure:
            client.sendmsg([b"x"], [control])
        assert number_of(failure) == "EINVAL"
    slow = Options(drop_lowest=True, send_queue_messages=3, linger_s=2.0)
    tight = Options(recv_queue_messages=2, recv_queue_bytes=2048, linger_s=2.0)
    with connected(client=slow, server=tight) as (client, _server):

        def displaced() -> bool:
            with pytest.raises(BlockingIOError):
                repeated(200, lambda: client.sendmsg([bytes(1000)], flags=socket.MSG_DONTWAIT))
            client.settimeout(0.0)
            client.sendmsg([b"key"], [control, (socket.SOL_SOCKET, 1, b"others are ignored")])
            # If a message left between the two calls, there was room.
            return client.stats().messages_displaced == 1

        assert eventually(displaced)
        with pytest.raises(OSError, match="Invalid"):
            client.sendmsg([b"x"], [(socket.SOL_DCCP, 2, bytes(4))])


def test_a_late_message_is_dropped() -> None:
    """lifetime_s: a message does not leave after its time."""
    tight = Options(recv_queue_messages=2, recv_queue_bytes=2048, linger_s=2.0)
    with connected(server=tight) as (client, _server):
        for _ in range(100):
            client.send(bytes(1000), lifetime_s=0.01)
        assert eventually(lambda: client.stats().messages_expired > 0)


def test_names_and_identity() -> None:
    """repr, pickling, and unsupported calls with their reasons."""
    with connected() as (client, _):
        assert "raddr=('127.0.0.1'" in repr(client)
        for method, error in (
            (client.makefile, io.UnsupportedOperation),
            (client.sendfile, ValueError),
            (client.detach, OSError),
            (client.dup, OSError),
            (lambda: pickle.dumps(client), TypeError),
            (lambda: client.set_inheritable(True), OSError),
            (lambda: socket.socket(fileno=3), OSError),
            (lambda: socket.socket(type=1), OSError),
            (lambda: socket.socket(proto=6), OSError),
            (lambda: socket.socket(family=1), OSError),
        ):
            with pytest.raises(error, match=r".{15}"):
                method()
        assert client.get_inheritable() is False
        client.close()
        client.close()
        assert repr(client) == "<udccp.socket.socket [closed]>"


def test_an_unclosed_socket_is_a_warning() -> None:
    """It warns, as in the standard module, and is closed."""
    with listening() as door:
        client = socket.create_connection(door.getsockname()[:2], options=OPTIONS)
        server, _ = door.accept()
        with server:
            with pytest.warns(ResourceWarning, match="unclosed"):
                del client
            server.settimeout(PATIENCE_S)
            assert server.recv(10) == b""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_unclosed_socket_is_closed_where_warnings_are_errors() -> None:
    """Its descriptor is closed."""
    client = socket.socket()
    fd = client.fileno()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del client
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
