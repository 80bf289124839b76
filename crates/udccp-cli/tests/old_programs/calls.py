"""Every socket call on a SOCK_DCCP socket, as old programs make them. Run by udccp run.

Each function whose name begins with `test` is a test. The first argument selects one; without an
argument, all run. Numbers are Linux's: see docs/guides/old-programs.md.
"""

import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import messages
from sockets import LOCAL, SOL_DCCP, fails, listening, new, pair, polled


def test_what_a_socket_is():
    s = new()
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == 6
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == 33
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET
    assert new(socket.AF_INET6).family == socket.AF_INET6
    assert socket.socket(socket.AF_INET, 6, 0).getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == 6
    assert listening().getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    # Other sockets are handled by the kernel.
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    assert u.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == 2
    x, y = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    x.send(b"plain")
    assert y.recv(10) == b"plain"


def test_a_refused_connect():
    port = listening().getsockname()[1]
    keep = listening()
    fails("ECONNREFUSED", new().connect, (LOCAL, port))
    client = new()
    client.setblocking(False)
    assert client.connect_ex((LOCAL, port)) == errno.EINPROGRESS
    assert polled(client, select.POLLOUT, 10_000) & select.POLLOUT
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    # The socket can connect again, to another address.
    client.setblocking(True)
    client.connect(keep.getsockname())
    client.send(b"x")


def test_stopped_reader_does_not_block_the_sender():
    for reads_first in (False, True):
        client, server = pair()
        if reads_first:
            client.send(b"before")
            assert server.recv(10) == b"before"
        server.shutdown(socket.SHUT_RD)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 20, 0))
        for i in range(3_000):
            assert client.send(b"%04d" % i) == 4
        assert polled(client, select.POLLOUT, 20_000) == select.POLLOUT
        # The other direction is not affected.
        server.send(b"back")
        assert client.recv(10) == b"back"
        server.close()
        assert client.recv(10) == b""
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        client.close()


def test_service_codes():
    code = struct.pack("!I", 7)
    other = struct.pack("!I", 8)
    server = listening(options=[(SOL_DCCP, 2, code + other)])
    assert server.getsockopt(SOL_DCCP, 2, 8) == code + other
    fails("EBADRQC", new().connect, server.getsockname())
    client = new()
    client.setsockopt(SOL_DCCP, 2, other)
    client.connect(server.getsockname())
    accepted, _ = server.accept()
    assert accepted.getsockopt(SOL_DCCP, 2, 4) == other
    # A server can change its services while it listens.
    server.setsockopt(SOL_DCCP, 2, struct.pack("!I", 9))
    client = new()
    client.setsockopt(SOL_DCCP, 2, other)
    fails("EBADRQC", client.connect, server.getsockname())
    client = new()
    client.setsockopt(SOL_DCCP, 2, struct.pack("!I", 9))
    client.connect(server.getsockname())


def test_the_end_of_a_connection():
    a, b = pair()
    a.send(b"last")
    a.close()
    assert b.recv(10) == b"last"
    assert b.recv(10) == b"" and b.recv(10) == b""
    fails("EPIPE", b.send, b"x")
    assert polled(b) & (select.POLLIN | select.POLLHUP) == select.POLLIN | select.POLLHUP


def test_unread_messages_or_linger_zero_reset():
    a, b = pair()
    b.send(b"never read")
    polled(a, select.POLLIN, 5000)
    a.close()
    fails("ECONNRESET", b.recv, 10)
    assert b.recv(10) == b""
    abort = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for is_live in (False, True):
        a, b = pair(client_options=[] if is_live else [abort])
        if is_live:
            a.setsockopt(*abort)
        a.close()
        assert polled(b, select.POLLIN, 5000) & select.POLLHUP
        assert b.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET


def test_shutdown():
    a, b = pair()
    a.shutdown(socket.SHUT_WR)
    fails("EPIPE", a.send, b"x")
    b.send(b"still")
    assert a.recv(10) == b"still"
    a, b = pair()
    a.shutdown(socket.SHUT_RD)
    assert a.recv(10) == b""
    a.send(b"on")
    assert b.recv(10) == b"on"
    a, b = pair()
    a.shutdown(socket.SHUT_RDWR)
    assert b.recv(10) == b""
    fails("EPIPE", a.send, b"x")
    fails("ENOTCONN", new().shutdown, socket.SHUT_WR)


def test_fork_dup_and_exec():
    a, b = pair()
    copy = a.dup()
    a.close()
    child = os.fork()
    if child == 0:
        copy.send(b"child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert b.recv(10) == b"child"
    copy.send(b"parent")
    assert b.recv(10) == b"parent"
    program = (
        "import socket,sys; s = socket.socket(fileno=int(sys.argv[1]));"
        "assert s.type == 6 and s.getpeername()[1] == int(sys.argv[2]); s.send(b'executed');"
        "assert s.getsockopt(269, 14) == 2"
    )
    port = copy.getpeername()[1]
    arguments = [sys.executable, "-c", program, str(copy.fileno()), str(port)]
    subprocess.run(arguments, pass_fds=[copy.fileno()], check=True)
    assert b.recv(10) == b"executed"
    # Passed over a Unix socket, with all other descriptors closed.
    x, y = socket.socketpair()
    socket.send_fds(x, [b"!"], [copy.fileno()])
    copy.close()
    _, fds, _, _ = socket.recv_fds(y, 1, 1)
    passed = socket.socket(fileno=fds[0])
    passed.send(b"passed")
    assert b.recv(10) == b"passed"
    passed.close()
    assert b.recv(10) == b""


def test_a_server_that_forks():
    server = listening()
    for _ in range(3):
        client = new()
        client.connect(server.getsockname())
        accepted, _ = server.accept()
        child = os.fork()
        if child == 0:
            server.close()
            client.close()
            accepted.send(accepted.recv(100).upper())
            os._exit(0)
        accepted.close()
        client.send(b"served")
        assert client.recv(100) == b"SERVED"
        client.close()
        assert os.waitpid(child, 0)[1] == 0


def test_ipv6():
    server = listening(socket.AF_INET6, "::1")
    client = new(socket.AF_INET6)
    client.connect(server.getsockname())
    accepted, peer = server.accept()
    assert peer[0] == "::1"
    client.send(b"six")
    assert accepted.recvfrom(10) == (b"six", client.getsockname())


def test_options_of_the_system():
    server = listening(options=[(socket.SOL_IP, socket.IP_TOS, 0xB8)])
    # Accepted connections inherit the listener's options.
    client = new()
    client.setsockopt(socket.SOL_IP, socket.IP_TOS, 0x2B)
    client.setsockopt(socket.SOL_IP, socket.IP_TTL, 7)
    client.connect(server.getsockname())
    accepted, _ = server.accept()
    assert accepted.getsockopt(socket.SOL_IP, socket.IP_TOS) == 0xB8
    assert client.getsockopt(socket.SOL_IP, socket.IP_TOS) == 0x2B
    assert client.getsockopt(socket.SOL_IP, socket.IP_TTL) == 7
    assert client.getsockopt(socket.SOL_IP, 14) > 1400, "IP_MTU"
    fails("ENOTCONN", new().getsockopt, socket.SOL_IP, 14)
    fails("EINVAL", client.setsockopt, socket.SOL_IP, socket.IP_TTL, 256)
    fails("ENOPROTOOPT", client.setsockopt, socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 1)
    # A filter would have no effect, so it is refused; SO_TYPE cannot be set.
    fails("ENOPROTOOPT", client.setsockopt, socket.SOL_SOCKET, 26, bytes(16))
    fails("ENOPROTOOPT", client.setsockopt, socket.SOL_SOCKET, socket.SO_TYPE, 6)
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == 6
    fails("ENODEV", client.setsockopt, socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"none-such")
    bound = new()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    assert bound.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16) == b"lo\0"
    bound.connect(server.getsockname())
    bound.send(b"by this device")
    assert server.accept()[0].recv(20) == b"by this device"
    v6 = new(socket.AF_INET6)
    v6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 0x2B)
    assert v6.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 0x2B


def test_connecting_to_nobody_ends_a_connection():
    def disconnect(sock):
        nobody = struct.pack("=H", 0) + bytes(14)
        return ctypes.CDLL(None).connect(sock.fileno(), nobody, 16)

    server = listening()
    client = new()
    assert disconnect(client) == 0
    client.connect(server.getsockname())
    accepted, _ = server.accept()
    assert disconnect(client) == 0
    assert accepted.recv(10) == b""
    fails("ENOTCONN", client.getpeername)
    # Only then can it connect again.
    client.connect(server.getsockname())
    accepted, _ = server.accept()
    accepted.close()
    assert client.recv(10) == b""
    fails("EISCONN", client.connect, server.getsockname())
    assert disconnect(client) == 0
    client.connect(server.getsockname())
    client.send(b"again")
    assert server.accept()[0].recv(10) == b"again"


def test_ccids():
    for ccid in (2, 3):
        a, b = pair([(SOL_DCCP, 13, bytes([ccid]))], [(SOL_DCCP, 13, bytes([ccid]))])
        assert a.getsockopt(SOL_DCCP, 14) == a.getsockopt(SOL_DCCP, 15) == ccid
        for i in range(20):
            a.send(bytes([i]))
            assert b.recv(10) == bytes([i])
        if ccid == 3:
            # x, x_recv, x_calc, rtt, p, rto, ipi: no loss, so no x_calc and no p.
            x, x_recv, x_calc, rtt, p, rto, ipi, _ = struct.unpack(
                "QQIIIIII", a.getsockopt(SOL_DCCP, 192, 40)
            )
            assert min(x, x_recv, rtt, rto, ipi) > 0 == x_calc == p, (x, x_recv, rtt, rto, ipi)
            # x_recv covers the time since the last report, which may have just been sent.
            _, rtt, p = struct.unpack("III", b.getsockopt(SOL_DCCP, 128, 12))
            assert rtt > 0 == p, (rtt, p)
            fails("EINVAL", a.getsockopt, SOL_DCCP, 192, 39)
        else:
            fails("ENOPROTOOPT", a.getsockopt, SOL_DCCP, 192, 40)


def test_names_need_a_length():
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = pair()
    server = listening()
    waiting = [new() for _ in range(2)]
    for client in waiting:
        client.connect(server.getsockname())
    room = ctypes.create_string_buffer(16)
    less_than_nothing = ctypes.byref(ctypes.c_int(-1))
    for call, sock in [("getsockname", a), ("getpeername", b), ("accept", server)]:
        for length, number in [(less_than_nothing, errno.EINVAL), (None, errno.EFAULT)]:
            result = getattr(libc, call)(sock.fileno(), room, length)
            assert (result, ctypes.get_errno()) == (-1, number), (call, result)
    # A connection is lost if its address could not be written after it was accepted.
    for client in waiting:
        assert polled(client, select.POLLIN, 20_000) & select.POLLHUP


def test_recvfrom_writes_an_address_only_where_one_is_wanted():
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = pair()
    data, name = ctypes.create_string_buffer(8), ctypes.create_string_buffer(16)
    length = ctypes.c_int(77)
    a.send(b"one")
    assert libc.recvfrom(b.fileno(), data, 8, 0, None, ctypes.byref(length)) == 3
    assert length.value == 77
    # The message is lost, as in Linux.
    length.value = -1
    for wrong, number in [(ctypes.byref(length), errno.EINVAL), (None, errno.EFAULT)]:
        a.send(b"two")
        result = libc.recvfrom(b.fileno(), data, 8, 0, name, wrong)
        assert (result, ctypes.get_errno()) == (-1, number), (result, number)
    a.send(b"three")
    assert b.recv(8) == b"three"


def test_calls_of_files_at_no_place():
    a, b = pair()
    a.send(b"first")
    assert b.recv(10) == b"first"
    assert os.pwritev(a.fileno(), [b"at ", b"once"], -1) == 7
    room = bytearray(10)
    polled(b, select.POLLIN, 5000)
    assert os.preadv(b.fileno(), [room], -1) == 7 and room[:7] == b"at once"
    # RWF_NOWAIT.
    fails("EAGAIN", os.preadv, b.fileno(), [room], -1, 8)
    fails("ESPIPE", os.preadv, b.fileno(), [room], 0)
    fails("ESPIPE", os.pwritev, a.fileno(), [b"x"], 0)


def test_splice_into_a_pipe_and_out_of_it():
    a, b = pair()
    libc = ctypes.CDLL(None, use_errno=True)
    out, into = os.pipe()

    def splice(source, to, length, at=None, to_at=None, flags=0):
        result = libc.splice(source, at, to, to_at, ctypes.c_size_t(length), flags)
        if result < 0:
            raise OSError(ctypes.get_errno(), "splice")
        return result

    for message in (b"before the first read", b"after it"):
        a.send(message)
        assert splice(b.fileno(), into, 4096) == len(message)
        assert os.read(out, 4096) == message
        os.write(into, message)
        assert splice(out, a.fileno(), 4096) == len(message)
        assert b.recv(100) == message
    a.send(b"cut short")
    assert splice(b.fileno(), into, 3) == 3 and os.read(out, 100) == b"cut"
    b.setblocking(False)
    fails("EAGAIN", splice, b.fileno(), into, 100)
    a.send(b"stays")
    polled(b, select.POLLIN, 5000)
    place = ctypes.byref(ctypes.c_int64())
    fails("EINVAL", splice, b.fileno(), into, 100, place)
    fails("ESPIPE", splice, b.fileno(), into, 100, None, place)
    fails("EINVAL", splice, b.fileno(), a.fileno(), 100)
    fails("EINVAL", splice, b.fileno(), into, 100, None, None, 16)
    # The read end never becomes writable.
    fails("EBADF", splice, b.fileno(), out, 100)
    os.set_blocking(into, False)
    with open(into, "wb", buffering=0, closefd=False) as pipe:
        while pipe.write(bytes(4096)):
            pass
    # The pipe is full: the message stays queued.
    fails("EAGAIN", splice, b.fileno(), into, 100)
    assert b.recv(100) == b"stays"
    a.close()
    polled(b, select.POLLIN, 5000)
    os.read(out, 65536)
    assert splice(b.fileno(), into, 100) == 0
    os.close(out)
    os.close(into)


def test_interface_requests_are_answered():
    for family in (socket.AF_INET, socket.AF_INET6):
        asked = struct.pack("16s24x", b"lo")
        # SIOCGIFMTU, SIOCGIFINDEX.
        assert struct.unpack("16xi", fcntl.ioctl(new(family), 0x8921, asked)[:20])[0] > 1000
        assert struct.unpack("16xi", fcntl.ioctl(new(family), 0x8933, asked)[:20])[0] > 0
    # SIOCGIFADDR.
    address = fcntl.ioctl(new(), 0x8915, struct.pack("16s24x", b"lo"))[20:24]
    assert socket.inet_ntoa(address) == LOCAL


def bind_after_close(sock, address):
    """Binds once the address is free: the broker learns of a close slightly later."""
    while True:
        try:
            return sock.bind(address)
        except OSError as e:
            assert e.errno == errno.EADDRINUSE, e
            time.sleep(0.05)


def test_addresses_in_use():
    server = listening()
    address = server.getsockname()
    fails("EADDRINUSE", new().bind, address)
    fails("EADDRNOTAVAIL", new().bind, ("192.0.2.1", 0))
    server.close()
    again = new()
    bind_after_close(again, address)
    again.listen()


def test_a_connection_keeps_its_address():
    """As TCP of Linux does: also after its listener has closed."""
    reuse = (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for old, new_one, beside_connection in (
        ((), (), "EADDRINUSE"), ((), (reuse,), "EADDRINUSE"),
        ((reuse,), (), "EADDRINUSE"), ((reuse,), (reuse,), None),
    ):
        server = listening(host="0.0.0.0", options=old)
        port = server.getsockname()[1]
        client = new()
        client.connect((LOCAL, port))
        accepted, _ = server.accept()

        def binds(host, number, refusal, options=new_one):
            other = new()
            for option in options:
                other.setsockopt(*option)
            if refusal:
                fails(refusal, other.bind, (host, number))
            else:
                bind_after_close(other, (host, number))
            other.close()

        binds("0.0.0.0", port, "EADDRINUSE")
        server.close()
        binds("127.0.0.2", port, None)
        binds(LOCAL, port, beside_connection)
        binds("0.0.0.0", port, beside_connection)
        binds(*client.getsockname(), "EADDRINUSE")
        accepted.close()
        client.close()
        binds("0.0.0.0", port, None, ())


def main():
    tests = {**globals(), **vars(messages)}
    names = [name for name in tests if name.startswith("test")]
    for name in sys.argv[1:] or names:
        signal.alarm(60)
        tests[name]()
        print("ok", name, flush=True)


main()
