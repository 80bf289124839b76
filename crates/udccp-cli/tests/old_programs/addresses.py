"""Listening sockets with several addresses and both IP versions side by side, as on Linux.

Each case uses new DCCP ports, so that cases do not see each other's connections.
"""

import errno
import select
import socket
import sys

V4, V6 = socket.AF_INET, socket.AF_INET6
SOL_DCCP, SERVICE = 269, 2
PORT = [5400]


def new_port():
    PORT[0] += 1
    return PORT[0]


def listening(family, address, port, v6_only=None):
    sock = socket.socket(family, 6, 33)
    if v6_only is not None:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6_only)
    sock.bind((address, port))
    sock.listen(10)
    return sock


def serves(server, others, family, address, port):
    """Checks that only the server gets the connection, and that messages pass both ways."""
    client = socket.socket(family, 6, 33)
    client.connect((address, port))
    ready = select.select([server, *others], [], [], 10)[0]
    assert ready == [server], (address, port, ready)
    accepted, name = server.accept()
    client.send(b"hello")
    assert accepted.recv(100) == b"hello"
    accepted.send(b"and back")
    assert client.recv(100) == b"and back"
    ours = client.getsockname()[:2]
    assert name[1] == ours[1], (name, ours)
    if server.family == V6 and family == V4:
        assert name[0] == "::ffff:" + ours[0], name
    else:
        assert name[0] == ours[0], (name, ours)
    client.close()
    accepted.close()


def refused(family, address, port):
    client = socket.socket(family, 6, 33)
    client.settimeout(20)
    code = client.connect_ex((address, port))
    assert code == errno.ECONNREFUSED, (address, port, errno.errorcode.get(code, code))
    client.close()


def cannot_listen(family, address, port):
    try:
        listening(family, address, port)
    except OSError as e:
        assert e.errno == errno.EADDRINUSE, e
    else:
        raise AssertionError((address, port))


def close_all(*sockets):
    for sock in sockets:
        sock.close()


def test_nobody_listens_there():
    # The first case: the broker has not had a listener yet.
    refused(V4, "127.0.0.1", new_port())
    refused(V6, "::1", new_port())
    port = new_port()
    six = listening(V6, "::", port, 1)
    refused(V4, "127.0.0.1", port)
    six.close()
    port = new_port()
    four = listening(V4, "127.0.0.1", port)
    refused(V6, "::1", port)
    refused(V4, "127.0.0.2", port)
    four.close()
    refused(V4, "127.0.0.1", port)


def test_one_address_then_all():
    one_port, all_port = new_port(), new_port()
    one = listening(V4, "127.0.0.1", one_port)
    serves(one, [], V4, "127.0.0.1", one_port)
    every = listening(V4, "0.0.0.0", all_port)
    serves(one, [every], V4, "127.0.0.1", one_port)
    serves(every, [one], V4, "127.0.0.1", all_port)
    serves(every, [one], V4, "127.0.0.3", all_port)
    close_all(one, every)


def test_all_addresses_then_one():
    every_port, one_port = new_port(), new_port()
    every = listening(V6, "::", every_port)
    one = listening(V4, "127.0.0.1", one_port)
    six = listening(V6, "::1", one_port)
    serves(one, [every, six], V4, "127.0.0.1", one_port)
    serves(six, [every, one], V6, "::1", one_port)
    serves(every, [one, six], V4, "127.0.0.1", every_port)
    serves(every, [one, six], V6, "::1", every_port)
    close_all(every, one, six)


def test_two_addresses_have_a_port_each():
    port = new_port()
    first, second = listening(V4, "127.0.0.1", port), listening(V4, "127.0.0.2", port)
    serves(first, [second], V4, "127.0.0.1", port)
    serves(second, [first], V4, "127.0.0.2", port)
    first.close()
    serves(second, [], V4, "127.0.0.2", port)
    second.close()


def test_each_ip_version_has_ports_of_its_own():
    for four, six in (("0.0.0.0", "::"), ("127.0.0.1", "::1"), ("0.0.0.0", "::1")):
        port = new_port()
        first = listening(V4, four, port)
        second = listening(V6, six, port, 1)
        serves(first, [second], V4, "127.0.0.1", port)
        serves(second, [first], V6, "::1", port)
        close_all(first, second)
        port = new_port()
        second = listening(V6, six, port, 1)
        first = listening(V4, four, port)
        serves(first, [second], V4, "127.0.0.1", port)
        serves(second, [first], V6, "::1", port)
        close_all(first, second)


def test_all_addresses_of_both_versions_meet_those_of_one():
    port = new_port()
    both = listening(V6, "::", port, 0)
    cannot_listen(V4, "0.0.0.0", port)
    cannot_listen(V4, "127.0.0.1", port)
    cannot_listen(V6, "::1", port)
    serves(both, [], V4, "127.0.0.1", port)
    serves(both, [], V6, "::1", port)
    both.close()
    port = new_port()
    four = listening(V4, "127.0.0.1", port)
    cannot_listen(V6, "::", port)
    cannot_listen(V6, "::ffff:127.0.0.1", port)
    close_all(four)


def test_a_mapped_address_is_one_of_ipv4():
    port = new_port()
    mapped = listening(V6, "::ffff:127.0.0.1", port)
    assert mapped.getsockname()[:2] == ("::ffff:127.0.0.1", port)
    serves(mapped, [], V4, "127.0.0.1", port)
    mapped.close()


def fails(code, call, *arguments):
    try:
        call(*arguments)
    except OSError as e:
        assert e.errno == code, e
    else:
        raise AssertionError((call, arguments))


def test_an_address_decides_about_ipv4():
    only = (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    for address, expected in (("::1", 1), ("::", 0), ("::ffff:127.0.0.1", 0)):
        sock = socket.socket(V6, 6, 33)
        assert sock.getsockopt(*only) == 0
        sock.bind((address, new_port()))
        assert sock.getsockopt(*only) == expected, address
        fails(errno.EINVAL, sock.setsockopt, *only, 1)
        fails(errno.EINVAL, sock.bind, ("2001:db8::77", 0))
        if expected:
            fails(errno.ENETUNREACH, sock.connect, ("::ffff:127.0.0.1", new_port()))
        sock.close()
    sock = socket.socket(V6, 6, 33)
    sock.setsockopt(*only, 1)
    fails(errno.EINVAL, sock.bind, ("::ffff:127.0.0.1", 0))
    server = listening(V6, "::1", new_port())
    sock.connect(server.getsockname()[:2])
    fails(errno.EINVAL, sock.setsockopt, *only, 0)
    close_all(sock, server)


def test_services_of_each():
    port = new_port()
    sockets = []
    for family, address, code in ((V4, "127.0.0.1", 1), (V6, "::1", 2)):
        sock = socket.socket(family, 6, 33)
        sock.setsockopt(SOL_DCCP, SERVICE, code.to_bytes(4, "big"))
        sock.bind((address, port))
        sock.listen(10)
        sockets.append(sock)
    for server, code in zip(sockets, (1, 2)):
        client = socket.socket(server.family, 6, 33)
        client.setsockopt(SOL_DCCP, SERVICE, code.to_bytes(4, "big"))
        client.connect(server.getsockname()[:2])
        accepted, _ = server.accept()
        close_all(client, accepted)
    close_all(*sockets)


ALL = [f for name, f in list(globals().items()) if name.startswith("test_")]
chosen = [f for f in ALL if not sys.argv[1:] or f.__name__ in sys.argv[1:]]
for case in chosen:
    print(case.__name__, flush=True)
    case()
