"""DCCP sockets that work like those of the standard module ``socket``, on any kernel.

Programs written for a kernel with DCCP run with ``import udccp.socket as socket``. DCCP runs in
this process, over UDP (RFC 6773), or over raw IP with ``udp_port=0``. Errors are ``OSError`` and
its subclasses, with Linux's ``errno``.

Examples
--------
>>> server = create_server(("127.0.0.1", 0), service="SC:echo")
>>> client = create_connection(server.getsockname(), service="SC:echo")
>>> peer, _ = server.accept()
>>> peer.send_many([b"one", b"two"])
2
>>> client.recv(100), client.recv(100)
(b'one', b'two')
>>> for one in client, peer, server:
...     one.close()
"""

from __future__ import annotations

import socket as _std
import sys
from socket import (
    AF_INET,
    AF_INET6,
    IP_TOS,
    IP_TTL,
    IPPROTO_IP,
    IPPROTO_IPV6,
    IPV6_TCLASS,
    IPV6_UNICAST_HOPS,
    MSG_DONTWAIT,
    MSG_EOR,
    MSG_NOSIGNAL,
    MSG_PEEK,
    MSG_TRUNC,
    SHUT_RD,
    SHUT_RDWR,
    SHUT_WR,
    SO_ERROR,
    SO_KEEPALIVE,
    SO_LINGER,
    SO_RCVBUF,
    SO_REUSEADDR,
    SO_REUSEPORT,
    SO_SNDBUF,
    SO_TYPE,
    SOL_SOCKET,
    gaierror,
    getaddrinfo,
)

from udccp.options import ConnectionStats, Options
from udccp.socket._address import Address, Service
from udccp.socket._constants import (
    DCCP_SCM_PRIORITY,
    DCCP_SOCKOPT_AVAILABLE_CCIDS,
    DCCP_SOCKOPT_CCID,
    DCCP_SOCKOPT_CCID_RX_INFO,
    DCCP_SOCKOPT_CCID_TX_INFO,
    DCCP_SOCKOPT_CHANGE_L,
    DCCP_SOCKOPT_CHANGE_R,
    DCCP_SOCKOPT_GET_CUR_MPS,
    DCCP_SOCKOPT_PACKET_SIZE,
    DCCP_SOCKOPT_QPOLICY_ID,
    DCCP_SOCKOPT_QPOLICY_TXQLEN,
    DCCP_SOCKOPT_RECV_CSCOV,
    DCCP_SOCKOPT_RX_CCID,
    DCCP_SOCKOPT_SEND_CSCOV,
    DCCP_SOCKOPT_SERVER_TIMEWAIT,
    DCCP_SOCKOPT_SERVICE,
    DCCP_SOCKOPT_TX_CCID,
    DCCPQ_POLICY_PRIO,
    DCCPQ_POLICY_SIMPLE,
    IPPROTO_DCCP,
    SOCK_DCCP,
    SOL_DCCP,
)
from udccp.socket._socket import socket
from udccp.socket._timeout import getdefaulttimeout, setdefaulttimeout

__all__ = [
    "AF_INET",
    "AF_INET6",
    "DCCPQ_POLICY_PRIO",
    "DCCPQ_POLICY_SIMPLE",
    "DCCP_SCM_PRIORITY",
    "DCCP_SOCKOPT_AVAILABLE_CCIDS",
    "DCCP_SOCKOPT_CCID",
    "DCCP_SOCKOPT_CCID_RX_INFO",
    "DCCP_SOCKOPT_CCID_TX_INFO",
    "DCCP_SOCKOPT_CHANGE_L",
    "DCCP_SOCKOPT_CHANGE_R",
    "DCCP_SOCKOPT_GET_CUR_MPS",
    "DCCP_SOCKOPT_PACKET_SIZE",
    "DCCP_SOCKOPT_QPOLICY_ID",
    "DCCP_SOCKOPT_QPOLICY_TXQLEN",
    "DCCP_SOCKOPT_RECV_CSCOV",
    "DCCP_SOCKOPT_RX_CCID",
    "DCCP_SOCKOPT_SEND_CSCOV",
    "DCCP_SOCKOPT_SERVER_TIMEWAIT",
    "DCCP_SOCKOPT_SERVICE",
    "DCCP_SOCKOPT_TX_CCID",
    "IPPROTO_DCCP",
    "IPPROTO_IP",
    "IPPROTO_IPV6",
    "IPV6_TCLASS",
    "IPV6_UNICAST_HOPS",
    "IP_TOS",
    "IP_TTL",
    "MSG_DONTWAIT",
    "MSG_EOR",
    "MSG_NOSIGNAL",
    "MSG_PEEK",
    "MSG_TRUNC",
    "SHUT_RD",
    "SHUT_RDWR",
    "SHUT_WR",
    "SOCK_DCCP",
    "SOL_DCCP",
    "SOL_SOCKET",
    "SO_ERROR",
    "SO_KEEPALIVE",
    "SO_LINGER",
    "SO_RCVBUF",
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_SNDBUF",
    "SO_TYPE",
    "Address",
    "ConnectionStats",
    "Options",
    "Service",
    "create_connection",
    "create_server",
    "error",
    "gaierror",
    "getaddrinfo",
    "getdefaulttimeout",
    "setdefaulttimeout",
    "socket",
    "timeout",
]

error = OSError
timeout = TimeoutError

#: Not a timeout: stands for the default one.
_DEFAULT_TIMEOUT = float("nan")


def create_connection(
    address: tuple[str, int],
    timeout: float | None = _DEFAULT_TIMEOUT,
    source_address: Address | None = None,
    *,
    all_errors: bool = False,
    service: Service = 0,
    options: Options | None = None,
    udp_port: int | None = None,
) -> socket:
    """Connect to a host by name, trying its addresses in turn.

    Parameters
    ----------
    address
        Host and DCCP port.
    timeout
        How long each address, and each later call of the socket, may take, in s; None waits for
        ever; the default is that of :func:`getdefaulttimeout`.
    source_address
        Where to connect from; None: any address and port.
    all_errors
        Raise all errors as an ``ExceptionGroup`` (Python 3.11).
    service, options, udp_port
        See :class:`socket`.

    Raises
    ------
    OSError
        The error for the last address.
    """
    host, port = address
    failures: list[OSError] = []
    for family, _, _, _, at in _std.getaddrinfo(host, port, 0, _std.SOCK_DGRAM):
        one = socket(family, service=service, options=options, udp_port=udp_port)
        try:
            if timeout is not _DEFAULT_TIMEOUT:
                one.settimeout(timeout)
            if source_address:
                one.bind(source_address)
            one.connect((str(at[0]), port) if len(at) == 2 else (str(at[0]), port, 0, int(at[3])))
        except OSError as e:
            one.close()
            failures.append(e)
        else:
            return one
    if not failures:
        raise OSError("getaddrinfo returns an empty list")
    if all_errors:
        if sys.version_info < (3, 11):
            raise TypeError("all_errors needs Python 3.11")
        raise ExceptionGroup("create_connection failed", failures)  # noqa: F821  # pyright: ignore
    raise failures[-1]


def create_server(
    address: Address,
    *,
    family: int = AF_INET,
    backlog: int | None = None,
    reuse_port: bool = False,
    service: Service = 0,
    options: Options | None = None,
    udp_port: int | None = None,
) -> socket:
    """Create a socket that listens.

    Parameters
    ----------
    address
        Host and DCCP port; ``""`` stands for every address, port 0 for any free one.
    family
        ``AF_INET``, or ``AF_INET6``, which also serves IPv4 if the host is ``""``.
    backlog
        Connections that may be in the handshake or wait for ``accept``; None: 128.
    reuse_port
        Share the UDP port with other sockets that set this too.
    service, options, udp_port
        See :class:`socket`.
    """
    server = socket(family, service=service, options=options, udp_port=udp_port)
    try:
        if reuse_port:
            server.setsockopt(SOL_SOCKET, SO_REUSEPORT, 1)
        server.bind(address)
        server.listen(128 if backlog is None else backlog)
    except BaseException:
        server.close()
        raise
    return server
