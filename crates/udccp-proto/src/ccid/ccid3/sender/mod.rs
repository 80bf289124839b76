//! The sender half: paces data at the allowed rate (RFC 4342 section 5, RFC 5348 section 4).

mod acked;
mod spacing;

use udccp_base::{Duration, Ecn, Instant, MaybeInstant};
use udccp_wire::{OptionRef, Seqno};

use super::verify::Verifier;
use super::{Ccid3Config, NUMBER, SegmentSizeRule};
use crate::ccid::ccid4;
use crate::ccid::tfrc::{
    DataLimited, MinInterval, Rate, RateControl, RatePacer, RttFloor, Segment, SegmentSize, Sent,
    SentLog, SmallPackets, WindowCounter,
};
use crate::ccid::{
    AckInfo, AckOutcome, CcidMetrics, CcidSender, PacketReport, QUICK_START_HEADER_BYTES,
    QuickStartStep, SendVerdict, SentInfo, TimeoutOutcome,
};

use spacing::Spacing;

/// Round-trip time for the window counter while none is known (RFC 4340 section 3.4).
pub(super) const DEFAULT_RTT: Duration = Duration::from_millis(200);
/// Round trips for which the Sequence Window should have numbers (RFC 4340 section 7.5.2).
const ROUNDS_IN_SEQUENCE_WINDOW: u64 = 5;
/// The Sequence Window of new connections (RFC 4340 section 7.5.2).
pub(super) const LEAST_SEQUENCE_WINDOW: u64 = 100;
/// Unit of the times in a Timestamp Echo (RFC 4340 section 13.3).
const ECHO_UNIT: Duration = Duration::from_micros(10);

/// The sender half of CCID 3.
///
/// Fields that are used for each packet come first and are adjacent: packets are paced, so with
/// many connections none of this is in a near cache when a packet leaves.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Ccid3Sender {
    wake: MaybeInstant,
    no_feedback: MaybeInstant,
    data_sent: u64,
    in_flight_limit: u64,
    /// Largest number of data packets in flight, derived from the rate.
    unheard_limit: u64,
    /// Data packets after this one count against the Sequence Window, with the number of data
    /// packets up to it. It is the greatest sequence number that any packet of the peer
    /// acknowledged, or the newest packet when the nofeedback timer expired.
    floor: Option<(Seqno, u64)>,
    /// The counter value of the packet being built.
    stamped: u64,
    /// The last computed spacing of packets.
    spacing: Spacing,
    /// The differences of CCID 4.
    small: Option<Box<(SmallPackets, MinInterval)>>,
    /// The greatest rate ever allowed.
    fastest: Rate,
    max_size: u32,
    /// Nothing has changed since `wake` was computed: once it has passed, data may leave.
    wake_holds: bool,
    /// The peer's acknowledgements carried state that it keeps until they are acknowledged.
    pub(super) owes_ack: bool,
    sent_since_set: bool,
    /// The nofeedback timer expired after the last data packet.
    gave_up: bool,
    pacer: RatePacer,
    counter: WindowCounter,
    log: SentLog,
    data_limited: DataLimited,
    size: SegmentSize,
    size_rule: SegmentSizeRule,
    /// Settings of [`Ccid3Config`], as `size_rule`.
    history_discounting: bool,
    accept_loss_event_rate: bool,
    rate: RateControl,
    // Fields that only feedback uses, or few packets.
    /// Present from the first report or mark on: an end that only receives gets none.
    verifier: Option<Box<Verifier>>,
    /// The greatest sequence number acknowledged by feedback, and the data packets up to it.
    acked: Option<(Seqno, u64)>,
    rtt_floor: RttFloor,
    /// The last receive rate reported.
    x_recv: Rate,
    /// Data Dropped has been read up to this packet.
    pub(super) drops_read: Option<Seqno>,
    pub(super) ack_sent: MaybeInstant,
    /// During Quick-Start: the rate before, and the approved rate.
    quick_start: Option<Box<(Rate, Rate)>>,
    loss_events: u64,
    timeouts: u64,
    /// Longest interval before the first loss that is accepted.
    first_at_most: u32,
    /// Packets newly reported with Drop Code 2 since the last feedback, and whether the receiver
    /// said that it is slow.
    buffer_drops: u32,
    pub(super) peer_is_slow: bool,
    /// Another half sent before this one, over another path.
    is_successor: bool,
    ccid: u8,
}

impl Ccid3Sender {
    /// The record of losses.
    fn verifier(&mut self) -> &mut Verifier {
        let (discounting, counts_losses) = (self.history_discounting, self.small.is_some());
        self.verifier.get_or_insert_with(|| Verifier::new(discounting, counts_losses).into())
    }

    /// The first packet on this path, if another half sent before.
    fn first_on_path(&self) -> Option<Seqno> {
        self.log.first().filter(|_| self.is_successor)
    }

    /// Creates a sender of packets of up to `packet_size_bytes` of data.
    pub fn new(config: &Ccid3Config, packet_size_bytes: u32) -> Self {
        Self::with(NUMBER, config, packet_size_bytes, None)
    }

    /// Creates a sender of CCID 3, or of CCID 4 for small packets.
    pub(crate) fn with(
        ccid: u8,
        config: &Ccid3Config,
        packet_size_bytes: u32,
        small: Option<SmallPackets>,
    ) -> Self {
        Self {
            ccid,
            small: small.map(|small| {
                let gate = MinInterval::new(small.min_interval);
                Box::new((small, gate))
            }),
            size_rule: config.segment_size,
            history_discounting: config.history_discounting,
            accept_loss_event_rate: config.accept_loss_event_rate,
            rate: RateControl::new(config.oscillation_reduction, config.min_nofeedback_timeout),
            pacer: RatePacer::new(config.granularity, config.max_credit),
            spacing: Spacing::default(),
            size: SegmentSize::new(packet_size_bytes),
            max_size: packet_size_bytes.max(1),
            counter: WindowCounter::default(),
            stamped: 0,
            log: SentLog::default(),
            verifier: None,
            data_limited: DataLimited::default(),
            data_sent: 0,
            acked: None,
            floor: None,
            in_flight_limit: u64::MAX,
            unheard_limit: u64::MAX,
            rtt_floor: RttFloor::default(),
            fastest: Rate::default(),
            first_at_most: u32::MAX,
            x_recv: Rate::default(),
            drops_read: None,
            buffer_drops: 0,
            peer_is_slow: false,
            owes_ack: false,
            ack_sent: MaybeInstant::NONE,
            no_feedback: MaybeInstant::NONE,
            quick_start: None,
            sent_since_set: false,
            gave_up: false,
            is_successor: false,
            wake: MaybeInstant::NONE,
            wake_holds: false,
            loss_events: 0,
            timeouts: 0,
        }
    }

    /// Size of the data in a packet, for the rate: at least 1 byte.
    #[inline]
    fn segment_bytes(&self) -> u32 {
        match self.size_rule {
            SegmentSizeRule::Mean => self.size.bytes(),
            SegmentSizeRule::Maximum => self.max_size,
        }
    }

    //= 4342-5.3-1
    //= 5622-5-1
    //= 4828-3-5
    /// s.
    fn segment(&self) -> Segment {
        let bytes = self.segment_bytes();
        self.small.as_ref().map_or(bytes.into(), |small| small.0.segment(bytes))
    }

    /// t_ipi for segments `s` at this rate.
    fn interval_at(&self, rate: Rate, s: Segment) -> Duration {
        let interval = rate.interval(s.bytes);
        self.small.as_ref().map_or(interval, |small| interval.max(small.0.min_interval))
    }

    /// For how long missed send times count: a round-trip time. Where the minimum interval of
    /// CCID 4 spaces packets, not X, it is at least that interval: timers that are later than a
    /// short round-trip time would lower the mean rate.
    fn credit_limit(&self, interval: Duration) -> Option<Duration> {
        let least = self.small.as_ref().map(|small| small.0.min_interval);
        let least = least.filter(|least| *least == interval).unwrap_or_default();
        self.rate.rtt().map(|rtt| rtt.max(least))
    }

    /// The nofeedback timeout. It leaves time to send packets, because feedback needs them.
    fn timeout(&self) -> Duration {
        let timeout = self.rate.timeout(self.segment());
        self.small.as_ref().map_or(timeout, |small| timeout.max(small.0.min_interval * 2))
    }

    //= 4340-7.5.2-3
    /// Number of data packets sent and not yet acknowledged. Our acknowledgements do not count: the
    /// peer's data causes them, and nobody acknowledges them. The nofeedback timer runs while there
    /// are any.
    fn in_flight(&self) -> u64 {
        let (Some((floor, data)), Some(newest)) = (self.floor, self.log.newest()) else {
            // Until data is acknowledged or given up, only the initial rate limits the sender.
            return 0;
        };
        // If the floor is a packet that is not stored, its data count is that of an earlier one.
        let packets = newest.seq.distance_from(floor).max(0) as u64;
        self.data_sent.saturating_sub(data).min(packets)
    }

    /// Whether as many data packets are in flight as may be.
    #[inline]
    fn is_full(&self) -> bool {
        let most = self.in_flight_limit.min(self.unheard_limit);
        // Usually even the data packets since the floor, which are at least as many, are fewer.
        let since = self.floor.map_or(0, |(_, data)| self.data_sent.saturating_sub(data));
        since >= most && self.in_flight() >= most
    }

    /// The first data packet is about to be sent, with `size_bytes` of data.
    #[cold]
    fn expect_first(&mut self, size_bytes: u32) {
        if self.size.is_measured() {
            return;
        }
        self.size.expect(size_bytes);
        let s = self.segment();
        self.rate_mut().on_first_segment(s);
        if let Some(approved) = self.quick_start.as_ref().map(|rates| rates.1) {
            self.rate_mut().raise(approved);
        }
    }

    /// A packet of the peer acknowledged `ackno`, which was `sent`, with or without feedback.
    fn move_floor(&mut self, ackno: Seqno, sent: Option<Sent>) {
        if self.floor.is_some_and(|(floor, _)| ackno.at_most(floor)) {
            return;
        }
        let before = self.floor.map_or(0, |(_, data)| data);
        let data = sent.map_or(before, |sent| sent.data.max(before));
        self.floor = Some((ackno, data)).filter(|_| data > 0);
        self.log.forget_before(ackno);
    }

    /// Packets without data were sent, before any data. Logs the newest, after the first.
    pub(super) fn log_before_data(&mut self, first: (Seqno, Instant), newest: (Seqno, Instant)) {
        self.log.push(Sent { seq: first.0, at: first.1, data: 0 }, self.stamped);
        if newest.0 != first.0 {
            self.log.push(Sent { seq: newest.0, at: newest.1, data: 0 }, self.stamped);
            self.log.forget_before(newest.0);
        }
    }

    #[cfg(test)]
    pub(super) fn forget_all_but_the_newest(&mut self) {
        if let Some(newest) = self.log.newest().copied() {
            self.log.forget_before(newest.seq);
        }
    }

    fn set_no_feedback_timer(&mut self, now: Instant) {
        self.no_feedback = MaybeInstant::some(now + self.timeout());
        self.sent_since_set = false;
    }

    fn on_no_feedback(&mut self, now: Instant) -> TimeoutOutcome {
        self.wake_holds = false;
        let s = self.segment();
        let idle = !self.sent_since_set;
        let was_cut = self.rate_mut().on_no_feedback(now, idle, s);
        self.timeouts += u64::from(!idle);
        if !idle {
            // At a packet in 64 s, packets of a time long past would count for hours.
            self.size.on_loss_event();
        }
        self.floor = self.log.newest().map(|newest| (newest.seq, self.data_sent));
        self.gave_up = true;
        if was_cut || !idle {
            self.set_no_feedback_timer(now);
        } else {
            // Nothing changes while the sender stays idle. The next packet sets the timer.
            self.no_feedback = MaybeInstant::NONE;
        }
        TimeoutOutcome { timed_out: !idle, gave_up: true }
    }
}

/// The round-trip time of the handshake, where the peer's echo says `rtt`.
pub(super) fn handshake_rtt(measured: &mut RttFloor, now: Instant, rtt: Duration) -> Duration {
    if measured.get().is_zero() {
        measured.measured(now, rtt);
    }
    // An echo has a resolution of 10 us. A smaller difference from our own clock is none.
    let floor = measured.get();
    if rtt + ECHO_UNIT >= floor { rtt } else { floor }
}

/// Whether a receiver half of this CCID may send this option.
pub(super) fn reads(ccid: u8, option: &OptionRef<'_>) -> bool {
    use OptionRef::{DroppedPackets, LossEventRate, LossIntervals, ReceiveRate};
    match option {
        LossEventRate(_) | LossIntervals { .. } | ReceiveRate(_) => true,
        DroppedPackets(_) => ccid == ccid4::NUMBER,
        _ => false,
    }
}

impl CcidSender for Ccid3Sender {
    fn ccid(&self) -> u8 {
        self.ccid
    }

    fn reads_option(&self, option: &OptionRef<'_>) -> bool {
        reads(self.ccid, option)
    }

    fn poll_send(&mut self, now: Instant, size_bytes: u32) -> SendVerdict {
        if core::mem::take(&mut self.wake_holds) && self.wake == MaybeInstant::NONE {
            return SendVerdict::Now;
        }
        self.wake = MaybeInstant::NONE;
        if self.data_sent == 0 {
            self.expect_first(size_bytes);
        }
        if self.is_full() {
            return SendVerdict::Blocked;
        }
        let pace = self.spacing().pace;
        let mut at = self.pacer.next(&pace);
        if let Some(small) = &self.small {
            at = at.max(small.1.next());
        }
        if at > now {
            (self.wake, self.wake_holds) = (MaybeInstant::some(at), true);
            if let Some(small) = &mut self.small {
                small.1.on_wait();
            }
            return SendVerdict::At(at);
        }
        SendVerdict::Now
    }

    fn quick_start(&mut self, now: Instant, step: QuickStartStep) -> bool {
        self.wake_holds = false;
        let s = self.segment();
        match step {
            QuickStartStep::Approved(rate) => {
                //= 5634-3.2.3-2
                let all = Rate::from_bytes_per_sec(rate.bytes_per_sec());
                let header = QUICK_START_HEADER_BYTES as f64;
                let data = f64::from(s.bytes) / (f64::from(s.bytes) + header);
                let approved = all.scaled(data);
                let before = self.rate.allowed(s);
                if approved <= before || self.loss_events > 0 {
                    return false;
                }
                //= 5634-3.2.3-3
                //= 5634-3.2.3-4
                self.quick_start = Some(Box::new((before, approved)));
                self.rate_mut().raise(approved);
                self.fastest = self.fastest.max(approved);
            }
            //= 5634-3.2.4-3
            QuickStartStep::Validated | QuickStartStep::Congested => self.quick_start = None,
            //= 5634-3.2.4-4
            QuickStartStep::Silent => {
                if let Some((before, approved)) = self.quick_start.take().map(|rates| *rates) {
                    self.rate_mut().lower(before.min(approved.halved()));
                    self.set_no_feedback_timer(now);
                }
            }
        }
        true
    }

    //= 4342-8.1-2
    //= 4340-5.1-3
    fn ccval(&mut self, now: Instant) -> u8 {
        self.stamped = self.counter.next(now, self.rate.rtt().unwrap_or(DEFAULT_RTT));
        (self.stamped % 16) as u8
    }

    fn on_sent(&mut self, now: Instant, packet: SentInfo) {
        self.wake_holds = false;
        if packet.has_ack {
            self.owes_ack = false;
            self.ack_sent = MaybeInstant::some(now);
        }
        self.data_sent += u64::from(packet.is_data);
        let sent = Sent { seq: packet.seq, at: now, data: self.data_sent };
        self.log.push(sent, self.stamped);
        if !packet.is_data {
            return;
        }
        self.size.on_sent(packet.size_bytes);
        if packet.ecn == Ecn::Ce {
            self.verifier().on_probe(packet.seq);
        }
        if let Some(small) = &mut self.small {
            small.1.on_sent(now);
        }
        if self.data_sent == 1 {
            self.rate.on_data_sent(now);
        }
        let &Spacing { pace, allowed, .. } = self.spacing();
        let is_all = self.pacer.on_sent(now, &pace);
        // X is in bytes, but packets are spaced as if they had the mean size. With packets smaller
        // than half of that, the receive rate would halve X again and again, until almost nothing
        // is sent.
        if is_all && packet.size_bytes >= self.size.bytes() / 2 {
            self.data_limited.on_not_limited(now);
        }
        self.fastest = self.fastest.max(allowed);
        if self.no_feedback == MaybeInstant::NONE {
            self.set_no_feedback_timer(now);
        }
        (self.sent_since_set, self.gave_up) = (true, false);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckInfo<'_>) -> AckOutcome {
        self.wake_holds = false;
        let mut out = AckOutcome::default();
        self.peer_is_slow |= ack.slow_receiver;
        let round = self.rate.rtt().unwrap_or(DEFAULT_RTT);
        //= 4342-6.3-1
        //= 4342-6.3-2
        if (ack.ack_vector.is_some() || !ack.data_dropped.is_empty())
            && self.ack_sent.get().is_none_or(|at| now - at >= round)
        {
            self.owes_ack = true;
        }
        let is_old = self.acked.is_some_and(|(acked, _)| ack.ackno.is_before(acked));
        let is_ours = self.log.newest().is_some_and(|newest| ack.ackno.at_most(newest.seq))
            && self.first_on_path().is_none_or(|first| ack.ackno.at_least(first));
        if is_ours {
            let sent = self.log.get(ack.ackno).copied();
            if !is_old {
                self.take_feedback(now, ack, sent, &mut out);
            }
            self.move_floor(ack.ackno, sent);
        }
        out
    }

    fn read_reports(&self, ack: &AckInfo<'_>, visit: &mut dyn FnMut(PacketReport, Seqno, Seqno)) {
        self.visit_reports(ack, visit);
    }

    fn on_path_changed(&mut self) {
        (self.is_successor, self.wake_holds) = (true, false);
    }

    fn on_handshake_measured(&mut self, now: Instant, total: Duration) {
        self.rtt_floor.measured(now, total);
    }

    fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        self.wake_holds = false;
        let s = self.segment();
        let rtt = handshake_rtt(&mut self.rtt_floor, now, rtt);
        self.rate_mut().on_handshake_rtt(now, rtt, s);
    }

    fn wants_ack_of_ack(&self) -> bool {
        self.owes_ack
    }

    fn seq_window_needed(&self) -> u64 {
        let s = self.segment();
        let rtt = self.rate.rtt().unwrap_or(DEFAULT_RTT);
        let packets = self.rate.allowed(s).bytes_in(rtt) / u64::from(s.bytes);
        (packets.saturating_mul(ROUNDS_IN_SEQUENCE_WINDOW)).max(LEAST_SEQUENCE_WINDOW)
    }

    fn limit_in_flight(&mut self, packets: u64) {
        (self.in_flight_limit, self.wake_holds) = (packets.max(1), false);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.no_feedback.get(), self.wake.get()) {
            (Some(timer), Some(wake)) => Some(timer.min(wake)),
            (timer, wake) => timer.or(wake),
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> TimeoutOutcome {
        if self.wake.get().is_some_and(|wake| wake <= now) {
            self.wake = MaybeInstant::NONE;
        }
        match self.no_feedback.get() {
            Some(at) if at <= now => self.on_no_feedback(now),
            _ => TimeoutOutcome::default(),
        }
    }

    fn awaits_reports(&self) -> Option<bool> {
        let reported = self.acked.map_or(0, |(_, data)| data);
        Some(!self.gave_up && reported < self.data_sent)
    }

    fn rtt(&self) -> Option<Duration> {
        self.rate.rtt()
    }

    fn rto(&self) -> Duration {
        self.timeout()
    }

    fn metrics(&self) -> CcidMetrics {
        let s = self.segment();
        let x = self.rate.instantaneous(s);
        CcidMetrics {
            x_recv_bytes_per_sec: self.acked.map(|_| self.x_recv.bytes_per_sec()),
            x_calc_bytes_per_sec: self.rate.calculated().map(Rate::bytes_per_sec),
            packet_interval: Some(self.interval_at(x, s)),
            mean_packet_bytes: Some(self.size.bytes()),
            srtt: self.rate.rtt(),
            min_rtt: self.rate.min_rtt(),
            rto: Some(self.rto()),
            x_bytes_per_sec: Some(x.bytes_per_sec()),
            loss_event_rate: Some(self.rate.loss_event_rate()),
            congestion_events: self.loss_events,
            timeouts: self.timeouts,
            packets_lost: self.loss_events,
            ..CcidMetrics::default()
        }
    }
}
