"""How long the calls of a socket wait, and those of new sockets."""

from __future__ import annotations

import math

__all__ = ["checked_timeout", "getdefaulttimeout", "setdefaulttimeout"]

_default_timeout: float | None = None


def getdefaulttimeout() -> float | None:
    """The timeout of new sockets in s; None waits for ever."""
    return _default_timeout


def setdefaulttimeout(timeout: float | None) -> None:
    """Set the timeout of new sockets in s; None waits for ever."""
    global _default_timeout
    _default_timeout = checked_timeout(timeout)


def checked_timeout(timeout: float | None) -> float | None:
    """A timeout in s; what is none raises ``TypeError`` or ``ValueError``."""
    if timeout is None:
        return None
    seconds = timeout + 0.0  # Text is not a number, which `float` would take for one.
    if math.isnan(seconds):
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0.0 or math.isinf(seconds):
        raise ValueError("Timeout value out of range")
    return seconds
