//! The settings of a TCP end. Defaults are those of a current host; other hosts have profiles.

use udccp_base::Duration;
use udccp_cc::{Algorithm, InitialWindow};

/// The memory that Linux 2.6.22 accounts to a segment in addition to its data: header room, and
/// `sk_buff` on a 64-bit machine. A segment of 1,448 bytes has 1,664 in its buffer.
const SEGMENT_OVERHEAD_2_6_BYTES: u32 = 448;

/// Settings of one TCP end. Usually both ends of a flow have the same.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Largest segment in bytes, as in the MSS option: the path MTU minus 40 (RFC 9293 section
    /// 3.7.1). Options reduce it: with timestamps a segment carries 12 bytes less.
    pub mss: u16,
    /// Congestion control of the data sent from this end.
    pub algorithm: Algorithm,
    /// Congestion window after the handshake.
    pub initial_window: InitialWindow,
    /// Upper limit of the congestion window in segments (`snd_cwnd_clamp`); `None`: no limit.
    pub max_cwnd: Option<u32>,
    /// Initial slow start threshold in segments, from an earlier connection to this peer
    /// (`RTAX_SSTHRESH`, if `tcp_no_metrics_save` is 0); `None`: unlimited (RFC 5681 section 3.1).
    pub initial_ssthresh: Option<u32>,
    /// How an acknowledgement counts for the growth of the window.
    pub ack_counting: AckCounting,
    /// How the window is reduced in loss recovery.
    pub window_reduction: WindowReduction,
    /// Room in bytes for data that arrived and was not read: the largest window advertised.
    pub recv_buffer_bytes: u32,
    /// Whether the advertised window starts at 64 kB and opens by two segments per arriving
    /// segment. Meanwhile each segment is acknowledged at once (`tcp_grow_window`). Kernels do so
    /// if an application has set the buffer. A buffer of 16 MiB takes 5,700 segments.
    pub opens_window: bool,
    /// Room in bytes for data that was accepted and is not acknowledged yet.
    pub send_buffer_bytes: u64,
    /// If set, the send buffer is memory as a kernel counts it: each segment takes this many bytes
    /// in addition to its data (`truesize`), and a full buffer accepts data again when a third of
    /// it is free (`sk_stream_min_wspace`).
    pub segment_overhead_bytes: Option<u32>,
    /// Limit of bytes accepted and not sent yet, at which the end stops being writable.
    pub unsent_limit_bytes: u64,
    /// When the receiver sends acknowledgements.
    pub delayed_ack: DelayedAck,
    /// Retransmission timeout before the first round-trip time sample (RFC 6298 section 2.1).
    pub initial_rto: Duration,
    /// Lower bound of the retransmission timeout (default 200 ms, as in kernels). RFC 6298 section
    /// 2.4 says 1 s, with which a loss at the end of a window costs five times as much time.
    pub min_rto: Duration,
    /// Smallest difference between the timeout and the smoothed round-trip time: the G of RFC 6298
    /// section 2.3, which is 200 ms in kernels, their minimum RTO. Without it a steady path of 300
    /// ms has an RTO of 301 ms, which would expire during every fast retransmission.
    pub rto_margin: Duration,
    /// Timers expire at multiples of this, and waiting times are rounded up to it, as in a kernel
    /// with ticks; zero for no rounding.
    pub tick: Duration,
    /// Which acknowledgements give a round-trip time.
    pub rtt_sampling: RttSampling,
    /// Upper bound of the retransmission timeout (RFC 6298 section 2.5: at least 60 s).
    pub max_rto: Duration,
    /// Use the Timestamps option (RFC 7323).
    pub timestamps: bool,
    /// Use the Window Scale option (RFC 7323). Without it no window exceeds 65,535 bytes.
    pub window_scaling: bool,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Make one rescue retransmission per recovery (RFC 6675 section 4, rule 4 of NextSeg).
    pub rescue: bool,
    /// Whether the acknowledgement that ends a recovery counts for growth, as in kernels since 4.6.
    pub grows_at_recovery_end: bool,
    /// Whether a timeout during a recovery keeps the slow start threshold set by the recovery, as
    /// in kernels (`tcp_enter_loss`) but not in RFC 5681.
    pub timeout_keeps_threshold: bool,
    /// Whether new data is sent after the first acknowledgement that follows a timeout, before
    /// further retransmissions, to detect a spurious timeout (F-RTO, RFC 5682 section 3.1). The
    /// effects of a spurious timeout are not undone.
    pub frto: bool,
    /// Whether a receiver delays acknowledgements of out-of-order segments after the first three of
    /// a hole, by a millisecond or a twentieth of the round-trip time, if that is less (kernels
    /// since 4.18).
    pub compresses_sacks: bool,
    /// How losses are detected.
    pub loss_detection: LossDetection,
    /// With [`LossDetection::Sack`]: detect lost retransmissions before the timer expires, as
    /// kernels do and RFC 6675 does not. The window is not reduced again for them (as in kernels,
    /// but not in RFC 5681 section 4.3).
    pub detect_lost_retransmissions: bool,
    /// Use explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Most segments in one burst if the congestion control sets a rate: a burst is the data of a
    /// millisecond at that rate, at least two segments, as kernels size segments for offload. 1 for
    /// no bursts. The window leaves room for bursts.
    pub max_train: u32,
    /// Whether the segments of a burst leave together (segmentation offload), or each at its time.
    pub offload: bool,
    /// Whether segments wait in the socket while two of them, or the data of a millisecond at the
    /// sending rate, are queued in the host's device (TCP Small Queues, kernels since 3.6).
    pub small_queues: bool,
    /// Whether the window grows in slow start while it is less than twice the amount in flight,
    /// even if it is not filled (kernels since 3.16).
    pub starts_with_room: bool,
    /// Send partly filled segments at once (no Nagle algorithm).
    pub nodelay: bool,
    /// Restart from a smaller window after an idle time longer than the RTO (RFC 5681 section 4.1).
    pub idle_restart: bool,
    /// Number of SYNs without an answer after which the flow is given up.
    pub syn_retries: u32,
    /// Consecutive timeouts without an answer after which an open flow is given up (RFC 9293 R2).
    pub data_retries: u32,
    /// Time spent in TIME-WAIT.
    pub time_wait: Duration,
    /// Initial sequence number; `None` draws one (RFC 9293 section 3.4.1). Set it to test wrapping.
    pub initial_sequence: Option<u32>,
    /// Receive checksum offload, as in network cards: the checksums of segments passed in have been
    /// verified, or cannot be wrong, and are not verified again. Segments that are sent always have
    /// a correct checksum.
    pub receive_checksum_offload: bool,
}

/// When the receiver acknowledges in-order data (RFC 9293 section 3.8.6.3). Data out of order, and
/// data that fills a hole, is always acknowledged at once (RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Acknowledge when this many segments are waiting; 1: every segment.
    pub every: u32,
    /// Acknowledge this long after the first waiting segment at the latest.
    pub timeout: Duration,
    /// Number of segments at the start of a flow that are acknowledged one by one, as in kernels,
    /// so that slow start is not delayed.
    pub quick: u32,
    /// The same after a segment that arrived before, and after a silence longer than the
    /// retransmission timeout, because the peer probably restarts with a small window.
    pub quick_again: bool,
}

/// How losses are detected before the retransmission timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// When three segments above were SACKed (RFC 6675).
    Sack,
    /// By time, with tail loss probes (RFC 8985), as in kernels since 4.18.
    RackTlp,
}

/// How many segments an acknowledgement counts for the growth of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCounting {
    /// As many as it acknowledges (kernels since 3.18, with most algorithms).
    Segments,
    /// As many as it acknowledges, but at most this many (L of RFC 3465; 1 in slow start of RFC
    /// 5681).
    AtMost(u32),
    /// One, however many it acknowledges (earlier kernels without appropriate byte counting). With
    /// delayed acknowledgements NewReno then grows by one segment in two round trips.
    OnePerAck,
    /// One in slow start, the segments it acknowledges in congestion avoidance: the same kernels,
    /// with an algorithm that itself compensates for delayed acknowledgements.
    OneInSlowStart,
    /// The segments it acknowledges in slow start, one in congestion avoidance (HighSpeed TCP in
    /// kernels since 3.18).
    OneInAvoidance,
}

impl AckCounting {
    /// How kernels since 3.18 count for `algorithm`: segments, with two exceptions.
    fn today(algorithm: &Algorithm) -> Self {
        match algorithm {
            Algorithm::Hybla(_) => Self::OnePerAck,
            Algorithm::HighSpeed(_) => Self::OneInAvoidance,
            _ => Self::Segments,
        }
    }
}

/// Which acknowledgements give a sample of the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSampling {
    /// Every one that acknowledges new data (kernels), so that the average follows quickly.
    EveryAck,
    /// One per window of data, for which the gains of RFC 6298 were chosen (RFC 7323 appendix G).
    OncePerWindow,
}

/// How the amount in flight is reduced to the new window when recovery begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowReduction {
    /// At once: nothing is sent until the data in flight has fallen to the new window (RFC 6675).
    AtOnce,
    /// In proportion to the data delivered (RFC 6937). Below the new window, one segment more than
    /// delivered is sent if an acknowledgement advances and shows no further loss, as in Linux 6.1;
    /// otherwise only as much as delivered.
    Proportional,
    /// One segment for every two acknowledgements, for a cut by one half: rate halving, as in the
    /// kernels of the 2.6 series.
    RateHalving,
}

impl DelayedAck {
    /// Every segment is acknowledged.
    pub const OFF: Self =
        Self { every: 1, timeout: Duration::from_millis(40), quick: 0, quick_again: false };
}

impl Default for DelayedAck {
    /// Every second segment, or after 40 ms (the kernels' minimum; RFC 9293 allows 500 ms).
    fn default() -> Self {
        Self { every: 2, timeout: Duration::from_millis(40), quick: 16, quick_again: true }
    }
}

impl TcpConfig {
    /// A current host with this congestion control: buffers that do not limit the window on paths
    /// below 1 Gbit/s and 100 ms, proportional rate reduction, acknowledgements counted as in
    /// kernels since 3.18.
    pub fn new(algorithm: Algorithm) -> Self {
        Self {
            mss: 1460,
            ack_counting: AckCounting::today(&algorithm),
            // Illinois itself counts that acknowledgement, for more segments than it reports.
            grows_at_recovery_end: !matches!(algorithm, Algorithm::Illinois(_)),
            timeout_keeps_threshold: true,
            frto: true,
            algorithm,
            initial_window: InitialWindow::Rfc6928,
            max_cwnd: None,
            initial_ssthresh: None,
            window_reduction: WindowReduction::Proportional,
            recv_buffer_bytes: 16 << 20,
            opens_window: false,
            send_buffer_bytes: 64 << 20,
            segment_overhead_bytes: None,
            unsent_limit_bytes: 256 << 10,
            delayed_ack: DelayedAck::default(),
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            rto_margin: Duration::from_millis(200),
            tick: Duration::from_millis(4),
            rtt_sampling: RttSampling::EveryAck,
            max_rto: Duration::from_secs(120),
            timestamps: true,
            window_scaling: true,
            limited_transmit: true,
            rescue: true,
            compresses_sacks: true,
            loss_detection: LossDetection::RackTlp,
            detect_lost_retransmissions: true,
            ecn: false,
            max_train: 44,
            offload: true,
            small_queues: true,
            starts_with_room: true,
            nodelay: true,
            idle_restart: true,
            syn_retries: 6,
            data_retries: 15,
            time_wait: Duration::from_secs(60),
            initial_sequence: None,
            receive_checksum_offload: false,
        }
    }

    /// Follows the RFCs where kernels differ: window reduced at once (RFC 6675), growth as in RFC
    /// 5681 with at most two segments per acknowledgement (RFC 3465), RTO of at least 1 s.
    pub fn rfc(algorithm: Algorithm) -> Self {
        Self {
            ack_counting: AckCounting::AtMost(2),
            window_reduction: WindowReduction::AtOnce,
            delayed_ack: DelayedAck { quick: 0, quick_again: false, ..DelayedAck::default() },
            min_rto: Duration::from_secs(1),
            rto_margin: Duration::from_millis(1),
            tick: Duration::ZERO,
            rtt_sampling: RttSampling::OncePerWindow,
            grows_at_recovery_end: false,
            timeout_keeps_threshold: false,
            frto: false,
            compresses_sacks: false,
            loss_detection: LossDetection::Sack,
            detect_lost_retransmissions: false,
            max_train: 1,
            small_queues: false,
            starts_with_room: false,
            ..Self::new(algorithm)
        }
    }

    /// The defaults of Linux 2.6.22 (2007): initial window of RFC 3390, acknowledgements counted
    /// instead of segments (`tcp_abc` = 0), initial RTO 3 s, rate halving. Buffers grow to 4 MB
    /// (`tcp_rmem`, `tcp_wmem`) if memory is 1 GiB or more. Three quarters of the receive buffer
    /// are available as window, and the send buffer includes the overhead of each segment.
    ///
    /// CUBIC, BIC, H-TCP and Illinois of that time counted segments in congestion avoidance and
    /// acknowledgements in slow start. CUBIC's own configuration does that, and this profile passes
    /// it segments. Scalable always counted acknowledgements, with the growth for each in
    /// [`ScalableConfig::linux_2_6`](udccp_cc::ScalableConfig::linux_2_6).
    pub fn linux_2_6_22(algorithm: Algorithm) -> Self {
        let ack_counting = match algorithm {
            Algorithm::Cubic(_) => AckCounting::Segments,
            Algorithm::Bic(_)
            | Algorithm::Htcp(_)
            | Algorithm::Illinois(_)
            | Algorithm::Yeah(_) => AckCounting::OneInSlowStart,
            _ => AckCounting::OnePerAck,
        };
        Self {
            initial_window: InitialWindow::Rfc3390,
            ack_counting,
            window_reduction: WindowReduction::RateHalving,
            recv_buffer_bytes: 3 << 20,
            send_buffer_bytes: 4 << 20,
            segment_overhead_bytes: Some(SEGMENT_OVERHEAD_2_6_BYTES),
            initial_rto: Duration::from_secs(3),
            tick: Duration::ZERO,
            rescue: false,
            grows_at_recovery_end: false,
            timeout_keeps_threshold: false,
            frto: false,
            compresses_sacks: false,
            loss_detection: LossDetection::Sack,
            max_train: 1,
            small_queues: false,
            starts_with_room: false,
            delayed_ack: DelayedAck { quick_again: false, ..DelayedAck::default() },
            ..Self::new(algorithm)
        }
    }

    /// Bytes of data in full segments that fit in the send buffer.
    pub(crate) fn send_buffer_data(&self) -> u64 {
        let data = self.segment_payload() as u64;
        let memory = data + u64::from(self.segment_overhead_bytes.unwrap_or(0));
        (u128::from(self.send_buffer_bytes) * u128::from(data) / u128::from(memory)) as u64
    }

    /// Bytes of data in a full segment if the peer agrees to the same options.
    pub fn segment_payload(&self) -> usize {
        segment_payload(self.mss, self.timestamps)
    }
}

/// Bytes of data in a full segment of an end with this MSS.
pub(crate) fn segment_payload(mss: u16, timestamps: bool) -> usize {
    let options = if timestamps { 12 } else { 0 };
    usize::from(mss).saturating_sub(options).max(1)
}
