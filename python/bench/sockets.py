"""Messages per second of DCCP's sockets compared with the standard library's UDP.

Usage: python python/bench/sockets.py [ROUNDS]

Sender and receiver are two processes; only received messages count. Contenders alternate in turns
of half a second, and a ratio is the median over all rounds. At the end, `udccp.lab.run` is compared
with `udccp sim` (the program in $UDCCP, if set) by processor time.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import socket as std
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from statistics import median, quantiles
from typing import Any

from udccp import connect, lab, socket, start_server

SPAN_S = 0.5
SIZE = 100
BATCH = 64
MESSAGE = bytes(SIZE)
TRIPS = 2000
HOST = "127.0.0.1"
#: Tells the receiver of UDP to end.
LAST = b"end"


# Receivers: each reports its port, and counts until its sender ends.


def udp_receiver(pipe: Pipe) -> None:
    """Blocking UDP."""
    with std.socket(type=std.SOCK_DGRAM) as receiver:
        receiver.setsockopt(std.SOL_SOCKET, std.SO_RCVBUF, 4 << 20)
        receiver.bind((HOST, 0))
        pipe.send(receiver.getsockname()[1])
        count = 0
        while receiver.recv(2000) != LAST:
            count += 1
        pipe.send(count)


def dccp_receiver(pipe: Pipe) -> None:
    """Blocking DCCP, message by message."""
    with socket.create_server((HOST, 0)) as server:
        pipe.send(server.getsockname()[1])
        peer, _ = server.accept()
        count = 0
        while peer.recv(2000):
            count += 1
        peer.close()
        pipe.send(count)


def dccp_batch_receiver(pipe: Pipe) -> None:
    """Blocking DCCP in batches."""
    with socket.create_server((HOST, 0)) as server:
        pipe.send(server.getsockname()[1])
        peer, _ = server.accept()
        count = 0
        while messages := peer.recv_many(BATCH):
            count += len(messages)
        peer.close()
        pipe.send(count)


def aio_udp_receiver(pipe: Pipe) -> None:
    """UDP of asyncio."""

    async def main() -> int:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        class Counter(asyncio.DatagramProtocol):
            count = 0

            def datagram_received(self, data: bytes, addr: Any) -> None:  # noqa: ANN401
                if data == LAST:
                    if not done.done():
                        done.set_result(self.count)
                else:
                    self.count += 1

        receiver = std.socket(type=std.SOCK_DGRAM)
        receiver.setsockopt(std.SOL_SOCKET, std.SO_RCVBUF, 4 << 20)
        receiver.bind((HOST, 0))
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(Counter, sock=receiver)
        pipe.send(receiver.getsockname()[1])
        count = await done
        transport.close()
        return count

    pipe.send(asyncio.run(main()))


def aio_dccp_receiver(pipe: Pipe) -> None:
    """DCCP of asyncio."""

    async def main() -> int:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def count(connection: Any) -> None:  # noqa: ANN401
            n = 0
            async for _ in connection:
                n += 1
            done.set_result(n)

        async with await start_server(count, HOST) as server:
            pipe.send(server.addresses[0][1])
            return await done

    pipe.send(asyncio.run(main()))


# Senders: as fast as possible for half a second.


def udp_sender(port: int) -> None:
    """Blocking UDP."""
    with std.socket(type=std.SOCK_DGRAM) as sender:
        sender.connect((HOST, port))
        until = time.perf_counter() + SPAN_S
        while time.perf_counter() < until:
            for _ in range(BATCH):
                sender.send(MESSAGE)
        finish(sender)


def finish(sender: std.socket) -> None:
    """Tell a UDP receiver that the turn is over; repeated, as datagrams may be lost."""
    for _ in range(20):
        time.sleep(0.01)
        try:
            sender.send(LAST)
        except ConnectionRefusedError:
            return


def dccp_sender(port: int) -> None:
    """Blocking DCCP, message by message."""
    with socket.create_connection((HOST, port)) as sender:
        until = time.perf_counter() + SPAN_S
        while time.perf_counter() < until:
            for _ in range(BATCH):
                sender.send(MESSAGE)


def dccp_batch_sender(port: int) -> None:
    """Blocking DCCP in batches."""
    messages = [MESSAGE] * BATCH
    with socket.create_connection((HOST, port)) as sender:
        until = time.perf_counter() + SPAN_S
        while time.perf_counter() < until:
            sender.send_many(messages)


def aio_udp_sender(port: int) -> None:
    """UDP of asyncio."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(HOST, port)
        )
        until = time.perf_counter() + SPAN_S
        while time.perf_counter() < until:
            for _ in range(BATCH):
                transport.sendto(MESSAGE)
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0.01)
            transport.sendto(LAST)
        transport.close()

    asyncio.run(main())


def aio_dccp_sender(port: int) -> None:
    """DCCP of asyncio."""

    async def main() -> None:
        async with connect(HOST, port) as connection:
            until = time.perf_counter() + SPAN_S
            while time.perf_counter() < until:
                for _ in range(BATCH):
                    await connection.send(MESSAGE)

    asyncio.run(main())


def rate(receiver: Callable[[Pipe], None], sender: Callable[[int], None]) -> float:
    """Messages received per second."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=receiver, args=(theirs,))
    process.start()
    begun_port = ours.recv()
    begun = time.perf_counter()
    sender(begun_port)
    count = int(ours.recv())
    elapsed = time.perf_counter() - begun
    process.join()
    # For UDP, time spent waiting for its end marker does not count.
    return count / (SPAN_S if receiver in (udp_receiver, aio_udp_receiver) else elapsed)


# Ping-pong.


def udp_echo(pipe: Pipe) -> None:
    """Echo over UDP."""
    with std.socket(type=std.SOCK_DGRAM) as echo:
        echo.bind((HOST, 0))
        pipe.send(echo.getsockname()[1])
        while True:
            message, sender = echo.recvfrom(2000)
            if message == LAST:
                return
            echo.sendto(message, sender)


def dccp_echo(pipe: Pipe) -> None:
    """Echo over DCCP."""
    with socket.create_server((HOST, 0)) as server:
        pipe.send(server.getsockname()[1])
        peer, _ = server.accept()
        with peer:
            while message := peer.recv(2000):
                peer.send(message)


def trips(echo: Callable[[Pipe], None], is_dccp: bool) -> tuple[float, float]:
    """Median and 99th percentile of round trips, in microseconds."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=echo, args=(theirs,))
    process.start()
    port = ours.recv()
    client: Any
    if is_dccp:
        client = socket.create_connection((HOST, port))
    else:
        client = std.socket(type=std.SOCK_DGRAM)
        client.connect((HOST, port))
    took: list[float] = []
    with client:
        for _ in range(TRIPS):
            begun = time.perf_counter()
            client.send(MESSAGE)
            client.recv(2000)
            took.append((time.perf_counter() - begun) * 1e6)
        if not is_dccp:
            client.send(LAST)
    process.join()
    return median(took), quantiles(took, n=100)[98]


def goal(what: str, ratio: float, is_met: bool, wanted: str) -> None:
    """One line of the result."""
    print(f"{what:<58} {ratio:6.2f}  ({wanted}) {'met' if is_met else 'NOT MET'}")


def rates(rounds: int) -> None:
    """Messages per second, and their ratios to UDP's."""
    contenders = {
        "udp": (udp_receiver, udp_sender),
        "dccp": (dccp_receiver, dccp_sender),
        "batches": (dccp_batch_receiver, dccp_batch_sender),
        "aio-udp": (aio_udp_receiver, aio_udp_sender),
        "aio-dccp": (aio_dccp_receiver, aio_dccp_sender),
    }
    table = [{name: rate(*both) for name, both in contenders.items()} for _ in range(rounds)]
    for name in contenders:
        print(f"{name:<12} {median(row[name] for row in table):>10.0f} messages/s of {SIZE} bytes")
    for what, name, base, least in (
        ("blocking, message by message, to blocking UDP", "dccp", "udp", 0.5),
        ("blocking, batches of 64, to blocking UDP", "batches", "udp", 3.0),
        ("asyncio, message by message, to asyncio's UDP", "aio-dccp", "aio-udp", 0.5),
    ):
        ratio = median(row[name] / row[base] for row in table)
        goal(what, ratio, ratio >= least, f"goal: at least {least}")


def round_trips(rounds: int) -> None:
    """Ping-pong, and the ratio of its 99th percentiles."""
    table = [(trips(udp_echo, False), trips(dccp_echo, True)) for _ in range(rounds)]
    for n, name in enumerate(("udp", "dccp")):
        middle, p99 = (median(row[n][k] for row in table) for k in (0, 1))
        print(f"{name:<12} {middle:>10.0f} us median, {p99:.0f} us p99 of a ping-pong")
    ratio = median(row[1][1] / row[0][1] for row in table)
    goal("p99 of a ping-pong, to UDP's", ratio, ratio <= 2.0, "goal: at most 2")


def processor_s(who: int) -> float:
    """Processor time so far, of this process or of finished child processes."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def simulation(rounds: int) -> None:
    """Processor time of `udccp.lab.run` compared with `udccp sim` for the same run."""
    program = os.environ.get("UDCCP")
    if not program:
        print("udccp sim: no program in $UDCCP")
        return
    command = [program, "sim", "two-flows", "--seed", "7", "--json"]
    lab.run("two-flows", seed=7)  # Loads what only the first run loads.
    table: list[tuple[float, float]] = []
    for _ in range(rounds):
        begun = processor_s(resource.RUSAGE_SELF)
        lab.run("two-flows", seed=7)
        ours = processor_s(resource.RUSAGE_SELF) - begun
        begun = processor_s(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        table.append((ours, processor_s(resource.RUSAGE_CHILDREN) - begun))
    print(f"lab.run {median(a for a, _ in table):.3f} s, sim {median(b for _, b in table):.3f} s")
    ratio = median(a / b for a, b in table)
    goal("udccp.lab.run to udccp sim", ratio, ratio <= 1.05, "goal: at most 1.05")


if __name__ == "__main__":
    many = int(sys.argv[1]) if sys.argv[1:] else 5
    rates(many)
    round_trips(many)
    simulation(many)
