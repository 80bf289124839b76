"""Converts addresses between the standard module's form and that of the native module."""

from __future__ import annotations

import socket as std
from typing import TypeAlias, cast

from udccp import _native
from udccp._arguments import number

__all__ = ["Address", "Parts", "Service", "check_port", "from_parts", "service_number", "to_parts"]

#: ``(host, port)`` for IPv4; ``(host, port, flow, scope)`` for IPv6, without the last two if 0.
Address: TypeAlias = tuple[str, int] | tuple[str, int, int, int] | tuple[str, int, int]

#: IP address, DCCP port, UDP port (0 over raw IP), IPv6 scope.
Parts: TypeAlias = tuple[str, int, int, int]

#: A service code as RFC 4340 section 8.1.2 writes it (``"SC:echo"``), or its number.
Service: TypeAlias = str | int

_NAMES = {std.AF_INET: "AF_INET", std.AF_INET6: "AF_INET6"}


def service_number(service: Service) -> int:
    """Return the number of a service code.

    Raises
    ------
    ValueError
        `service` is not a service code.

    Examples
    --------
    >>> service_number("SC:echo") == int.from_bytes(b"echo", "big")
    True
    """
    if isinstance(service, str):
        return _native.service_number(service)
    if not isinstance(service, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a service code is str or int, not {type(service).__name__}")
    if not 0 <= service < 2**32 - 1:
        raise ValueError(f"{service} is not a service code: 0 to 4294967294")
    return service


def check_port(port: object, name: str) -> int:
    """Check a port number; the error names the argument.

    Raises
    ------
    TypeError, OverflowError
        `port` is not a port number.
    """
    checked = number(port, name)
    if not 0 <= checked <= 0xFFFF:
        raise OverflowError(f"{name} must be 0-65535.")
    return checked


def _checked(family: int, address: object, call: str) -> tuple[str, int, int]:
    """Return host, port and scope, with the errors of the standard module."""
    name = _NAMES[std.AddressFamily(family)]
    if not isinstance(address, tuple):
        raise TypeError(f"{call}(): {name} address must be tuple, not {type(address).__name__}")
    given = cast(tuple[object, ...], address)
    most = 2 if family == std.AF_INET else 4
    if not 2 <= len(given) <= most:
        what = "a pair (host, port)" if most == 2 else "a tuple (host, port[, flowinfo[, scopeid]])"
        raise TypeError(f"{call}(): {name} address must be {what}")
    host, port = given[0], number(given[1], f"{call}(): the port")
    if isinstance(host, (bytes, bytearray)):
        host = host.decode("ascii")
    if not isinstance(host, str):
        raise TypeError(f"{call}(): the host must be str, not {type(host).__name__}")
    if not 0 <= port <= 0xFFFF:
        raise OverflowError(f"{call}(): port must be 0-65535.")
    flow = number(given[2], f"{call}(): the flowinfo") if len(given) > 2 else 0
    if not 0 <= flow <= 0xFFFFF:
        raise OverflowError(f"{call}(): flowinfo must be 0-1048575.")
    scope = number(given[3], f"{call}(): the scope") if len(given) == 4 else 0
    return host, port, scope


def to_parts(family: int, address: object, udp_port: int | None, call: str) -> Parts:
    """Convert an address of the standard module, whose host may be a name.

    Raises
    ------
    TypeError, OverflowError
        `address` is not an address of this family.
    socket.gaierror
        The name has no address of this family.
    """
    host, port, scope = _checked(family, address, call)
    if not host:
        host = "0.0.0.0" if family == std.AF_INET else "::"
    else:
        found = std.getaddrinfo(host, None, family, std.SOCK_DGRAM)
        at = found[0][4]
        host = str(at[0]).partition("%")[0]
        if len(at) == 4 and not scope:
            scope = at[3]
    return host, port, port if udp_port is None else udp_port, scope


def from_parts(family: int, parts: Parts) -> Address:
    """Convert to the form of the standard module."""
    host, port, _, scope = parts
    if family == std.AF_INET:
        return host, port
    if ":" not in host:
        host = f"::ffff:{host}"
    return host, port, 0, scope
