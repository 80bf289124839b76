"""Processes without descriptors, and blocked calls that another event ends. Run by udccp run. The
first argument selects one test; without an argument, all functions whose names begin with `test`
run.
"""

import contextlib
import ctypes
import errno
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time

from sockets import LOCAL, SOL_DCCP, fails, listening, new, pair, polled, the_broker

LIBC = ctypes.CDLL(None, use_errno=True)
QPOLICY_TXQLEN = 17
# An address that does not answer (RFC 5737).
NOWHERE = ("192.0.2.77", 5004)


@contextlib.contextmanager
def no_descriptors(left=0):
    """Limits the process to `left` free descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(left + 1)]
    for fd in free:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_connection_waits_until_there_is_a_descriptor_for_it():
    server = listening()
    clients = [new() for _ in range(3)]
    for client in clients:
        client.connect(server.getsockname())
    polled(server, select.POLLIN, 10_000)
    server.setblocking(False)
    with no_descriptors():
        for _ in range(5):
            fails("EMFILE", server.accept)
    server.setblocking(True)
    with no_descriptors():
        fails("EMFILE", server.accept)
    for n, client in enumerate(clients):
        client.send(b"%d" % n)
    assert sorted(server.accept()[0].recv(10) for _ in clients) == [b"0", b"1", b"2"]


def test_messages_and_errors_without_descriptors():
    server = listening()
    client = new()
    client.connect(server.getsockname())
    accepted, _ = server.accept()
    failed = new()
    failed.setblocking(False)
    assert failed.connect_ex((LOCAL, 1)) == errno.EINPROGRESS
    assert polled(failed, select.POLLOUT, 10_000) & select.POLLOUT
    with no_descriptors():
        assert failed.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
        assert client.send(b"to") == 2 and accepted.recv(10) == b"to"
        assert accepted.send(b"back") == 4 and client.recv(10) == b"back"
        fails("EMFILE", new)
    with no_descriptors(left=1):
        fails("EMFILE", new)
    assert failed.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    assert failed.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    # Now messages work normally again.
    for n in range(100):
        client.send(b"%d" % n)
        assert accepted.recv(10) == b"%d" % n


def read_to(sock, last):
    while sock.recv(2000) != last:
        pass


def test_messages_pass_where_a_process_may_have_no_descriptors_at_all():
    """`poll` itself fails then, as in programs that confine themselves in this way."""
    for is_used in (False, True):
        a, b = unread_pair()
        if is_used:
            # From the first message on, messages go through shared memory.
            a.send(b"first")
            assert b.recv(10) == b"first"
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        assert a.send(b"to") == 2 and b.recv(10) == b"to"
        assert b.send(b"") == 0 and a.recv(10) == b""
        fill(a)
        try:
            while a.send(b"more", socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            pass
        reading = threading.Thread(target=lambda b=b: read_to(b, b"last"))
        reading.start()
        # This waits until the queue has room.
        assert a.send(b"last") == 4
        reading.join()
        b.close()
        assert a.recv(10) == b""
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_passed_socket_is_one_of_dccp_although_nobody_could_be_asked():
    a, b = pair()
    a.send(b"first")
    assert b.recv(10) == b"first"
    child = os.fork()
    if child == 0:
        program = (
            "import os, resource, socket, sys\n"
            "fd = int(sys.argv[1])\n"
            "lowest = os.dup(0); os.close(lowest)\n"
            "soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))\n"
            "s = socket.socket(2, 6, 33, fileno=fd)\n"
            "s.getsockopt(1, 3)\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))\n"
            "assert s.getsockopt(1, 3) == 6, s.getsockopt(1, 3)\n"
            "s.send(b'executed')\n"
        )
        os.set_inheritable(a.fileno(), True)
        os.execv(sys.executable, [sys.executable, "-c", program, str(a.fileno())])
    assert os.waitpid(child, 0)[1] == 0
    assert b.recv(10) == b"executed"


def test_a_reader_without_descriptors_takes_no_bell_for_a_message():
    """Another thread frees descriptors later, so messages move to shared memory."""
    a, b = pair()
    got = []
    threads = [threading.Thread(target=lambda: got.append(b.recv(100))) for _ in range(2)]
    with no_descriptors():
        for thread in threads:
            thread.start()
        # By now both usually wait for a packet.
        time.sleep(0.2)
    fails("EAGAIN", b.recv, 100, socket.MSG_DONTWAIT)
    a.send(b"one")
    a.send(b"two")
    for thread in threads:
        thread.join()
    assert sorted(got) == [b"one", b"two"], got
    a.send(b"three")
    assert b.recv(100) == b"three"


def test_a_reader_without_memory_takes_no_bell_for_a_message():
    """Another process has free descriptors."""
    a, b = pair()
    child = os.fork()
    if child == 0:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (1000, hard))
        # Nothing has arrived, which is not an error yet.
        buffer = ctypes.create_string_buffer(100)
        LIBC.recv(b.fileno(), buffer, 100, socket.MSG_DONTWAIT)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        fails("ENOMEM", b.recv, 100)
        os._exit(0)
    time.sleep(0.2)
    fails("EAGAIN", b.recv, 100, socket.MSG_DONTWAIT)
    a.send(b"one")
    assert os.waitpid(child, 0)[1] == 0
    assert b.recv(100) == b"one"


def alone_a_broker_has_no_limits_and_no_folder_of_the_program_that_starts_it():
    """Other programs use the broker too: exceeding the file size limit would kill it."""
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (20, hard))
    a, b = pair()
    for _ in range(10):
        a.send(b"message")
        assert b.recv(10) == b"message"
    broker = the_broker()
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
        soft, hard = resource.prlimit(broker, limit)
        assert soft == hard, (limit, soft, hard)
    assert os.readlink(f"/proc/{broker}/cwd") == "/"


def alone_broker_survives_a_file_size_limit():
    """The system treats the broker's shared memory as a file."""
    # Python ignores the signal, and so would its child processes.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
    a, b = pair()
    broker = the_broker()
    for _ in range(10):
        a.send(b"message")
        assert b.recv(10) == b"message"
    assert the_broker() == broker


def alone_a_broker_without_descriptors_says_so():
    """The broker starts with the limits of the program that starts it."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    server = listening()
    clients = []
    try:
        while True:
            client = new()
            clients.append(client)
            client.connect(server.getsockname())
    except OSError as e:
        assert e.errno == errno.ENFILE, e
    accepted, _ = server.accept()
    clients[0].send(b"on")
    assert accepted.recv(10) == b"on"
    for _ in range(3):
        # Depending on which is exhausted, the new socket fails or the broker refuses.
        fails("ENFILE", lambda: new().connect(server.getsockname()))
    for client in clients:
        client.close()
    accepted.close()
    deadline = time.monotonic() + 60
    while True:
        try:
            client = new()
            return client.connect(server.getsockname())
        except OSError as e:
            assert e.errno == errno.ENFILE and time.monotonic() < deadline, e
            time.sleep(0.05)


def test_a_longer_queue_does_not_make_a_socket_writable_that_cannot_send():
    server = listening()
    connecting = new()
    connecting.setblocking(False)
    assert connecting.connect_ex(NOWHERE) in (errno.EINPROGRESS, errno.ENETUNREACH)
    for sock in (server, connecting):
        before = polled(sock, select.POLLOUT)
        for queue in (40, 1, 20):
            sock.setsockopt(SOL_DCCP, QPOLICY_TXQLEN, queue)
            assert polled(sock, select.POLLOUT) == before, (sock, queue)


def unread_pair():
    """A pair whose second end has a small receive buffer."""
    return pair(server_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 4000)])


def fill(a):
    """Sends until a blocking send would wait, since the peer does not read."""
    a.setblocking(False)
    quiet_since = time.monotonic()
    while time.monotonic() < quiet_since + 0.3:
        try:
            a.send(bytes(1000))
            quiet_since = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    a.setblocking(True)


def filled():
    """A socket whose peer does not read, so that a blocking send waits."""
    a, b = unread_pair()
    fill(a)
    return a, b


def shut_while_sending(a, how):
    """Shuts a socket down while another thread waits to send. Returns that thread's result."""
    found = []

    def send():
        try:
            while True:
                a.send(bytes(1000))
        except OSError as e:
            found.append(e.errno)

    thread = threading.Thread(target=send)
    thread.start()
    time.sleep(0.1)
    a.shutdown(how)
    thread.join()
    return found[0]


def test_a_shutdown_ends_the_send_of_another_thread():
    for how in (socket.SHUT_WR, socket.SHUT_RDWR):
        a, b = filled()
        found = shut_while_sending(a, how)
        assert found == errno.EPIPE, found
        if how == socket.SHUT_WR:
            # The other direction still works.
            b.send(b"back")
            assert a.recv(10) == b"back"


def test_a_shutdown_ends_it_without_shared_memory_too():
    a, b = unread_pair()
    # So long a queue that sending does not make room soon.
    a.setsockopt(SOL_DCCP, QPOLICY_TXQLEN, 200)
    # No descriptor is left for the shared memory.
    with no_descriptors():
        fill(a)
        found = shut_while_sending(a, socket.SHUT_WR)
    assert found == errno.EPIPE, found
    b.send(b"back")
    assert a.recv(10) == b"back"


def wait_until_blocked(thread):
    """Waits until a thread sleeps, and did not run during the 50 ms before, or is over. One that
    waits for Python's lock would run, since this thread does not hold it while it sleeps.
    """
    before = None
    while thread.is_alive():
        try:
            with open(f"/proc/self/task/{thread.native_id}/status") as file:
                lines = dict(line.split(":", 1) for line in file)
        except (FileNotFoundError, ProcessLookupError):
            # It ended just now.
            thread.join()
            return
        switches = lines["voluntary_ctxt_switches"]
        if lines["State"].split()[0] != "S":
            switches = None
        if switches is not None and switches == before:
            return
        before = switches
        time.sleep(0.05)


def found_by(call, *arguments):
    """Starts a call in a thread, and waits until it blocks or returns. Returns the thread, and a
    list that receives the call's result or errno.
    """
    found = []

    def run():
        try:
            found.append(call(*arguments))
        except OSError as e:
            found.append(e.errno)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until_blocked(thread)
    return thread, found


def test_a_shutdown_of_a_listener_ends_accept_and_refuses_clients():
    for how in (socket.SHUT_RD, socket.SHUT_RDWR):
        server = listening()
        address = server.getsockname()
        accepting, found = found_by(server.accept)
        server.shutdown(how)
        accepting.join()
        assert found == [errno.EINVAL], found
        fails("ECONNREFUSED", new().connect, address)
        fails("EINVAL", server.accept)
        assert server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0
        assert polled(server, select.POLLIN) & select.POLLHUP
        # As in Linux, the socket can listen on the address again.
        server.listen()
        client = new()
        client.connect(address)
        accepted, _ = server.accept()
        client.send(b"again")
        assert accepted.recv(10) == b"again"
        # Or it can connect.
        server.shutdown(how)
        other = listening()
        server.connect(other.getsockname())
        server.send(b"a client")
        assert other.accept()[0].recv(10) == b"a client"


def test_a_listener_that_is_shut_down_for_writing_goes_on():
    server = listening()
    accepting, found = found_by(server.accept)
    server.shutdown(socket.SHUT_WR)
    assert polled(server, select.POLLOUT) == 0
    client = new()
    client.connect(server.getsockname())
    accepting.join()
    accepted, _ = found[0]
    client.send(b"on")
    assert accepted.recv(10) == b"on"


def test_a_connection_that_nobody_accepts_ends_with_its_listener():
    server = listening()
    client = new()
    client.connect(server.getsockname())
    polled(server, select.POLLIN, 10_000)
    server.shutdown(socket.SHUT_RD)
    assert polled(client, select.POLLIN, 20_000) & select.POLLHUP


def test_a_shutdown_ends_a_handshake():
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.2", int(os.environ["TEST_UDP_PORT"])))
    for how in (socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR):
        client = new()
        connecting, found = found_by(client.connect, ("127.0.0.2", 9))
        client.shutdown(how)
        connecting.join()
        assert found == [errno.ECONNRESET], found
        fails("ENOTCONN", client.shutdown, how)
        server = listening()
        client.connect(server.getsockname())
        client.send(b"at last")
        assert server.accept()[0].recv(10) == b"at last"


def test_close_spares_blocked_calls_and_reused_descriptors():
    a, b = pair()
    a.send(b"first")
    assert b.recv(10) == b"first"
    reading, found = found_by(b.recv, 10)
    number = b.detach()
    os.close(number)
    x, y = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    assert number in (x.fileno(), y.fileno())
    for one in (x, y):
        one.send(b"of another")
    # As in Linux, the blocked call keeps the socket alive.
    a.send(b"last")
    reading.join()
    for one in (x, y):
        assert one.recv(100, socket.MSG_DONTWAIT) == b"of another"
    assert found == [b"last"], found


def replaced(sock):
    """Replaces a socket's descriptor by another one. Returns a duplicate of the socket and the
    other ends.
    """
    kept = sock.dup()
    x, y = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    os.dup2(x.fileno(), sock.fileno())
    return kept, x, y


def test_close_ends_a_blocked_send_and_spares_the_reused_descriptor():
    a, b = filled()
    sent, is_over = [], []

    def send():
        while not is_over:
            sent.append(a.send(bytes(1000)))

    sending, found = found_by(send)
    before = -1
    while before != len(sent):
        before = len(sent)
        time.sleep(0.5)
        wait_until_blocked(sending)
    # The send is blocked.
    is_over.append(True)
    kept, x, y = replaced(a)
    while sending.is_alive():
        b.recv(2000)
    sending.join()
    fails("EAGAIN", y.recv, 100, socket.MSG_DONTWAIT)
    assert found == [errno.EBADF], found
    for sock in (a, kept, x, y):
        sock.close()


def send_interrupted(sock, restarts):
    """Sends until done or until a call fails, while signals are handled. Returns the errno, or 0.
    """
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, not restarts)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    # Python's own call would be restarted whatever the handler.
    results = (LIBC.send(sock.fileno(), bytes(1000), 1000, 0) for _ in range(5000))
    number = next((ctypes.get_errno() for result in results if result != 1000), 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return number


def test_a_send_that_is_interrupted_goes_on_if_all_handlers_say_so():
    a, b = filled()
    assert send_interrupted(a, restarts=False) == errno.EINTR
    # With a timeout, calls are never restarted.
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 3600, 0))
    assert send_interrupted(a, restarts=True) == errno.EINTR
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))
    signals, written = socket.socketpair()
    written.setblocking(False)
    # Each signal writes a byte, even while Python's handlers cannot run during a C call.
    signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)

    def read():
        for _ in range(20):
            signals.recv(1)
        while b.recv(2000):
            pass

    reader = threading.Thread(target=read)
    reader.start()
    of_python = signal.signal(signal.SIGINT, signal.SIG_DFL)
    assert send_interrupted(a, restarts=True) == 0
    signal.signal(signal.SIGINT, of_python)
    signal.set_wakeup_fd(-1)
    a.close()
    reader.join()


def main():
    tests = [name for name in globals() if name.startswith("test")]
    for name in sys.argv[1:] or tests:
        globals()[name]()
        print("ok", name, flush=True)


main()
