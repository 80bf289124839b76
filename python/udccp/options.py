"""Settings and statistics of connections."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ConnectionStats", "Options"]


@dataclass(frozen=True)
class Options:
    """Settings of a connection, or of all connections that a listener accepts.

    Parameters
    ----------
    tx_ccids, rx_ccids
        Congestion controls for the data that we send and that we receive, the preferred one first:
        2 (TCP-like), 3 (TFRC), 4 (TFRC for small packets). If both sides have several in common,
        the server's order decides.
    send_queue_messages, send_queue_bytes
        Limits of the send queue, at least 1 each. ``send`` waits while the queue is full.
    recv_queue_messages, recv_queue_bytes
        Limits of the receive queue, at least 1 each. The peer is slowed down as the queue fills.
    drop_lowest
        What happens when the send queue is full. True: the newest message of the lowest priority
        is dropped for one of higher priority (``DCCP_SOCKOPT_QPOLICY_ID`` 1). False: ``send``
        waits.
    linger_s
        How long a close may take to deliver what is queued, in s. With 0, a close resets the
        connection at once.
    keep_alive_s
        Silence of the peer after which it is sent a probe, in s; None: no probes. Must be above 0
        and less than `idle_limit_s`.
    idle_limit_s
        Silence of the peer after which the connection ends with an error, in s; None: never.
    send_coverage, least_coverage
        Checksum coverage of what we send, and the smallest that we accept, 0 to 15; 0 covers
        everything (RFC 4340 section 9.2).
    data_checksum
        Send a CRC-32c of each message, and ask the peer for one (RFC 4340 section 9.3).
    deliver_corrupt
        Deliver messages that this checksum shows to be damaged, instead of dropping them.
    ecn
        Use Explicit Congestion Notification.
    path_mtu
        Upper limit of the path MTU, in bytes with the IP header.
    request_retries
        Retransmissions of a Request before connecting fails. The first waits for 1 s, each later
        one twice as long (up to 64 s): 6 take about two minutes.
    server_timewait
        The server holds TIMEWAIT if it closes, not the client (RFC 4340 section 8.3).

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
    """State and statistics of a connection.

    Counters start at 0 with the connection. A value that its CCID does not have is None.

    Parameters
    ----------
    state
        The state (RFC 4340 section 4.3): ``Open``, ``Closing``, ...
    tx_ccid, rx_ccid
        Congestion control of the data sent and received.
    cwnd_packets, in_flight_packets
        Congestion window, and packets believed to be in the network (CCID 2).
    rate_bytes_per_s, loss_event_rate
        Allowed sending rate X in byte/s, and loss event rate p, 0 to 1 (CCIDs 3 and 4). CCID 4
        also sends at most one message in 10 ms, whatever X is.
    rtt_s, min_rtt_s, rto_s
        Smoothed and smallest round-trip time, and retransmission timeout, in s.
    max_message_bytes
        The largest message that fits in one packet of this path now, in bytes.
    send_queue_messages, send_queue_bytes, recv_queue_messages, recv_queue_bytes
        Messages, and their bytes, that wait to be sent and to be read.
    messages_sent, bytes_sent, messages_received, bytes_received
        Messages, and their bytes, that were sent and received.
    messages_acknowledged, messages_lost
        What happened to those that were sent: reported received by the peer, or counted as lost.
    messages_expired, messages_displaced, messages_unsent
        Messages that were never sent: too old, displaced by one of higher priority, or cut off by
        the end of the connection.
    congestion_events, timeouts
        Reductions of the window or rate, and retransmission (or nofeedback) timeouts.
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
