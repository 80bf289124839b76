"""Opens a TCP, UDP or DCCP socket. What follows is the same for all three."""

import socket as kernel

from udccp import socket as dccp

#: In the order of their ports.
PROTOCOLS = ("tcp", "udp", "dccp")

#: The port of the first protocol, unless ``--port`` says otherwise. The others have the next two.
FIRST_PORT = 5001

#: The service code that a DCCP client asks for, so that it does not reach the wrong program.
SERVICE = "SC:rate"

#: A socket of the kernel or one of ours: they are used alike.
Socket = kernel.socket | dccp.socket


def port_of(protocol: str, first: int) -> int:
    """The port of a protocol, if the first protocol has port `first`."""
    return first + PROTOCOLS.index(protocol)


def family_of(host: str) -> kernel.AddressFamily:
    """IPv4 or IPv6, as the first address of a host."""
    return kernel.getaddrinfo(host, None, type=kernel.SOCK_DGRAM)[0][0]


def listen(protocol: str, host: str, port: int) -> Socket:
    """Open the socket of a server."""
    family = family_of(host)
    if protocol == "dccp":
        return dccp.create_server((host, port), family=family, service=SERVICE)
    if protocol == "tcp":
        return kernel.create_server((host, port), family=family)
    server = kernel.socket(family, kernel.SOCK_DGRAM)
    server.bind((host, port))
    return server


def connect(protocol: str, host: str, port: int) -> Socket:
    """Open the socket of a client."""
    if protocol == "dccp":
        return dccp.create_connection((host, port), 30, service=SERVICE)
    if protocol == "tcp":
        return kernel.create_connection((host, port), 30)
    client = kernel.socket(family_of(host), kernel.SOCK_DGRAM)
    client.connect((host, port))
    return client
