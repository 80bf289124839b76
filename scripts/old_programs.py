"""Runs old programs under `udccp run` repeatedly, and writes a page with the results.

A case is a program with its own success check. For each run it is recorded whether it hung (did not
end within its time limit); after all runs of a case, whether the broker holds more descriptors than
before, and whether any process remains.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import wave
from pathlib import Path

import guest

RUN_LIMIT_S = 40
END_LIMIT_S = 10
# A program that writes to a busy disk may block in the kernel for longer than any limit here.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
# A run takes a second, but time in the guest is virtual.
GUEST_LIMIT_S = 7200
DCCP = "type=6,prototype=33"

ECHO_PERL = """
use Socket; my ($s, $c, $d);
socket($s, AF_INET, 6, 33) or die "socket: $!";
bind($s, sockaddr_in(0, INADDR_LOOPBACK)) or die "bind: $!"; listen($s, 5) or die "listen: $!";
my ($port) = sockaddr_in(getsockname($s));
socket($c, AF_INET, 6, 33) or die; connect($c, sockaddr_in($port, INADDR_LOOPBACK)) or die "$!";
accept($d, $s) or die "accept: $!";
for my $i (1 .. 50) {
    defined send($c, "message $i", 0) or die "send: $!";
    defined recv($d, my $got, 100, 0) or die "recv: $!";
    $got eq "message $i" or die "got $got";
    syswrite($d, uc $got) or die; sysread($c, $got, 100) or die; $got eq "MESSAGE $i" or die;
}
close $c; sysread($d, my $rest, 100) and die; print "ok\\n";
"""

ECHO_PYTHON = """
import selectors, socket
A = (socket.AF_INET, 6, 33)
s = socket.socket(*A); s.bind(("127.0.0.1", 0)); s.listen(5)
clients = []
for _ in range(5):
    c = socket.socket(*A); c.connect(s.getsockname()); clients.append((c, s.accept()[0]))
sel = selectors.DefaultSelector()
for i, (c, d) in enumerate(clients):
    sel.register(d, selectors.EVENT_READ); c.send(b"%d" % i * 100)
seen = 0
while seen < 5:
    for key, _ in sel.select(10):
        data = key.fileobj.recv(2000); assert data; key.fileobj.send(data); seen += 1
for i, (c, _) in enumerate(clients):
    assert c.recv(2000) == b"%d" % i * 100
print("ok")
"""


ASK_PYTHON = """
import socket, sys, time
while True:
    s = socket.socket(socket.AF_INET, 6, 33)
    try:
        s.connect(("127.0.0.1", int(sys.argv[1])))
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
s.send(b"client %s\\n" % sys.argv[2].encode()); print(s.recv(100).decode())
"""


class Failed(Exception):
    """A run failed."""


class Bench:
    """A folder, a UDP port and the processes of one case."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="udccp-old-", dir=MEMORY))
        (self.folder / "run").mkdir(mode=0o700)
        self.udccp = [UDCCP]
        self.udp_port = str(random.randint(20_000, 30_000))
        self.procs = []
        self.sessions = set()
        self.count = 0

    def start(self, *command):
        env = dict(os.environ, XDG_RUNTIME_DIR=str(self.folder / "run"))
        out = open(self.folder / f"out-{len(self.procs)}", "wb")
        proc = subprocess.Popen(
            [*self.udccp, "run", "--udp-port", self.udp_port, "--", *command],
            cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )
        out.close()
        proc.out = Path(out.name)
        self.procs.append(proc)
        self.sessions.add(proc.pid)
        return proc

    def become(self, user):
        """Run the programs as another user, who then owns everything in the folder."""
        if os.geteuid() != 0 or len(self.udccp) > 1:
            return
        copy = shutil.copy(UDCCP, self.folder / "udccp")
        for path in (self.folder, *self.folder.rglob("*")):
            shutil.chown(path, user)
        self.udccp = ["runuser", "-u", user, "--", copy]

    def ends(self, proc, code=0):
        got = proc.wait(timeout=RUN_LIMIT_S)
        text = proc.out.read_text(errors="replace")
        if code is not None and got != code:
            raise Failed(f"exit code {got}: {text[-300:]}")
        return text

    def stop(self):
        for proc in self.procs:
            if proc.poll() is None:
                os.killpg(proc.pid, signal.SIGKILL)
                proc.wait()
        self.procs.clear()

    def port(self):
        self.count += 1
        return 10_000 + self.count % 20_000

    def broker(self):
        folder = str(self.folder / "run" / "udccp").encode()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:3] == [b"broker", folder]:
                return int(path.parts[2])
        return None

    def descriptors(self):
        broker = self.broker()
        return len(os.listdir(f"/proc/{broker}/fd")) if broker else 0

    def left(self):
        """Count the processes of this case that still run."""
        found = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            found += int(fields[3]) in self.sessions and fields[0] != "Z"
        return found + (self.broker() is not None)


def socat_file(bench):
    data = os.urandom(100_000)
    (bench.folder / "in").write_bytes(data)
    (bench.folder / "copy").unlink(missing_ok=True)
    port = bench.port()
    server = bench.start("socat", "-u", f"TCP4-LISTEN:{port},{DCCP}", "CREATE:copy")
    client = bench.start("socat", "-b1400", "-u", "OPEN:in,rdonly",
                         f"TCP4:127.0.0.1:{port},{DCCP},retry=50,interval=0.1")
    bench.ends(client)
    bench.ends(server)
    if (bench.folder / "copy").read_bytes() != data:
        raise Failed("the copy differs")


def socat_fork(bench):
    port = bench.port()
    answer = "SYSTEM:sed -u s/client/CLIENT/"
    bench.start("socat", f"TCP4-LISTEN:{port},fork,{DCCP}", answer)
    clients = [bench.start("python3", "-c", ASK_PYTHON, str(port), str(i)) for i in range(3)]
    for i, client in enumerate(clients):
        if f"CLIENT {i}" not in bench.ends(client):
            raise Failed(f"client {i} got {client.out.read_text()!r}")


def stress_ng(bench):
    text = bench.ends(bench.start("stress-ng", "--dccp", "2", "--dccp-ops", "20", "-t", "20"))
    if "unsuccessful" in text or "successful run" not in text:
        raise Failed(text[-300:])


def itg_packets(bench, log):
    text = subprocess.run(["ITGDec", log], cwd=bench.folder, capture_output=True, text=True,
                          timeout=RUN_LIMIT_S, check=False).stdout
    packets = [line.split("=")[1].strip() for line in text.splitlines() if "Total packets" in line]
    return int(packets[-1]) if packets else 0


def d_itg(bench):
    for log in ("sent", "received"):
        (bench.folder / log).unlink(missing_ok=True)
    server = bench.start("ITGRecv")
    # It listens for its control connection, which is TCP, on port 9000.
    deadline = time.monotonic() + RUN_LIMIT_S
    listens = re.compile(r"0:2328 0+:0000 0A")
    while not listens.search("".join(map(Path.read_text, Path("/proc/net").glob("tcp*")))):
        if time.monotonic() > deadline:
            raise Failed("ITGRecv does not listen")
        time.sleep(0.05)
    port = bench.port()
    client = bench.start("ITGSend", "-a", "127.0.0.1", "-rp", str(port), "-T", "DCCP", "-C", "200",
                         "-c", "500", "-t", "500", "-l", "sent", "-x", "received")
    bench.ends(client)
    # A busy machine sends less than requested, and the receiver stops when its control connection
    # says so, whatever is still in flight. It writes its log slightly later.
    sent, received = itg_packets(bench, "sent"), 0
    deadline = time.monotonic() + END_LIMIT_S
    while 2 * received < sent and time.monotonic() < deadline:
        time.sleep(0.1)
        received = itg_packets(bench, "received")
    server.terminate()
    if not sent or 2 * received < sent:
        raise Failed(f"packets sent {sent}, received {received}")


def perl(bench):
    if "ok" not in bench.ends(bench.start("perl", "-e", ECHO_PERL)):
        raise Failed("no ok")


def python(bench):
    if "ok" not in bench.ends(bench.start("python3", "-c", ECHO_PYTHON)):
        raise Failed("no ok")


def netperfmeter(bench):
    server = bench.start("netperfmeter", "9000")
    time.sleep(0.5)
    client = bench.start("netperfmeter", "127.0.0.1:9000", "-runtime=1", "-dccp",
                         "const20:const500:const20:const500")
    said = bench.ends(client)
    if not bench.broker():
        raise Failed("the guest's own DCCP was used")
    server.terminate()
    sent, received = (int(n) for n in re.findall(r"Packets: +(\d+)", said)[:2])
    if not sent or 2 * received < sent:
        raise Failed(f"packets sent {sent}, received {received}")


def vlc(bench):
    """Sound as RTP over DCCP from one VLC to another. VLC does not run as root."""
    if not (bench.folder / "in.wav").exists():
        with wave.open(str(bench.folder / "in.wav"), "wb") as sound:
            sound.setnchannels(2)
            sound.setsampwidth(2)
            sound.setframerate(44_100)
            sound.writeframes(random.randbytes(4 * 44_100 * 30))
    bench.become("nobody")
    port = bench.port()
    vlc = ("env", f"HOME={bench.folder}", "cvlc", "-vv")
    bench.start(*vlc, "in.wav", "--sout", f"#rtp{{dst=127.0.0.1,port={port},proto=dccp}}")
    deadline = time.monotonic() + RUN_LIMIT_S
    while time.monotonic() < deadline:
        receiver = bench.start(*vlc, f"dccp://127.0.0.1:{port}", "vlc://quit")
        while time.monotonic() < deadline:
            said = receiver.out.read_text(errors="replace")
            if "added RTP source" in said and "detected stereo PCM" in said:
                return
            if receiver.poll() is not None:
                break
            time.sleep(0.1)
    raise subprocess.TimeoutExpired(vlc, RUN_LIMIT_S)


def carrying(bench):
    """Start a client and a server, and wait a random time while data flow."""
    with (bench.folder / "in").open("wb") as data:
        # More than is sent before one is killed; a sparse file takes no memory.
        data.truncate(2_000_000_000)
    copy = bench.folder / "copy"
    copy.unlink(missing_ok=True)
    port = bench.port()
    server = bench.start("socat", "-u", f"TCP4-LISTEN:{port},{DCCP}", "CREATE:copy")
    client = bench.start("socat", "-b1400", "-u", "OPEN:in,rdonly",
                         f"TCP4:127.0.0.1:{port},{DCCP},retry=50,interval=0.1")
    deadline = time.monotonic() + RUN_LIMIT_S
    while not copy.exists() or copy.stat().st_size == 0:
        if time.monotonic() > deadline:
            raise Failed("no data came")
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.5))
    if client.poll() is not None or server.poll() is not None:
        raise Failed("it ended before anything was killed")
    return client, server


def kill_program(bench):
    """kill -9 of one side at a random time; the other must end by itself."""
    victim, other = random.sample(carrying(bench), 2)
    os.killpg(victim.pid, signal.SIGKILL)
    victim.wait()
    other.wait(timeout=END_LIMIT_S)


def kill_broker(bench):
    """kill -9 of the broker at a random time; both sides must end by themselves."""
    client, server = carrying(bench)
    broker = bench.broker()
    if broker:
        os.kill(broker, signal.SIGKILL)
    client.wait(timeout=END_LIMIT_S)
    server.wait(timeout=END_LIMIT_S)


CASES = [
    ("socat: a file", "socat", "the copy is equal", socat_file),
    ("socat: a server that forks", "socat", "three clients get their answers", socat_fork),
    ("stress-ng --dccp", "stress-ng", "it reports a successful run", stress_ng),
    ("D-ITG", "d-itg", "ITGDec counts at least half of the packets sent", d_itg),
    ("Perl", "perl-base", "100 messages come back unchanged", perl),
    ("Python", "python3", "five connections in one selector", python),
    ("netperfmeter", "netperfmeter", "exit code 0, and at least half of the packets come back",
     netperfmeter),
    ("VLC", "vlc-bin", "a second VLC receives its sound by RTP over DCCP", vlc),
    ("kill -9 of a program", "socat", "the other side ends within 10 s", kill_program),
    ("kill -9 of the broker", "socat", "both sides end within 10 s", kill_broker),
]


# Programs that need kernel features that this machine may lack.
IN_GUEST = ("netperfmeter",)


def play_in_guest(case, runs):
    """Run a case in the guest, and return its row."""
    text = guest.run(__file__, UDCCP, case[0], runs, random.getrandbits(32), memory="1G",
                     limit_s=GUEST_LIMIT_S)
    rows = re.findall(r"^@@ (.*)$", text, re.M)
    if not rows:
        raise SystemExit(f"{case[0]}: the guest ended without a row: {text[-300:]}")
    return json.loads(rows[-1])


def in_guest():
    """Runs as the guest's init."""
    _, name, runs, seed = guest.words()[:4]
    random.seed(int(seed))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.mkdir("/dev/shm")
    case = next(case for case in CASES if case[0] == name)
    print("@@", json.dumps(play(case, int(runs))), flush=True)


def play(case, runs):
    run = case[-1]
    row = {"runs": 0, "failed": 0, "hung": 0, "descriptors": 0, "left": 0, "why": []}
    bench = Bench()
    for _ in range(runs):
        row["runs"] += 1
        try:
            run(bench)
        except subprocess.TimeoutExpired:
            row["hung"] += 1
            row["why"].append("hung")
        except Failed as e:
            row["failed"] += 1
            row["why"].append(str(e))
        bench.stop()
    # All sockets are closed: without any, a broker holds fewer than twenty descriptors.
    time.sleep(2)
    row["descriptors"] = max(0, bench.descriptors() - 20)
    deadline = time.monotonic() + END_LIMIT_S
    while bench.left() and time.monotonic() < deadline:
        time.sleep(0.2)
    row["left"] = bench.left()
    shutil.rmtree(bench.folder, ignore_errors=True)
    return row


def page(rows):
    lines = [
        "# Old programs under udccp run",
        "",
        "These programs from Debian packages open `SOCK_DCCP`. Each runs many times under",
        "[`udccp run`](../guides/old-programs.md). `make old-programs` installs them, runs them",
        "and writes this page. A run counts as hung if it does not end within 40 s. Descriptors",
        "leaked are those that the broker has open two seconds after the last run, beyond the",
        "twenty that it may need without sockets. Processes left are counted ten seconds after the",
        "last run.",
        "",
        "| program | package | success means | runs | failed | hung | descriptors leaked "
        "| processes left |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, package, means, _), row in rows:
        numbers = (row[k] for k in ("runs", "failed", "hung", "descriptors", "left"))
        lines.append(f"| {name} | {package} | {means} | " + " | ".join(map(str, numbers)) + " |")
    lines += [
        "",
        "netperfmeter runs in the guest of `udccp linux`, whose kernel has the SCTP that it uses",
        "for its control connection. The GStreamer of Debian 12 has no element for DCCP, and its",
        "ncat, iperf, iperf3 and nuttcp have no DCCP either.",
        "",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=Path, help="folder that keeps the row of each case")
    parser.add_argument("-o", "--out", type=Path)
    args = parser.parse_args()
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print("SEED", seed, flush=True)
    random.seed(seed)
    cases = [case for case in CASES if args.only.lower() in case[0].lower()]
    if any(case[0] in IN_GUEST for case in cases):
        # Fail now, instead of after hours of other cases, if there is no kernel.
        guest.kernel()
    rows = []
    for case in cases:
        kept = args.rows and args.rows / (case[0].replace("/", " ") + ".json")
        if kept and kept.exists():
            row = json.loads(kept.read_text())
        else:
            row = (play_in_guest if case[0] in IN_GUEST else play)(case, args.runs)
            numbers = {key: value for key, value in row.items() if key != "why"}
            print(case[0], numbers, *row["why"][:3], flush=True)
        if kept:
            args.rows.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(row))
        rows.append((case, row))
    if args.out and not args.only:
        args.out.write_text(page(rows))
    bad = [case[0] for case, row in rows
           if any(row[k] for k in ("failed", "hung", "descriptors", "left"))]
    if bad:
        raise SystemExit("some cases failed: " + ", ".join(bad))


if guest.words():
    UDCCP = guest.words()[0]
    guest.play(in_guest)
else:
    UDCCP = os.environ["UDCCP"]
    main()
