//! Counters of connections and of the endpoint.

use udccp_base::{Duration, Probe};

use crate::ccid::PeerDrops;
use crate::state::State;

/// State, congestion control, queues and counters of a connection. Counters start at 0 with the
/// connection. `D` is the type of times.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats<D = Duration> {
    /// The state (RFC 4340 section 4.3).
    pub state: State,
    /// CCID of the data we send; `None` before it is negotiated.
    pub tx_ccid: Option<u8>,
    /// CCID of the data we receive; `None` before it is negotiated.
    pub rx_ccid: Option<u8>,
    /// Congestion window in packets (window-based CCIDs).
    pub cwnd_packets: Option<u32>,
    /// Slow start threshold in packets (window-based CCIDs); `None` also while it is unlimited.
    pub ssthresh_packets: Option<u32>,
    /// Packets believed to be in the network.
    pub pipe_packets: Option<u32>,
    /// Allowed sending rate in bytes per second (rate-based CCIDs).
    pub x_bytes_per_sec: Option<f64>,
    /// Loss event rate, 0 to 1 (rate-based CCIDs).
    pub loss_event_rate: Option<f64>,
    /// Smoothed round-trip time.
    pub srtt: Option<D>,
    /// Variation of the round-trip time.
    pub rttvar: Option<D>,
    /// Retransmission timeout, or nofeedback timeout of CCIDs 3 and 4.
    pub rto: Option<D>,
    /// Congestion events that reduced the window or rate.
    pub congestion_events: u64,
    /// Expirations of `rto`.
    pub timeouts: u64,
    /// The largest message that fits in one packet now, in bytes.
    pub max_message_size: usize,
    /// Messages waiting to be sent.
    pub send_queue_packets: usize,
    /// Payload bytes waiting to be sent (`SIOCOUTQ`).
    pub send_queue_bytes: usize,
    /// Messages waiting to be read.
    pub recv_queue_packets: usize,
    /// Payload bytes waiting to be read.
    pub recv_queue_bytes: usize,
    /// Counters.
    pub counters: ConnectionCounters,
}

impl ConnectionStats {
    /// The state of the sender's congestion control in the form that recorders sample. DCCP never
    /// retransmits data.
    pub fn probe(&self) -> Probe {
        Probe {
            cwnd_packets: self.cwnd_packets.map(f64::from),
            ssthresh_packets: self.ssthresh_packets.map(f64::from),
            pipe_packets: self.pipe_packets.map(u64::from),
            srtt: self.srtt,
            rto: self.rto,
            x_bytes_per_sec: self.x_bytes_per_sec,
            loss_event_rate: self.loss_event_rate,
            congestion_events: self.congestion_events,
            timeouts: self.timeouts,
            retransmits: 0,
        }
    }

    /// Converts all times to another type.
    pub fn with_times<D>(self, convert: impl Fn(Duration) -> D) -> ConnectionStats<D> {
        let Self { srtt, rttvar, rto, .. } = self;
        ConnectionStats {
            srtt: srtt.map(&convert),
            rttvar: rttvar.map(&convert),
            rto: rto.map(&convert),
            state: self.state,
            tx_ccid: self.tx_ccid,
            rx_ccid: self.rx_ccid,
            cwnd_packets: self.cwnd_packets,
            ssthresh_packets: self.ssthresh_packets,
            pipe_packets: self.pipe_packets,
            x_bytes_per_sec: self.x_bytes_per_sec,
            loss_event_rate: self.loss_event_rate,
            congestion_events: self.congestion_events,
            timeouts: self.timeouts,
            max_message_size: self.max_message_size,
            send_queue_packets: self.send_queue_packets,
            send_queue_bytes: self.send_queue_bytes,
            recv_queue_packets: self.recv_queue_packets,
            recv_queue_bytes: self.recv_queue_bytes,
            counters: self.counters,
        }
    }
}

/// The counters of `ConnectionStats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionCounters {
    /// Quick-Start requests that were approved and used (RFC 5634).
    pub quick_starts: u64,
    /// Packets sent, of every type.
    pub packets_sent: u64,
    /// Packets received and found valid, of every type.
    pub packets_received: u64,
    /// Data and DataAck packets sent.
    pub data_packets_sent: u64,
    /// Data and DataAck packets received.
    pub data_packets_received: u64,
    /// Payload bytes sent.
    pub data_bytes_sent: u64,
    /// Payload bytes received and queued for the application.
    pub data_bytes_received: u64,
    /// Bare Ack packets sent.
    pub acks_sent: u64,
    /// Bare Ack packets received.
    pub acks_received: u64,
    /// Data packets that the peer reported received.
    pub data_packets_acked: u64,
    /// Data packets counted as lost. One that arrives later counts in `data_packets_acked` too.
    pub data_packets_lost: u64,
    /// Received packets that carried a congestion mark.
    pub ecn_ce_received: u64,
    /// Congestion marks of our own that the peer reported (`ConnectionConfig::ecn_probe`).
    pub ecn_probes_reported: u64,
    /// Congestion marks of our own that the peer did not report.
    pub ecn_probes_hidden: u64,
    /// Sync packets sent.
    pub syncs_sent: u64,
    /// Sync packets received.
    pub syncs_received: u64,
    /// SyncAck packets sent.
    pub sync_acks_sent: u64,
    /// SyncAck packets received.
    pub sync_acks_received: u64,
    /// Syncs and SyncAcks not sent because of the rate limit.
    pub syncs_limited: u64,
    /// Reset packets sent.
    pub resets_sent: u64,
    /// Reset packets received and found valid.
    pub resets_received: u64,
    /// Requests retransmitted.
    pub requests_retransmitted: u64,
    /// Closes and CloseReqs retransmitted.
    pub closes_retransmitted: u64,
    /// Keep-alive probes sent.
    pub keep_alives_sent: u64,
    /// Padded Syncs sent to search for the path MTU.
    pub pmtu_probes_sent: u64,
    /// Packets received with the option Slow Receiver, which requests that we not send faster.
    pub slow_receiver_received: u64,
    /// How often acknowledgements began to be held back because the receive queue was half full.
    pub acks_held: u64,
    /// Received data packets reported as congestion-marked because the receive queue was long.
    pub local_congestion_marks: u64,
    /// Received data packets that were delivered although they were corrupt (Drop Code 7).
    pub corrupt_delivered: u64,
    /// Sent data that the peer received but did not deliver, or delivered damaged, by Drop Code.
    pub peer_drops: PeerDrops,
    /// Dropped packets and messages, by reason.
    pub drops: DropCounters,
}

/// Packets and messages dropped by a connection, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DropCounters {
    /// Received: sequence or acknowledgement number outside its window (section 7.5).
    pub sequence_invalid: u64,
    /// Received: a type that the state does not allow (section 8.5, step 7).
    pub unexpected_type: u64,
    /// Received: checksum coverage below the agreed minimum (section 9.2.1).
    pub coverage_too_small: u64,
    /// Received: broken options.
    pub bad_options: u64,
    /// Received: a copy of a packet received before.
    pub duplicates: u64,
    /// Received: Data Checksum wrong (section 9.3).
    pub corrupt_payload: u64,
    /// Received: no space in the receive queue (Drop Code 2).
    pub receive_queue_full: u64,
    /// Received: data after the application stopped reading (Drop Code 1).
    pub not_listening: u64,
    /// Received: data on a packet that must not carry it (Drop Code 0).
    pub protocol_constraints: u64,
    /// To be sent: deadline passed.
    pub send_expired: u64,
    /// To be sent: displaced by a message of higher priority.
    pub send_displaced: u64,
    /// To be sent: the connection ended first.
    pub send_ended: u64,
    /// To be sent: larger than the path's packet size after it shrank.
    pub send_too_large: u64,
}

/// Counters of an endpoint outside its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams passed in.
    pub datagrams_received: u64,
    /// Datagrams returned for sending.
    pub datagrams_sent: u64,
    /// Dropped: not DCCP, too short, or with contradictory fields (section 8.5, step 1).
    pub malformed: u64,
    /// Dropped: header checksum wrong.
    pub bad_checksum: u64,
    /// Dropped: belonged to no connection and no listener.
    pub no_connection: u64,
    /// Resets sent for packets that belonged to no connection.
    pub out_of_the_blue_resets_sent: u64,
    /// Resets not sent because of the rate limit.
    pub out_of_the_blue_resets_limited: u64,
    /// Answers that belong to no connection (Resets, Responses with an Init Cookie, Listen packets)
    /// and were not sent, because 1024 others were waiting to be sent.
    pub answers_dropped: u64,
    /// Requests refused: service code not served here.
    pub bad_service: u64,
    /// Requests refused, or handshakes delayed: backlog or connection table full.
    pub too_busy: u64,
    /// Requests answered with an Init Cookie, without keeping state.
    pub cookies_sent: u64,
    /// Connections created from an Init Cookie that a client returned.
    pub cookies_taken: u64,
    /// Init Cookies refused: modified, from another address, or too old.
    pub bad_cookies: u64,
    /// Listen packets sent by invitations (RFC 5596).
    pub listens_sent: u64,
    /// Listen packets received.
    pub listens_received: u64,
    /// Connections started here.
    pub connects: u64,
    /// Connections started by clients whose handshake is complete.
    pub accepts: u64,
    /// Connections now in the table.
    pub connections: usize,
    /// Tuples now in TIMEWAIT. They do not count as connections.
    pub timewaits: usize,
    /// TIMEWAITs that ended early, the oldest first, because there were more than
    /// `EndpointConfig::max_timewaits`.
    pub timewaits_evicted: u64,
}
