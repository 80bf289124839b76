"""Closes connections at the end of a Python process."""

from __future__ import annotations

import os
import sys

from udccp import _native

__all__ = ["close_all"]


def close_all() -> None:
    """Close every open connection of this process in order, and wait for that.

    Waits for at most the longest ``Options.linger_s`` among them; connections that are still open
    then are reset. This happens by itself at the end of a program, or of a ``multiprocessing``
    process. Call it before ``os._exit`` and ``os.exec``.
    """
    _native.close_all()


def _close_at_the_end_of_a_child() -> None:
    """Make ``multiprocessing`` children close; a forked one ends with ``os._exit``."""
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is None or process is None:
        return

    def finalize(_: object = None) -> None:
        # After everything else that the process does when it ends.
        util.Finalize(None, close_all, exitpriority=-1000)

    # A child forgets the finalizers of its parent before it starts.
    util.register_after_fork(_native, finalize)
    if process.parent_process() is not None:
        finalize()


os.register_at_fork(after_in_child=_close_at_the_end_of_a_child)
_close_at_the_end_of_a_child()
