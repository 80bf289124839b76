"""The end of a process that runs Python."""

from __future__ import annotations

import os
import sys

from udccp import _native

__all__ = ["close_all"]


def close_all() -> None:
    """Close every open connection of this process in order, and wait for that.

    Waits for the longest ``Options.linger_s`` of them at most; what is open then is reset. The end
    of the program does this by itself, and so does that of a process of ``multiprocessing``. Call
    it before ``os._exit`` and ``os.exec``.
    """
    _native.close_all()


def _close_at_the_end_of_a_child() -> None:
    """Have a process of multiprocessing close: one that was forked ends by ``os._exit``."""
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is None or process is None:
        return

    def finalize(_: object = None) -> None:
        # After everything else that the process does at its end.
        util.Finalize(None, close_all, exitpriority=-1000)

    # Before it begins, it forgets what was to be done at the end of its parent.
    util.register_after_fork(_native, finalize)
    if process.parent_process() is not None:
        finalize()


os.register_at_fork(after_in_child=_close_at_the_end_of_a_child)
_close_at_the_end_of_a_child()
