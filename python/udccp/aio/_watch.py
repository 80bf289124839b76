"""Waits in an asyncio event loop for descriptors of the native module."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import Callable

from udccp import _native

__all__ = ["Watch", "condition_met"]


class Watch:
    """Waits for one direction of a descriptor.

    From the first wait on, the loop keeps watching the descriptor, until it becomes ready while no
    task waits. So a task that receives one message after another needs no system call for each.
    """

    def __init__(
        self,
        fd: int,
        add: Callable[[int, Callable[[], None]], object],
        remove: Callable[[int], object],
    ) -> None:
        self._fd, self._add, self._remove = fd, add, remove
        self._waiters: collections.deque[asyncio.Future[None]] = collections.deque()
        self._is_watching = False

    @classmethod
    def to_read(cls, fd: int) -> Watch:
        loop = asyncio.get_running_loop()
        return cls(fd, loop.add_reader, loop.remove_reader)

    @classmethod
    def to_write(cls, fd: int) -> Watch:
        loop = asyncio.get_running_loop()
        return cls(fd, loop.add_writer, loop.remove_writer)

    async def ready(self) -> None:
        """Wait until the descriptor is ready."""
        if not self._is_watching:
            self._add(self._fd, self._wake)
            self._is_watching = True
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            with contextlib.suppress(ValueError):
                self._waiters.remove(waiter)

    def _wake(self) -> None:
        if not self._waiters:
            self.stop()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def forget(self) -> None:
        """Stop watching."""
        if self._is_watching:
            self._is_watching = False
            self._remove(self._fd)

    def stop(self) -> None:
        """Stop watching, and wake all that wait."""
        self.forget()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


async def condition_met(waiter: _native.Waiter) -> None:
    """Wait for the end of a connection or a similar condition."""
    watch = Watch.to_read(waiter.fileno())
    try:
        while not waiter.poll():
            await watch.ready()
    finally:
        watch.stop()
