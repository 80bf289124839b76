"""Kills the broker at random moments. Run by udccp run with a separate folder."""

import errno
import glob
import os
import random
import select
import signal
import socket
import sys
import time

LOCAL = "127.0.0.1"


def new():
    return socket.socket(socket.AF_INET, 6, 33)


def broker():
    """The pid of this folder's broker, found by its command line."""
    folder = os.environ["UDCCP_RUN_DIR"]
    for name in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(name, "rb").read().split(b"\0")
        except OSError:
            continue
        if words[1:3] == [b"broker", folder.encode()]:
            return int(name.split("/")[2])
    return None


def pair():
    server = new()
    server.bind((LOCAL, 0))
    server.listen(8)
    client = new()
    client.connect(server.getsockname())
    accepted, _ = server.accept()
    return server, client, accepted


def fails(wanted, call, *arguments):
    try:
        result = call(*arguments)
    except OSError as e:
        assert e.errno in wanted, e
        return
    raise AssertionError(f"{call.__name__}: {result!r}")


def kill_while(name, call, wanted):
    """Kills the broker while a call blocks in a child process; the call must return."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        fails(wanted, call)
        os._exit(0)
    time.sleep(random.uniform(0.02, 0.2))
    os.kill(broker(), signal.SIGKILL)
    start = time.monotonic()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"{name}: {status}"
    assert time.monotonic() - start < 10, name


def main():
    signal.alarm(100)
    for _ in range(int(sys.argv[1])):
        server, client, accepted = pair()
        kill_while("recv", lambda: client.recv(10), [errno.ECONNRESET])
        # Both ends report it once as an error, then as end-of-file.
        poll = select.poll()
        poll.register(accepted, select.POLLIN)
        assert poll.poll(5000)[0][1] & select.POLLHUP
        fails([errno.ECONNRESET], accepted.recv, 10)
        assert accepted.recv(10) == b""
        fails([errno.EPIPE], accepted.send, b"x")
        fails([errno.ECONNRESET], server.accept)

        # The next socket starts a new broker.
        server, client, accepted = pair()
        kill_while("accept", server.accept, [errno.ECONNRESET])

        def fill():
            while True:
                client.send(b"x" * 1000)

        server, client, accepted = pair()
        kill_while("send", fill, [errno.ECONNRESET])
    print("ok")


main()
