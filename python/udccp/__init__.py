"""Congestion control from Python.

``udccp.lab`` runs scenarios and published studies in this process, ``udccp.metrics`` computes the
numbers of reports from any measurements, ``udccp.logs`` reads those of other tools.
"""

from udccp import errors, lab, logs, metrics
from udccp._native import __version__
from udccp.errors import InternalError, UdccpError
from udccp.window import Ack, WindowAlgorithm

__all__ = [
    "Ack",
    "InternalError",
    "UdccpError",
    "WindowAlgorithm",
    "__version__",
    "errors",
    "lab",
    "logs",
    "metrics",
]
