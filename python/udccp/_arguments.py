"""What an argument has to be, with errors that name it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING, SupportsIndex, cast

from udccp.options import Options

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["number", "settings", "several", "size"]


def number(value: object, name: str) -> int:
    """A whole number; ``TypeError`` by the name of the argument for what is none."""
    try:
        return index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(f"{name} must be int, not {type(value).__name__}") from None


def settings(options: object) -> Options:
    """The settings that were given, or the defaults for None."""
    if options is None:
        return Options()
    if not isinstance(options, Options):
        raise TypeError(f"options must be udccp.Options, not {type(options).__name__}")
    return options


def several(messages: Iterable[ReadableBuffer]) -> list[ReadableBuffer]:
    """Messages; ``TypeError`` for a single one, whose bytes would be taken for them."""
    if isinstance(messages, (bytes, bytearray, memoryview, str)):
        kind = type(messages).__name__
        raise TypeError(f"send_many() takes a list of messages, not {kind}: [message] is a list")
    return list(messages)


def size(value: object, call: str) -> int:
    """A size in bytes; ``ValueError`` in the words of the standard module for a negative one."""
    bytes = number(value, f"{call}(): the size")
    if bytes < 0:
        raise ValueError(f"negative buffersize in {call}")
    return bytes
