"""Helpers to create sockets for the tests of calls."""

import errno
import os
import select
import socket

SOL_DCCP = 269
LOCAL = "127.0.0.1"


def new(family=socket.AF_INET):
    return socket.socket(family, 6, 33)


def listening(family=socket.AF_INET, host=LOCAL, options=()):
    server = new(family)
    for option in options:
        server.setsockopt(*option)
    server.bind((host, 0))
    server.listen(8)
    return server


def pair(client_options=(), server_options=()):
    server = listening(options=server_options)
    client = new()
    for option in client_options:
        client.setsockopt(*option)
    client.connect(server.getsockname())
    accepted, peer = server.accept()
    assert peer == client.getsockname() == accepted.getpeername(), peer
    assert client.getpeername() == server.getsockname() == accepted.getsockname()
    server.close()
    return client, accepted


def fails(name, call, *arguments):
    try:
        result = call(*arguments)
    except OSError as e:
        text = f"{call.__name__}{arguments!r}: {e} instead of {name}"
        assert e.errno == getattr(errno, name), text
        return
    raise AssertionError(f"{call.__name__}{arguments!r}: {result!r} instead of {name}")


def polled(sock, events=select.POLLIN | select.POLLOUT, timeout=0):
    poll = select.poll()
    poll.register(sock, events)
    found = poll.poll(timeout)
    return found[0][1] if found else 0


def the_broker():
    """The broker's pid, found by its command line."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                words = line.read().split(b"\0")
        except OSError:
            continue
        if words[1:3] == [b"broker", os.environ["UDCCP_RUN_DIR"].encode()]:
            return int(pid)
    raise AssertionError("there is no broker")
