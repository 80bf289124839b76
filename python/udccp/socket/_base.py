"""Sockets apart from their messages: options, addresses, connecting, accepting, closing."""

from __future__ import annotations

import contextlib
import errno
import os
import socket as std
import sys
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from udccp import _native
from udccp._arguments import number, settings
from udccp.options import Options
from udccp.socket import _constants as c
from udccp.socket._address import (
    Address,
    Parts,
    Service,
    check_port,
    from_parts,
    service_number,
    to_parts,
)
from udccp.socket._clients import any_address, client_endpoint
from udccp.socket._options import EndpointSettings, OptionContext, SocketOptions, fail, to_bytes
from udccp.socket._timeout import checked_timeout, getdefaulttimeout

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from typing_extensions import Self

__all__ = ["Base"]

#: Flags that may be added to the type of a socket.
_TYPE_FLAGS = getattr(std, "SOCK_NONBLOCK", 0) | getattr(std, "SOCK_CLOEXEC", 0)


class Base:
    """A socket apart from its messages; see :class:`udccp.socket.socket`."""

    __slots__ = (
        "__weakref__",
        "_connection",
        "_early",
        "_endpoint",
        "_fd",
        "_handshake",
        "_has_failed",
        "_is_closed",
        "_is_server",
        "_is_write_shut",
        "_listener",
        "_local",
        "_options",
        "_timeout",
        "_told_error",
        "_udp_port",
        "family",
        "proto",
        "type",
    )

    def __init__(
        self,
        family: int = -1,
        type: int = -1,
        proto: int = -1,
        fileno: int | None = None,
        *,
        service: Service = 0,
        options: Options | None = None,
        udp_port: int | None = None,
    ) -> None:
        self._is_closed = True
        if fileno is not None:
            raise fail(errno.EOPNOTSUPP, "a DCCP socket lives in its process, not in a descriptor")
        family, type = number(family, "the family"), number(type, "the type")
        proto = number(proto, "the protocol")
        family = std.AF_INET if family == -1 else family
        if family not in (std.AF_INET, std.AF_INET6):
            raise fail(errno.EAFNOSUPPORT)
        is_waiting = type == -1 or not type & getattr(std, "SOCK_NONBLOCK", 0)
        if type != -1 and type & ~_TYPE_FLAGS != c.SOCK_DCCP:
            raise fail(errno.ESOCKTNOSUPPORT)
        if proto not in (-1, 0, c.IPPROTO_DCCP):
            raise fail(errno.EPROTONOSUPPORT)
        if udp_port is not None:
            check_port(udp_port, "the UDP port")
        self.family = std.AddressFamily(family)
        self.type = c.SOCK_DCCP
        self.proto = c.IPPROTO_DCCP
        endpoint_settings = EndpointSettings(raw_ip=udp_port == 0)
        services = [service_number(service)]
        self._options = SocketOptions(family, services, settings(options), endpoint_settings)
        self._udp_port = udp_port
        self._timeout = getdefaulttimeout() if is_waiting else 0.0
        self._start()

    def _start(self) -> None:
        self._is_closed = False
        self._is_server = False
        self._is_write_shut = False
        self._has_failed = False
        self._told_error = False
        self._endpoint: _native.Endpoint | None = None
        self._local: Parts | None = None
        self._listener: _native.Listener | None = None
        self._handshake: _native.Handshake | None = None
        self._connection: _native.Connection | None = None
        # The descriptor that was returned before there was anything to wait on, and the native
        # object behind it until then.
        self._fd = -1
        self._early: _native.Early | None = None

    @classmethod
    def _accepted(cls, listening: Base, connection: _native.Connection) -> Self:
        child = cls.__new__(cls)
        child.family, child.type, child.proto = listening.family, listening.type, listening.proto
        child._options = listening._options.accepted()
        child._udp_port = listening._udp_port
        # As in the standard module: an accepted socket does not inherit the listener's timeout.
        child._timeout = getdefaulttimeout()
        child._start()
        child._is_server = True
        child._connection = connection
        return child

    # State.

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._is_closed:
            return "<udccp.socket.socket [closed]>"
        text = "<udccp.socket.socket "
        # As in the standard module: what cannot be read now, for example after a fork, is left out.
        with contextlib.suppress(OSError):
            text += f"fd={self.fileno()}, "
        text += f"family={int(self.family)}, type={self.type}, proto={self.proto}"
        with contextlib.suppress(OSError):
            text += f", laddr={self.getsockname()}"
        with contextlib.suppress(OSError):
            text += f", raddr={self.getpeername()}"
        return text + ">"

    def __getstate__(self) -> NoReturn:
        raise TypeError("cannot pickle a DCCP socket: it lives in the process that opened it")

    def __del__(self) -> None:
        if getattr(self, "_is_closed", True):
            return
        text = f"unclosed {self!r}"
        self.close()
        # Last, because it raises if warnings are errors.
        warnings.warn(text, ResourceWarning, source=self, stacklevel=2)

    def _option_context(self) -> OptionContext:
        is_closed = not (self._connection or self._handshake or self._listener)
        return OptionContext(
            is_closed=is_closed or self._has_failed,
            is_bound=self._endpoint is not None,
            is_server=self._is_server,
            is_listening=self._listener is not None,
            connection=self._connection,
        )

    def _check_open(self) -> None:
        if self._is_closed:
            raise fail(errno.EBADF)

    def _connected(self) -> _native.Connection:
        """Return the connection; ``ENOTCONN`` if there is none yet."""
        self._check_open()
        if not self._connection:
            raise fail(errno.ENOTCONN)
        return self._connection

    def fileno(self) -> int:
        """Return a descriptor to wait on, readable and writable when calls would not wait.

        -1 if the socket is closed. The descriptor stays the same; before ``connect`` or ``listen``
        it shows no event. Register it with ``select``, ``selectors`` or an event loop, and do
        nothing else with it. After a ``connect`` that failed, and before the next one, it must be
        registered again with ``epoll``, which ``selectors`` and event loops use.
        """
        if self._is_closed:
            return -1
        if self._fd == -1:
            native = self._listener or self._connection or self._handshake
            if native:
                return native.fileno()
            self._early = _native.Early()
            self._fd = os.dup(self._early.fileno())
        return self._fd

    def _early_descriptor(self) -> _native.Early | None:
        """Return the object of the descriptor that was returned; ``EBADF`` if it was closed."""
        if self._fd != -1:
            os.fstat(self._fd)
        return self._early

    def _show(self, native: _native.Listener | _native.Handshake) -> None:
        """Make the descriptor that was returned show the readiness of `native`."""
        if self._early:
            # `native` was created with it. After a failure, the next one has its own.
            self._early = None
        elif self._fd != -1:
            os.dup2(native.fileno(), self._fd, inheritable=False)

    # Timeouts.

    def settimeout(self, timeout: float | None) -> None:
        """Set how long calls wait, in s: None for ever, 0 not at all (``BlockingIOError``)."""
        self._timeout = checked_timeout(timeout)

    def gettimeout(self) -> float | None:
        """How long calls wait, in s; None for ever."""
        return self._timeout

    @property
    def timeout(self) -> float | None:
        """How long calls wait, in s; None for ever."""
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        """Make calls wait for ever (True), or not at all (False)."""
        self._timeout = None if number(flag, "the flag") else 0.0

    def getblocking(self) -> bool:
        """Whether calls wait."""
        return self._timeout != 0

    # Addresses.

    def getsockname(self) -> Address:
        """Our address and DCCP port."""
        self._check_open()
        if self._connection:
            return from_parts(self.family, self._connection.local_addr())
        if self._listener:
            return from_parts(self.family, self._listener.local_addr())
        local = self._handshake.local_addr() if self._handshake else None
        nothing = (any_address(self.family), 0, 0, 0)
        return from_parts(self.family, local or self._local or nothing)

    def getpeername(self) -> Address:
        """The peer's address and DCCP port.

        Raises
        ------
        OSError
            ``ENOTCONN``.
        """
        return from_parts(self.family, self._connected().peer_addr())

    # Options.

    def setsockopt(
        self,
        level: int,
        optname: int,
        value: int | ReadableBuffer | None,
        optlen: int | None = None,
    ) -> None:
        """Set an option of ``SOL_DCCP``, of the socket or of IP, with Linux's names and errors.

        Raises
        ------
        OSError
            As in Linux: ``ENOPROTOOPT`` for an unknown option, ``EINVAL``, ``EISCONN``, ...
        """
        self._check_open()
        level, optname = number(level, "the level"), number(optname, "the option")
        self._options.set(level, optname, to_bytes(value, optlen), self._option_context())
        if self._listener and (level, optname) == (c.SOL_DCCP, c.DCCP_SOCKOPT_SERVICE):
            self._listener.set_services(self._options.services)

    def getsockopt(self, level: int, optname: int, buflen: int = 0) -> Any:  # noqa: ANN401
        """Return an option as a number, or as bytes if `buflen` is not 0.

        Raises
        ------
        OSError
            As in Linux: ``ENOPROTOOPT`` for an unknown option, ``EINVAL`` for a short buffer.
        """
        self._check_open()
        level, optname = number(level, "the level"), number(optname, "the option")
        buflen = number(buflen, "buflen")
        if not 0 <= buflen <= 1024:
            raise fail(errno.EINVAL, "getsockopt buflen out of range")
        if (level, optname) == (std.SOL_SOCKET, std.SO_ERROR):
            raw = self._take_error().to_bytes(4, sys.byteorder)
        else:
            raw = self._options.get(level, optname, buflen or 4, self._option_context())
        return raw if buflen else int.from_bytes(raw[:4], sys.byteorder, signed=True)

    def _take_error(self) -> int:
        """Return and clear the pending error, as ``SO_ERROR`` does."""
        if self._handshake and not self._has_failed:
            try:
                self._finish(0)
            except BlockingIOError:
                return 0
            except OSError as e:
                return e.errno or errno.EPROTO
        if not self._connection or self._told_error:
            return 0
        number = self._connection.end_errno()
        self._told_error = number is not None
        return number or 0

    # Servers.

    def bind(self, address: Address) -> None:
        """Bind to an address; port 0 picks any free one.

        Raises
        ------
        OSError
            ``EADDRINUSE``, ``EADDRNOTAVAIL``, ``EACCES``; ``EINVAL`` if it is bound already.
        """
        self._check_open()
        ip, port, udp_port, scope = to_parts(self.family, address, self._udp_port, "bind")
        if self._endpoint:
            raise fail(errno.EINVAL)
        self._endpoint = _native.Endpoint(ip, udp_port, scope, self._options.endpoint_settings)
        bound = self._endpoint.local_addr()
        # Over raw IP the DCCP port is claimed by `listen` or `connect`.
        self._local = (bound[0], port or bound[2], bound[2], bound[3])

    def listen(self, backlog: int = 128) -> None:
        """Listen for connections to the service codes of ``DCCP_SOCKOPT_SERVICE``.

        `backlog` connections may be in the handshake or wait for :meth:`accept`.

        Raises
        ------
        OSError
            ``EINVAL`` if it is connected; ``EADDRINUSE`` if another socket serves this port with
            one of the service codes.
        """
        self._check_open()
        backlog = number(backlog, "the backlog")
        if not -(2**31) <= backlog < 2**31:
            raise OverflowError("Python int too large to convert to C int")
        if self._listener:
            return
        if self._connection or self._handshake:
            raise fail(errno.EINVAL)
        if not self._endpoint:
            self.bind((any_address(self.family), 0))
        assert self._endpoint
        assert self._local
        services, options = self._options.services, self._options.options
        room, early = min(max(backlog, 1), 4096), self._early_descriptor()
        listener = self._endpoint.listen(self._local[1], services, options, room, early)
        self._show(listener)
        self._listener = listener

    def accept(self) -> tuple[Self, Address]:
        """Accept a connection, and return its socket and the peer's address.

        Raises
        ------
        BlockingIOError, TimeoutError
            There was none in time.
        OSError
            ``EINVAL`` if the socket does not listen.
        """
        self._check_open()
        if not self._listener:
            raise fail(errno.EINVAL)
        child = self._accepted(self, self._listener.accept(self._timeout))
        return child, child.getpeername()

    # Clients.

    def connect(self, address: Address) -> None:
        """Connect to a server.

        Raises
        ------
        BlockingIOError
            ``EINPROGRESS`` if the socket is non-blocking: it becomes writable when the handshake
            has ended, and ``SO_ERROR`` has the result. ``EALREADY`` if the handshake is in
            progress.
        TimeoutError
            The timeout is over, and the handshake goes on; or the peer does not answer.
        OSError
            ``ECONNREFUSED``, ``EBADRQC`` (the port serves other service codes), ``EHOSTUNREACH``,
            ``EUSERS`` (too busy), ``EISCONN``, ...
        """
        self._check_open()
        if self._connection or self._listener:
            raise fail(errno.EISCONN)
        if self._handshake and not self._has_failed:
            self._connect_again()
            return
        peer = to_parts(self.family, address, self._udp_port, "connect")
        if peer[0] in ("0.0.0.0", "::"):
            # As in Linux, the wildcard address means this host.
            peer = ("127.0.0.1" if peer[0] == "0.0.0.0" else "::1", *peer[1:])
        if peer[1] == 0:
            raise fail(errno.ECONNREFUSED)
        if not self._endpoint:
            self._endpoint = client_endpoint(self.family, self._options.endpoint_settings)
        local_port = self._local[1] if self._local and self._local[1] else None
        services, options = self._options.services, self._options.options
        early = self._early_descriptor()
        handshake = self._endpoint.start_connect(peer, services[0], options, local_port, early)
        self._show(handshake)
        self._handshake, self._has_failed = handshake, False
        try:
            self._finish(self._timeout)
        except BlockingIOError:
            raise fail(errno.EINPROGRESS) from None

    def _connect_again(self) -> None:
        try:
            self._finish(0)
        except BlockingIOError:
            raise fail(errno.EALREADY) from None

    def _finish(self, timeout_s: float | None) -> _native.Connection:
        """Wait until the handshake has ended."""
        handshake = self._handshake
        if not handshake:
            raise fail(errno.ENOTCONN)
        try:
            connection = handshake.finish(timeout_s)
        except OSError as e:
            over = not isinstance(e, (BlockingIOError, TimeoutError)) or e.errno == errno.ETIMEDOUT
            self._has_failed = over
            raise
        self._connection, self._handshake = connection, None
        return connection

    def connect_ex(self, address: Address) -> int:
        """Connect, and return 0 or the error number."""
        try:
            self.connect(address)
        except std.gaierror:
            raise
        except OSError as e:
            return e.errno or errno.EAGAIN
        return 0

    # The end.

    def shutdown(self, how: int) -> None:
        """Stop reading, sending or both.

        DCCP has no half-closed connections. After ``SHUT_RD``, the peer learns that nobody reads
        when it sends more data. It is not told of ``SHUT_WR``.

        Raises
        ------
        OSError
            ``ENOTCONN``, ``EINVAL``.
        """
        self._check_open()
        how = number(how, "what to shut down")
        if how not in (std.SHUT_RD, std.SHUT_WR, std.SHUT_RDWR):
            raise fail(errno.EINVAL)
        if not self._connection:
            raise fail(errno.ENOTCONN)
        if how != std.SHUT_WR:
            self._connection.shutdown_read()
        if how != std.SHUT_RD:
            self._is_write_shut = True

    def abort(self) -> None:
        """End the connection at once with a Reset, and close. Queued messages are dropped."""
        if self._connection:
            self._connection.abort()
        self.close()

    def close(self) -> None:
        """Close. Queued messages are still sent in the background, within ``Options.linger_s``.

        With ``SO_LINGER`` on, waits until the connection has ended, for at most its time; a time of
        0 resets the connection. Calls of other threads on this socket end with ``EBADF``.
        """
        if self._is_closed:
            return
        self._is_closed = True
        connection, listener, handshake = self._connection, self._listener, self._handshake
        self._connection = self._listener = self._handshake = self._endpoint = None
        self._early = None
        if self._fd != -1:
            os.close(self._fd)
            self._fd = -1
        if listener:
            listener.close()
        if handshake:
            handshake.close()
        if connection:
            self._close_native(connection)

    def _close_native(self, connection: _native.Connection) -> None:
        linger = self._options.linger
        if linger is not None:
            connection.set_linger(linger)
        waits = connection.waiter("closed") if linger else None
        connection.close()
        if waits:
            # As the kernel does: no report of how the close went.
            with contextlib.suppress(OSError):
                waits.wait(linger)
