"""Run the package's typical work, for a profile-guided build.

`scripts/python.sh wheel` runs this in an instrumented build, and optimises the wheel with the
result.

Usage: python python/tools/train.py
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from tempfile import TemporaryDirectory

from udccp import Connection, connect, lab, socket, start_server

HOST = "127.0.0.1"
SPAN_S = 2.0
LARGE = bytes(1200)
SMALL = bytes(100)


def simulations() -> None:
    """Run the same experiment as the program's training."""
    with TemporaryDirectory() as folder:
        lab.experiment("scripts/training.toml", store=f"{folder}/store").run(workers=1)
    for scenario in ("media", "parking-lot", "wireless"):
        lab.run(f"scenarios/{scenario}.toml")


def stream_and_echo() -> None:
    """Messages as fast as possible, and small ones echoed, over blocking sockets."""
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                while messages := peer.recv_many(64):
                    if messages[-1] == SMALL:
                        peer.send(SMALL)

        serving = threading.Thread(target=serve)
        serving.start()
        with socket.create_connection((HOST, server.getsockname()[1])) as client:
            until = time.monotonic() + SPAN_S
            while time.monotonic() < until:
                client.send_many([LARGE] * 64)
            # A message may be lost behind the many.
            client.settimeout(SPAN_S)
            until = time.monotonic() + SPAN_S
            while time.monotonic() < until:
                client.send(SMALL)
                with contextlib.suppress(TimeoutError):
                    client.recv(2000)
        serving.join()


async def stream() -> None:
    """Messages as fast as possible over asyncio."""

    async def read(connection: Connection) -> None:
        async for _ in connection:
            pass

    async with (
        await start_server(read, HOST) as server,
        connect(HOST, server.addresses[0][1]) as connection,
    ):
        until = time.monotonic() + SPAN_S
        while time.monotonic() < until:
            await connection.send(LARGE)


if __name__ == "__main__":
    simulations()
    stream_and_echo()
    asyncio.run(stream())
