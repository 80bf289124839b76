"""Helpers for the tests of sockets."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Generator

from udccp import Options, socket

#: No call of a test waits longer, in s: a hang is a failure.
PATIENCE_S = 60.0

#: Peers that vanish are found out soon, and a close that nobody confirms ends soon.
OPTIONS = Options(linger_s=2.0, request_retries=1)


@contextlib.contextmanager
def listening(
    family: int = socket.AF_INET, options: Options = OPTIONS, service: str | int = 0
) -> Generator[socket.socket, None, None]:
    """A listening socket on the loopback interface."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    address = (host, 0)
    with socket.create_server(address, family=family, options=options, service=service) as server:
        server.settimeout(PATIENCE_S)
        yield server


@contextlib.contextmanager
def connected(
    family: int = socket.AF_INET, client: Options = OPTIONS, server: Options = OPTIONS
) -> Generator[tuple[socket.socket, socket.socket], None, None]:
    """Both ends of a connection over the loopback interface."""
    with listening(family, server) as door, socket.socket(family, options=client) as caller:
        caller.settimeout(PATIENCE_S)
        caller.connect(door.getsockname())
        answerer, _ = door.accept()
        answerer.settimeout(PATIENCE_S)
        with answerer:
            yield caller, answerer


def repeated(times: int, call: Callable[[], object]) -> None:
    """Call repeatedly."""
    for _ in range(times):
        call()


def descriptors() -> set[tuple[int, int, int]]:
    """The open files of this process, each as number, device and inode.

    Compare sets, not counts: sockets of earlier tests may be closed meanwhile, in the background or
    by the garbage collector.
    """
    found: set[tuple[int, int, int]] = set()
    for fd in map(int, os.listdir("/dev/fd")):
        # The listing's own descriptor is closed by now.
        with contextlib.suppress(OSError):
            at = os.fstat(fd)
            found.add((fd, at.st_dev, at.st_ino))
    return found


def eventually(holds: Callable[[], bool]) -> bool:
    """Repeat the question until the answer is true or the time limit is reached."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if holds():
            return True
    return False


def fastest(attempt: Callable[[], object], limit_s: float) -> float:
    """Repeat up to ten times until one is faster than the limit. Return the fastest in seconds.

    A busy machine is slow occasionally, but not every time.
    """
    best = math.inf
    for _ in range(10):
        begun = time.monotonic()
        attempt()
        best = min(best, time.monotonic() - begun)
        if best < limit_s:
            break
    return best
