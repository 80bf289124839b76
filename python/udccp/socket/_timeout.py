"""Timeouts of sockets, and the default one."""

from __future__ import annotations

import math

__all__ = ["checked_timeout", "getdefaulttimeout", "setdefaulttimeout"]

#: The longest timeout of the standard module: 2**63 ns, 292 years.
_LONGEST_S = 2.0**63 / 1e9

_default_timeout: float | None = None


def getdefaulttimeout() -> float | None:
    """Return the timeout of new sockets in s; None waits for ever."""
    return _default_timeout


def setdefaulttimeout(timeout: float | None) -> None:
    """Set the timeout of new sockets in s; None waits for ever."""
    global _default_timeout
    _default_timeout = checked_timeout(timeout)


def checked_timeout(timeout: float | None) -> float | None:
    """Check a timeout in s; raises ``TypeError``, ``ValueError`` or ``OverflowError``."""
    if timeout is None:
        return None
    try:
        seconds = timeout + 0.0  # Unlike `float`, this rejects text.
    except TypeError:
        kind = type(timeout).__name__
        raise TypeError(f"the timeout must be a number or None, not {kind}") from None
    if math.isnan(seconds):
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0.0 or math.isinf(seconds):
        raise ValueError("Timeout value out of range")
    if seconds >= _LONGEST_S:
        raise OverflowError("timestamp too large to convert to C PyTime_t")
    return seconds
