"""Settings of connections, and what is known of one in numbers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ConnectionStats", "Options"]


@dataclass(frozen=True)
class Options:
    """Settings of a connection, or of all that a listener accepts.

    Parameters
    ----------
    tx_ccids, rx_ccids
        Congestion controls for the data that we send and that we receive, best first: 2 (TCP-like),
        3 (TFRC), 4 (TFRC for small packets). The listener's order counts.
    send_queue_messages, send_queue_bytes
        What may wait to be sent; ``send`` waits while the queue is full.
    recv_queue_messages, recv_queue_bytes
        What may wait to be read. The peer is slowed down as the queue fills.
    drop_lowest
        In a full send queue, a message of a higher priority takes the place of one of the lowest
        (``DCCP_SOCKOPT_QPOLICY_ID`` 1).
    linger_s
        How long a close may take to deliver what is queued, in s. 0 resets at once.
    keep_alive_s
        Silence of the peer after which it is probed, in s; None never.
    idle_limit_s
        Silence of the peer after which the connection ends, in s; None never.
    send_coverage, least_coverage
        Checksum coverage of what we send, and the least that we accept, 0 to 15; 0 is everything
        (RFC 4340 section 9.2).
    data_checksum
        Carry a CRC-32c of each message.
    deliver_corrupt
        Deliver messages that this checksum shows to be damaged.
    ecn
        Use Explicit Congestion Notification.
    path_mtu
        The largest packet to try, in bytes with the IP header.
    request_retries
        Requests sent again before a connect fails. The first waits for 1 s, each next one twice as
        long: 6 is two minutes.
    server_timewait
        The server holds TIMEWAIT when it closes (RFC 4340 section 8.3).

    Examples
    --------
    >>> Options(tx_ccids=(3,), rx_ccids=(3,)).linger_s
    5.0
    """

    tx_ccids: tuple[int, ...] = (2, 3, 4)
    rx_ccids: tuple[int, ...] = (2, 3, 4)
    send_queue_messages: int = 512
    send_queue_bytes: int = 1 << 20
    recv_queue_messages: int = 1024
    recv_queue_bytes: int = 1 << 20
    drop_lowest: bool = False
    linger_s: float = 5.0
    keep_alive_s: float | None = 25.0
    idle_limit_s: float | None = 120.0
    send_coverage: int = 0
    least_coverage: int = 0
    data_checksum: bool = False
    deliver_corrupt: bool = False
    ecn: bool = True
    path_mtu: int = 1500
    request_retries: int = 6
    server_timewait: bool = False


@dataclass(frozen=True)
class ConnectionStats:
    """What is known of a connection. Counts begin with it; None is what its CCID does not have.

    Parameters
    ----------
    state
        State of RFC 4340 section 4.3: ``Open``, ``Closing``, ...
    tx_ccid, rx_ccid
        Congestion control of the data sent and received.
    cwnd_packets, in_flight_packets
        Congestion window, and packets believed to be in the network (CCID 2).
    rate_bytes_per_s, loss_event_rate
        Allowed sending rate X in byte/s, and loss event rate p, 0 to 1 (CCIDs 3 and 4).
    rtt_s, min_rtt_s, rto_s
        Smoothed and smallest round-trip time, and retransmission timeout, in s.
    max_message_bytes
        The largest message that fits in one packet of this path now, in bytes.
    send_queue_messages, send_queue_bytes, recv_queue_messages, recv_queue_bytes
        What waits to be sent and to be read.
    messages_sent, bytes_sent, messages_received, bytes_received
        Messages that left and arrived, and their bytes.
    messages_acknowledged, messages_lost
        What became of those that left: reported received by the peer, judged lost.
    messages_expired, messages_displaced, messages_unsent
        What never left: too old, displaced by a higher priority, cut off by the end.
    congestion_events, timeouts
        Cuts of window or rate, and retransmission (or no-feedback) timeouts.
    """

    state: str
    tx_ccid: int | None
    rx_ccid: int | None
    cwnd_packets: int | None
    in_flight_packets: int | None
    rate_bytes_per_s: float | None
    loss_event_rate: float | None
    rtt_s: float | None
    min_rtt_s: float | None
    rto_s: float | None
    max_message_bytes: int
    send_queue_messages: int
    send_queue_bytes: int
    recv_queue_messages: int
    recv_queue_bytes: int
    messages_sent: int
    bytes_sent: int
    messages_received: int
    bytes_received: int
    messages_acknowledged: int
    messages_lost: int
    messages_expired: int
    messages_displaced: int
    messages_unsent: int
    congestion_events: int
    timeouts: int
