"""SO_REUSEPORT: the kernel's own test reuseport_addr_any for DCCP, and sockets that share
everything.

A socket that listens on one address gets its connections, whatever other sockets listen on all
addresses, and whether they were opened before or after it. Sockets with the same address share
their connections.
"""

import errno
import select
import socket
import sys

ANY = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}


def listening(family, address, port, shares=True):
    sock = socket.socket(family, 6, 33)
    if shares:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((address, port))
    sock.listen(10)
    return sock


def accepted_by(sockets, family, address, port):
    """Returns the listening socket that gets a connection, which must carry a message."""
    client = socket.socket(family, 6, 33)
    client.connect((address, port))
    ready = select.select(sockets, [], [], 10)[0]
    assert len(ready) == 1, len(ready)
    server, _ = ready[0].accept()
    client.send(b"hello")
    assert server.recv(100) == b"hello"
    server.close()
    client.close()
    return ready[0]


def one_address_before_all(port, family_to_send, family, address):
    sockets = []

    def two_of_each():
        for any_family in ANY:
            for _ in range(2):
                sockets.append(listening(any_family, ANY[any_family], port))

    two_of_each()
    exact = listening(family, address, port)
    sockets.append(exact)
    two_of_each()
    plain = address.removeprefix("::ffff:")
    for _ in range(5):
        assert accepted_by(sockets, family_to_send, plain, port) is exact
    for sock in sockets:
        sock.close()


def test_reuseport_addr_any():
    one_address_before_all(5301, socket.AF_INET, socket.AF_INET, "127.0.0.1")
    one_address_before_all(5302, socket.AF_INET6, socket.AF_INET6, "::1")
    one_address_before_all(5303, socket.AF_INET, socket.AF_INET6, "::ffff:127.0.0.1")


def test_equal_sockets_share_and_the_last_serves_all():
    sockets = [listening(socket.AF_INET, "127.0.0.1", 5310) for _ in range(3)]
    got = [accepted_by(sockets, socket.AF_INET, "127.0.0.1", 5310) for _ in range(60)]
    assert {got.count(sock) > 0 for sock in sockets} == {True}, [got.count(s) for s in sockets]
    while len(sockets) > 1:
        sockets.pop(0).close()
        for _ in range(5):
            assert accepted_by(sockets, socket.AF_INET, "127.0.0.1", 5310) in sockets


def test_sharing_needs_the_option_on_all_sockets():
    for first, second in ((True, False), (False, True), (False, False)):
        one = listening(socket.AF_INET, "127.0.0.1", 5320, first)
        try:
            listening(socket.AF_INET, "127.0.0.1", 5320, second)
            raise AssertionError((first, second))
        except OSError as e:
            assert e.errno == errno.EADDRINUSE, e
        one.close()


def main():
    names = [name for name in globals() if name.startswith("test_")]
    for name in sys.argv[1:] or names:
        print(name, flush=True)
        globals()[name]()


main()
