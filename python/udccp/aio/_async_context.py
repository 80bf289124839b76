"""Base of what is closed in order at the end of an ``async with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AsyncContext"]


class AsyncContext(ABC):
    """An object that ``async with`` returns and closes."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leave(error)

    @abstractmethod
    async def _leave(self, error: BaseException | None) -> None:
        """Close it; `error` is the exception that left the block, if any."""
