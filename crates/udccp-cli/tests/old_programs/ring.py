"""Messages in shared memory: many threads and processes on one socket, killed ones, programs that
bypass the library, and a program that corrupts the memory. Run by udccp run. The first argument
selects one test; without an argument, all run.
"""

import ctypes
import errno
import faulthandler
import os
import platform
import random
import re
import select
import signal
import socket
import struct
import sys
import threading
import time

from sockets import the_broker

LIBC = ctypes.CDLL(None, use_errno=True)
READ, WRITE = {"x86_64": (0, 1), "aarch64": (63, 64)}[platform.machine()]
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
RANDOM = random.Random(SEED)
# Number of places in a ring.
PLACES = 1024


def pair(queue=0):
    server = socket.socket(socket.AF_INET, 6, 33)
    server.bind(("127.0.0.1", 0))
    server.listen(4)
    client = socket.socket(socket.AF_INET, 6, 33)
    if queue:
        client.setsockopt(269, 17, queue)
    client.connect(server.getsockname())
    accepted, _ = server.accept()
    server.close()
    return client, accepted


def polled(sock, timeout=0):
    poll = select.poll()
    poll.register(sock, select.POLLIN | select.POLLOUT)
    found = poll.poll(timeout)
    return found[0][1] if found else 0


def readable(sock, timeout=0):
    return bool(select.select([sock], [], [], timeout)[0])


def test_readable_exactly_while_there_are_messages():
    a, b = pair()
    for turn in range(200):
        assert not readable(b), turn
        burst = RANDOM.randrange(1, 5)
        for n in range(burst):
            a.send(b"%d" % n)
        for n in range(burst):
            assert readable(b, 10), (turn, n)
            assert b.recv(100) == b"%d" % n
            if n + 1 < burst and not readable(b, 10):
                raise AssertionError((turn, n))
        try:
            raise AssertionError(b.recv(100, socket.MSG_DONTWAIT))
        except BlockingIOError:
            pass


def test_writable_exactly_while_a_message_goes():
    a, b = pair()
    a.setblocking(False)
    sent = received = 0
    for _ in range(400):
        if RANDOM.random() < 0.5:
            while polled(a) & select.POLLOUT:
                a.send(struct.pack("=I", sent) + bytes(1000))
                sent += 1
                if sent - received > 3000:
                    break
        for _ in range(RANDOM.randrange(400)):
            if received == sent:
                break
            assert struct.unpack("=I", b.recv(2000)[:4]) == (received,)
            received += 1
    while received < sent:
        assert struct.unpack("=I", b.recv(2000)[:4]) == (received,)
        received += 1
    assert polled(a, 10_000) & select.POLLOUT


def test_a_writable_socket_takes_a_message_though_less_is_granted_than_before():
    """Congestion control has reduced its window since the last message was sent."""
    a, b = pair()
    # The window only grows while it is used.
    thread = threading.Thread(target=lambda: [a.send(b"%d" % n) for n in range(300)])
    thread.start()
    for n in range(300):
        assert b.recv(10) == b"%d" % n
    thread.join()
    taken, grant = (ctypes.c_uint64.from_address(ring_of(a)[0] + at) for at in (128, 144))
    queue = a.getsockopt(269, 17)
    a.setblocking(False)
    # A part of the window is granted as messages are acknowledged.
    while grant.value - taken.value <= 1:
        time.sleep(0.01)
    broker = the_broker()
    os.kill(broker, signal.SIGSTOP)
    try:
        at_once = grant.value - taken.value
        assert at_once > 1, (grant.value, taken.value)
        count = at_once + queue - 1
        for n in range(count):
            a.send(b"%d" % n)
        assert polled(a) & select.POLLOUT
        grant.value = 0
        assert polled(a) & select.POLLOUT
        a.send(b"%d" % count)
        # Only one message was promised.
        assert not polled(a) & select.POLLOUT
        try:
            raise AssertionError(a.send(b"more"))
        except BlockingIOError:
            pass
    finally:
        os.kill(broker, signal.SIGCONT)
    for n in range(count + 1):
        assert b.recv(10) == b"%d" % n
    assert polled(a, 10_000) & select.POLLOUT


def test_a_stopped_broker_does_not_hold_up_the_first_message():
    """Regression: it waited 30 s for the ring, and for ever if a signal came every now and then."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    for signals_every in (0, 0.1):
        a, b = pair()
        # The socket becomes writable slightly after `connect` has returned.
        assert polled(a, 10_000) & select.POLLOUT
        broker = the_broker()
        os.kill(broker, signal.SIGSTOP)
        signal.setitimer(signal.ITIMER_REAL, signals_every, signals_every)
        try:
            begun = time.monotonic()
            a.send(b"first")
            assert time.monotonic() - begun < 25
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.kill(broker, signal.SIGCONT)
        a.send(b"second")
        assert (b.recv(10), b.recv(10)) == (b"first", b"second")
        b.send(b"back")
        assert a.recv(10) == b"back"
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_a_blocked_sender_goes_on():
    a, b = pair()

    def send():
        for n in range(3000):
            a.send(struct.pack("=I", n) + bytes(1200))

    thread = threading.Thread(target=send)
    thread.start()
    # The receiver's queue and the window fill up meanwhile.
    time.sleep(0.3)
    for n in range(3000):
        assert struct.unpack("=I", b.recv(2000)[:4]) == (n,)
    thread.join()


def test_threads_share_both_ends():
    a, b = pair()
    count, threads = 2000, 4
    got = []

    def send(me):
        for n in range(count):
            a.send(struct.pack("=II", me, n))

    def receive():
        while len(data := b.recv(100)) == 8:
            got.append(struct.unpack("=II", data))
        # Let the other receivers end too.
        a.send(b"end")

    receivers = [threading.Thread(target=receive) for _ in range(3)]
    senders = [threading.Thread(target=send, args=(n,)) for n in range(threads)]
    for thread in receivers + senders:
        thread.start()
    for thread in senders:
        thread.join()
    a.send(b"end")
    for thread in receivers:
        thread.join()
    assert sorted(got) == [(me, n) for me in range(threads) for n in range(count)], len(got)


def test_a_waiting_thread_each_gets_a_message():
    a, b = pair()
    a.send(b"first")
    assert b.recv(10) == b"first"
    release = threading.Event()
    both = threading.Barrier(3)

    def receive():
        b.recv(10)
        # A process that has got a message does not take the other's.
        both.wait(10)
        release.wait(10)

    threads = [threading.Thread(target=receive) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    a.send(b"one")
    a.send(b"two")
    both.wait(10)
    release.set()
    for thread in threads:
        thread.join()


def test_killed_processes_at_a_socket():
    """Kills senders and receivers that share sockets at random moments; the others continue."""
    for _ in range(12):
        a, b = pair()
        children = []
        for work in ("send", "send", "receive", "receive"):
            pid = os.fork()
            if pid == 0:
                while True:
                    if work == "send":
                        a.send(b"c" * RANDOM.randrange(1, 1300))
                    else:
                        b.recv(2000)
            children.append(pid)
        time.sleep(RANDOM.random() * 0.05)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        marks = {b"mark%d" % n for n in range(100)}

        def send():
            for mark in sorted(marks):
                a.send(mark)

        thread = threading.Thread(target=send)
        thread.start()
        missing = set(marks)
        while missing:
            missing.discard(b.recv(2000))
        thread.join()
        assert not readable(b, 0.2)
        a.send(b"last")
        assert readable(b, 10) and b.recv(10) == b"last"
        assert polled(a, 10_000) & select.POLLOUT


def test_system_calls_past_the_library():
    a, b = pair()
    buffer = ctypes.create_string_buffer(100)
    # A program that never receives through the library gets packets.
    a.send(b"by the library")
    assert readable(b, 10)
    assert LIBC.syscall(READ, b.fileno(), buffer, 100) == 14
    assert buffer.raw[:14] == b"by the library"
    # Messages written without the library arrive, whatever the other side does.
    assert LIBC.syscall(WRITE, a.fileno(), b"past it", 7) == 7
    assert b.recv(100) == b"past it"
    a.send(b"after")
    assert b.recv(100) == b"after"
    for n in range(50):
        if n % 3:
            a.send(b"%d" % n)
        else:
            assert polled(a, 10_000) & select.POLLOUT
            assert LIBC.syscall(WRITE, a.fileno(), b"%d" % n, len(b"%d" % n)) > 0
    assert sorted(int(b.recv(100)) for _ in range(50)) == list(range(50))


def test_lost_bell_is_resent():
    """As if a process were killed between the two steps."""
    a, b = pair()
    a.send(b"first")
    assert b.recv(10) == b"first"
    packet = ctypes.create_string_buffer(100)
    for turn in range(5):
        a.send(b"one %d" % turn)
        assert readable(b, 10)
        assert LIBC.syscall(READ, b.fileno(), packet, 100) == 24, packet.raw
        assert readable(b, 10), turn
        assert b.recv(10) == b"one %d" % turn
        assert not readable(b, 0.3)


def test_messages_before_the_first_read_come_first():
    a, b = pair()
    for n in range(20):
        a.send(b"%d" % n)
    assert readable(b, 10)
    time.sleep(0.1)
    thread = threading.Thread(target=lambda: [a.send(b"%d" % n) for n in range(20, 200)])
    thread.start()
    for n in range(200):
        assert b.recv(100) == b"%d" % n
    thread.join()


def mapped_rings():
    """The mapped rings of this process: start, end, and resident KiB."""
    found = []
    with open("/proc/self/smaps", encoding="utf-8") as maps:
        is_ring = False
        for line in maps:
            if place := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                is_ring = "memfd:udccp-ring" in line
                begin, end = (int(n, 16) for n in place.groups())
            elif is_ring and line.startswith("Rss:"):
                found.append((begin, end, int(line.split()[1])))
    return found


def ring_of(sock):
    """The mapped ring of a socket: start and end."""
    cookie = sock.getsockopt(socket.SOL_SOCKET, 57, 8)
    found = mapped_rings()
    for begin, end, resident in found:
        # Reading freed memory would allocate it again.
        if resident and ctypes.string_at(begin, 8) == cookie:
            return begin, end
    raise AssertionError(found)


def test_corrupt_memory_ends_only_its_connection():
    good = pair()
    good[0].send(b"before")
    assert good[1].recv(10) == b"before"
    for turn in range(20):
        RANDOM.random()
        if os.fork() == 0:
            a, b = pair()
            for _ in range(3):
                a.send(b"x" * 100)
                assert b.recv(200) == b"x" * 100
            places = ring_of(a), ring_of(b)
            signal.alarm(1)
            for begin, end in places:
                memory = (ctypes.c_ubyte * 8192).from_address(begin)
                for at in RANDOM.sample([*range(8, 1024), *range(4096, 4352)], 1 + turn * 20):
                    memory[at] = RANDOM.randrange(256)
                if turn == 19:
                    ctypes.memset(begin, 0xFF, end - begin)
            a.setblocking(False)
            b.setblocking(False)
            for sock in (a, b) * 20:
                for call in (lambda s: s.send(b"y" * 100), lambda s: s.recv(10)):
                    try:
                        call(sock)
                    except OSError:
                        pass
            os._exit(7)
        # It may also loop until its alarm, which is fine.
        assert os.waitstatus_to_exitcode(os.wait()[1]) in (7, -signal.SIGALRM)
        good[0].send(b"after %d" % turn)
        assert good[1].recv(20) == b"after %d" % turn


def test_ring_without_places_ends_and_blocks_nobody():
    """As if senders had been killed while they held all places."""
    for waits in (True, False):
        a, b = pair()
        a.send(b"before")
        assert b.recv(10) == b"before"
        places = ring_of(a)[0] + 192
        ctypes.memset(places, 0, PLACES // 8)
        a.setblocking(waits)
        began, ended = time.monotonic(), None
        while ended is None:
            try:
                a.send(b"after")
            except BlockingIOError:
                assert time.monotonic() < began + 30 and not waits
                time.sleep(0.01)
            except OSError as e:
                ended = e.errno
        assert ended in (errno.ECONNRESET, errno.EPIPE), ended
        # A sender that continues in time does no harm.
        a, b = pair()
        a.send(b"before")
        assert b.recv(10) == b"before"
        places = ring_of(a)[0] + 192
        ctypes.memset(places, 0, PLACES // 8)
        give_back = threading.Timer(0.2, ctypes.memset, (places, 1, 1))
        give_back.start()
        for n in range(20):
            a.send(b"%d" % n)
            assert b.recv(10) == b"%d" % n
        give_back.join()


def test_memory_is_given_back():
    """For sockets of this test and of earlier ones."""
    # So many messages at once that the whole ring to the program is used.
    a, b = pair()
    thread = threading.Thread(target=lambda: [a.send(bytes(1200)) for _ in range(2000)])
    thread.start()
    deadline = time.monotonic() + 20
    while sum(kib for _, _, kib in mapped_rings()) < 1000 and time.monotonic() < deadline:
        time.sleep(0.05)
    for n in range(2000):
        assert len(b.recv(2000)) == 1200, n
    thread.join()
    a.close()
    b.close()
    for _ in range(30):
        a, b = pair()
        a.send(b"x")
        assert b.recv(10) == b"x"
        a.close()
        b.close()
    deadline = time.monotonic() + 20
    while True:
        resident = sum(kib for _, _, kib in mapped_rings())
        if resident == 0:
            return
        assert time.monotonic() < deadline, resident
        time.sleep(0.2)


def alone_a_program_of_real_time_priority_sends():
    """On the broker's core, so that the broker runs only when the program waits."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    a, b = pair()
    receiver = os.fork()
    if receiver == 0:
        # Main's time limit applies to the parent only; this process needs its own.
        signal.alarm(120)
        a.close()
        numbers = [struct.unpack("=I", data[:4])[0] for data in iter(lambda: b.recv(2000), b"")]
        # On a busy machine some may be lost.
        are_well = numbers == sorted(set(numbers)) and len(numbers) > 10_000
        os._exit(0 if are_well else 1)
    b.close()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except PermissionError:
        print("not of real-time priority: nobody else may have it")
    for n in range(20_000):
        a.send(struct.pack("=I", n) + bytes(1000))
    a.close()
    assert os.waitstatus_to_exitcode(os.waitpid(receiver, 0)[1]) == 0


def main():
    tests = [name for name in globals() if name.startswith("test")]
    for name in sys.argv[1:] or tests:
        # Print the traceback wherever it hangs, even inside the library.
        faulthandler.dump_traceback_later(120, exit=True)
        try:
            globals()[name]()
        except BaseException:
            print("SEED", SEED, name, flush=True)
            raise
        faulthandler.cancel_dump_traceback_later()
        print("ok", name, flush=True)


main()
