"""Runs a Python script as init of the guest that `udccp linux --setup` builds.

The guest sees this machine's files read-only, and its time is virtual.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Marks the command line of a script that runs in the guest.
WORD = "--guest"
REBOOT_POWER_OFF = 0x4321FEDC
MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"))


def kernel():
    """The most recently built kernel."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "udccp" / "linux"
    kernels = sorted(base.glob("*/linux"), key=lambda file: file.stat().st_mtime)
    if not kernels:
        sys.exit("there is no kernel with DCCP yet: make linux builds it")
    return kernels[-1]


def run(script, *words, memory="512M", limit_s=1200):
    """Run `script` in the guest and return its output. Its arguments must have no white space."""
    with tempfile.TemporaryDirectory() as folder:
        command = [kernel(), f"mem={memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/",
                   "ro", "con=null", "con0=null,fd:1", "ssl=null", "noreboot", "loglevel=1",
                   "time-travel=inf-cpu", f"uml_dir={folder}",
                   f"init={os.path.realpath(sys.executable)}", "--",
                   str(Path(script).resolve()), WORD, *map(str, words)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=limit_s, check=False)
    return done.stdout.decode(errors="replace").replace("\r", "")


def words():
    """The arguments given to `run`, then others from the kernel; None outside the guest."""
    return sys.argv[2:] if sys.argv[1:2] == [WORD] else None


def play(program):
    """Run `program` as the guest's init, and power the guest off."""
    libc = ctypes.CDLL(None)
    for kind, at in MOUNTS:
        libc.mount(kind.encode(), at.encode(), kind.encode(), 0, None)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    # The only writable folder.
    os.environ["TMPDIR"] = os.environ["HOME"] = "/run"
    try:
        program()
    finally:
        sys.stdout.flush()
        libc.reboot(REBOOT_POWER_OFF)
