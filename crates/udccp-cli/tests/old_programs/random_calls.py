"""Makes random socket calls on connections that several processes share, and checks each against a
model of Linux's rules. Run by udccp run.

    random_calls.py SEED CASES
"""

import array
import errno
import fcntl
import os
import pickle
import random
import select
import socket
import sys

from sockets import SOL_DCCP, pair

IN, HUP = select.POLLIN, select.POLLHUP
DONTWAIT, PEEK, TRUNC = socket.MSG_DONTWAIT, socket.MSG_PEEK, socket.MSG_TRUNC
FIONREAD = 0x541B
# Longer than any operation: only a hang fails.
PATIENCE_MS = 30_000


def short(value):
    """Shortens messages to their length, for printing."""
    if isinstance(value, tuple):
        return tuple(map(short, value))
    return f"{len(value)} bytes" if isinstance(value, bytes) else value


class Process:
    """A process with its own descriptors of both ends, which makes calls on request."""

    def __init__(self, ends, others):
        self.told, tells = os.pipe()
        answered, self.answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            for other in others:
                other.leave()
            os.close(tells)
            os.close(answered)
            self.obey({n: [end] for n, end in enumerate(ends)})
        os.close(self.told)
        os.close(self.answers)
        self.tells, self.answered = os.fdopen(tells, "wb", 0), os.fdopen(answered, "rb", 0)

    def leave(self):
        self.tells.close()
        self.answered.close()

    def obey(self, ends):
        told, answers = os.fdopen(self.told, "rb", 0), os.fdopen(self.answers, "wb", 0)
        while True:
            try:
                call, which, arguments = pickle.load(told)
            except EOFError:
                os._exit(0)
            try:
                result = getattr(self, call)(ends[which], *arguments)
            except OSError as e:
                result = errno.errorcode[e.errno]
            pickle.dump(result, answers)

    def do(self, call, which, *arguments):
        pickle.dump((call, which, arguments), self.tells)
        return pickle.load(self.answered)

    # The calls.

    def send(self, s, data, flags):
        return s[0].send(data, flags)

    def write(self, s, data):
        return os.writev(s[0].fileno(), [data[:1], data[1:3], data[3:]])

    def recv(self, s, size, flags):
        room = bytearray(size)
        length = s[0].recv_into(room, size, flags)
        return length, bytes(room[:length])

    def recvmsg(self, s, sizes, flags):
        rooms = [bytearray(size) for size in sizes]
        length, _, found, _ = s[0].recvmsg_into(rooms, 0, flags)
        return length, b"".join(rooms)[:length], found & TRUNC != 0

    def poll(self, s, timeout):
        poll = select.poll()
        poll.register(s[0], IN)
        found = poll.poll(timeout)
        return found[0][1] if found else 0

    def epoll(self, s, timeout):
        with select.epoll() as epoll:
            epoll.register(s[0], IN | select.EPOLLET)
            found = epoll.poll(timeout / 1000)
            return found[0][1] if found else 0

    def select(self, s, timeout):
        return IN if select.select([s[0]], [], [], timeout / 1000)[0] else 0

    def waiting(self, s):
        length = array.array("i", [0])
        fcntl.ioctl(s[0], FIONREAD, length)
        return length[0]

    def shutdown(self, s, how):
        return s[0].shutdown(how)

    def dup(self, s):
        # Python's dup would change whether the socket blocks.
        s.append(socket.socket(fileno=os.dup(s[0].fileno())))

    def swap(self, s):
        s.reverse()

    def close(self, s):
        s.pop(0).close()
        return len(s)

    def nonblocking(self, s, on):
        os.set_blocking(s[0].fileno(), not on)

    def is_nonblocking(self, s):
        return not os.get_blocking(s[0].fileno())

    def names(self, s):
        return s[0].getsockname(), s[0].getpeername()

    def option(self, s, level, name):
        return s[0].getsockopt(level, name)


class End:
    """The expected state of one end."""

    def __init__(self, name, mps):
        self.name, self.mps = name, mps
        self.inbox = []
        self.copies = {}
        self.shut = set()
        self.is_nonblocking = False
        # What followed the messages, "end" or "reset", and whether a call has reported it.
        self.ended = None
        self.is_told = self.is_unsure = False

    def is_open(self):
        return any(self.copies.values())


class Life:
    """A connection, from its handshake to the last close."""

    def __init__(self, rng):
        self.rng = rng
        self.done = []
        client, server = pair()
        self.ends = [End((one.getsockname(), one.getpeername()), one.getsockopt(SOL_DCCP, 5))
                     for one in (client, server)]
        self.processes = []
        for _ in range(2):
            self.processes.append(Process((client, server), self.processes))
        for end in self.ends:
            end.copies = dict.fromkeys(self.processes, 1)
        client.close()
        server.close()

    def run(self):
        for _ in range(self.rng.randrange(5, 60)):
            self.step()
        for which, end in enumerate(self.ends):
            for process, count in list(end.copies.items()):
                for _ in range(count):
                    self.close(which, process)
        for process in self.processes:
            process.leave()
            assert os.waitpid(process.pid, 0)[1] == 0

    def step(self):
        which = self.rng.randrange(2)
        end = self.ends[which]
        owners = [process for process, count in end.copies.items() if count]
        if not owners:
            return
        process = self.rng.choice(owners)
        steps = {self.send: 8, self.receive: 8, self.look: 4, self.settings: 3, self.shut: 0.4,
                 self.duplicate: 0.6, self.close: 0.4}
        step = self.rng.choices(list(steps), list(steps.values()))[0]
        if not end.is_unsure or step in (self.duplicate, self.close):
            step(which, process)

    def expect(self, expected, process, call, which, *arguments):
        self.done.append((self.processes.index(process), which, call, *map(short, arguments),
                          short(expected)))
        result = process.do(call, which, *arguments)
        assert result == expected, f"{short(result)} at the end of {self.done[-12:]}"

    def send(self, which, process):
        end, peer = self.ends[which], self.ends[1 - which]
        size = self.rng.choice([1, 3, 100, end.mps, end.mps + 1])
        data = self.rng.randbytes(size)
        call = self.rng.choice(["send", "write"])
        arguments = (data, 0) if call == "send" else (data,)
        if size > end.mps:
            return self.expect("EMSGSIZE", process, call, which, *arguments)
        if end.is_nonblocking and len(peer.inbox) > 2:
            # There may be no room at this moment.
            return None
        if end.ended is not None and "wr" not in end.shut:
            self.wait_readable(which, process)
            return None
        if "wr" in end.shut:
            return self.expect("EPIPE", process, call, which, *arguments)
        if peer.is_open() and "rd" not in peer.shut:
            peer.inbox.append(data)
        return self.expect(size, process, call, which, *arguments)

    def wait_readable(self, which, process):
        call = self.rng.choice(["poll", "epoll", "select"])
        result = process.do(call, which, PATIENCE_MS)
        assert result & IN, f"{call} gives {result} after {self.done[-12:]}"

    def receive(self, which, process):
        end = self.ends[which]
        size = self.rng.choice([1, 50, 2000])
        flags = self.rng.choice([0, PEEK]) | self.rng.choice([0, TRUNC])
        if end.inbox:
            self.wait_readable(which, process)
            message = end.inbox[0] if flags & PEEK else end.inbox.pop(0)
            data = message[:size]
            length = len(message) if flags & TRUNC else len(data)
            if self.rng.random() < 0.5:
                sizes = [size // 2, size - size // 2]
                expected = (length, data, len(message) > size)
                return self.expect(expected, process, "recvmsg", which, sizes, flags)
            if flags & TRUNC:
                # Python returns no more than its buffer holds.
                flags, length = flags & ~TRUNC, len(data)
            return self.expect((length, data), process, "recv", which, size, flags)
        if end.ended == "reset" and "rd" in end.shut:
            # It may be readable before the Reset has arrived.
            return None
        if "rd" in end.shut or end.ended == "end":
            self.wait_readable(which, process)
            return self.expect((0, b""), process, "recv", which, 10, flags & PEEK)
        if end.ended == "reset":
            self.wait_readable(which, process)
            expected = (0, b"")
            if not end.is_told and not flags & PEEK:
                end.is_told, expected = True, "ECONNRESET"
            return self.expect(expected, process, "recv", which, 10, flags & PEEK)
        flags |= 0 if end.is_nonblocking else DONTWAIT
        return self.expect("EAGAIN", process, "recv", which, 10, flags)

    def look(self, which, process):
        end = self.ends[which]
        if end.inbox:
            self.wait_readable(which, process)
            return self.expect(len(end.inbox[0]), process, "waiting", which)
        self.expect(0, process, "waiting", which)
        if "rd" not in end.shut and end.ended is None:
            call = self.rng.choice(["poll", "epoll", "select"])
            self.expect(0, process, call, which, 0)
        return None

    def settings(self, which, process):
        end = self.ends[which]
        what = self.rng.randrange(4)
        if what == 0:
            end.is_nonblocking = self.rng.random() < 0.5
            self.expect(None, process, "nonblocking", which, end.is_nonblocking)
        elif what == 1:
            self.expect(end.is_nonblocking, process, "is_nonblocking", which)
        elif what == 2:
            self.expect(end.name, process, "names", which)
        else:
            self.expect(6, process, "option", which, socket.SOL_SOCKET, socket.SO_TYPE)

    def shut(self, which, process):
        end, peer = self.ends[which], self.ends[1 - which]
        how = self.rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR])
        if end.ended or end.inbox or peer.ended:
            return
        self.expect(None, process, "shutdown", which, how)
        if how != socket.SHUT_WR:
            end.shut.add("rd")
        if how != socket.SHUT_RD:
            end.shut.add("wr")
        if end.shut == {"rd", "wr"}:
            # Here this closes the connection; on Linux it only sets flags.
            peer.ended, peer.is_told = "end", True

    def duplicate(self, which, process):
        self.expect(None, process, "dup", which)
        self.ends[which].copies[process] += 1
        self.expect(None, process, "swap", which)

    def close(self, which, process):
        end, peer = self.ends[which], self.ends[1 - which]
        if end.inbox and not end.is_unsure:
            # Whether the peer sees an abort because of unread data depends on what has arrived.
            self.wait_readable(which, process)
        end.copies[process] -= 1
        self.expect(end.copies[process], process, "close", which)
        if not end.is_open() and peer.ended is None:
            peer.ended = "reset" if end.inbox else "end"
            peer.is_told = False
            # A Reset overtakes data that have not been sent yet.
            peer.is_unsure = bool(end.inbox and peer.inbox)


def main():
    seed, cases = int(sys.argv[1]), int(sys.argv[2])
    for number in range(seed, seed + cases):
        try:
            Life(random.Random(number)).run()
        except AssertionError:
            print("seed", number, file=sys.stderr)
            raise
    print("ok", cases)


if __name__ == "__main__":
    main()
