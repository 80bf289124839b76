"""What the tests of sockets share."""

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
    """A socket that listens on the loopback interface."""
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
    """Call again and again."""
    for _ in range(times):
        call()


def descriptors() -> set[tuple[int, int, int]]:
    """What this process has open, each with its number, device and inode.

    What is new is what was kept. Their count tells less: sockets of earlier tests close meanwhile,
    in the background and as garbage.
    """
    found: set[tuple[int, int, int]] = set()
    for fd in map(int, os.listdir("/dev/fd")):
        # That of the listing is closed by now.
        with contextlib.suppress(OSError):
            at = os.fstat(fd)
            found.add((fd, at.st_dev, at.st_ino))
    return found


def eventually(holds: Callable[[], bool]) -> bool:
    """Ask again until it holds, or until patience ends."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if holds():
            return True
    return False


def fastest(attempt: Callable[[], object], limit_s: float) -> float:
    """Repeat until one takes less than the limit, ten times at most; s that the fastest took.

    A busy machine is late now and then, and not each time.
    """
    best = math.inf
    for _ in range(10):
        begun = time.monotonic()
        attempt()
        best = min(best, time.monotonic() - begun)
        if best < limit_s:
            break
    return best
