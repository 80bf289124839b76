"""Every SOL_DCCP option with wrong lengths and values, and every call in every state.

Each row is one call and the errno that Linux documents for it. Run by udccp run.
"""

import ctypes
import errno
import os
import signal
import socket
import struct
import sys

SOL_DCCP = 269
LOCAL = "127.0.0.1"
C = ctypes.CDLL(None, use_errno=True)
rows = 0
wrong = []


def expect(what, want, result):
    """Checks the result of a C call; `want` is the expected errno's name, or None."""
    global rows
    rows += 1
    got = ctypes.get_errno() if result < 0 else 0
    if got != (getattr(errno, want) if want else 0):
        wrong.append(f"{what}: {errno.errorcode.get(got, got)} instead of {want}")


def new():
    return socket.socket(socket.AF_INET, 6, 33)


def listening():
    s = new()
    s.bind((LOCAL, 0))
    s.listen(4)
    return s


def states():
    """Returns a socket in each state, with the sockets that keep it there."""
    closed, bound, server = new(), new(), listening()
    bound.bind((LOCAL, 0))
    client = new()
    client.connect(server.getsockname())
    accepted, _ = server.accept()
    # An address that does not answer.
    connecting = new()
    connecting.setblocking(False)
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.2", int(os.environ["TEST_UDP_PORT"])))
    connecting.connect_ex(("127.0.0.2", 9))
    other = new()
    other.connect(server.getsockname())
    peer, _ = server.accept()
    peer.close()
    assert other.recv(10) == b""
    found = {
        "closed": closed,
        "bound": bound,
        "connecting": connecting,
        "client": client,
        "accepted": accepted,
        "listening": server,
        "ended": other,
    }
    return found, [silent]


def setopt(s, name, value, length=None):
    length = len(value) if length is None else length
    return C.setsockopt(s.fileno(), SOL_DCCP, name, value, length)


def getopt(s, name, room):
    buffer = ctypes.create_string_buffer(max(room, 1) + 512)
    length = ctypes.c_uint(room)
    result = C.getsockopt(s.fileno(), SOL_DCCP, name, buffer, ctypes.byref(length))
    return result, buffer.raw[: length.value], length.value


def number(value):
    return struct.pack("i", value)


def options(found):
    for state, s in found.items():
        is_open = state not in ("closed", "bound", "ended")
        for length in (0, 1, 2, 3):
            for name in (2, 6, 10, 11, 16, 17):
                expect(f"{state} set {name} length {length}", "EINVAL",
                       setopt(s, name, bytes(4), length))
            for name in list(range(1, 20)) + [128, 192]:
                expect(f"{state} get {name} length {length}", "EINVAL", getopt(s, name, length)[0])
        for name in (1, 3, 4):
            for length in (0, 1, 4, 100):
                expect(f"{state} set {name} length {length}", None,
                       setopt(s, name, bytes(100), length))
        for name in (5, 12, 7, 8, 9, 18, 100, 128, 191, 192, 255, 256, -1):
            expect(f"{state} set {name}", "ENOPROTOOPT", setopt(s, name, number(1)))
        for name in (3, 4, 13, 7, 8, 9, 18, 100, 256, -1):
            expect(f"{state} get {name}", "ENOPROTOOPT", getopt(s, name, 64)[0])
        for name in (13, 14, 15):
            expect(f"{state} set {name} empty", "EINVAL", setopt(s, name, b""))
            expect(f"{state} set {name} too long", "EINVAL", setopt(s, name, b"\2" * 252))
            for ccid in (0, 1, 5, 248, 255):
                expect(f"{state} set {name} to {ccid}", "EISCONN" if is_open else "EINVAL",
                       setopt(s, name, bytes([2, ccid])))
            expect(f"{state} set {name} good", "EISCONN" if is_open else None,
                   setopt(s, name, b"\2\3"))
        for name in (10, 11):
            for value in (-1, 16, 1 << 30, -(1 << 31)):
                expect(f"{state} set {name} to {value}", "EINVAL", setopt(s, name, number(value)))
            expect(f"{state} set {name} to 3", "EISCONN" if is_open else None,
                   setopt(s, name, number(3)))
        for value in (2, 3, -1, 1 << 30):
            expect(f"{state} policy {value}", "EISCONN" if is_open else "EINVAL",
                   setopt(s, 16, number(value)))
        for value in (-1, -(1 << 31)):
            expect(f"{state} queue {value}", "EINVAL", setopt(s, 17, number(value)))
        for value in (0, 1, 5, 1 << 30):
            expect(f"{state} queue {value}", None, setopt(s, 17, number(value)))
            assert getopt(s, 17, 4)[1] == number(value)
        setopt(s, 17, number(5))
        expect(f"{state} timewait", None if state == "accepted" else "EOPNOTSUPP",
               setopt(s, 6, number(1)))
        services(state, s)
        agreed = None if state in ("client", "accepted") else "ENOPROTOOPT"
        if state != "ended":
            for name in (14, 15):
                expect(f"{state} get {name}", agreed, getopt(s, name, 4)[0])
            for name in (128, 192):
                # Under CCID 2.
                expect(f"{state} get {name}", "ENOPROTOOPT", getopt(s, name, 64)[0])
        expect(f"{state} get 1", None, getopt(s, 1, 4)[0])
        result, value, length = getopt(s, 12, 4)
        expect(f"{state} ccids", None, result)
        assert value[:2] == b"\2\3", value


def services(state, s):
    none = b"\xff" * 4
    expect(f"{state} no service", "EINVAL", setopt(s, 2, none))
    expect(f"{state} no service later", "EFAULT", setopt(s, 2, bytes(4) + none))
    expect(f"{state} 33 services", "EINVAL", setopt(s, 2, bytes(33 * 4)))
    expect(f"{state} 32 services", None, setopt(s, 2, bytes(32 * 4)))
    expect(f"{state} no room for services", "EINVAL", getopt(s, 2, 31 * 4)[0])
    expect(f"{state} room for services", None, getopt(s, 2, 32 * 4)[0])
    expect(f"{state} null", "EFAULT", C.setsockopt(s.fileno(), SOL_DCCP, 2, None, 4))
    expect(f"{state} null length", "EFAULT", C.getsockopt(s.fileno(), SOL_DCCP, 2, None, None))
    expect(f"{state} negative", "EINVAL", C.setsockopt(s.fileno(), SOL_DCCP, 2, b"", -1))


def messages(found):
    """The kernel checks the length of an address before everything else."""
    room = ctypes.create_string_buffer(64)
    iov = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(room), 1))
    too_many = 1025
    for state, s in found.items():
        for count in (1, too_many):
            for name, length in ((room, -1), (room, -(1 << 31))):
                header = struct.pack("PiPNPNi", ctypes.addressof(name), length,
                                     ctypes.addressof(iov), count, 0, 0, 0)
                for call in (C.recvmsg, C.sendmsg):
                    result = call(s.fileno(), header, socket.MSG_DONTWAIT)
                    expect(f"{state} {call.__name__} {count} {length}", "EINVAL", result)
                many = ctypes.create_string_buffer(header.ljust(56, b"\0") + bytes(8))
                for call, more in ((C.recvmmsg, (None,)), (C.sendmmsg, ())):
                    result = call(s.fileno(), many, 1, socket.MSG_DONTWAIT, *more)
                    expect(f"{state} {call.__name__} {count} {length}", "EINVAL", result)


def calls(found):
    address = struct.pack("=H", 2) + struct.pack("!H", 1) + socket.inet_aton(LOCAL) + bytes(8)
    v6 = struct.pack("=H", 10) + bytes(26)
    none = {"closed": "ENOTCONN", "bound": "ENOTCONN", "listening": "ENOTCONN"}
    reads = none | {"connecting": "EAGAIN", "client": "EAGAIN", "accepted": "EAGAIN"}
    for state, s in found.items():
        room = ctypes.create_string_buffer(64)
        got = C.recv(s.fileno(), room, 64, socket.MSG_DONTWAIT)
        expect(f"{state} recv", reads.get(state), got)
    for state, s in found.items():
        fd = s.fileno()
        buffer = ctypes.create_string_buffer(64)
        dontwait = socket.MSG_DONTWAIT
        sends = {"connecting": "EAGAIN", "client": None, "accepted": None}
        expect(f"{state} send", sends.get(state, "EPIPE"), C.send(fd, b"x", 1, dontwait))
        expect(f"{state} send too much", "EMSGSIZE", C.send(fd, bytes(1 << 15), 1 << 15, dontwait))
        oob = socket.MSG_OOB | dontwait
        expect(f"{state} send out of band", sends.get(state, "EPIPE"), C.send(fd, b"x", 1, oob))
        null = sends.get(state, "EPIPE") or "EFAULT"
        expect(f"{state} send null", null, C.send(fd, None, 1, dontwait))
        if state in ("connecting", "client", "accepted", "listening"):
            want = "EALREADY" if state == "connecting" else "EISCONN"
            expect(f"{state} connect", want, C.connect(fd, address, 16))
        expect(f"{state} connect short", "EINVAL", C.connect(fd, address, 1))
        expect(f"{state} connect null", "EFAULT", C.connect(fd, None, 16))
        if state in ("closed", "bound"):
            expect(f"{state} connect half", "EINVAL", C.connect(fd, address, 15))
            expect(f"{state} connect v6", "EAFNOSUPPORT", C.connect(fd, v6, 28))
            multicast = address[:4] + socket.inet_aton("224.0.0.1") + bytes(8)
            expect(f"{state} connect all", "ENETUNREACH", C.connect(fd, multicast, 16))
        if state != "closed":
            expect(f"{state} bind", "EINVAL", C.bind(fd, address, 16))
        expect(f"{state} bind short", "EINVAL", C.bind(fd, address, 1))
        if state in ("connecting", "client", "accepted", "ended"):
            expect(f"{state} listen", "EINVAL", C.listen(fd, 1))
        if state != "listening":
            expect(f"{state} accept", "EINVAL", C.accept(fd, None, None))
        expect(f"{state} accept flags", "EINVAL", C.accept4(fd, None, None, 1))
        length = ctypes.c_uint(64)
        expect(f"{state} name", None, C.getsockname(fd, buffer, ctypes.byref(length)))
        expect(f"{state} name null", "EFAULT", C.getsockname(fd, None, None))
        peer = None if state in ("client", "accepted", "ended") else "ENOTCONN"
        expect(f"{state} peer", peer, C.getpeername(fd, buffer, ctypes.byref(length)))
        expect(f"{state} shutdown how", "EINVAL", C.shutdown(fd, 3))
        expect(f"{state} unknown level", "ENOPROTOOPT", C.getsockopt(fd, 6, 1, buffer,
                                                                      ctypes.byref(length)))
    expect("bad descriptor", "EBADF", C.send(9999, b"x", 1, 0))
    expect("unknown family", "EAFNOSUPPORT", C.socket(200, 6, 33))


def main():
    signal.alarm(60)
    found, keep = states()
    messages(found)
    calls(found)
    options(found)
    assert keep
    print(rows, "calls")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


main()
