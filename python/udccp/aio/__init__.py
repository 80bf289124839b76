"""DCCP connections for asyncio.

Everything waits on descriptors in the loop that runs: no threads of Python, no transports. Calls
may be cancelled at any time: a message is sent or it is not, and none that arrived is lost.
"""

from udccp.aio._connect import connect
from udccp.aio._connection import Connection
from udccp.aio._server import Server, start_server

__all__ = ["Connection", "Server", "connect", "start_server"]
