"""Calls that send and receive messages, and wait for them. `calls.py` runs these tests."""

import array
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import termios
import time

from sockets import SOL_DCCP, fails, listening, new, pair, polled


def test_messages_keep_their_boundaries():
    a, b = pair()
    for size in (1, 0, 1000, 0, 1400):
        a.send(b"x" * size)
        assert len(b.recv(2000)) == size
    b.sendmsg([b"ab", b"", b"cd"])
    assert a.recv(100) == b"abcd"
    os.writev(b.fileno(), [b"12", b"34"])
    assert os.read(a.fileno(), 100) == b"1234"


def test_flags_of_receiving():
    a, b = pair()
    a.send(b"0123456789")
    a.send(b"next")
    polled(b, select.POLLIN, 5000)
    assert b.recv(4, socket.MSG_PEEK) == b"0123"
    data, _, flags, _ = b.recvmsg(4)
    assert (data, flags & socket.MSG_TRUNC) == (b"0123", socket.MSG_TRUNC)
    # Data beyond the buffer are lost.
    data, _, flags, source = b.recvmsg(100)
    assert (data, flags, source) == (b"next", 0, a.getsockname())
    fails("EAGAIN", b.recv, 10, socket.MSG_DONTWAIT)
    a.send(b"0123456789")
    polled(b, select.POLLIN, 5000)
    assert b.recv_into(bytearray(4), 4, socket.MSG_TRUNC) == 10
    a.send(b"from")
    assert b.recvfrom(10) == (b"from", a.getsockname())
    # DCCP has no urgent data, so the flag has no effect.
    assert a.send(b"plain", socket.MSG_OOB) == 5 and b.recv(10, socket.MSG_OOB) == b"plain"


def test_calls_of_files_for_nothing():
    """With length 0, they do not check the socket, as for all kernel sockets."""
    libc = ctypes.CDLL(None, use_errno=True)
    (a, b), unconnected = pair(), new()
    assert libc.read(b.fileno(), None, 0) == 0 and libc.readv(b.fileno(), None, 0) == 0
    assert libc.read(unconnected.fileno(), None, 0) == 0
    assert os.readv(b.fileno(), [bytearray(0)] * 2) == 0
    assert os.writev(a.fileno(), [b"", b""]) == 0 and libc.writev(a.fileno(), None, 0) == 0
    a.send(b"whole")
    polled(b, select.POLLIN, 5000)
    assert libc.read(b.fileno(), None, 0) == 0 and b.recv(10) == b"whole"
    # `write` sends an empty message, and the socket calls receive it.
    assert libc.write(a.fileno(), None, 0) == 0
    assert b.recv(10) == b""
    a.send(b"lost")
    # Python's method makes no call for zero bytes.
    assert libc.recv(b.fileno(), None, 0, 0) == 0
    fails("EAGAIN", b.recv, 10, socket.MSG_DONTWAIT)
    many = (ctypes.c_char * 16 * 1025)()
    for call in (libc.readv, libc.writev):
        assert call(b.fileno(), many, 1025) == -1 and ctypes.get_errno() == errno.EINVAL


def test_pieces_that_cannot_be_are_found_before_anything_is_waited_for():
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = pair()
    for name, pieces, count, wanted in (
        (a, 1, 1025, errno.EMSGSIZE),
        (b, None, 1, errno.EFAULT),
        (new(), 1, 1025, errno.EMSGSIZE),
    ):
        # Only the pieces of `struct msghdr` and their number are set.
        message = (ctypes.c_size_t * 7)(0, 0, pieces or 0, count)
        assert libc.recvmsg(name.fileno(), message, 0) == -1
        assert ctypes.get_errno() == wanted, (pieces, count)


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
    assert polled(b, select.POLLIN, 5000)
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


def test_no_sigpipe():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    a, b = pair()
    b.close()
    assert a.recv(10) == b""
    for _ in range(3):
        fails("EPIPE", a.send, b"x")
    fails("EPIPE", os.write, a.fileno(), b"x")


def test_sendfile():
    a, b = pair()
    with open(__file__, "rb") as file:
        begin = file.read(120)
        assert os.sendfile(a.fileno(), file.fileno(), 20, 100) == 100
        assert b.recv(2000) == begin[20:]
        # Without an offset, sendfile starts at the file's position and advances it.
        os.lseek(file.fileno(), 10, os.SEEK_SET)
        assert os.sendfile(a.fileno(), file.fileno(), None, 5) == 5
        assert b.recv(2000) == begin[10:15] and os.lseek(file.fileno(), 0, os.SEEK_CUR) == 15
        # Each page becomes one message.
        fails("EMSGSIZE", os.sendfile, a.fileno(), file.fileno(), 0, 4096)
        size = os.fstat(file.fileno()).st_size
        assert os.sendfile(a.fileno(), file.fileno(), size, 100) == 0
        for offset in (-1, -5):
            fails("EINVAL", os.sendfile, a.fileno(), file.fileno(), offset, 100)


def test_places_and_flags_of_files():
    a, b = pair()
    for flags in (1, 8, 0x10):
        assert os.pwritev(a.fileno(), [b"o", b"n"], -1, flags) == 2
        assert b.recv(10) == b"on"
    fails("EAGAIN", os.preadv, b.fileno(), [bytearray(10)], -1, 8)
    for call, end, piece in ((os.pwritev, a, b"x"), (os.preadv, b, bytearray(1))):
        for at, flags, name in (
            (-1, 1 << 30, "EOPNOTSUPP"), (-1, 0x30, "EINVAL"), (-2, 1, "EINVAL"), (0, 1, "ESPIPE"),
        ):
            fails(name, call, end.fileno(), [piece], at, flags)


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
    # More than the queue holds, so the call blocks.
    n = c.sendmmsg(a.fileno(), sent, count, 0)
    assert n == count, (n, ctypes.get_errno())
    assert [one.len for one in sent] == lengths
    came, got, keep_too = messages([1400] * count)
    assert c.recvmmsg(b.fileno(), came, count, 0, None) == count
    assert [one.len for one in came] == lengths
    for i, buffer in enumerate(got):
        assert buffer.raw[: lengths[i]] == bytes([i]) * lengths[i], i
    # The call stops at a message that cannot be sent, and returns the error if it is the first.
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
    # Non-blocking: as many as the queue holds. Then the end of the stream, as one empty message.
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
    # The kernel detects unreadable memory.
    a, b = pair()
    sent, _, keep = messages([10])
    keep[0].base = 1
    assert c.sendmmsg(a.fileno(), sent, 1, 0) == -1 and ctypes.get_errno() == errno.EFAULT


def test_priorities():
    a, b = pair(client_options=[(SOL_DCCP, 16, 1), (SOL_DCCP, 17, 50)])
    control = [(SOL_DCCP, 1, struct.pack("I", 9))]
    a.sendmsg([b"urgent"], control)
    assert b.recv(10) == b"urgent"
    fails("EINVAL", b.sendmsg, [b"x"], control)
    fails("EINVAL", a.sendmsg, [b"x"], [(SOL_DCCP, 2, struct.pack("I", 9))])
    fails("EINVAL", a.sendmsg, [b"x"], [(SOL_DCCP, 1, b"12")])
