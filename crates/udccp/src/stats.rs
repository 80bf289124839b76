//! State and counters of connections and sockets.

use std::time::Duration;

use udccp_proto as proto;
use udccp_proto::ccid::{CcidMetrics, ReceiverMetrics};

use crate::shared::Shared;

/// State, congestion control, queues and counters of a connection. Counters start at 0 with the
/// connection.
pub type ConnectionStats = proto::ConnectionStats<Duration>;

/// State of the sender's congestion control (`DCCP_SOCKOPT_CCID_TX_INFO`, for every CCID). A value
/// that the CCID does not have, or not yet, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SenderState {
    /// Congestion window in packets.
    pub cwnd_packets: Option<u32>,
    /// Slow start threshold in packets; `None` also while it is unlimited.
    pub ssthresh_packets: Option<u32>,
    /// Packets believed to be in the network.
    pub pipe_packets: Option<u32>,
    /// Allowed sending rate X in bytes per second. CCID 4 also keeps to `packet_interval`.
    pub x_bytes_per_sec: Option<f64>,
    /// Receive rate X_recv that the peer last reported, in bytes per second.
    pub x_recv_bytes_per_sec: Option<f64>,
    /// Rate of the throughput equation, X_calc (X_Bps in RFC 5348), in bytes per second; `None`
    /// before the first loss.
    pub x_calc_bytes_per_sec: Option<f64>,
    /// Loss event rate p, 0 to 1.
    pub loss_event_rate: Option<f64>,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Variation of the round-trip time.
    pub rttvar: Option<Duration>,
    /// Smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout, or nofeedback timeout of CCIDs 3 and 4.
    pub rto: Option<Duration>,
    /// Time between two packets, t_ipi (RFC 5348 section 4.6); at least 10 ms with CCID 4.
    pub packet_interval: Option<Duration>,
    /// Mean size s of the packets sent, in bytes of data (RFC 5348 section 4.1).
    pub mean_packet_bytes: Option<u32>,
}

impl SenderState {
    pub(crate) fn of(m: CcidMetrics) -> Self {
        let std = |d: Option<udccp_base::Duration>| d.map(|d| d.to_std());
        Self {
            cwnd_packets: m.cwnd,
            ssthresh_packets: m.ssthresh,
            pipe_packets: m.pipe,
            x_bytes_per_sec: m.x_bytes_per_sec,
            x_recv_bytes_per_sec: m.x_recv_bytes_per_sec,
            x_calc_bytes_per_sec: m.x_calc_bytes_per_sec,
            loss_event_rate: m.loss_event_rate,
            rtt: std(m.srtt),
            rttvar: std(m.rttvar),
            min_rtt: std(m.min_rtt),
            rto: std(m.rto),
            packet_interval: std(m.packet_interval),
            mean_packet_bytes: m.mean_packet_bytes,
        }
    }
}

/// State of the receiver's congestion control (`DCCP_SOCKOPT_CCID_RX_INFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ReceiverState {
    /// Receive rate X_recv since the last report, in bytes per second.
    pub x_recv_bytes_per_sec: f64,
    /// Round-trip time, if the receiver knows it.
    pub rtt: Option<Duration>,
    /// Loss event rate p, 0 to 1.
    pub loss_event_rate: f64,
}

impl ReceiverState {
    pub(crate) fn of(m: ReceiverMetrics) -> Self {
        Self {
            x_recv_bytes_per_sec: m.x_recv_bytes_per_sec,
            rtt: m.rtt.map(|rtt| rtt.to_std()),
            loss_event_rate: m.loss_event_rate,
        }
    }
}

/// Packets that wait because the socket's send buffer is full. They are bounded: at most 1 MiB of
/// packets wait here (512 KiB over UDP), and more in the send queue of each connection.
/// [`answers_dropped`](crate::EndpointStats::answers_dropped) counts packets of no connection that
/// found no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// How often the send buffer was full.
    pub times_blocked: u64,
    /// Bytes of packets that are ready and wait now.
    pub waiting_bytes: usize,
}

/// What the system offers a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoInfo {
    /// Most datagrams in one write (1: no segmentation offload).
    pub max_gso_segments: usize,
    /// Most datagrams that one read returns merged (1: no receive offload).
    pub gro_segments: usize,
    /// Kernel receive buffer in bytes, as the system reports it (on Linux, twice what was
    /// requested).
    pub recv_buffer_bytes: usize,
}

impl IoInfo {
    pub(crate) fn of(shared: &Shared) -> Self {
        Self {
            max_gso_segments: shared.io.max_gso_segments(),
            gro_segments: shared.io.gro_segments(),
            recv_buffer_bytes: shared.io.recv_buffer_bytes(),
        }
    }
}
