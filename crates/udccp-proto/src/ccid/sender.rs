//! The sender half of a CCID: when data may be sent.

use core::fmt;

use udccp_base::{DataRate, Duration, Ecn, Instant};
use udccp_wire::{FeatureNumber, OptionRef, Seqno};

use crate::ackvec::DropCode;
use crate::ccid::{ReceivedInfo, ReceivedRun};
use crate::features::Location;

/// A packet and its answer live at most twice the maximum segment lifetime of two minutes (RFC 4340
/// section 3.4). A longer time is not a sample of the round-trip time: a host was suspended.
pub(crate) const LONGEST_RTT: Duration = Duration::from_secs(240);

/// Whether a data packet may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendVerdict {
    /// Send it now.
    Now,
    /// Ask again at this time (pacing). `poll_timeout` includes it.
    At(Instant),
    /// Ask again after an acknowledgement or a timeout.
    Blocked,
}

/// A packet that was just sent, of any type.
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
    /// Whether there is nothing more to send.
    pub app_limited: bool,
    /// Its ECN codepoint. CE is a mark of our own, to check whether it is reported (RFC 4340
    /// section 12.3). If it is, it does not mean congestion.
    pub ecn: Ecn,
}

/// What a valid packet with an Ack Number reports about our packets. Slices contain the data of
/// options; several options of one kind are joined in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckInfo<'a> {
    /// The acknowledged packet.
    pub ackno: Seqno,
    /// The acknowledging packet.
    pub seq: Seqno,
    /// Ack Vector cells and the ECN Nonce Echo; `None` if the packet has no Ack Vector.
    pub ack_vector: Option<(&'a [u8], bool)>,
    /// Data Dropped blocks; empty if there are none.
    pub data_dropped: &'a [u8],
    /// Elapsed Time.
    pub elapsed: Option<Duration>,
    /// A round-trip time measured with Timestamp Echo, minus its Elapsed Time.
    pub timestamp_echo_rtt: Option<Duration>,
    /// CCID-specific options to the CCID's sender (types 192 to 255): type, length and data of
    /// each.
    pub ccid_options: &'a [u8],
    /// Whether it has the option Slow Receiver.
    pub slow_receiver: bool,
    /// Whether the acknowledging packet carries application data.
    pub is_data_ack: bool,
}

/// Data packets that the peer received but did not deliver to its application, or only damaged, by
/// Drop Code (RFC 4340 section 11.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerDrops {
    /// 0: data on a packet that must not carry it, or too little checksum coverage.
    pub protocol_constraints: u64,
    /// 1: the application reads no more.
    pub not_listening: u64,
    /// 2: no room in a receive buffer.
    pub receive_buffer: u64,
    /// 3: corrupt.
    pub corrupt: u64,
    /// 4 to 6: codes that are not defined yet.
    pub reserved: u64,
    /// 7: corrupt, but delivered.
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

    /// The counts with their codes. Reserved codes are counted together under the first of them.
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

/// The effects of an acknowledgement, for statistics and the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Data packets reported received for the first time.
    pub newly_acked: u32,
    /// Those among them that were reported ECN-marked.
    pub newly_marked: u32,
    /// Data packets newly considered lost.
    pub newly_lost: u32,
    /// Data packets that were considered lost and are now reported received.
    pub late: u32,
    /// Received data packets newly reported as dropped (Data Dropped, any code).
    pub data_dropped: u32,
    /// The same by Drop Code.
    pub peer_drops: PeerDrops,
    /// Congestion marks of our own that were reported, see [`SentInfo::ecn`].
    pub probes_reported: u32,
    /// Congestion marks of our own that were not reported. They count as marks by the network.
    pub probes_hidden: u32,
    /// The peer's application reads no more (Drop Code 1): send no more data (RFC 4340 section
    /// 11.7.2).
    pub not_listening: bool,
    /// A protocol constraint at the peer dropped data (Drop Code 0): wait until it no longer
    /// applies.
    pub constrained: bool,
}

/// The effects of a call of [`CcidSender::handle_timeout`], for the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeoutOutcome {
    /// The transmit timer expired, or the nofeedback timer while data was sent. Packets may have
    /// been lost, perhaps because they were too large for the path.
    pub timed_out: bool,
    /// The transmit or nofeedback timer expired: reports of what is in flight are no longer
    /// expected.
    pub gave_up: bool,
}

/// What the options of a CCID report about packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketReport {
    /// They arrived without a mark.
    Received,
    /// They were lost, or arrived with an ECN mark.
    LostOrMarked,
    /// Nothing is reported about each of them.
    Unknown,
}

/// A feature value that a CCID needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureNeed {
    /// The feature.
    pub feature: FeatureNumber,
    /// Where it is located, as seen from the side of the CCID half.
    pub location: Location,
    /// The value needed.
    pub value: u64,
    /// Whether to send the Change as Mandatory.
    pub mandatory: bool,
    /// Whether data has to wait until the peer has agreed.
    pub before_data: bool,
}

/// State of a sender half, for statistics and recorders. Values that a CCID does not have are
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CcidMetrics {
    /// Congestion window in packets.
    pub cwnd: Option<u32>,
    /// Slow start threshold in packets; `None` also while it is unlimited.
    pub ssthresh: Option<u32>,
    /// Data packets believed to be in the network.
    pub pipe: Option<u32>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Round-trip time variation.
    pub rttvar: Option<Duration>,
    /// Smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// Transmit or nofeedback timeout, with backoff.
    pub rto: Option<Duration>,
    /// Allowed sending rate X in bytes per second.
    pub x_bytes_per_sec: Option<f64>,
    /// Loss event rate p, 0 to 1.
    pub loss_event_rate: Option<f64>,
    /// Receive rate that the peer last reported, X_recv, in bytes per second (RFC 5348 section
    /// 3.2.2).
    pub x_recv_bytes_per_sec: Option<f64>,
    /// Rate of the throughput equation, X_Bps, in bytes per second (RFC 5348 section 3.1); `None`
    /// before the first loss.
    pub x_calc_bytes_per_sec: Option<f64>,
    /// Time between two packets, t_ipi (RFC 5348 section 4.6).
    pub packet_interval: Option<Duration>,
    /// Mean packet size s in bytes (RFC 5348 section 4.1).
    pub mean_packet_bytes: Option<u32>,
    /// Ack Ratio that we want the peer to use.
    pub ack_ratio: Option<u16>,
    /// Congestion events so far that reduced the window or rate.
    pub congestion_events: u64,
    /// Timeouts so far.
    pub timeouts: u64,
    /// Data packets considered lost so far.
    pub packets_lost: u64,
    /// Data packets reported ECN-marked so far.
    pub packets_marked: u64,
}

/// H of RFC 5634 section 3.1.3: IPv4 header, and DCCP-Data header with 24-bit numbers, in bytes.
pub(crate) const QUICK_START_HEADER_BYTES: u64 = 32;

/// A step of Quick-Start at the sender (RFC 5634 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuickStartStep {
    /// This rate was approved, and the round-trip time is known.
    Approved(DataRate),
    /// All packets sent at that rate arrived, or the time to find out is over.
    Validated,
    /// A packet sent at that rate was lost or marked.
    Congested,
    /// No feedback arrived in all that time.
    Silent,
}

/// The sender half of a CCID. Implementations derive `Clone`.
pub trait CcidSender: super::CloneSender + Send + fmt::Debug {
    /// The CCID's number.
    fn ccid(&self) -> u8;

    /// Whether a data packet of `size_bytes` may be sent now. Called only while data waits.
    fn poll_send(&mut self, now: Instant, size_bytes: u32) -> SendVerdict;

    /// The CCVal of the data packet that is being built, 0 to 15. A call of `on_sent` follows.
    fn ccval(&mut self, now: Instant) -> u8 {
        let _ = now;
        0
    }

    /// The path has changed, and this half replaces another. The peer may still report packets of
    /// that one.
    fn on_path_changed(&mut self) {}

    /// A packet was sent. Called for every packet of the connection, in order of sequence numbers.
    fn on_sent(&mut self, now: Instant, packet: SentInfo);

    /// A valid packet with an Ack Number was received.
    fn on_ack(&mut self, now: Instant, ack: &AckInfo<'_>) -> AckOutcome;

    /// Whether this half understands this option of the peer's receiver half, of types 192 to 255.
    /// A Mandatory option before any other resets the connection (RFC 4340 section 5.8.2). By
    /// default it understands none.
    fn reads_option(&self, option: &OptionRef<'_>) -> bool {
        let _ = option;
        false
    }

    /// Calls `visit(report, newest, oldest)` for what the CCID's own options in an acknowledgement
    /// report about packets, newest first. Called after `on_ack`, only for acknowledgements without
    /// an Ack Vector, and only while the application waits for the fate of a message.
    fn read_reports(&self, ack: &AckInfo<'_>, visit: &mut dyn FnMut(PacketReport, Seqno, Seqno)) {
        let _ = (ack, visit);
    }

    /// A valid packet of any type was received. Called before `on_ack`. Its sequence number shows
    /// which acknowledgements were lost or marked.
    fn on_peer_packet(&mut self, now: Instant, packet: &ReceivedInfo) {
        let _ = (now, packet);
    }

    /// Several data packets arrived together. By default, `on_peer_packet` for each.
    fn on_peer_run(&mut self, now: Instant, run: &ReceivedRun<'_>) {
        run.each().for_each(|packet| self.on_peer_packet(now, &packet));
    }

    /// Quick-Start (RFC 5634 section 3) has reached this step. Returns whether the sender makes use
    /// of it; the default is that it does not.
    fn quick_start(&mut self, now: Instant, step: QuickStartStep) -> bool {
        let _ = (now, step);
        false
    }

    /// The duration of the handshake by our own clock, with the peer's delay. Called before
    /// `on_handshake_rtt`. The delay that the peer reports may be false.
    fn on_handshake_measured(&mut self, now: Instant, total: Duration) {
        let _ = (now, total);
    }

    /// The handshake measured a round-trip time with the peer's Timestamp Echo.
    fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        let _ = (now, rtt);
    }

    /// Whether the next data packet should carry an Ack Number (DataAck instead of Data), so that
    /// the peer can discard state of what it has reported.
    fn wants_ack_of_ack(&self) -> bool {
        false
    }

    /// The Ack Ratio that the peer should use; `None` if the feature need not change. The value
    /// stays the same until the CCID wants another, so compare it with the one in force or in
    /// negotiation.
    fn wanted_ack_ratio(&self) -> Option<u16> {
        None
    }

    /// The Ack Ratio that the peer uses now.
    fn on_ack_ratio_confirmed(&mut self, ack_ratio: u16) {
        let _ = ack_ratio;
    }

    /// The Sequence Window for the packets sent in a round-trip time (RFC 4340 section 7.5.2: about
    /// five times as many).
    fn seq_window_needed(&self) -> u64;

    /// At most this many packets may be in flight, whatever the window allows: the part of the
    /// current Sequence Window that is safe to use.
    fn limit_in_flight(&mut self, packets: u64) {
        let _ = packets;
    }

    /// When to call `handle_timeout`; `None`: not at all.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The time of `poll_timeout` may have come.
    fn handle_timeout(&mut self, now: Instant) -> TimeoutOutcome;

    /// Whether reports of sent data packets are still expected: they may arrive, or this half's
    /// timer gives them up. `None` if only its reports of packets show that.
    fn awaits_reports(&self) -> Option<bool> {
        None
    }

    /// Smoothed round-trip time; `None` before the first sample.
    fn rtt(&self) -> Option<Duration>;

    /// The current transmit or nofeedback timeout.
    fn rto(&self) -> Duration;

    /// State for statistics.
    fn metrics(&self) -> CcidMetrics;
}
