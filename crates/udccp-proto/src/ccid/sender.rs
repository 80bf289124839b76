//! Defines the sender half of a CCID: when data may leave.

use core::fmt;

use udccp_base::{DataRate, Duration, Ecn, Instant};
use udccp_wire::{FeatureNumber, Seqno};

use crate::ackvec::DropCode;
use crate::ccid::{ReceivedInfo, ReceivedRun};
use crate::features::Location;

/// A packet and its answer live no longer: twice the maximum segment lifetime of two minutes (RFC
/// 4340 section 3.4). What took longer is no sample of a round-trip time, as a host slept then.
pub(crate) const LONGEST_RTT: Duration = Duration::from_secs(240);

/// Whether a data packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendVerdict {
    /// Send it now.
    Now,
    /// Ask again at this time (pacing); `poll_timeout` includes it.
    At(Instant),
    /// Ask again after an acknowledgement or a timeout.
    Blocked,
}

/// A packet that just left, of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentInfo {
    /// Its sequence number. Each is greater than the one before.
    pub seq: Seqno,
    /// Bytes of application data.
    pub size_bytes: u32,
    /// Whether it carries application data: Data, DataAck, or a Request or Response with data.
    pub is_data: bool,
    /// Whether it carries an Ack Number, and so acknowledges the peer's acknowledgements.
    pub has_ack: bool,
    /// Whether nothing more waits to be sent.
    pub app_limited: bool,
    /// Its ECN codepoint. CE is a mark of our own, to see whether it is reported (RFC 4340 section
    /// 12.3): one that is means no congestion.
    pub ecn: Ecn,
}

/// What a valid packet with an Ack Number reports about ours. Slices are the options' data, several
/// options of one kind joined in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckInfo<'a> {
    /// The acknowledged packet.
    pub ackno: Seqno,
    /// The acknowledging packet.
    pub seq: Seqno,
    /// Ack Vector cells and the ECN Nonce Echo; `None` where the packet has no Ack Vector.
    pub ack_vector: Option<(&'a [u8], bool)>,
    /// Data Dropped blocks; empty where there are none.
    pub data_dropped: &'a [u8],
    /// Elapsed Time.
    pub elapsed: Option<Duration>,
    /// A round-trip time measured by Timestamp Echo, its Elapsed Time taken off.
    pub timestamp_echo_rtt: Option<Duration>,
    /// CCID-specific options for a CCID's sender (types 192..=255): each as type, length, data.
    pub ccid_options: &'a [u8],
    /// Whether the Slow Receiver option is there.
    pub slow_receiver: bool,
    /// Whether the acknowledging packet carries application data.
    pub is_data_ack: bool,
}

/// Data packets that the peer received without its application having their data as it should, by
/// Drop Code (RFC 4340 section 11.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerDrops {
    /// 0: data where none is allowed, or too little checksum coverage.
    pub protocol_constraints: u64,
    /// 1: the application reads no more.
    pub not_listening: u64,
    /// 2: no room in a receive buffer.
    pub receive_buffer: u64,
    /// 3: corrupt.
    pub corrupt: u64,
    /// 4 to 6: codes without a meaning yet.
    pub reserved: u64,
    /// 7: corrupt, and delivered all the same.
    pub delivered_corrupt: u64,
}

impl PeerDrops {
    /// Counts `packets` with this code.
    pub const fn add(&mut self, code: DropCode, packets: u64) {
        let count = match code {
            DropCode::ProtocolConstraints => &mut self.protocol_constraints,
            DropCode::ApplicationNotListening => &mut self.not_listening,
            DropCode::ReceiveBuffer => &mut self.receive_buffer,
            DropCode::Corrupt => &mut self.corrupt,
            DropCode::Reserved(_) => &mut self.reserved,
            DropCode::DeliveredCorrupt => &mut self.delivered_corrupt,
        };
        *count += packets;
    }

    /// The counts with their codes; reserved codes are all counted under the first of them.
    pub const fn by_code(&self) -> [(DropCode, u64); 6] {
        [
            (DropCode::ProtocolConstraints, self.protocol_constraints),
            (DropCode::ApplicationNotListening, self.not_listening),
            (DropCode::ReceiveBuffer, self.receive_buffer),
            (DropCode::Corrupt, self.corrupt),
            (DropCode::Reserved(4), self.reserved),
            (DropCode::DeliveredCorrupt, self.delivered_corrupt),
        ]
    }
}

/// What an acknowledgement changed, for statistics and for the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Data packets first reported received.
    pub newly_acked: u32,
    /// Of those, reported ECN-marked.
    pub newly_marked: u32,
    /// Data packets first inferred lost.
    pub newly_lost: u32,
    /// Data packets that were inferred lost, and now are reported received.
    pub late: u32,
    /// Received data packets whose data was first reported dropped (Data Dropped, any code).
    pub data_dropped: u32,
    /// The same by Drop Code.
    pub peer_drops: PeerDrops,
    /// Congestion marks of our own that were reported, see [`SentInfo::ecn`].
    pub probes_reported: u32,
    /// Those that were not: the packets are taken for marked by the network.
    pub probes_hidden: u32,
    /// The peer's application no longer listens (Drop Code 1): send no more data (RFC 4340
    /// section 11.7.2).
    pub not_listening: bool,
    /// A protocol constraint at the peer dropped data (Drop Code 0): wait until it no longer
    /// applies.
    pub constrained: bool,
}

/// What a call of [`CcidSender::handle_timeout`] changed, for the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeoutOutcome {
    /// A transmit timeout, or a no-feedback timeout while data was sent: packets may have been
    /// lost, perhaps because they were too large for the path.
    pub timed_out: bool,
    /// The transmit or nofeedback timer ran out: no report of what is in flight is waited for any
    /// more.
    pub gave_up: bool,
}

/// What the options of a CCID report of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketReport {
    /// They arrived unmarked.
    Received,
    /// They were lost, or arrived with an ECN mark.
    LostOrMarked,
    /// Nothing will be reported of each by itself.
    Unknown,
}

/// A feature value that a CCID asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureNeed {
    /// Which.
    pub feature: FeatureNumber,
    /// Where it is located, seen from the end that the CCID half lives at.
    pub location: Location,
    /// The value needed.
    pub value: u64,
    /// Whether the Change is to be sent Mandatory.
    pub mandatory: bool,
    /// Whether data waits until the peer has agreed.
    pub before_data: bool,
}

/// State of a sender half, for statistics and recorders. A CCID leaves out what it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CcidMetrics {
    /// Congestion window in packets.
    pub cwnd: Option<u32>,
    /// Slow start threshold in packets; `None` also while it is arbitrarily high.
    pub ssthresh: Option<u32>,
    /// Data packets believed to be in the network.
    pub pipe: Option<u32>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Round-trip time variation.
    pub rttvar: Option<Duration>,
    /// Smallest round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// Transmit (or no-feedback) timeout, backed off.
    pub rto: Option<Duration>,
    /// Allowed sending rate.
    pub x_bytes_per_sec: Option<f64>,
    /// Loss event rate, 0..=1.
    pub loss_event_rate: Option<f64>,
    /// Receive rate that the peer last reported, X_recv (RFC 5348 section 3.2.2).
    pub x_recv_bytes_per_sec: Option<f64>,
    /// Rate of the throughput equation, X_Bps, once there was a loss (RFC 5348 section 3.1).
    pub x_calc_bytes_per_sec: Option<f64>,
    /// Time between two packets, t_ipi (RFC 5348 section 4.6).
    pub packet_interval: Option<Duration>,
    /// Mean packet size s in bytes (RFC 5348 section 4.1).
    pub mean_packet_bytes: Option<u32>,
    /// Ack Ratio that we want the peer to use.
    pub ack_ratio: Option<u16>,
    /// Congestion events that cut the window or rate so far.
    pub congestion_events: u64,
    /// Timeouts so far.
    pub timeouts: u64,
    /// Data packets inferred lost so far.
    pub packets_lost: u64,
    /// Data packets reported ECN-marked so far.
    pub packets_marked: u64,
}

/// H of RFC 5634 section 3.1.3: IPv4 header, and DCCP-Data header with 24-bit numbers, in bytes.
pub(crate) const QUICK_START_HEADER_BYTES: u64 = 32;

/// What happens to a sender in Quick-Start (RFC 5634 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuickStartStep {
    /// This rate was approved; the round-trip time is known.
    Approved(DataRate),
    /// All packets sent at that rate arrived, or the time to see that is over.
    Validated,
    /// A packet sent at that rate was lost or marked.
    Congested,
    /// No feedback came in all that time.
    Silent,
}

/// The sender half of a CCID; it derives `Clone`.
pub trait CcidSender: super::CloneSender + Send + fmt::Debug {
    /// The CCID's number.
    fn ccid(&self) -> u8;

    /// Whether a data packet of `size_bytes` may leave now. Called only while data waits.
    fn poll_send(&mut self, now: Instant, size_bytes: u32) -> SendVerdict;

    /// The CCVal of the data packet that is being written, below 16; `on_sent` follows.
    fn ccval(&mut self, now: Instant) -> u8 {
        let _ = now;
        0
    }

    /// The path has changed, and this half takes the place of another, of whose packets the peer
    /// may still report.
    fn on_path_changed(&mut self) {}

    /// A packet left. Called for every packet of the connection, in order of sequence numbers.
    fn on_sent(&mut self, now: Instant, packet: SentInfo);

    /// A valid packet with an Ack Number arrived.
    fn on_ack(&mut self, now: Instant, ack: &AckInfo<'_>) -> AckOutcome;

    /// Calls `visit(report, newest, oldest)` for what the CCID's own options in an acknowledgement
    /// report of packets, newest first. Asked only about acknowledgements without an Ack Vector,
    /// while the application waits for the fate of a message, and after `on_ack`.
    fn read_reports(&self, ack: &AckInfo<'_>, visit: &mut dyn FnMut(PacketReport, Seqno, Seqno)) {
        let _ = (ack, visit);
    }

    /// A valid packet of any type arrived; called before `on_ack`: its sequence number shows which
    /// acknowledgements were lost or marked.
    fn on_peer_packet(&mut self, now: Instant, packet: &ReceivedInfo) {
        let _ = (now, packet);
    }

    /// The same for data packets that arrived together, where that can be done at once.
    fn on_peer_run(&mut self, now: Instant, run: &ReceivedRun<'_>) {
        run.each().for_each(|packet| self.on_peer_packet(now, &packet));
    }

    /// Quick-Start (RFC 5634 section 3) came to this point. Returns whether the sender makes use of
    /// it; one that does not know Quick-Start never does.
    fn quick_start(&mut self, now: Instant, step: QuickStartStep) -> bool {
        let _ = (now, step);
        false
    }

    /// Our own clock measured the handshake, the peer's wait included; called before
    /// `on_handshake_rtt`. What the peer reports of its wait may be a lie.
    fn on_handshake_measured(&mut self, now: Instant, total: Duration) {
        let _ = (now, total);
    }

    /// The handshake measured a round-trip time, by the peer's Timestamp Echo.
    fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        let _ = (now, rtt);
    }

    /// Whether the next data packet should carry an Ack Number (DataAck instead of Data), so that
    /// the peer can forget what it reported.
    fn wants_ack_of_ack(&self) -> bool {
        false
    }

    /// The Ack Ratio that the peer should use; `None` leaves the feature alone. Stays the same
    /// until the CCID changes its mind, so compare it with the value in force or under negotiation.
    fn wanted_ack_ratio(&self) -> Option<u16> {
        None
    }

    /// The Ack Ratio now in force at the peer.
    fn on_ack_ratio_confirmed(&mut self, ack_ratio: u16) {
        let _ = ack_ratio;
    }

    /// The Sequence Window that suits the packets sent in a round-trip time (RFC 4340 section
    /// 7.5.2: about five times as many).
    fn seq_window_needed(&self) -> u64;

    /// At most this many packets may be in flight, whatever the window allows: the part of the
    /// Sequence Window in force that is safe to use.
    fn limit_in_flight(&mut self, packets: u64) {
        let _ = packets;
    }

    /// When to call `handle_timeout`.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The time that `poll_timeout` named may have come.
    fn handle_timeout(&mut self, now: Instant) -> TimeoutOutcome;

    /// Whether reports of data packets that left are still waited for: they may come, or the timer
    /// of this half gives them up. `None` where only what it reported of packets tells.
    fn awaits_reports(&self) -> Option<bool> {
        None
    }

    /// Smoothed round-trip time; `None` before the first sample.
    fn rtt(&self) -> Option<Duration>;

    /// The transmit (or no-feedback) timeout now.
    fn rto(&self) -> Duration;

    /// State for statistics.
    fn metrics(&self) -> CcidMetrics;
}
