"""Every socket call on a SOCK_DCCP socket, as old programs make them. Run by udccp run.

Each function whose name begins with `test` is a test; the first argument picks one, no argument
runs all. Numbers are Linux's: see docs/guides/old-programs.md.
"""

import array
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
import termios
import time

SOL_DCCP = 269
LOCAL = "127.0.0.1"


def new(family=socket.AF_INET):
    return socket.socket(family, 6, 33)


def listening(family=socket.AF_INET, host=LOCAL, options=()):
    server = new(family)
    for option in options:
        server.setsockopt(*option)
    server.bind((host, 0))
    server.listen(8)
    return server


def pair(client_options=(), server_options=()):
    server = listening(options=server_options)
    client = new()
    for option in client_options:
        client.setsockopt(*option)
    client.connect(server.getsockname())
    accepted, peer = server.accept()
    assert peer == client.getsockname() == accepted.getpeername(), peer
    assert client.getpeername() == server.getsockname() == accepted.getsockname()
    server.close()
    return client, accepted


def fails(name, call, *arguments):
    try:
        result = call(*arguments)
    except OSError as e:
        text = f"{call.__name__}{arguments!r}: {e} instead of {name}"
        assert e.errno == getattr(errno, name), text
        return
    raise AssertionError(f"{call.__name__}{arguments!r}: {result!r} instead of {name}")


def polled(sock, events=select.POLLIN | select.POLLOUT, timeout=0):
    poll = select.poll()
    poll.register(sock, events)
    found = poll.poll(timeout)
    return found[0][1] if found else 0


def test_messages_keep_their_boundaries():
    a, b = pair()
    for size in (1, 0, 1000, 0, 1400):
        a.send(b"x" * size)
        assert len(b.recv(2000)) == size
    b.sendmsg([b"ab", b"", b"cd"])
    assert a.recv(100) == b"abcd"
    os.writev(b.fileno(), [b"12", b"34"])
    assert os.read(a.fileno(), 100) == b"1234"


def test_what_a_socket_is():
    s = new()
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == 6
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == 33
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET
    assert new(socket.AF_INET6).family == socket.AF_INET6
    assert socket.socket(socket.AF_INET, 6, 0).getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == 6
    assert listening().getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    # Other sockets are the kernel's.
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    assert u.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == 2
    x, y = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    x.send(b"plain")
    assert y.recv(10) == b"plain"


def test_flags_of_receiving():
    a, b = pair()
    a.send(b"0123456789")
    a.send(b"next")
    polled(b, select.POLLIN, 5000)
    assert b.recv(4, socket.MSG_PEEK) == b"0123"
    data, _, flags, _ = b.recvmsg(4)
    assert (data, flags & socket.MSG_TRUNC) == (b"0123", socket.MSG_TRUNC)
    # What was cut off is lost.
    data, _, flags, source = b.recvmsg(100)
    assert (data, flags, source) == (b"next", 0, a.getsockname())
    fails("EAGAIN", b.recv, 10, socket.MSG_DONTWAIT)
    a.send(b"0123456789")
    polled(b, select.POLLIN, 5000)
    assert b.recv_into(bytearray(4), 4, socket.MSG_TRUNC) == 10
    a.send(b"from")
    assert b.recvfrom(10) == (b"from", a.getsockname())
    # There is no urgent data: the flag has no effect.
    assert a.send(b"plain", socket.MSG_OOB) == 5 and b.recv(10, socket.MSG_OOB) == b"plain"


def queue_bytes(sock, request):
    room = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), request, room)
    return room[0]


def test_queue_lengths():
    a, b = pair()
    assert queue_bytes(b, termios.FIONREAD) == 0
    a.send(b"x" * 700)
    a.send(b"y" * 9)
    polled(b, select.POLLIN, 5000)
    time.sleep(0.1)
    assert queue_bytes(b, termios.FIONREAD) == 700
    b.recv(2000)
    assert queue_bytes(b, termios.FIONREAD) == 9
    assert queue_bytes(a, termios.TIOCOUTQ) >= 0
    fails("ENOTCONN", queue_bytes, listening(), termios.FIONREAD)


def test_too_large_is_refused():
    a, _ = pair()
    most = a.getsockopt(SOL_DCCP, 5)
    assert 1300 < most < 1500, most
    assert a.send(b"x" * most) == most
    fails("EMSGSIZE", a.send, b"x" * (most + 1))
    fails("EMSGSIZE", new().send, b"x" * 537)
    fails("EPIPE", new().send, b"x" * 536)


def test_poll_agrees_with_send():
    a, b = pair()
    a.setblocking(False)
    sent = 0
    while sent < 100_000:
        writable = polled(a, select.POLLOUT) == select.POLLOUT
        try:
            a.send(struct.pack("!I", sent) + b"z" * 1000)
            assert writable
            sent += 1
        except BlockingIOError:
            if polled(a, select.POLLOUT) == 0:
                break
    assert 5 <= sent < 100_000, sent
    # The queue empties as the reader reads.
    for number in range(sent):
        assert struct.unpack("!I", b.recv(2000)[:4])[0] == number
    assert polled(a, select.POLLOUT, 5000) == select.POLLOUT


def test_a_full_queue_blocks_or_times_out():
    a, b = pair()
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200_000))
    start = time.monotonic()
    try:
        while True:
            a.send(b"z" * 1400)
    except BlockingIOError:
        pass
    assert time.monotonic() - start >= 0.2
    b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200_000))
    try:
        while True:
            b.recv(2000)
    except BlockingIOError:
        pass


def test_waiting_on_many():
    server = listening()
    ep = select.epoll()
    ep.register(server, select.EPOLLIN)
    assert ep.poll(0) == []
    client = new()
    client.setblocking(False)
    assert client.connect_ex(server.getsockname()) == errno.EINPROGRESS
    _, writable, _ = select.select([], [client], [], 10)
    assert writable and client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert client.connect_ex(server.getsockname()) == errno.EISCONN
    assert ep.poll(10) == [(server.fileno(), select.EPOLLIN)]
    accepted, _ = server.accept()
    assert ep.poll(0) == []
    ep.register(accepted, select.EPOLLIN | select.EPOLLET)
    client.send(b"edge")
    assert ep.poll(10) == [(accepted.fileno(), select.EPOLLIN)]
    assert accepted.recv(10) == b"edge"
    server.setblocking(False)
    fails("EAGAIN", server.accept)


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
    # It can be tried again, elsewhere.
    client.setblocking(True)
    client.connect(keep.getsockname())
    client.send(b"x")


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
    # A server can serve others while it listens.
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


def test_no_sigpipe():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    a, b = pair()
    b.close()
    assert a.recv(10) == b""
    for _ in range(3):
        fails("EPIPE", a.send, b"x")
    fails("EPIPE", os.write, a.fileno(), b"x")


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
    # Passed over a Unix socket, and everything else closed.
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


def test_sendfile():
    a, b = pair()
    with open(__file__, "rb") as file:
        begin = file.read(120)
        assert os.sendfile(a.fileno(), file.fileno(), 20, 100) == 100
        assert b.recv(2000) == begin[20:]
        # Without an offset, it begins at the position of the file, and moves it.
        os.lseek(file.fileno(), 10, os.SEEK_SET)
        assert os.sendfile(a.fileno(), file.fileno(), None, 5) == 5
        assert b.recv(2000) == begin[10:15] and os.lseek(file.fileno(), 0, os.SEEK_CUR) == 15
        # A page is one message.
        fails("EMSGSIZE", os.sendfile, a.fileno(), file.fileno(), 0, 4096)
        size = os.fstat(file.fileno()).st_size
        assert os.sendfile(a.fileno(), file.fileno(), size, 100) == 0


def test_many_messages_a_call():
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]

    class Message(ctypes.Structure):
        _fields_ = [("name", ctypes.c_void_p), ("name_len", ctypes.c_uint),
                    ("iov", ctypes.POINTER(Piece)), ("iov_len", ctypes.c_size_t),
                    ("control", ctypes.c_void_p), ("control_len", ctypes.c_size_t),
                    ("flags", ctypes.c_int), ("pad", ctypes.c_int), ("len", ctypes.c_size_t)]

    c = ctypes.CDLL(None, use_errno=True)

    def messages(lengths):
        buffers = [ctypes.create_string_buffer(max(n, 1)) for n in lengths]
        pieces = [Piece(ctypes.addressof(b), n) for b, n in zip(buffers, lengths)]
        all_messages = (Message * len(lengths))()
        for one, piece in zip(all_messages, pieces):
            one.iov, one.iov_len = ctypes.pointer(piece), 1
        return all_messages, buffers, pieces

    a, b = pair(client_options=[(SOL_DCCP, 17, 40)])
    count = 100
    lengths = [i * 13 % 1300 for i in range(count)]
    sent, buffers, keep = messages(lengths)
    for i, buffer in enumerate(buffers):
        ctypes.memset(buffer, i, max(lengths[i], 1))
    # More than the queue holds: it waits.
    n = c.sendmmsg(a.fileno(), sent, count, 0)
    assert n == count, (n, ctypes.get_errno())
    assert [one.len for one in sent] == lengths
    came, got, keep_too = messages([1400] * count)
    assert c.recvmmsg(b.fileno(), came, count, 0, None) == count
    assert [one.len for one in came] == lengths
    for i, buffer in enumerate(got):
        assert buffer.raw[: lengths[i]] == bytes([i]) * lengths[i], i
    # It stops at what cannot go, and says why when that is the first.
    sent, _, keep = messages([10, 20, 5000, 30])
    assert c.sendmmsg(a.fileno(), sent, 4, 0) == 2
    assert c.sendmmsg(a.fileno(), ctypes.byref(sent, 2 * ctypes.sizeof(Message)), 2, 0) == -1
    assert ctypes.get_errno() == errno.EMSGSIZE
    wait_for_one = 0x10000
    n = 0
    while n < 2:
        n += c.recvmmsg(b.fileno(), came, count, wait_for_one, None)
    assert n == 2
    assert c.recvmmsg(b.fileno(), came, count, socket.MSG_DONTWAIT, None) == -1
    assert ctypes.get_errno() == errno.EAGAIN
    # Without waiting, as many go as the queue holds. Then the end is one message of nothing.
    sent, _, keep = messages([1000] * count)
    many = c.sendmmsg(a.fileno(), sent, count, socket.MSG_DONTWAIT)
    assert 40 <= many <= count, many
    a.close()
    total = 0
    while (n := c.recvmmsg(b.fileno(), came, count, wait_for_one, None)) > 0:
        data = sum(one.len == 1000 for one in came[:n])
        total += data
        if data < n:
            assert data == n - 1 and came[n - 1].len == 0
            break
    assert n > 0 and total == many, (n, total, many)
    # What cannot be read is the kernel's to find out.
    a, b = pair()
    sent, _, keep = messages([10])
    keep[0].base = 1
    assert c.sendmmsg(a.fileno(), sent, 1, 0) == -1 and ctypes.get_errno() == errno.EFAULT


def test_options_of_the_system():
    server = listening(options=[(socket.SOL_IP, socket.IP_TOS, 0xB8)])
    # What a listener has, its connections have.
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
    # A filter that would not filter is refused, and nobody sets a type.
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


def test_priorities():
    a, b = pair(client_options=[(SOL_DCCP, 16, 1), (SOL_DCCP, 17, 50)])
    control = [(SOL_DCCP, 1, struct.pack("I", 9))]
    a.sendmsg([b"urgent"], control)
    assert b.recv(10) == b"urgent"
    fails("EINVAL", b.sendmsg, [b"x"], control)
    fails("EINVAL", a.sendmsg, [b"x"], [(SOL_DCCP, 2, struct.pack("I", 9))])
    fails("EINVAL", a.sendmsg, [b"x"], [(SOL_DCCP, 1, b"12")])


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
            # x_recv counts from the last report, which may just have left.
            _, rtt, p = struct.unpack("III", b.getsockopt(SOL_DCCP, 128, 12))
            assert rtt > 0 == p, (rtt, p)
            fails("EINVAL", a.getsockopt, SOL_DCCP, 192, 39)
        else:
            fails("ENOPROTOOPT", a.getsockopt, SOL_DCCP, 192, 40)


def test_addresses_in_use():
    server = listening()
    address = server.getsockname()
    fails("EADDRINUSE", new().bind, address)
    fails("EADDRNOTAVAIL", new().bind, ("192.0.2.1", 0))
    server.close()
    again = new()
    for _ in range(100):
        try:
            again.bind(address)
            break
        except OSError:
            # The broker learns of a close a moment later.
            time.sleep(0.05)
    again.listen()


def main():
    tests = [name for name in globals() if name.startswith("test")]
    for name in sys.argv[1:] or tests:
        signal.alarm(60)
        globals()[name]()
        print("ok", name, flush=True)


main()
