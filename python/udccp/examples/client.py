"""Sends over TCP, UDP or DCCP as fast as the protocol lets it, and draws the rate.

    python -m udccp.examples.client dccp 192.0.2.1
    python -m udccp.examples.client tcp 192.0.2.1 --clients 5 --seconds 60

The server is ``udccp.examples.server``. UDP has nothing that slows it down: give it a --rate.
"""

import argparse
import threading
import time

from udccp.examples import protocols
from udccp.examples.graph import Graph

#: Bytes sent since the last sample.
sent = 0
lock = threading.Lock()


def send(protocol: str, host: str, port: int, size: int, rate_mbps: float, until: float) -> None:
    """Send messages of one size until the time is over.

    Parameters
    ----------
    protocol, host, port
        Over what and where to.
    size
        Bytes in a message; DCCP sends what fits into a packet of the path, if that is less.
    rate_mbps
        The most to send, in Mbit/s.
    until
        When to stop, by ``time.monotonic()``.
    """
    global sent
    try:
        with protocols.connect(protocol, host, port) as client:
            size = min(size, getattr(client, "max_message_size", size))
            message = bytes(size)
            gap_s = size * 8 / (rate_mbps * 1e6)
            due = time.monotonic()
            while (now := time.monotonic()) < until:
                if now < due:
                    time.sleep(due - now)
                # TCP and DCCP block here while the network is busy; UDP does not.
                client.sendall(message)
                due = max(due + gap_s, now - 1.0)
                with lock:
                    sent += size
    except OSError as e:
        print(f"{protocol}: {e}")


def main() -> None:
    """Read the arguments, start the clients, take a sample each second."""
    global sent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("protocol", choices=protocols.PROTOCOLS)
    parser.add_argument("host", help="where the server runs")
    parser.add_argument("--port", type=int, default=protocols.FIRST_PORT, help="of TCP (5001)")
    parser.add_argument("--clients", type=int, default=1, help="how many at once (default: 1)")
    parser.add_argument("--size", type=int, default=1400, help="bytes in a message (1400)")
    parser.add_argument("--rate", type=float, default=1e6, help="the most of a client, in Mbit/s")
    parser.add_argument("--seconds", type=float, default=1e9, help="how long (default: for ever)")
    parser.add_argument("--save", metavar="FILE.png", help="write the graph at the end")
    parser.add_argument("--text", action="store_true", help="no window, even with a display")
    options = parser.parse_args()
    if options.protocol == "udp" and options.rate >= 1e6:
        parser.error("UDP sends without end: give it a --rate, for example --rate 10")
    until = time.monotonic() + options.seconds
    port = protocols.port_of(options.protocol, options.port)
    arguments = (options.protocol, options.host, port, options.size, options.rate, until)
    clients = [
        threading.Thread(target=send, args=arguments, daemon=True) for _ in range(options.clients)
    ]
    graph = Graph([options.protocol], options.save, options.text)
    for client in clients:
        client.start()
    try:
        while any(client.is_alive() for client in clients):
            time.sleep(1)
            with lock:
                rate, sent = sent * 8 / 1e6, 0
            graph.add({options.protocol: rate})
    except KeyboardInterrupt:
        pass
    graph.close()


if __name__ == "__main__":
    main()
