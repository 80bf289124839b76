"""The UDP ports of clients that bind none: one for each address family in a process.

A separate UDP port for each connection would cost a thread and five descriptors. Connections that
share a UDP port are distinguished by their DCCP ports (RFC 6773). A forked child opens its own.
"""

from __future__ import annotations

import os
import socket as std
import threading

from udccp import _native
from udccp.socket._options import EndpointSettings

__all__ = ["any_address", "client_endpoint"]

_lock = threading.Lock()
_endpoints: dict[int, _native.Endpoint] = {}


def _in_child() -> None:
    # Another thread of the parent may have held the lock during the fork.
    global _lock
    _lock = threading.Lock()
    _endpoints.clear()


os.register_at_fork(after_in_child=_in_child)


def any_address(family: int) -> str:
    """The wildcard address of a family."""
    return "0.0.0.0" if family == std.AF_INET else "::"


def client_endpoint(family: int, endpoint_settings: EndpointSettings) -> _native.Endpoint:
    """Return an endpoint to connect from: the shared one, or a new one for other settings."""
    if endpoint_settings != EndpointSettings():
        return _native.Endpoint(any_address(family), 0, 0, endpoint_settings)
    with _lock:
        endpoint = _endpoints.get(family)
        if endpoint is None:
            endpoint = _native.Endpoint(any_address(family), 0, 0, endpoint_settings)
            _endpoints[family] = endpoint
        return endpoint
