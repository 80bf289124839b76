"""Makes every DCCP socket call in every state, and prints one line per call with its result.

The same calls run under `udccp run` and on a kernel with DCCP; scripts/kernel_calls.py compares the
output. The network has an address that does not answer: 192.0.2.1 or 2001:db8::1.

    every_call.py [IPv6]
"""

import ctypes
import errno
import select
import socket
import struct
import sys
import time

SOL_DCCP = 269
IS_V6 = sys.argv[1:] == ["IPv6"]
FAMILY, OTHER_FAMILY = (10, 2) if IS_V6 else (2, 10)
ADDRESS_BYTES = {2: 16, 10: 28}
ANY, LOCAL, NOBODY, FOREIGN, MULTICAST = (
    ("::", "::1", "2001:db8::1", "2001:db8:1::1", "ff0e::1") if IS_V6
    else ("0.0.0.0", "127.0.0.1", "192.0.2.1", "198.51.100.1", "224.0.0.1"))
C = ctypes.CDLL(None, use_errno=True)
for call in ("send", "sendto", "sendmsg", "recv", "recvfrom", "recvmsg", "read", "write", "writev",
             "sendfile"):
    getattr(C, call).restype = ctypes.c_ssize_t
PORT = [20_000]
KEEP = []


def say(state, call, result, value=""):
    """Prints the state of the socket, the call, its result, and its output."""
    if result < 0:
        code = ctypes.get_errno()
        result, value = errno.errorcode.get(code, code), ""
    print("@", f"IPv6 {state}" if IS_V6 else state, "|", call, "|", result, value)


def new():
    s = socket.socket(FAMILY, 6, 33)
    KEEP.append(s)
    return s


def listening():
    s = new()
    PORT[0] += 1
    s.bind((LOCAL, PORT[0]))
    s.listen(4)
    return s


def pair():
    server = listening()
    client = new()
    client.connect(server.getsockname()[:2])
    accepted = server.accept()[0]
    KEEP.append(accepted)
    # The connection is open, and the client has received the server's first packet.
    accepted.send(b"open")
    client.recv(10)
    return client, accepted


def wait_for(s, events):
    poll = select.poll()
    poll.register(s, events)
    assert poll.poll(5000)


def connecting():
    s = new()
    s.setblocking(False)
    s.connect_ex((NOBODY, 9))
    return s


def bound():
    s = new()
    PORT[0] += 1
    s.bind((LOCAL, PORT[0]))
    return s


def refused():
    s = new()
    assert s.connect_ex((LOCAL, 19_999)) == errno.ECONNREFUSED
    return s


def refused_unread():
    s = new()
    s.setblocking(False)
    s.connect_ex((LOCAL, 19_999))
    wait_for(s, select.POLLOUT)
    return s


def with_data():
    client, accepted = pair()
    accepted.send(b"some data")
    wait_for(client, select.POLLIN)
    return client


def peer_closed():
    client, accepted = pair()
    accepted.close()
    wait_for(client, select.POLLIN)
    return client


def peer_closed_read():
    client = peer_closed()
    assert client.recv(10) == b""
    return client


def peer_closed_with_data():
    client, accepted = pair()
    accepted.send(b"some data")
    wait_for(client, select.POLLIN)
    accepted.close()
    time.sleep(0.3)
    return client


def peer_reset():
    client, accepted = pair()
    client.send(b"unread")
    wait_for(accepted, select.POLLIN)
    accepted.close()
    wait_for(client, select.POLLIN)
    time.sleep(0.1)
    return client


def shut(how):
    def build():
        client, _ = pair()
        client.shutdown(how)
        return client

    return build


STATES = {
    "closed": new,
    "bound": bound,
    "listening": listening,
    "connecting": connecting,
    "client": lambda: pair()[0],
    "accepted": lambda: pair()[1],
    "with data": with_data,
    "refused": refused,
    "refused (not asked)": refused_unread,
    "shut for reading": shut(socket.SHUT_RD),
    "shut for writing": shut(socket.SHUT_WR),
    "peer closed": peer_closed,
    "peer closed (read)": peer_closed_read,
    "peer closed (data left)": peer_closed_with_data,
    "peer reset": peer_reset,
}


def number(value):
    return struct.pack("i", value)


def get(s, level, name, room):
    buffer = ctypes.create_string_buffer(b"\xaa" * 600, 600)
    length = ctypes.c_int(room)
    result = C.getsockopt(s.fileno(), level, name, buffer, ctypes.byref(length))
    written = buffer.raw[: max(0, min(length.value, 600))].rstrip(b"\xaa").hex()
    return result, f"{length.value}: {written}"


def put(s, level, name, value, length=None):
    return C.setsockopt(s.fileno(), level, name, value, len(value) if length is None else length)


def address(host, port, family=FAMILY):
    """A `struct sockaddr` for the host's IP version, or with `family` instead."""
    head = struct.pack("=H", family) + struct.pack("!H", port)
    if ":" in host:
        return head + bytes(4) + socket.inet_pton(10, host) + bytes(4)
    return head + socket.inet_aton(host) + bytes(8)


def foreign_family():
    """An address of the other IP version, with the length of this one."""
    host = "127.0.0.1" if IS_V6 else "::1"
    return address(host, 9, OTHER_FAMILY), ADDRESS_BYTES[OTHER_FAMILY]


def name_of(s, call):
    buffer, length = ctypes.create_string_buffer(64), ctypes.c_uint(64)
    result = call(s.fileno(), buffer, ctypes.byref(length))
    host = (socket.inet_ntop(10, buffer.raw[8:24]) if length.value == 28
            else socket.inet_ntoa(buffer.raw[4:8]))
    port = struct.unpack("!H", buffer.raw[2:4])[0]
    return result, f"{length.value}: {host} {'port' if port else 'no port'}"


def message(pieces, control=b""):
    """A `struct msghdr` with the data that it points to."""
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]

    class Header(ctypes.Structure):
        _fields_ = [("name", ctypes.c_void_p), ("name_len", ctypes.c_uint),
                    ("iov", ctypes.c_void_p),
                    ("iov_len", ctypes.c_size_t), ("control", ctypes.c_char_p),
                    ("control_len", ctypes.c_size_t), ("flags", ctypes.c_int)]

    all_pieces = (Piece * max(1, len(pieces)))(*[Piece(p, len(p)) for p in pieces])
    header = Header(None, 0, ctypes.cast(all_pieces, ctypes.c_void_p), len(pieces), control or None,
                    len(control), 0)
    KEEP.append((all_pieces, control))
    return ctypes.byref(header)


def control(level, kind, data, length=None):
    length = 16 + len(data) if length is None else length
    return struct.pack("=QII", length, level, kind) + data.ljust(8, b"\0")


DONTWAIT = socket.MSG_DONTWAIT


def receive(flags, room=64):
    def call(s):
        buffer = ctypes.create_string_buffer(64)
        result = C.recv(s.fileno(), buffer, room, flags | DONTWAIT)
        return result, buffer.raw[: min(max(result, 0), room)].decode()

    return call


def receive_from(s):
    buffer, name, length = (ctypes.create_string_buffer(64), ctypes.create_string_buffer(64),
                            ctypes.c_uint(64))
    result = C.recvfrom(s.fileno(), buffer, 64, DONTWAIT, name, ctypes.byref(length))
    return result, f"address of {length.value}"


def ask(request):
    def call(s):
        value = ctypes.c_int(-7)
        return C.ioctl(s.fileno(), ctypes.c_ulong(request), ctypes.byref(value)), value.value

    return call


def events(s):
    poll = select.poll()
    poll.register(s, select.POLLIN | select.POLLOUT | select.POLLPRI | select.POLLRDHUP)
    found = poll.poll(0)
    bits = found[0][1] if found else 0
    names = ("IN", "PRI", "OUT", "ERR", "HUP", "NVAL", "RDHUP")
    return 0, "+".join(n for n in names if bits & getattr(select, "POLL" + n)) or "none"


def plain(call, *arguments):
    return lambda s: (call(s.fileno(), *arguments), "")


def maximum(s):
    return struct.unpack("i", s.getsockopt(SOL_DCCP, 5, 4))[0]


LENGTH = ADDRESS_BYTES[FAMILY]


def binding():
    """Calls of bind and connect with good and bad addresses."""
    calls = {
        "bind": (C.bind, address(LOCAL, 0), LENGTH),
        "bind(short)": (C.bind, address(LOCAL, 0), 3),
        "bind(a byte short)": (C.bind, address(LOCAL, 0), LENGTH - 1),
        "bind(NULL)": (C.bind, None, LENGTH),
        "bind(AF_UNSPEC, any)": (C.bind, address(ANY, 0, 0), LENGTH),
        "bind(AF_UNSPEC)": (C.bind, address(LOCAL, 0, 0), LENGTH),
        "bind(other family)": (C.bind, *foreign_family()),
        "bind(foreign)": (C.bind, address(FOREIGN, 0), LENGTH),
        "connect(NULL)": (C.connect, None, LENGTH),
        "connect(1 byte)": (C.connect, address(LOCAL, 9), 1),
        "connect(a byte short)": (C.connect, address(LOCAL, 9), LENGTH - 1),
        "connect(other family)": (C.connect, *foreign_family()),
        "connect(AF_UNSPEC)": (C.connect, address(LOCAL, 9, 0), LENGTH),
        "connect(multicast)": (C.connect, address(MULTICAST, 9), LENGTH),
        "connect(nobody listens)": (C.connect, address(LOCAL, 19_998), LENGTH),
        "connect(not routed)": (C.connect, address(FOREIGN, 9), LENGTH),
    }
    if IS_V6:
        mapped = address("::ffff:127.0.0.1", 0)
        calls |= {
            "bind(mapped)": (C.bind, mapped, LENGTH),
            "bind(mapped, foreign)": (C.bind, address("::ffff:198.51.100.1", 0), LENGTH),
            "bind(without scope)": (C.bind, address(LOCAL, 0), 24),
            "bind(shorter than that)": (C.bind, address(LOCAL, 0), 23),
            "connect(mapped, nobody listens)": (
                C.connect, address("::ffff:127.0.0.1", 19_998), LENGTH),
            "connect(mapped, not routed)": (C.connect, address("::ffff:198.51.100.1", 9), LENGTH),
            "connect(mapped broadcast)": (
                C.connect, address("::ffff:255.255.255.255", 9), LENGTH),
            "connect(without scope)": (C.connect, address(LOCAL, 19_998), 24),
        }
    else:
        calls["connect(broadcast)"] = (C.connect, address("255.255.255.255", 9), LENGTH)
    return {name: plain(*call) for name, call in calls.items()}


def v6_only(value, then):
    """Makes a call on a socket with IPV6_V6ONLY set to `value`."""
    def call(s):
        put(s, 41, 26, number(value))
        return then(s.fileno(), address("::ffff:127.0.0.1", 0), LENGTH), ""

    return call


def probes():
    """All calls by name; each takes a new socket."""
    all_calls = binding() | {
        "getsockname": lambda s: name_of(s, C.getsockname),
        "getpeername": lambda s: name_of(s, C.getpeername),
        "getsockname(NULL)": plain(C.getsockname, None, None),
        "poll": events,
        "FIONREAD": ask(0x541B),
        "SIOCOUTQ": ask(0x5411),
        "SIOCATMARK": ask(0x8905),
        "unknown ioctl": ask(0x89FF),
        "accept": lambda s: (s.setblocking(False), C.accept(s.fileno(), None, None))[1:] + ("",),
        "accept4(flag 1)": plain(C.accept4, None, None, 1),
        "listen(4)": plain(C.listen, 4),
        "listen(-1)": plain(C.listen, -1),
        "connect(does not wait)": lambda s: (
            s.setblocking(False), C.connect(s.fileno(), address(NOBODY, 9), LENGTH))[1:] + ("",),
        "send": plain(C.send, b"x", 1, DONTWAIT),
        "send(nothing)": plain(C.send, b"", 0, DONTWAIT),
        "send(NULL, 1)": plain(C.send, None, 1, DONTWAIT),
        "send(NULL, 0)": plain(C.send, None, 0, DONTWAIT),
        "send(maximum)": lambda s: (int(C.send(s.fileno(), bytes(9000), maximum(s), DONTWAIT)
                                        == maximum(s)) or -1, ""),
        "send(maximum + 1)": lambda s: (C.send(s.fileno(), bytes(9000), maximum(s) + 1, DONTWAIT),
                                        ""),
        "send(MSG_OOB)": plain(C.send, b"x", 1, DONTWAIT | socket.MSG_OOB),
        "send(MSG_MORE)": plain(C.send, b"x", 1, DONTWAIT | 0x8000),
        "send(MSG_DONTROUTE)": plain(C.send, b"x", 1, DONTWAIT | socket.MSG_DONTROUTE),
        "sendto(address)": plain(C.sendto, b"x", 1, DONTWAIT, address(NOBODY, 9), LENGTH),
        "write": lambda s: (s.setblocking(False), C.write(s.fileno(), b"x", 1))[1:] + ("",),
        "sendmsg(two pieces)": plain(C.sendmsg, message([b"ab", b"cd"]), DONTWAIT),
        "sendmsg(no piece)": plain(C.sendmsg, message([]), DONTWAIT),
        "sendmsg(NULL)": plain(C.sendmsg, None, DONTWAIT),
        "sendmsg(priority)": plain(
            C.sendmsg, message([b"a"], control(SOL_DCCP, 1, number(3))), DONTWAIT),
        "sendmsg(unknown control)": plain(
            C.sendmsg, message([b"a"], control(SOL_DCCP, 9, number(3))), DONTWAIT),
        "sendmsg(another level)": plain(
            C.sendmsg, message([b"a"], control(6, 9, number(3))), DONTWAIT),
        "sendmsg(short control)": plain(
            C.sendmsg, message([b"a"], control(SOL_DCCP, 1, number(3), 8)), DONTWAIT),
        "sendmsg(long control)": plain(
            C.sendmsg, message([b"a"], control(SOL_DCCP, 1, number(3), 99)), DONTWAIT),
        "recv": receive(0),
        "recv(4 bytes)": receive(0, 4),
        "recv(nothing)": receive(0, 0),
        "recv(MSG_PEEK)": receive(socket.MSG_PEEK),
        "recv(MSG_TRUNC)": receive(socket.MSG_TRUNC, 4),
        "recv(MSG_WAITALL)": receive(socket.MSG_WAITALL),
        "recv(MSG_OOB)": receive(socket.MSG_OOB),
        "recv(MSG_ERRQUEUE)": receive(0x2000),
        "recvfrom": receive_from,
        "shutdown(SHUT_RD)": plain(C.shutdown, 0),
        "shutdown(SHUT_WR)": plain(C.shutdown, 1),
        "shutdown(SHUT_RDWR)": plain(C.shutdown, 2),
        "shutdown(3)": plain(C.shutdown, 3),
        "shutdown(-1)": plain(C.shutdown, -1),
        "sendfile": lambda s: (C.sendfile(s.fileno(), FILE.fileno(), None, 10), ""),
        "twice recv": lambda s: (receive(0)(s), receive(0)(s))[1],
        "twice send": lambda s: (plain(C.send, b"x", 1, DONTWAIT)(s),
                                 plain(C.send, b"x", 1, DONTWAIT)(s))[1],
        "recv, then SO_ERROR": lambda s: (receive(0)(s), get(s, 1, 4, 4))[1],
        "close": lambda s: (C.close(s.detach()), ""),
    }
    if IS_V6:
        all_calls |= {
            "bind(mapped), IPv6 only": v6_only(1, C.bind),
            "bind(mapped), both": v6_only(0, C.bind),
        }
    return all_calls


FILE = open(__file__, "rb")
SOCKET_OPTIONS = {
    "SO_REUSEADDR": 2, "SO_TYPE": 3, "SO_ERROR": 4, "SO_DONTROUTE": 5, "SO_BROADCAST": 6,
    "SO_SNDBUF": 7, "SO_RCVBUF": 8, "SO_KEEPALIVE": 9, "SO_OOBINLINE": 10, "SO_PRIORITY": 12,
    "SO_LINGER": 13, "SO_REUSEPORT": 15, "SO_RCVLOWAT": 18, "SO_SNDLOWAT": 19, "SO_RCVTIMEO": 20,
    "SO_SNDTIMEO": 21, "SO_BINDTODEVICE": 25, "SO_TIMESTAMP": 29, "SO_ACCEPTCONN": 30,
    "SO_TIMESTAMPNS": 35, "SO_MARK": 36, "SO_PROTOCOL": 38, "SO_DOMAIN": 39,
}
IP_OPTIONS = {
    "IP_TOS": 1, "IP_TTL": 2, "IP_HDRINCL": 3, "IP_RECVOPTS": 6, "IP_PKTINFO": 8,
    "IP_MTU_DISCOVER": 10, "IP_RECVERR": 11, "IP_RECVTTL": 12, "IP_RECVTOS": 13, "IP_MTU": 14,
    "IP_FREEBIND": 15, "IP_TRANSPARENT": 19, "IP_MINTTL": 21, "IP_BIND_ADDRESS_NO_PORT": 24,
    "unknown": 77,
}
IPV6_OPTIONS = {
    "IPV6_ADDRFORM": 1, "IPV6_UNICAST_HOPS": 16, "IPV6_MULTICAST_HOPS": 18, "IPV6_MTU_DISCOVER": 23,
    "IPV6_MTU": 24, "IPV6_RECVERR": 25, "IPV6_V6ONLY": 26, "IPV6_RECVPKTINFO": 49,
    "IPV6_RECVHOPLIMIT": 51, "IPV6_RECVTCLASS": 66, "IPV6_TCLASS": 67, "IPV6_TRANSPARENT": 75,
    "IPV6_FREEBIND": 78, "unknown of IPv6": 99,
}
LEVELS = [(socket.SOL_SOCKET, SOCKET_OPTIONS), (socket.SOL_IP, IP_OPTIONS)]
LEVELS += [(41, IPV6_OPTIONS)] if IS_V6 else []
DCCP_OPTIONS = list(range(0, 20)) + [100, 127, 128, 191, 192, 255, 256, -1]


def dccp_options(state, build):
    s = build()
    for name in DCCP_OPTIONS:
        for room in (0, 1, 3, 4, 8, 64, 512, -1):
            say(state, f"getsockopt(SOL_DCCP, {name}, room {room})", *get(s, SOL_DCCP, name, room))
    for name in DCCP_OPTIONS:
        for length in (0, 1, 2, 3):
            say(state, f"setsockopt(SOL_DCCP, {name}, {length} zeros)",
                put(s, SOL_DCCP, name, bytes(4), length))
        for value in (-1, 0, 1, 2, 3, 15, 16, 1 << 30, -(1 << 31)):
            say(state, f"setsockopt(SOL_DCCP, {name}, {value})",
                put(s, SOL_DCCP, name, number(value)))
            if name in (2, 6, 10, 11, 16, 17):
                say(state, f"getsockopt(SOL_DCCP, {name}) after {value}",
                    *get(s, SOL_DCCP, name, 4))
        say(state, f"setsockopt(SOL_DCCP, {name}, NULL)", put(s, SOL_DCCP, name, None, 4))
    s = build()
    for name in (13, 14, 15):
        for value in ("", "02", "03", "0203", "0302", "00", "01", "04", "0204", "f8", "02" * 251,
                      "02" * 252):
            label = value if len(value) < 20 else f"{len(value) // 2} bytes"
            say(state, f"setsockopt(SOL_DCCP, {name}, 0x{label})",
                put(s, SOL_DCCP, name, bytes.fromhex(value)))
    for count in (1, 2, 32, 33):
        say(state, f"setsockopt(SERVICE, {count} zeros)", put(s, SOL_DCCP, 2, bytes(4 * count)))
        say(state, f"getsockopt(SERVICE) after {count}", *get(s, SOL_DCCP, 2, 512))
    for value in ("ffffffff", "00000001ffffffff", "0000000100"):
        say(state, f"setsockopt(SERVICE, 0x{value})", put(s, SOL_DCCP, 2, bytes.fromhex(value)))


def other_options(state, build):
    s = build()
    for level, names in LEVELS:
        for label, name in names.items():
            for room in (0, 1, 4, 16, -1):
                say(state, f"getsockopt({label}, room {room})", *get(s, level, name, room))
    for level, names in LEVELS:
        for label, name in names.items():
            if label in ("SO_RCVTIMEO", "SO_SNDTIMEO", "SO_TIMESTAMP", "SO_TIMESTAMPNS"):
                continue
            for length in (0, 1, 3):
                say(state, f"setsockopt({label}, {length} zeros)",
                    put(s, level, name, bytes(4), length))
            for value in (0, 1, 2, 64, 255, 256, 3000, -1):
                say(state, f"setsockopt({label}, {value})", put(s, level, name, number(value)))
                say(state, f"getsockopt({label}) after {value}", *get(s, level, name, 4))
    for device in (b"lo\0", b"lo", b"none\0", b"\0", b""):
        say(state, f"setsockopt(SO_BINDTODEVICE, {device})", put(s, 1, 25, device))
        say(state, f"getsockopt(SO_BINDTODEVICE) after {device}", *get(s, 1, 25, 16))
    for value in (struct.pack("ii", 1, 5), struct.pack("ii", 0, 0), struct.pack("ii", 1, -1)):
        say(state, f"setsockopt(SO_LINGER, {value.hex()})", put(s, 1, 13, value))
        say(state, f"getsockopt(SO_LINGER) after {value.hex()}", *get(s, 1, 13, 8))


def main():
    for state, build in STATES.items():
        for label, probe in probes().items():
            ctypes.set_errno(0)
            say(state, label, *probe(build()))
        dccp_options(state, build)
        other_options(state, build)
        for kept in KEEP:
            if isinstance(kept, socket.socket):
                kept.close()
        KEEP.clear()
        sys.stdout.flush()
    if not IS_V6:
        every_kind_of_socket()


def every_kind_of_socket():
    for family, kind, protocol in ((2, 6, 33), (2, 6, 0), (10, 6, 33), (2, 6, 17), (2, 1, 33),
                                   (2, 5, 33), (1, 6, 33), (200, 6, 33), (2, 6, -1)):
        result = C.socket(family, kind, protocol)
        say("none", f"socket({family}, {kind}, {protocol})", min(result, 0))
    result = C.socketpair(2, 6, 33, (ctypes.c_int * 2)())
    say("none", "socketpair", result)
    say("none", "send to a closed descriptor", C.send(9999, b"x", 1, 0))


main()
