"""Checks arguments, with errors that name them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING, SupportsIndex, cast

from udccp.options import Options

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["message_list", "number", "settings", "size"]


def number(value: object, name: str) -> int:
    """Return a whole number; otherwise ``TypeError`` with the name of the argument."""
    try:
        return index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(f"{name} must be int, not {type(value).__name__}") from None


def settings(options: object) -> Options:
    """Return the settings, or the defaults for None."""
    if options is None:
        return Options()
    if not isinstance(options, Options):
        raise TypeError(f"options must be udccp.Options, not {type(options).__name__}")
    return options


def message_list(messages: Iterable[ReadableBuffer]) -> list[ReadableBuffer]:
    """Return the messages; ``TypeError`` for a single one, which would be read as its bytes."""
    if isinstance(messages, (bytes, bytearray, memoryview, str)):
        kind = type(messages).__name__
        raise TypeError(f"send_many() takes a list of messages, not {kind}: [message] is a list")
    return list(messages)


def size(value: object, call: str) -> int:
    """Return a size in bytes; ``ValueError`` as in the standard module if it is negative."""
    bytes = number(value, f"{call}(): the size")
    if bytes < 0:
        raise ValueError(f"negative buffersize in {call}")
    return bytes
