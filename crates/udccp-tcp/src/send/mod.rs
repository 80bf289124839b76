//! The sending side of a connection: the stream, its scoreboard, its window and its timers.

mod detection;
mod device;
mod in_order;
mod lazy;
mod observer;
mod output;
mod pacing;
mod rack;
mod rate;
mod recovery;
mod reduction;
mod retransmissions;
mod scoreboard;
#[cfg(test)]
mod sizes;
mod timeout;
mod times;

use std::sync::Arc;

use udccp_base::{Duration, Instant, Probe};
use udccp_cc::{Instance, RtoConfig, RttEstimator};

use crate::config::{AckCounting, LossDetection, RttSampling, TcpConfig, WindowReduction};
use crate::ranges::Range;
use crate::shared::Shared;
use crate::tick::Tick;
use detection::Detection;
use device::DeviceQueue;
use observer::Observer;
use pacing::Pacing;
use reduction::Reduction;
use scoreboard::Scoreboard;
use timeout::Frto;
use times::SendTimes;

pub(crate) use lazy::{LazySide, Side};
pub(crate) use output::Segment;

/// Offset of the first byte of data: the SYN has offset 0.
pub(crate) const FIRST_DATA: u64 = 1;

/// Minimum window after a cut, in segments (RFC 5681 section 3.1, equation 4, and section 3.2).
const LEAST_WINDOW: u32 = 2;

/// Segments that a kernel with trains sends before it starts pacing (`tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

/// The phase of loss recovery. All phases but `Open` end when `point` is acknowledged.
#[derive(Clone, Debug)]
enum Phase {
    /// No loss is known.
    Open,
    /// The window was cut for ECN marks; no loss is known.
    Reduced { point: u64 },
    /// Fast recovery (RFC 6675 section 5). Few ends are in it at the same time.
    Recovery(Box<Recovery>),
    /// Slow start after a timeout (RFC 6675 section 5.1).
    Loss { point: u64 },
}

/// The state of a fast recovery.
#[derive(Clone, Debug)]
struct Recovery {
    point: u64,
    reduction: Reduction,
    /// Its first retransmission is sent even if the pipe is full.
    fast_retransmit: bool,
    /// Whether it may still make its rescue retransmission.
    rescue: bool,
}

impl Phase {
    /// The recovery, if one is in progress.
    fn recovery(&mut self) -> Option<&mut Recovery> {
        match self {
            Self::Recovery(recovery) => Some(recovery),
            _ => None,
        }
    }
}

/// The contents of an acknowledgement, in offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo<'a> {
    /// The acknowledgement number.
    pub(crate) ack: u64,
    /// First offset beyond the advertised window.
    pub(crate) window_end: u64,
    /// SACK blocks in the order of the option.
    pub(crate) blocks: &'a [Range],
    /// Round-trip time from the echoed timestamp (RFC 7323 section 4.1).
    pub(crate) timestamp_rtt: Option<Duration>,
    /// The peer's timestamp (RFC 7323 section 3.2).
    pub(crate) peer_timestamp: Option<u32>,
    /// Whether the peer saw a congestion mark (RFC 3168 section 6.1.2).
    pub(crate) congestion_echo: bool,
}

/// Counters of the sending side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStats {
    /// Segments with data sent, including retransmissions.
    pub segments_sent: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Times the retransmission timer expired.
    pub timeouts: u64,
    /// Congestion events that cut the window (losses and marks, without timeouts).
    pub congestion_events: u64,
    /// Duplicates that the peer reported (RFC 2883): unnecessary retransmissions.
    pub duplicates_reported: u64,
}

/// The sending side.
#[derive(Debug)]
pub(crate) struct SendSide {
    mss: u32,
    /// End of the data that the application wrote.
    written: u64,
    /// Whether a FIN follows the data (it occupies offset `written`).
    fin: bool,
    board: Scoreboard,
    times: SendTimes,
    rtt: RttEstimator,
    cc: Instance,
    /// Only if the congestion control needs more than growth.
    observer: Option<Box<Observer>>,
    /// Only if losses are detected by time.
    detection: Option<Detection>,
    phase: Phase,
    dup_acks: u32,
    /// Bytes sent by limited transmit: not part of FlightSize when the window is cut.
    limited_transmit_bytes: u32,
    /// First offset beyond the window that the peer advertised; never decreases.
    window_end: u64,
    usage: Usage,
    /// Acknowledged offset for the next round-trip time sample, if only one per window is taken.
    sample_from: u64,
    rto_deadline: Instant,
    persist_deadline: Instant,
    /// Consecutive timeouts (and window probes) without an answer.
    unanswered: u32,
    /// Whether the first outstanding segment has timed out. Then the phase is `Loss`.
    timed_out: bool,
    frto: Frto,
    last_sent: Instant,
    /// Only if the congestion control may set a rate.
    pacing: Option<Box<Pacing>>,
    /// Only if the host keeps the queue of its device short.
    device: Option<DeviceQueue>,
    /// Whether a segment waits for its departure time.
    paced: bool,
    /// Whether new data has been waiting for the congestion window since the last acknowledgement
    /// or timeout.
    blocked: bool,
    /// Whether the last write filled the buffer.
    is_full: bool,
    cwr_owed: bool,
    counts: Counts,
    shared: Arc<Shared>,
}

/// [`SendStats`], with less room for what is rare.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    segments_sent: u64,
    retransmits: u32,
    timeouts: u32,
    congestion_events: u32,
    duplicates_reported: u32,
}

/// Adds the round-trip time of the handshake. Apart from the samples of acknowledgements, so that
/// the compiler still inlines those.
#[cold]
#[inline(never)]
fn first_sample(rtt: &mut RttEstimator, sample: Duration) {
    rtt.sample(sample);
}

/// How much of the congestion window is used (`tcp_cwnd_validate`). An unused window must not grow.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// Data below this was sent while the congestion window was the limit.
    limited_below: u64,
    /// The most segments in flight since `until` was set, while the window was not the limit.
    most: u32,
    /// When data up to this offset is acknowledged, `most` starts again.
    until: u64,
    /// Whether the window has been the limit since then.
    is_limited: bool,
}

impl Usage {
    /// New data was sent up to `nxt`; `in_flight` segments from `una` are not acknowledged.
    #[inline]
    fn on_sent(&mut self, una: u64, nxt: u64, in_flight: u32) {
        let begins = una >= self.until;
        if begins || (!self.is_limited && in_flight > self.most) {
            (self.is_limited, self.most, self.until) = (false, in_flight, nxt);
        }
    }

    /// The window prevents sending of data after `nxt`.
    #[inline]
    fn on_limited(&mut self, nxt: u64, in_flight: u32) {
        self.limited_below = nxt;
        (self.is_limited, self.most, self.until) = (true, in_flight, nxt);
    }

    /// Whether the window may grow for data acknowledged from `before`. In slow start it may also
    /// grow if `cwnd` is less than twice the amount in flight.
    #[inline]
    fn lets_grow(&self, before: u64, slow_start: impl FnOnce() -> Option<u32>) -> bool {
        before < self.limited_below || slow_start().is_some_and(|cwnd| cwnd / 2 < self.most)
    }
}

/// The frequently used part of the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    initial_window: u32,
    pub(crate) tick: Tick,
    /// The most segments of a train that leave together.
    wire_train: u32,
    /// The number of segments at the start that are not paced.
    unpaced: u64,
    /// The congestion control sets its own window in recovery.
    own_recovery: bool,
    /// It needs nothing but growth and cuts.
    is_plain: bool,
    /// The congestion control may set the rate at which segments are sent.
    is_paced: bool,
    send_buffer: u64,
    /// A full buffer accepts data again when it holds less than this.
    refilled_below: u64,
    unsent: u64,
    ack_counting: AckCounting,
    reduction: WindowReduction,
    sampling: RttSampling,
    limited_transmit: bool,
    rescue: bool,
    nodelay: bool,
    idle_restart: bool,
    grows_at_recovery_end: bool,
    timeout_keeps_threshold: bool,
    frto: bool,
    starts_with_room: bool,
    /// Minimum window after a cut.
    least_window: u32,
}

impl SendSide {
    /// The state before anything is written or sent.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let config: &TcpConfig = shared;
        let mss = config.segment_payload() as u32;
        let cc = window_algorithm(config);
        let Limits { wire_train, is_paced, .. } = shared.limits;
        Self {
            mss,
            written: FIRST_DATA,
            fin: false,
            board: match config.loss_detection {
                LossDetection::Sack => {
                    Scoreboard::new(FIRST_DATA, mss, config.detect_lost_retransmissions)
                }
                LossDetection::RackTlp => Scoreboard::by_time(FIRST_DATA, mss),
            },
            times: SendTimes::default(),
            rtt: RttEstimator::new(rto_config(config)),
            observer: Observer::new(cc.needs()),
            cc,
            detection: (config.loss_detection == LossDetection::RackTlp).then(Detection::new),
            phase: Phase::Open,
            dup_acks: 0,
            limited_transmit_bytes: 0,
            window_end: FIRST_DATA,
            usage: Usage::default(),
            sample_from: 0,
            rto_deadline: Instant::MAX,
            persist_deadline: Instant::MAX,
            unanswered: 0,
            timed_out: false,
            frto: Frto::Off,
            last_sent: Instant::ZERO,
            pacing: is_paced.then(|| Box::new(Pacing::new(wire_train, config.max_train > 1))),
            device: config.small_queues.then(|| DeviceQueue::new(wire_train)),
            paced: false,
            blocked: false,
            is_full: false,
            cwr_owed: false,
            counts: Counts::default(),
            shared: Arc::clone(shared),
        }
    }

    /// The handshake is done. `payload` bytes fit in a segment, the peer's window ends at
    /// `window_end`, and `rtt` is known unless the SYN was retransmitted.
    pub(crate) fn establish(
        &mut self,
        now: Instant,
        payload: u32,
        window_end: u64,
        rtt: Option<Duration>,
    ) {
        self.mss = payload;
        self.blocked = false;
        self.board.set_mss(payload);
        self.window_end = self.window_end.max(window_end);
        self.unanswered = 0;
        match rtt {
            Some(rtt) => {
                first_sample(&mut self.rtt, rtt);
                self.observe_handshake(now);
            }
            // A lost SYN is congestion: start with one segment (RFC 5681 section 3.1).
            None => self.cc.on_idle_restart(now, 1),
        }
    }

    /// Adds `len` bytes to the stream; false if there is no room.
    pub(crate) fn write(&mut self, len: u64) -> bool {
        self.write_several(len, 1) == 1
    }

    /// Adds up to `most` times `len` bytes to the stream; returns how many times there was room.
    pub(crate) fn write_several(&mut self, len: u64, most: u32) -> u32 {
        if most == 0 || self.fin || !self.is_writable() {
            return 0;
        }
        // There is room for the first. It fills the buffer or leaves it as one that is not full.
        let Limits { send_buffer, unsent, .. } = self.shared.limits;
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let end = nxt.saturating_add(unsent).min(una.saturating_add(send_buffer));
        let (mut written, mut taken) = (self.written + len, 1);
        while taken < most && written < end {
            written += len;
            taken += 1;
        }
        self.written = written;
        self.is_full = written.saturating_sub(una) >= send_buffer;
        taken
    }

    /// Whether there is room for the next write.
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        let Limits { send_buffer, refilled_below, .. } = self.shared.limits;
        let room = if self.is_full { refilled_below } else { send_buffer };
        self.written.saturating_sub(self.board.nxt()) < self.shared.limits.unsent
            && self.unacknowledged() < room
    }

    fn unacknowledged(&self) -> u64 {
        self.written.saturating_sub(self.board.una())
    }

    /// Ends the stream after the written data.
    pub(crate) fn close(&mut self) {
        self.blocked = false;
        self.fin = true;
        self.board.set_fin(self.end());
    }

    /// Whether the application has ended the stream.
    pub(crate) fn is_closing(&self) -> bool {
        self.fin
    }

    /// The end of all data to be sent, including the FIN.
    fn end(&self) -> u64 {
        self.written + u64::from(self.fin)
    }

    /// When the retransmission timer expires if it starts now.
    #[inline]
    fn rto_at(&self, now: Instant) -> Instant {
        self.shared.limits.tick.after(now, self.rtt.rto())
    }

    /// Whether the FIN (and so everything) is acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.fin && self.board.una() == self.end()
    }

    /// Next offset to send.
    pub(crate) fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// First offset not acknowledged.
    pub(crate) fn una(&self) -> u64 {
        self.board.una()
    }

    /// Bytes of data in a full segment.
    pub(crate) fn segment_payload(&self) -> u32 {
        self.mss
    }

    /// The state that measurements show.
    pub(crate) fn probe(&self) -> Probe {
        let rtt = &self.rtt;
        let threshold = Some(self.cc.ssthresh()).filter(|t| *t < u32::MAX);
        Probe {
            cwnd_packets: Some(f64::from(self.cc.cwnd())),
            ssthresh_packets: threshold.map(f64::from),
            pipe_packets: Some(self.board.pipe().div_ceil(u64::from(self.mss))),
            srtt: rtt.srtt(),
            rto: Some(rtt.rto()),
            congestion_events: self.counts.congestion_events.into(),
            timeouts: self.counts.timeouts.into(),
            retransmits: self.counts.retransmits.into(),
            ..Probe::default()
        }
    }

    /// The retransmission timeout.
    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// The shortest round-trip time measured; `None` before the first.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.rtt.min_rtt()
    }

    /// Counters.
    pub(crate) fn stats(&self) -> SendStats {
        let counts = self.counts;
        SendStats {
            segments_sent: counts.segments_sent,
            retransmits: counts.retransmits.into(),
            timeouts: counts.timeouts.into(),
            congestion_events: counts.congestion_events.into(),
            duplicates_reported: counts.duplicates_reported.into(),
        }
    }
}

/// The congestion control at the start of a flow.
fn window_algorithm(config: &TcpConfig) -> Instance {
    let initial_window = config.initial_window.packets(config.segment_payload() as u32);
    let mut cc = Instance::new(&config.algorithm, initial_window);
    if let Some(max) = config.max_cwnd {
        cc.clamp(max);
    }
    cc.set_trains(config.max_train);
    if let Some(threshold) = config.initial_ssthresh {
        cc.set_window(Instant::ZERO, initial_window, threshold);
    }
    cc
}

impl Limits {
    pub(crate) fn of(config: &TcpConfig) -> Self {
        let send_buffer = config.send_buffer_data().max(1);
        let cc = window_algorithm(config);
        let needs = cc.needs();
        let is_own = needs.own_recovery;
        Self {
            initial_window: config.initial_window.packets(config.segment_payload() as u32),
            tick: Tick::new(config.tick),
            wire_train: if config.offload { config.max_train } else { 1 },
            own_recovery: is_own,
            is_plain: !needs.deliveries && !is_own,
            is_paced: cc.may_pace(),
            unpaced: if config.max_train > 1 { UNPACED } else { 0 },
            send_buffer,
            refilled_below: match config.segment_overhead_bytes {
                Some(_) => send_buffer / 3 * 2 + 1,
                None => send_buffer,
            },
            unsent: config.unsent_limit_bytes.max(1),
            ack_counting: config.ack_counting,
            reduction: if is_own { WindowReduction::AtOnce } else { config.window_reduction },
            sampling: config.rtt_sampling,
            limited_transmit: config.limited_transmit,
            rescue: config.rescue,
            nodelay: config.nodelay,
            idle_restart: config.idle_restart,
            grows_at_recovery_end: config.grows_at_recovery_end && !is_own,
            timeout_keeps_threshold: config.timeout_keeps_threshold,
            frto: config.frto,
            starts_with_room: config.starts_with_room,
            least_window: if is_own { 0 } else { LEAST_WINDOW },
        }
    }
}

fn rto_config(config: &TcpConfig) -> RtoConfig {
    RtoConfig {
        initial: config.initial_rto,
        min: config.min_rto,
        max: config.max_rto,
        granularity: config.rto_margin,
    }
}
