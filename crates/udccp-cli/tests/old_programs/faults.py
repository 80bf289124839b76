"""Checks the effect of each fault of Linux. Arguments: its name, and `on` or `off`."""

import errno
import select
import signal
import socket
import struct
import sys
import time


def pair():
    server = socket.socket(socket.AF_INET, 6, 33)
    server.bind(("127.0.0.1", 0))
    server.listen(4)
    client = socket.socket(socket.AF_INET, 6, 33)
    client.connect(server.getsockname())
    return client, server.accept()[0]


def send_eagain(is_on):
    a, _ = pair()
    if not is_on:
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300_000))
    # With the fault, a send that blocks forever must fail this test.
    signal.alarm(20)
    try:
        while True:
            start = time.monotonic()
            a.send(b"x" * 1400)
    except BlockingIOError:
        assert is_on or time.monotonic() - start >= 0.3


def reset_is_end(is_on):
    a, b = pair()
    b.send(b"unread")
    assert select.select([a], [], [], 10)[0]
    a.close()
    try:
        got = b.recv(10)
    except ConnectionResetError:
        got = None
    assert got == (b"" if is_on else None), got
    want = errno.ECONNRESET if is_on else 0
    assert b.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == want


def no_source(is_on):
    a, b = pair()
    a.send(b"x")
    assert b.recvfrom(10) == (b"x", None if is_on else a.getsockname())


def close_drops(is_on):
    a, b = pair()
    a.setblocking(False)
    sent = 0
    try:
        while True:
            a.send(b"x" * 1400)
            sent += 1
    except BlockingIOError:
        a.close()
    got = 0
    try:
        while b.recv(2000):
            got += 1
    except ConnectionResetError:
        assert is_on
    assert got <= sent if is_on else got == sent, (got, sent)


globals()[sys.argv[1].replace("-", "_")](sys.argv[2] == "on")
