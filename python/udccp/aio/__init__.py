"""DCCP connections for asyncio.

Calls wait on descriptors in the running event loop, without Python threads or transports. They may
be cancelled at any time: a message was either sent or not, and no message that arrived is lost.
"""

from udccp.aio._connect import connect
from udccp.aio._connection import Connection
from udccp.aio._server import Server, start_server

__all__ = ["Connection", "Server", "connect", "start_server"]
