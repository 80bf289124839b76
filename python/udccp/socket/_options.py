"""Socket options: those of Linux's DCCP, of the socket and of IP."""

from __future__ import annotations

import errno
import os
import socket as std
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from udccp.options import Options
from udccp.socket import _constants as c

if TYPE_CHECKING:
    from udccp._native import Connection

_INT: Final = struct.Struct("i")
_LINGER: Final = struct.Struct("ii")

_SO_MARK: Final = 36
_SO_PROTOCOL: Final = 38
_SO_DOMAIN: Final = 39

#: Options whose value is stored and returned but has no effect.
_KEPT: Final = {
    (std.SOL_SOCKET, std.SO_DEBUG),
    (std.SOL_SOCKET, std.SO_REUSEADDR),
    (std.SOL_SOCKET, std.SO_DONTROUTE),
    (std.SOL_SOCKET, std.SO_BROADCAST),
    (std.SOL_SOCKET, std.SO_KEEPALIVE),
    (std.SOL_SOCKET, std.SO_OOBINLINE),
}

#: Most service codes of a socket.
_MOST_SERVICES: Final = 32
_NO_SERVICE: Final = 2**32 - 1


def fail(number: int, why: str | None = None) -> OSError:
    """Return the error of this number, with the system's text or another one."""
    return OSError(number, why or os.strerror(number))


@dataclass(frozen=True)
class EndpointSettings:
    """Settings of the UDP or raw socket; None is the system's default.

    Parameters
    ----------
    raw_ip
        Use raw IP, without UDP.
    reuse_port
        ``SO_REUSEPORT``.
    recv_buffer, send_buffer
        Kernel buffers in bytes.
    ttl, dscp
        Time to live or hop limit, and differentiated services code point.
    device, mark
        ``SO_BINDTODEVICE`` and ``SO_MARK``.
    """

    raw_ip: bool = False
    reuse_port: bool = False
    recv_buffer: int | None = None
    send_buffer: int | None = None
    ttl: int | None = None
    dscp: int = 0
    device: str | None = None
    mark: int | None = None


@dataclass(frozen=True)
class OptionContext:
    """The state of the socket that an option may depend on.

    Parameters
    ----------
    is_closed
        Neither connected nor connecting nor listening.
    is_bound
        It has a UDP port.
    is_server
        It was accepted.
    is_listening
        It listens.
    connection
        Its connection, if there is one.
    """

    is_closed: bool
    is_bound: bool
    is_server: bool
    is_listening: bool
    connection: Connection | None


def to_bytes(value: object, length: int | None) -> bytes:
    """Convert the value of an option to its bytes in C.

    Raises
    ------
    TypeError
        `value` is neither a number nor bytes-like.
    OverflowError
        The number does not fit in a C int.
    """
    if value is None:
        if length is None:
            raise TypeError("a length is required in place of a value of None")
        return bytes(length)
    if isinstance(value, int):
        try:
            return _INT.pack(value)
        except struct.error as e:
            raise OverflowError("Python int too large to convert to C int") from e
    return bytes(memoryview(value))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def _int(raw: bytes) -> int:
    if len(raw) < _INT.size:
        raise fail(errno.EINVAL)
    value: int = _INT.unpack_from(raw)[0]
    return value


class SocketOptions:
    """The options of one socket."""

    def __init__(
        self,
        family: int,
        services: list[int],
        options: Options,
        endpoint_settings: EndpointSettings,
    ) -> None:
        self.services = services
        self.options = options
        self.endpoint_settings = endpoint_settings
        #: SO_LINGER: None if it is off, otherwise the time in s.
        self.linger: int | None = None
        self._kept: dict[tuple[int, int], int] = {}
        self._family = family

    def accepted(self) -> SocketOptions:
        """Return the options of an accepted connection."""
        child = SocketOptions(self._family, [], self.options, self.endpoint_settings)
        child.linger = self.linger
        child._kept = dict(self._kept)
        return child

    def set(self, level: int, name: int, raw: bytes, around: OptionContext) -> None:
        """Set an option.

        Raises
        ------
        OSError
            As in Linux: ``ENOPROTOOPT``, ``EINVAL``, ``EISCONN``, ...
        """
        if level == c.SOL_DCCP:
            self._set_dccp(name, raw, around)
        elif (level, name) == (std.SOL_SOCKET, std.SO_LINGER):
            if len(raw) < _LINGER.size:
                raise fail(errno.EINVAL)
            is_on, seconds = _LINGER.unpack_from(raw)
            self.linger = max(seconds, 0) if is_on else None
        elif (level, name) in _KEPT:
            self._kept[level, name] = _int(raw)
        else:
            self._set_below(level, name, raw, around)

    def _set_below(self, level: int, name: int, raw: bytes, around: OptionContext) -> None:
        fields = self._of_below(level, name, raw)
        if fields is None:
            raise fail(errno.ENOPROTOOPT)
        if around.is_bound:
            raise fail(errno.EINVAL, "set it before bind, listen and connect")
        self.endpoint_settings = replace(self.endpoint_settings, **fields)  # type: ignore[arg-type]

    def _of_below(self, level: int, name: int, raw: bytes) -> dict[str, object] | None:
        """Return the fields of `EndpointSettings` that an option sets; None if it is unknown."""
        if (level, name) == (std.SOL_SOCKET, std.SO_BINDTODEVICE):
            return {"device": raw.rstrip(b"\0").decode() or None}
        hops = level == std.IPPROTO_IP and name == std.IP_TTL
        hops |= level == std.IPPROTO_IPV6 and name == std.IPV6_UNICAST_HOPS
        tos = level == std.IPPROTO_IP and name == std.IP_TOS
        tos |= level == std.IPPROTO_IPV6 and name == std.IPV6_TCLASS
        known = level == std.SOL_SOCKET and name in (
            std.SO_REUSEPORT,
            std.SO_RCVBUF,
            std.SO_SNDBUF,
            _SO_MARK,
        )
        if not (hops or tos or known):
            return None
        value = _int(raw)
        if hops:
            if value != -1 and not 1 <= value <= 255:
                raise fail(errno.EINVAL)
            return {"ttl": None if value == -1 else value}
        if tos:
            return {"dscp": (value & 0xFF) >> 2}
        if name == std.SO_REUSEPORT:
            return {"reuse_port": value != 0}
        if value < 0:
            raise fail(errno.EINVAL)
        field = {std.SO_RCVBUF: "recv_buffer", std.SO_SNDBUF: "send_buffer", _SO_MARK: "mark"}
        return {field[name]: value}

    def _set_dccp(self, name: int, raw: bytes, around: OptionContext) -> None:
        if name in (c.DCCP_SOCKOPT_PACKET_SIZE, c.DCCP_SOCKOPT_CHANGE_L, c.DCCP_SOCKOPT_CHANGE_R):
            return  # As Linux: accepted, no effect.
        if name in (c.DCCP_SOCKOPT_CCID, c.DCCP_SOCKOPT_TX_CCID, c.DCCP_SOCKOPT_RX_CCID):
            self._set_ccids(name, raw, around)
            return
        value = _int(raw)
        if name == c.DCCP_SOCKOPT_SERVICE:
            self._set_services(raw)
        elif name == c.DCCP_SOCKOPT_SERVER_TIMEWAIT:
            if not around.is_server:
                raise fail(errno.EOPNOTSUPP)
            self.options = replace(self.options, server_timewait=value != 0)
            if around.connection:
                around.connection.set_server_timewait(value != 0)
        elif name in (c.DCCP_SOCKOPT_SEND_CSCOV, c.DCCP_SOCKOPT_RECV_CSCOV):
            self._set_coverage(name, value, around)
        elif name == c.DCCP_SOCKOPT_QPOLICY_ID:
            if not around.is_closed:
                raise fail(errno.EISCONN)
            if value not in (c.DCCPQ_POLICY_SIMPLE, c.DCCPQ_POLICY_PRIO):
                raise fail(errno.EINVAL)
            self.options = replace(self.options, drop_lowest=value == c.DCCPQ_POLICY_PRIO)
        elif name == c.DCCP_SOCKOPT_QPOLICY_TXQLEN:
            if value < 0:
                raise fail(errno.EINVAL)
            # 0 means no limit in Linux; here the limit in bytes remains.
            messages = value or 1 << 20
            self.options = replace(self.options, send_queue_messages=messages)
            if around.connection:
                around.connection.set_send_queue(self.options.send_queue_bytes, messages)
        else:
            raise fail(errno.ENOPROTOOPT)

    def _set_coverage(self, name: int, value: int, around: OptionContext) -> None:
        if not 0 <= value <= 15:
            raise fail(errno.EINVAL)
        if not around.is_closed:
            raise fail(errno.EISCONN)
        if name == c.DCCP_SOCKOPT_SEND_CSCOV:
            self.options = replace(self.options, send_coverage=value)
        else:
            self.options = replace(self.options, least_coverage=value)

    def _set_ccids(self, name: int, raw: bytes, around: OptionContext) -> None:
        if not 0 < len(raw) <= 251:
            raise fail(errno.EINVAL)
        # An int is four bytes; the kernel takes each byte it is given for a CCID.
        number = int.from_bytes(raw, sys.byteorder) if len(raw) == _INT.size else -1
        ccids = (number,) if 2 <= number <= 255 else tuple(dict.fromkeys(raw))
        if any(ccid not in (2, 3, 4) for ccid in ccids):
            raise fail(errno.EINVAL)
        if not around.is_closed:
            raise fail(errno.EISCONN)
        if name != c.DCCP_SOCKOPT_RX_CCID:
            self.options = replace(self.options, tx_ccids=ccids)
        if name != c.DCCP_SOCKOPT_TX_CCID:
            self.options = replace(self.options, rx_ccids=ccids)

    def _set_services(self, raw: bytes) -> None:
        codes = [int.from_bytes(raw[at : at + 4], "big") for at in range(0, len(raw) - 3, 4)]
        if codes[0] == _NO_SERVICE or len(raw) > 4 * _MOST_SERVICES:
            raise fail(errno.EINVAL)
        if _NO_SERVICE in codes:
            raise fail(errno.EFAULT)
        self.services[:] = codes

    def get(self, level: int, name: int, room: int, around: OptionContext) -> bytes:
        """Return an option as its bytes in C.

        Raises
        ------
        OSError
            As in Linux.
        """
        if level == c.SOL_DCCP:
            return self._get_dccp(name, room, around)
        if (level, name) == (std.SOL_SOCKET, std.SO_LINGER):
            return _LINGER.pack(self.linger is not None, self.linger or 0)[:room]
        if (level, name) == (std.SOL_SOCKET, std.SO_BINDTODEVICE):
            return (self.endpoint_settings.device or "").encode()[:room]
        return _INT.pack(self._number(level, name, around))[:room]

    def _number(self, level: int, name: int, around: OptionContext) -> int:
        endpoint_settings = self.endpoint_settings
        numbers: dict[tuple[int, int], Callable[[], int]] = {
            (std.SOL_SOCKET, std.SO_TYPE): lambda: c.SOCK_DCCP,
            (std.SOL_SOCKET, _SO_PROTOCOL): lambda: c.IPPROTO_DCCP,
            (std.SOL_SOCKET, _SO_DOMAIN): lambda: self._family,
            (std.SOL_SOCKET, std.SO_ACCEPTCONN): lambda: around.is_listening,
            (std.SOL_SOCKET, std.SO_REUSEPORT): lambda: endpoint_settings.reuse_port,
            (std.SOL_SOCKET, std.SO_RCVBUF): lambda: endpoint_settings.recv_buffer or 4 << 20,
            (std.SOL_SOCKET, std.SO_SNDBUF): lambda: endpoint_settings.send_buffer or 212_992,
            (std.SOL_SOCKET, _SO_MARK): lambda: endpoint_settings.mark or 0,
            (std.IPPROTO_IP, std.IP_TTL): lambda: endpoint_settings.ttl or 64,
            (std.IPPROTO_IPV6, std.IPV6_UNICAST_HOPS): lambda: endpoint_settings.ttl or 64,
            (std.IPPROTO_IP, std.IP_TOS): lambda: endpoint_settings.dscp << 2,
            (std.IPPROTO_IPV6, std.IPV6_TCLASS): lambda: endpoint_settings.dscp << 2,
        }
        if (level, name) in _KEPT:
            return self._kept.get((level, name), 0)
        if (level, name) not in numbers:
            raise fail(errno.ENOPROTOOPT)
        return int(numbers[level, name]())

    def _get_dccp(self, name: int, room: int, around: OptionContext) -> bytes:
        if room < _INT.size:
            raise fail(errno.EINVAL)
        if name == c.DCCP_SOCKOPT_PACKET_SIZE:
            return _INT.pack(0)
        if name == c.DCCP_SOCKOPT_SERVICE:
            return self._services(room, around)
        if name == c.DCCP_SOCKOPT_AVAILABLE_CCIDS:
            return bytes((2, 3, 4))
        if name in (c.DCCP_SOCKOPT_CCID_TX_INFO, c.DCCP_SOCKOPT_CCID_RX_INFO):
            return _info(name, room, around.connection)
        return _INT.pack(self._dccp_number(name, around.connection))

    def _services(self, room: int, around: OptionContext) -> bytes:
        services = self.services
        if around.connection:
            services = [around.connection.service()]
        raw = b"".join(code.to_bytes(4, "big") for code in services or [0])
        if len(raw) > room:
            raise fail(errno.EINVAL)
        return raw

    def _dccp_number(self, name: int, connection: Connection | None) -> int:
        options = self.options
        if name == c.DCCP_SOCKOPT_GET_CUR_MPS:
            return connection.max_message_size() if connection else 536
        if name == c.DCCP_SOCKOPT_SERVER_TIMEWAIT:
            return options.server_timewait
        if name == c.DCCP_SOCKOPT_QPOLICY_ID:
            return options.drop_lowest
        if name == c.DCCP_SOCKOPT_QPOLICY_TXQLEN:
            return options.send_queue_messages
        if name in (c.DCCP_SOCKOPT_SEND_CSCOV, c.DCCP_SOCKOPT_RECV_CSCOV):
            agreed = connection.coverage() if connection else None
            send, receive = agreed or (options.send_coverage, options.least_coverage)
            return send if name == c.DCCP_SOCKOPT_SEND_CSCOV else receive
        if name in (c.DCCP_SOCKOPT_TX_CCID, c.DCCP_SOCKOPT_RX_CCID) and connection:
            stats = connection.stats()
            ccid = stats["tx_ccid" if name == c.DCCP_SOCKOPT_TX_CCID else "rx_ccid"]
            if isinstance(ccid, int):
                return ccid
        raise fail(errno.ENOPROTOOPT)


def _info(name: int, room: int, connection: Connection | None) -> bytes:
    """``struct tfrc_tx_info`` or ``struct tfrc_rx_info``."""
    info = None
    if connection:
        sends = name == c.DCCP_SOCKOPT_CCID_TX_INFO
        info = connection.tx_info() if sends else connection.rx_info()
    if info is None:
        raise fail(errno.ENOPROTOOPT)
    if room < len(info):
        raise fail(errno.EINVAL)
    return info
