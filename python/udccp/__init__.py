"""DCCP sockets and congestion control from Python.

``udccp.socket`` works like the standard module ``socket``; :func:`connect` and
:func:`start_server` work like those of asyncio. ``udccp.lab`` runs scenarios and published studies
in this process, ``udccp.metrics`` computes the metrics of the reports from any measurements, and
``udccp.logs`` reads the logs of other tools.
"""

from udccp import errors, events, lab, logs, metrics, socket
from udccp._ending import close_all
from udccp._native import __version__
from udccp.aio import Connection, Server, connect, start_server
from udccp.errors import InternalError, UdccpError
from udccp.options import ConnectionStats, Options
from udccp.window import Ack, WindowAlgorithm

__all__ = [
    "Ack",
    "Connection",
    "ConnectionStats",
    "InternalError",
    "Options",
    "Server",
    "UdccpError",
    "WindowAlgorithm",
    "__version__",
    "close_all",
    "connect",
    "errors",
    "events",
    "lab",
    "logs",
    "metrics",
    "socket",
    "start_server",
]
