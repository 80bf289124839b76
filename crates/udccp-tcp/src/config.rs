//! The settings of a TCP end. Defaults are a current host's; profiles name other ones.

use udccp_base::{Duration, Instant};
use udccp_cc::{Algorithm, InitialWindow};

/// What Linux 2.6.22 counts for a segment beside its data: room for headers, and `sk_buff` on a
/// machine of 64 bits. A segment of 1,448 bytes has 1,664 in its buffer.
const SEGMENT_OVERHEAD_2_6_BYTES: u32 = 448;

/// Settings of one TCP end. Both ends of a flow usually share one value.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// Largest segment in bytes as the MSS option says it: the path MTU less 40 (RFC 9293 section
    /// 3.7.1). Options come out of it, so a segment carries 12 bytes less with timestamps on.
    pub mss: u16,
    /// Congestion control of the data sent from this end.
    pub algorithm: Algorithm,
    /// Congestion window after the handshake.
    pub initial_window: InitialWindow,
    /// Upper bound of the congestion window in segments (`snd_cwnd_clamp`), where a host has one.
    pub max_cwnd: Option<u32>,
    /// Slow start threshold in segments that the host remembers from an earlier connection to this
    /// peer (`RTAX_SSTHRESH`, where `tcp_no_metrics_save` is 0); without one it is arbitrarily high
    /// (RFC 5681 section 3.1).
    pub initial_ssthresh: Option<u32>,
    /// What an acknowledgement adds to a NewReno-style window.
    pub ack_counting: AckCounting,
    /// How the window falls to its new value in loss recovery.
    pub window_reduction: WindowReduction,
    /// Room for data that arrived and was not read, in bytes: the largest window advertised.
    pub recv_buffer_bytes: u32,
    /// Whether the advertised window begins with 64 kB and opens by two segments with each that
    /// arrives, which is acknowledged at once meanwhile (`tcp_grow_window`): kernels do so where an
    /// application has set the buffer. A buffer of 16 MiB takes 5,700 segments.
    pub opens_window: bool,
    /// Room for data accepted and not yet acknowledged, in bytes.
    pub send_buffer_bytes: u64,
    /// With a value, the send buffer is memory as a kernel counts it: a segment takes so many bytes
    /// beside its data (`truesize`), and a full buffer takes data again when a third of it is free
    /// (`sk_stream_min_wspace`).
    pub segment_overhead_bytes: Option<u32>,
    /// Data accepted and not yet sent, in bytes, from which on the end is not writable.
    pub unsent_limit_bytes: u64,
    /// When the receiver acknowledges.
    pub delayed_ack: DelayedAck,
    /// Retransmission timeout before the first round-trip time sample (RFC 6298 section 2.1).
    pub initial_rto: Duration,
    /// Lower bound of the retransmission timeout. RFC 6298 section 2.4 says 1 s; kernels use
    /// 200 ms, and a loss at the end of a window costs five times less there: the default.
    pub min_rto: Duration,
    /// Least distance of the timeout above the smoothed round-trip time: the G of RFC 6298 section
    /// 2.3, which kernels set to the minimum of 200 ms. Without it a steady path of 300 ms has an
    /// RTO of 301 ms, and the round trip of every fast retransmission would run into it.
    pub rto_margin: Duration,
    /// Timers expire at multiples of this, and what is waited for is rounded up to it, as where a
    /// kernel counts ticks; zero is any time.
    pub tick: Duration,
    /// Which round-trip times count.
    pub rtt_sampling: RttSampling,
    /// Upper bound of the retransmission timeout (RFC 6298 section 2.5: at least 60 s).
    pub max_rto: Duration,
    /// Timestamps option (RFC 7323).
    pub timestamps: bool,
    /// Window scale option (RFC 7323). Without it no window exceeds 65,535 bytes.
    pub window_scaling: bool,
    /// New data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// One rescue retransmission per recovery (RFC 6675 section 4, rule 4 of NextSeg).
    pub rescue: bool,
    /// Whether the acknowledgement that ends a recovery counts for growth, as in kernels since 4.6.
    pub grows_at_recovery_end: bool,
    /// Whether a timeout during a recovery leaves the slow start threshold as the recovery set it:
    /// kernels do (`tcp_enter_loss`), RFC 5681 does not.
    pub timeout_keeps_threshold: bool,
    /// Whether the first acknowledgement after a timeout lets new data out before more is sent
    /// again, to see whether the timeout was needed (F-RTO, RFC 5682 section 3.1). One that was not
    /// is not undone.
    pub frto: bool,
    /// Whether a receiver holds acknowledgements of segments out of order back, from the fourth of
    /// a hole on: for a millisecond, or a twentieth of the round-trip time if that is less (kernels
    /// since 4.18).
    pub compresses_sacks: bool,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// With [`LossDetection::Sack`]: find lost retransmissions before the timer does, as kernels do
    /// and RFC 6675 does not. The window is not cut for them once more (RFC 5681 section 4.3
    /// would; kernels do not).
    pub detect_lost_retransmissions: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// The most segments of a train where the congestion control sets a rate: what it carries in a
    /// millisecond, and two at least, as kernels size segments for offload; 1 is none. The window
    /// has room for trains.
    pub max_train: u32,
    /// Whether the segments of a train leave at once (segmentation offload), or each in its time.
    pub offload: bool,
    /// Whether segments wait in the socket while two of them, or what the rate carries in a
    /// millisecond, wait in the host's own device (TCP Small Queues of kernels since 3.6).
    pub small_queues: bool,
    /// Whether the window grows in slow start while it is less than twice what is in flight,
    /// although it is not filled, as in kernels since 3.16.
    pub starts_with_room: bool,
    /// Send partly filled segments at once (no Nagle).
    pub nodelay: bool,
    /// Restart from a smaller window after an idle time longer than the RTO (RFC 5681 4.1).
    pub idle_restart: bool,
    /// Transmissions of a SYN without an answer before the flow is given up.
    pub syn_retries: u32,
    /// Timeouts in a row without an answer before an open flow is given up (RFC 9293 R2).
    pub data_retries: u32,
    /// Time spent in TIME-WAIT.
    pub time_wait: Duration,
    /// Initial sequence number; `None` draws one (RFC 9293 section 3.4.1). Set it to see the wrap.
    pub initial_sequence: Option<u32>,
    /// Receive checksum offload, as network cards have it: whoever hands in segments has verified
    /// their checksums, or knows that no bit can be wrong, and they are not verified again. What is
    /// sent always carries the right checksum.
    pub receive_checksum_offload: bool,
}

/// When the receiver acknowledges in-order data (RFC 9293 section 3.8.6.3); data out of order,
/// and data that fills a hole, is always acknowledged at once (RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Acknowledge at the latest when this many segments are waiting; 1 is every segment.
    pub every: u32,
    /// Acknowledge at the latest this long after the first waiting segment.
    pub timeout: Duration,
    /// Segments at the start of a flow that are each acknowledged at once, as kernels do so that
    /// slow start is not held back.
    pub quick: u32,
    /// The same after a segment that arrived before, and after a silence longer than the
    /// retransmission timeout: the peer is likely to begin again with a small window.
    pub quick_again: bool,
}

/// How losses are found before the retransmission timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By what was SACKed above: three segments (RFC 6675).
    Sack,
    /// By time, with probes of a silent tail (RFC 8985), as kernels do since 4.18.
    RackTlp,
}

/// How many segments of growth one acknowledgement is worth to the congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCounting {
    /// As many as it acknowledges (kernels since 3.18, with most algorithms).
    Segments,
    /// As many as it acknowledges, at most this many (RFC 3465's L; RFC 5681's slow start is 1).
    AtMost(u32),
    /// One, whatever it acknowledges (kernels before, where appropriate byte counting was off):
    /// with delayed acknowledgements NewReno then grows one segment in two round trips.
    OnePerAck,
    /// One in slow start, the segments it acknowledges in congestion avoidance: the same kernels
    /// with an algorithm that makes up for delayed acknowledgements itself.
    OneInSlowStart,
    /// The segments it acknowledges in slow start, one in congestion avoidance (HighSpeed TCP in
    /// kernels since 3.18).
    OneInAvoidance,
}

impl AckCounting {
    /// What kernels since 3.18 count for `algorithm`: segments, but for two that were left alone.
    fn today(algorithm: &Algorithm) -> Self {
        match algorithm {
            Algorithm::Hybla(_) => Self::OnePerAck,
            Algorithm::HighSpeed(_) => Self::OneInAvoidance,
            _ => Self::Segments,
        }
    }
}

/// Which acknowledgements give a round-trip time sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSampling {
    /// Every one that acknowledges new data (kernels): the average follows within a few of them.
    EveryAck,
    /// One in a window of data, for which the gains of RFC 6298 were made (RFC 7323 appendix G).
    OncePerWindow,
}

/// How the amount in flight falls to the new window when recovery begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowReduction {
    /// At once: silence until the pipe has drained to the new window (RFC 6675).
    AtOnce,
    /// In proportion to what is delivered (RFC 6937). Below the new window it catches up by a
    /// segment more than what is delivered where an acknowledgement advances and shows no further
    /// loss, as in Linux 6.1, and by no more otherwise.
    Proportional,
    /// One segment for every two acknowledgements, which for a cut of one half is what
    /// kernels of the 2.6 series did (rate halving).
    RateHalving,
}

impl DelayedAck {
    /// Every segment is acknowledged.
    pub const OFF: Self =
        Self { every: 1, timeout: Duration::from_millis(40), quick: 0, quick_again: false };
}

/// When a timer of `wait` set at `now` expires, with ticks of `tick`: a tick after its time, and a
/// long one at a multiple of 8, 64 and so on ticks after it, as in the wheel of timers of Linux
/// since 5.8 (`calc_index` of kernel/time/timer.c).
#[inline]
pub(crate) fn on_tick(now: Instant, wait: Duration, tick: Duration) -> Instant {
    if tick.is_zero() {
        return now + wait;
    }
    let tick = tick.as_nanos();
    let ticks = wait.as_nanos().div_ceil(tick);
    let expires = (now - Instant::ZERO).as_nanos() / tick + ticks;
    let mut shift = 0;
    while ticks >= FIRST_LEVEL_TICKS << shift && shift < LAST_LEVEL_SHIFT {
        shift += 3;
    }
    Instant::from_nanos((((expires >> shift) + 1) << shift).saturating_mul(tick))
}

/// Timers of fewer ticks are exact to a tick (`LVL_START(1)`); each level above has eight times as
/// many, eight times as coarse.
const FIRST_LEVEL_TICKS: u64 = 63;

/// Ticks of the coarsest level, as a power of two (`LVL_SHIFT(7)` with fewer than 1000 ticks a
/// second).
const LAST_LEVEL_SHIFT: u32 = 21;

impl Default for DelayedAck {
    /// Every second segment, or after 40 ms (the kernels' minimum; RFC 9293 allows 500 ms).
    fn default() -> Self {
        Self { every: 2, timeout: Duration::from_millis(40), quick: 16, quick_again: true }
    }
}

impl TcpConfig {
    /// A current host with the given congestion control: windows never limited by buffers on
    /// paths below 1 Gbit/s and 100 ms, proportional rate reduction, acknowledgements counted as
    /// kernels since 3.18 do.
    pub fn new(algorithm: Algorithm) -> Self {
        Self {
            mss: 1460,
            ack_counting: AckCounting::today(&algorithm),
            // Illinois counts that acknowledgement itself, for more than it reports.
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

    /// The RFCs taken word for word where kernels differ: window cut at once (RFC 6675), growth
    /// of RFC 5681 with at most two segments an acknowledgement (RFC 3465), RTO of at least 1 s.
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

    /// Linux 2.6.22 out of the box (2007): initial window of RFC 3390, acknowledgements counted
    /// and not segments (`tcp_abc` = 0), initial RTO 3 s, rate halving. Buffers grow to 4 MB there
    /// (`tcp_rmem`, `tcp_wmem`) where memory is 1 GiB or more; three quarters of the receiver's
    /// become window, and the sender's counts what each segment takes beside its data.
    ///
    /// CUBIC, BIC, H-TCP and Illinois of that time counted segments in congestion avoidance and
    /// acknowledgements in slow start. CUBIC's own configuration holds that, and this profile hands
    /// it segments. Scalable counted acknowledgements always, with a growth for each that is in
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

    /// Bytes of data in full segments that the send buffer holds.
    pub(crate) fn send_buffer_data(&self) -> u64 {
        let data = self.segment_payload() as u64;
        let memory = data + u64::from(self.segment_overhead_bytes.unwrap_or(0));
        (u128::from(self.send_buffer_bytes) * u128::from(data) / u128::from(memory)) as u64
    }

    /// Bytes of data in a full segment when the peer agrees to the same options.
    pub fn segment_payload(&self) -> usize {
        let options = if self.timestamps { 12 } else { 0 };
        usize::from(self.mss).saturating_sub(options).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_on_ticks() {
        let (tick, now) = (Duration::from_millis(4), Instant::from_nanos(10_500_000));
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        assert_eq!(on_tick(now, Duration::from_millis(40), tick), ms(52));
        assert_eq!(on_tick(now, Duration::from_micros(8_200), tick), ms(24));
        let exact = Instant::from_nanos(50_500_000);
        assert_eq!(on_tick(now, Duration::from_millis(40), Duration::ZERO), exact);
    }

    /// Up to 62 ticks to the tick, up to 503 to eight, up to 4031 to 64.
    #[test]
    fn long_timers_expire_on_coarse_ticks() {
        let (tick, now) = (Duration::from_millis(4), Instant::from_nanos(10_500_000));
        let after = |ticks| {
            let at = on_tick(now, tick * ticks, tick);
            (at - Instant::ZERO).as_nanos() / tick.as_nanos()
        };
        assert_eq!((after(62), after(63), after(70)), (65, 72, 80));
        assert_eq!((after(503), after(504), after(700)), (512, 512, 704));
        assert_eq!((after(4031), after(4032)), (4096, 4096));
    }
}
