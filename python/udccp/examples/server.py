"""Receives over TCP, UDP and DCCP, and draws the rate of each.

    python -m udccp.examples.server
    python -m udccp.examples.server dccp udp --seconds 60 --save rates.png

At the end it says how each protocol came through a flood of UDP (``udccp.examples.flood``).
"""

import argparse
import sys
import threading
import time

from udccp.examples import protocols
from udccp.examples.graph import Graph
from udccp.examples.recovery import recovery

#: Bytes received over each protocol since the last sample.
received: dict[str, int] = {}
lock = threading.Lock()


def read(protocol: str, client: protocols.Socket) -> None:
    """Count what arrives on one socket until its end."""
    try:
        with client:
            # UDP has no end: an empty read is an empty datagram.
            while (count := len(client.recv(65536))) or protocol == "udp":
                with lock:
                    received[protocol] += count
    except OSError as e:
        print(f"{protocol}: {e}")


def serve(protocol: str, server: protocols.Socket) -> None:
    """Start a reading thread for every client of a protocol."""
    if protocol == "udp":
        read(protocol, server)
    while True:
        client, _ = server.accept()
        client.settimeout(None)
        # A daemon thread does not keep the program running.
        threading.Thread(target=read, args=(protocol, client), daemon=True).start()


def main() -> None:
    """Read the arguments, start a server for each protocol, take a sample each second."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("protocol", nargs="*", default=[], help="tcp, udp, dccp; default: all")
    parser.add_argument("--host", default="0.0.0.0", help="where to listen; :: is all of IPv6")
    parser.add_argument("--port", type=int, default=protocols.FIRST_PORT, help="of TCP (5001)")
    parser.add_argument("--seconds", type=float, default=1e9, help="how long (default: for ever)")
    parser.add_argument("--save", metavar="FILE.png", help="write the graph at the end")
    parser.add_argument("--log", metavar="FILE.csv", help="write all samples")
    parser.add_argument("--text", action="store_true", help="no window, even with a display")
    options = parser.parse_args()
    names: list[str] = options.protocol or [*protocols.PROTOCOLS]
    if unknown := set(names) - set(protocols.PROTOCOLS):
        parser.error(f"{unknown.pop()!r} is not tcp, udp or dccp")
    received.update(dict.fromkeys(names, 0))
    graph = Graph(names, options.save, options.text)
    for name in names:
        port = protocols.port_of(name, options.port)
        try:
            server = protocols.listen(name, options.host, port)
        except OSError as e:
            sys.exit(f"{name}: port {port}: {e}; choose others by --port")
        threading.Thread(target=serve, args=(name, server), daemon=True).start()
    every: list[dict[str, float]] = []
    begun = time.monotonic()
    try:
        while len(every) < options.seconds:
            time.sleep(max(0.0, begun + len(every) + 1 - time.monotonic()))
            with lock:
                sample = {name: received[name] * 8 / 1e6 for name in names}
                received.update(dict.fromkeys(names, 0))
            every.append(sample)
            graph.add(sample)
    except KeyboardInterrupt:
        pass
    graph.close()
    for line in recovery(every):
        print(line)
    if options.log:
        with open(options.log, "w") as log:
            print("second", *(f"{name}_mbps" for name in names), sep=",", file=log)
            for second, sample in enumerate(every, 1):
                print(second, *(f"{rate:.3f}" for rate in sample.values()), sep=",", file=log)


if __name__ == "__main__":
    main()
