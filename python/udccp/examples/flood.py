"""Floods a link: sends UDP at one rate, whatever becomes of it.

    python -m udccp.examples.flood 192.0.2.1 --rate 120 --seconds 15

Run it against ``udccp.examples.server`` while clients of TCP and DCCP send. Only on a network that
is yours.
"""

import argparse
import time
from contextlib import suppress

from udccp.examples.protocols import FIRST_PORT, connect, port_of

#: Datagrams between two looks at the clock.
BURST = 16


def flood(host: str, port: int, rate_mbps: float, seconds: float, size: int) -> tuple[int, float]:
    """Send UDP datagrams, until the time is over or Ctrl-C.

    Parameters
    ----------
    host, port
        Where to.
    rate_mbps
        How fast, in Mbit/s of data.
    seconds
        How long.
    size
        Bytes in a datagram.

    Returns
    -------
    count, elapsed_s
        Datagrams sent, and the time that it took.
    """
    datagram = bytes(size)
    burst_s = BURST * size * 8 / (rate_mbps * 1e6)
    count, begun = 0, time.monotonic()
    with suppress(KeyboardInterrupt), connect("udp", host, port) as out:
        while time.monotonic() - begun < seconds:
            for _ in range(BURST):
                # No listener, or this machine's queue is full: a flood ignores errors.
                with suppress(OSError):
                    out.send(datagram)
            count += BURST
            # Wait until these are due; if behind schedule, do not wait.
            time.sleep(max(0.0, begun + count / BURST * burst_s - time.monotonic()))
    return count, time.monotonic() - begun


def main() -> None:
    """Read the arguments, flood, say how much it was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("host", help="where the server runs")
    parser.add_argument("--port", type=int, default=FIRST_PORT, help="of the server's TCP (5001)")
    parser.add_argument("--rate", type=float, default=120, help="Mbit/s of data (default: 120)")
    parser.add_argument("--seconds", type=float, default=15, help="how long (default: 15)")
    parser.add_argument("--size", type=int, default=1400, help="bytes in a datagram (1400)")
    parser.add_argument("--after", type=float, default=0, help="seconds to wait first (0)")
    options = parser.parse_args()
    time.sleep(options.after)
    port = port_of("udp", options.port)
    count, elapsed_s = flood(options.host, port, options.rate, options.seconds, options.size)
    rate = count * options.size * 8 / elapsed_s / 1e6
    print(f"sent {count} datagrams in {elapsed_s:.1f} s: {rate:.1f} Mbit/s")


if __name__ == "__main__":
    main()
