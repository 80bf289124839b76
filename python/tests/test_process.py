"""Sockets when their process forks, is interrupted or ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from typing import Any

import pytest
from sockets import OPTIONS, PATIENCE_S, connected, listening

from udccp import Options, socket

#: What each program begins with: it is connected to the port that it is given.
CONNECTED = """
import asyncio, os, signal, sys, threading, time
import udccp
from udccp import socket
port = int(sys.argv[1])
connection = socket.create_connection(("127.0.0.1", port))
"""


def start(program: str, door: socket.socket) -> tuple[subprocess.Popen[str], socket.socket]:
    """Start a connected program, and accept its connection."""
    text = CONNECTED + textwrap.dedent(program)
    arguments = [sys.executable, "-W", "ignore", "-c", text, str(door.getsockname()[1])]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    answerer, _ = door.accept()
    answerer.settimeout(PATIENCE_S)
    return process, answerer


def everything(end: socket.socket) -> list[bytes]:
    """All messages until the orderly close."""
    return list(iter(lambda: end.recv(2000), b""))


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise ValueError('mine')", 1),
        ("threading.Thread(target=connection.recv, args=(1,), daemon=True).start()", 0),
        ("asyncio.new_event_loop().run_until_complete(udccp.connect('127.0.0.1', port))", 0),
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
    ],
)
def test_what_was_sent_arrives_although_the_process_ends(end: str, code: int) -> None:
    """Immediately, without a close, with threads and loops still running."""
    with listening() as door:
        process, peer = start(
            f"for n in range(300): connection.send(n.to_bytes(2, 'big') * 300)\n{end}", door
        )
        with peer:
            got = [int.from_bytes(message[:2], "big") for message in everything(peer)]
        assert got == list(range(300))
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, said


#: Of the messages that wait in the send queue.
LAST = (199).to_bytes(2, "big")

#: Ends of a program that delivers what waits to be sent: by Ctrl-C, and by nothing at all.
ENDS = ["os.kill(os.getpid(), signal.SIGINT)", "udccp.close_all(); os._exit(0)"]


@pytest.mark.parametrize("end", ENDS)
def test_what_waits_in_the_send_queue_arrives_after_the_end(end: str) -> None:
    """A slow reader delays it: the process stays to deliver everything and close."""
    few = Options(recv_queue_messages=8)
    with listening(options=few) as door:
        process, peer = start(
            f"""
            patient = udccp.Options(linger_s=60.0)
            late = socket.create_connection(("127.0.0.1", port), options=patient)
            for n in range(200): late.send(n.to_bytes(2, 'big'))
            {end}
            """,
            door,
        )
        late, _ = door.accept()
        late.settimeout(PATIENCE_S)
        with peer, late:
            # If it ended earlier, everything in its queue would be lost.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
            # The peer's small queue may have dropped some of the first messages.
            assert everything(late)[-1] == LAST
        process.communicate(timeout=PATIENCE_S)


def send_and_end(port: int) -> None:
    """The work of a process that ends afterwards."""
    patient = Options(linger_s=60.0)
    client = socket.create_connection(("127.0.0.1", port), PATIENCE_S, options=patient)
    for n in range(200):
        client.send(n.to_bytes(2, "big"))
    kept.append(client)


#: Sockets that nobody closes.
kept: list[socket.socket] = []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_process_of_multiprocessing_sent_arrives_after_its_end(method: str) -> None:
    """Forked processes end without the C library's exit handlers."""
    few = Options(recv_queue_messages=8)
    context: Any = multiprocessing.get_context(method)
    with listening(options=few) as door:
        process = context.Process(target=send_and_end, args=(door.getsockname()[1],))
        process.start()
        late, _ = door.accept()
        late.settimeout(PATIENCE_S)
        with late:
            process.join(0.5)
            # The peer's small queue may have dropped some of the first messages.
            assert everything(late)[-1] == LAST
        process.join(PATIENCE_S)
        assert process.exitcode == 0


def test_ctrl_c_ends_what_waits() -> None:
    """``recv`` raises ``KeyboardInterrupt``, and the peer sees an orderly close."""
    with listening() as door:
        process, peer = start("connection.send(b'ready')\nconnection.recv(1)", door)
        with peer:
            assert peer.recv(10) == b"ready"
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert peer.recv(10) == b""
        _, said = process.communicate(timeout=PATIENCE_S)
        assert "KeyboardInterrupt" in said


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_killed_process_is_detected(end: str) -> None:
    """No close is sent then: the peer learns of it by `idle_limit_s`, or from the host."""
    soon = Options(keep_alive_s=0.1, idle_limit_s=0.4)
    with listening(options=soon) as door:
        process, peer = start(f"connection.send(b'bye')\ntime.sleep(0.1)\n{end}", door)
        with peer:
            assert peer.recv(10) == b"bye"
            with pytest.raises((TimeoutError, ConnectionError)) as failure:
                peer.recv(10)
            assert failure.value.errno
        process.communicate(timeout=PATIENCE_S)


def in_fork(work: str, door: socket.socket, client: socket.socket) -> None:
    """Runs in the forked child. Its exit code is 0 if all checks pass."""
    code = 1
    try:
        for call in (lambda: client.send(b"mine"), lambda: client.recv(1), door.accept):
            with pytest.raises(OSError, match=r"forked|Bad file"):
                call()
        assert "family=2" in repr(client)
        assert "family=2" in repr(door)
        if work == "close":
            client.close()
            door.close()
        fresh = socket.create_connection(door_address, PATIENCE_S, options=OPTIONS)
        fresh.send(b"from the child")
        fresh.wait_acknowledged()
        code = 0
    finally:
        os._exit(code)


door_address: tuple[str, int] = ("", 0)


@pytest.mark.parametrize("work", ["keep", "close"])
def test_forked_child_cannot_use_its_parents_sockets(work: str) -> None:
    """The child gets EBADF, whatever it closes; the parent continues; the child opens its own."""
    global door_address
    with connected() as (client, server), listening() as door:
        door_address = ("127.0.0.1", door.getsockname()[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of a fork with threads.
            child = os.fork()
        if child == 0:
            in_fork(work, door, client)
        accepted, _ = door.accept()
        accepted.settimeout(PATIENCE_S)
        with accepted:
            assert accepted.recv(100) == b"from the child"
        assert os.waitpid(child, 0)[1] == 0
        client.send(b"still here")
        assert server.recv(100) == b"still here"


def call_back(port: int) -> bytes:
    """Runs in a multiprocessing process."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S, options=OPTIONS) as client:
        client.send(b"hello")
        return client.recv(100)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_multiprocessing(method: str) -> None:
    """Each process has its own sockets, however it is started, and cannot pass them on."""
    with (
        listening() as door,
        connected() as (client, _),
        multiprocessing.get_context(method).Pool(1) as pool,
    ):
        calling = pool.apply_async(call_back, (door.getsockname()[1],))
        accepted, _ = door.accept()
        accepted.settimeout(PATIENCE_S)
        with accepted:
            accepted.send(accepted.recv(100).upper())
            assert calling.get(PATIENCE_S) == b"HELLO"
        with pytest.raises(TypeError, match="lives in the process"):
            pool.apply(client.recv, (1,))
