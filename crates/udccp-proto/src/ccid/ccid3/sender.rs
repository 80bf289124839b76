//! The sender half: paces data by the allowed rate (RFC 4342 section 5, RFC 5348 section 4).

use core::ops::ControlFlow;

use udccp_base::{Duration, Ecn, Instant};
use udccp_wire::Seqno;

use super::feedback::Options;
use super::verify::{Sending, Verifier};
use super::{Ccid3Config, NUMBER, SegmentSizeRule};
use crate::ackvec::{DropCode, DropState, for_each_drop};
use crate::ccid::tfrc::{
    DataLimited, MinInterval, NDUPACK, Rate, RateControl, RatePacer, Report, RttFloor, Segment,
    SegmentSize, Sent, SentLog, SmallPackets, WindowCounter, equation,
};
use crate::ccid::{
    AckInfo, AckOutcome, CcidMetrics, CcidSender, PacketReport, QUICK_START_HEADER_BYTES,
    QuickStartStep, SendVerdict, SentInfo, TimeoutOutcome,
};

/// Round-trip time for the window counter while none is known (RFC 4340 section 3.4).
const DEFAULT_RTT: Duration = Duration::from_millis(200);
/// Packets sent in a round-trip time that the Sequence Window should hold (RFC 4340 section 7.5.2).
const ROUNDS_IN_SEQUENCE_WINDOW: u64 = 5;
/// The Sequence Window of new connections (RFC 4340 section 7.5.2).
const LEAST_SEQUENCE_WINDOW: u64 = 100;
/// Unit of the times in a Timestamp Echo (RFC 4340 section 13.3).
const ECHO_UNIT: Duration = Duration::from_micros(10);
/// The longest first loss interval, which its field holds.
const LONGEST_INTERVAL: f64 = 16_777_215.0;

/// The sender half of CCID 3.
#[derive(Clone, Debug)]
pub struct Ccid3Sender {
    ccid: u8,
    /// What CCID 4 does otherwise.
    small: Option<(SmallPackets, MinInterval)>,
    config: Ccid3Config,
    rate: RateControl,
    pacer: RatePacer,
    size: SegmentSize,
    max_size: u32,
    counter: WindowCounter,
    /// The counter value of the packet that is being written.
    stamped: u64,
    log: SentLog,
    verifier: Verifier,
    data_limited: DataLimited,
    data_sent: u64,
    /// Greatest number acknowledged by feedback, and data packets up to there.
    acked: Option<(Seqno, u64)>,
    /// Data packets after this one count against the Sequence Window: the greatest number that any
    /// packet of the peer acknowledged, or where the nofeedback timer gave up; and data packets up
    /// to there.
    floor: Option<(Seqno, u64)>,
    in_flight_limit: u64,
    rtt_floor: RttFloor,
    /// The greatest rate ever allowed.
    fastest: Rate,
    /// The longest interval before the first loss that is believed.
    first_at_most: u32,
    /// The last receive rate reported.
    x_recv: Rate,
    /// Data Dropped is read up to this packet.
    drops_read: Option<Seqno>,
    /// Acknowledgements carried what only an acknowledgement lets the receiver forget.
    owes_ack: bool,
    ack_sent: Option<Instant>,
    no_feedback: Option<Instant>,
    /// In Quick-Start: the rate before, and the rate that was approved.
    quick_start: Option<(Rate, Rate)>,
    sent_since_set: bool,
    wake: Option<Instant>,
    loss_events: u64,
    timeouts: u64,
}

impl Ccid3Sender {
    /// A sender of packets of up to `packet_size_bytes` of data.
    pub fn new(config: &Ccid3Config, packet_size_bytes: u32) -> Self {
        Self::with(NUMBER, config, packet_size_bytes, None)
    }

    /// A sender of CCID 3 or, for small packets, of CCID 4.
    pub(crate) fn with(
        ccid: u8,
        config: &Ccid3Config,
        packet_size_bytes: u32,
        small: Option<SmallPackets>,
    ) -> Self {
        let counts_losses = small.is_some();
        Self {
            ccid,
            small: small.map(|small| {
                let gate = MinInterval::new(small.min_interval);
                (small, gate)
            }),
            config: config.clone(),
            rate: RateControl::new(config.oscillation_reduction, config.least_timeout),
            pacer: RatePacer::new(config.granularity, config.max_credit),
            size: SegmentSize::new(packet_size_bytes),
            max_size: packet_size_bytes.max(1),
            counter: WindowCounter::default(),
            stamped: 0,
            log: SentLog::default(),
            verifier: Verifier::new(config.history_discounting, counts_losses),
            data_limited: DataLimited::default(),
            data_sent: 0,
            acked: None,
            floor: None,
            in_flight_limit: u64::MAX,
            rtt_floor: RttFloor::default(),
            fastest: Rate::default(),
            first_at_most: u32::MAX,
            x_recv: Rate::default(),
            drops_read: None,
            owes_ack: false,
            ack_sent: None,
            no_feedback: None,
            quick_start: None,
            sent_since_set: false,
            wake: None,
            loss_events: 0,
            timeouts: 0,
        }
    }

    //= 4342-5.3-1
    //= 5622-5-1
    //= 4828-3-5
    /// s.
    fn segment(&self) -> Segment {
        let bytes = match self.config.segment_size {
            SegmentSizeRule::Mean => self.size.bytes(),
            SegmentSizeRule::Maximum => self.max_size,
        };
        self.small.as_ref().map_or(bytes.into(), |(small, _)| small.segment(bytes))
    }

    /// t_ipi of segments `s` at this rate.
    fn interval_at(&self, rate: Rate, s: Segment) -> Duration {
        let interval = rate.interval(s.bytes);
        self.small.as_ref().map_or(interval, |(small, _)| interval.max(small.min_interval))
    }

    /// t_ipi of segments `s`.
    fn interval(&self, s: Segment) -> Duration {
        self.interval_at(self.rate.instantaneous(s), s)
    }

    /// The nofeedback timer: packets have to leave before feedback can come.
    fn timeout(&self) -> Duration {
        let timeout = self.rate.timeout(self.segment());
        self.small.as_ref().map_or(timeout, |(small, _)| timeout.max(small.min_interval * 2))
    }

    //= 4340-7.5.2-3
    /// Data packets sent that nothing acknowledged yet. Acknowledgements of ours are none of them:
    /// the peer's data calls for them, and nobody acknowledges them. While there are any, the
    /// nofeedback timer runs.
    fn in_flight(&self) -> u64 {
        let (Some((floor, data)), Some(newest)) = (self.floor, self.log.newest()) else {
            // The initial rate is the limit until data was acknowledged or given up.
            return 0;
        };
        // The floor may be a packet that is not remembered, with data counted up to one before.
        let packets = newest.seq.distance_from(floor).max(0) as u64;
        self.data_sent.saturating_sub(data).min(packets)
    }

    /// A packet of the peer acknowledged `ackno`, whatever else it carries.
    fn move_floor(&mut self, ackno: Seqno) {
        if self.floor.is_some_and(|(floor, _)| ackno.at_most(floor)) {
            return;
        }
        let before = self.floor.map_or(0, |(_, data)| data);
        let data = self.log.get(ackno).map_or(before, |sent| sent.data.max(before));
        self.floor = Some((ackno, data)).filter(|_| data > 0);
        self.log.forget_before(ackno);
    }

    fn set_no_feedback_timer(&mut self, now: Instant) {
        self.no_feedback = Some(now + self.timeout());
        self.sent_since_set = false;
    }

    /// When the acknowledged packet left, and the round-trip time without the receiver's wait: what
    /// the peer reports of that makes it no less than what our clock measured on this path.
    fn measure(&mut self, now: Instant, ack: &AckInfo<'_>) -> (Instant, Option<Duration>) {
        let sent = self.log.get(ack.ackno).map(|sent| sent.at);
        let elapsed = ack.elapsed.unwrap_or_default();
        let by_packet = sent.map(|at| {
            let total = now - at;
            self.rtt_floor.measured(now, total);
            // An Elapsed Time beyond the whole is a lie; without it the sample is only larger.
            if elapsed < total { total - elapsed } else { total }
        });
        let sample = by_packet.or(ack.timestamp_echo_rtt).map(|rtt| rtt.max(self.rtt_floor.get()));
        let guess = self.rate.rtt().unwrap_or(DEFAULT_RTT) + elapsed;
        (sent.unwrap_or(now - guess), sample)
    }

    /// p, and how many loss events are new; `None` where the packet is no feedback.
    fn read_losses(&mut self, ack: &AckInfo<'_>, options: &Options) -> Option<(f64, u64)> {
        let rtt = self.rate.rtt().unwrap_or(DEFAULT_RTT);
        if !options.intervals().is_empty() {
            if self.loss_events == 0 {
                // A receiver cannot have seen more than was ever allowed before the first loss.
                let s = self.segment();
                let p = equation::loss_event_rate(s.nominal, rtt, self.fastest.with_headers(s));
                self.first_at_most = (1.0 / p).min(LONGEST_INTERVAL) as u32;
            }
            let sending = Sending { log: &self.log, rtt, first_at_most: self.first_at_most };
            let fresh = self.verifier.take(ack.ackno, options, &sending).ok()?;
            return Some((self.verifier.rate(), fresh));
        }
        //= 4342-6.1.1-2
        let inverse = options.loss_event_rate.filter(|_| self.config.accept_loss_event_rate)?;
        let p = match inverse {
            u32::MAX => 0.0,
            n => 1.0 / f64::from(n.max(1)),
        };
        Some((p, u64::from(p > self.rate.loss_event_rate())))
    }

    //= 4340-11.7.1-3
    //= 4342-5.2-1
    //= 4342-5.2-2
    /// What the receiver's own troubles make of its receive rate (RFC 4342 section 5.2).
    fn adjust_x_recv(&self, x_recv: Rate, slow: bool, dropped: u64) -> Rate {
        if !slow && dropped == 0 {
            return x_recv;
        }
        let rtt = self.rate.rtt().unwrap_or(DEFAULT_RTT);
        let one = Rate::of(u64::from(self.segment().bytes), rtt);
        let less = one.scaled(dropped as f64);
        let bound = x_recv.minus(less).max(x_recv.min(one));
        x_recv.min(bound.halved())
    }

    //= 4342-6-2
    /// Reads Data Dropped blocks; returns the packets newly reported with Drop Code 2.
    fn read_drops(&mut self, ack: &AckInfo<'_>, out: &mut AckOutcome) -> u64 {
        let read = self.drops_read;
        let is_new = |seq: Seqno| read.is_none_or(|r| seq.is_after(r));
        let verifier = &mut self.verifier;
        let mut buffer_drops = 0;
        for_each_drop(ack.ackno, ack.data_dropped, |state, newest, oldest| {
            let DropState::Dropped(code) = state else { return ControlFlow::Continue(()) };
            let oldest = read.map_or(oldest, |r| oldest.max(r.next()));
            if !is_new(newest) {
                return ControlFlow::Continue(());
            }
            let count = newest.distance_from(oldest).max(0) as u64 + 1;
            out.data_dropped += u32::try_from(count).unwrap_or(u32::MAX);
            out.peer_drops.add(code, count);
            match code {
                //= 4340-11.7.2-1
                DropCode::ProtocolConstraints => out.constrained = true,
                DropCode::ApplicationNotListening => out.not_listening = true,
                //= 4340-11.7.2-6
                DropCode::ReceiveBuffer => buffer_drops += count,
                DropCode::Corrupt | DropCode::Reserved(_) | DropCode::DeliveredCorrupt => {
                    verifier.on_corrupt(oldest);
                }
            }
            ControlFlow::Continue(())
        });
        self.drops_read = Some(read.map_or(ack.ackno, |r| r.max(ack.ackno)));
        buffer_drops
    }

    fn take_feedback(&mut self, now: Instant, ack: &AckInfo<'_>, out: &mut AckOutcome) {
        let dropped = self.read_drops(ack, out);
        let options = Options::read(ack);
        let Some(receive_rate) = options.receive_rate else { return };
        let Some((p, fresh)) = self.read_losses(ack, &options) else { return };
        (out.probes_reported, out.probes_hidden) = self.verifier.take_probe_counts();
        self.loss_events += fresh;
        if fresh > 0 {
            self.size.on_loss_event();
        }
        let (t_new, rtt) = self.measure(now, ack);
        let known_rtt = rtt.or(self.rate.rtt()).unwrap_or(DEFAULT_RTT);
        let limited = self.data_limited.on_feedback(now, t_new, known_rtt);
        let reported = Rate::from_bytes_per_sec(u64::from(receive_rate));
        self.x_recv = self.adjust_x_recv(reported, ack.slow_receiver, dropped);
        let report = Report {
            rtt,
            x_recv: self.x_recv,
            loss_event_rate: p,
            more_loss: fresh > 0 || p > self.rate.loss_event_rate(),
            data_limited: limited,
        };
        let s = self.segment();
        self.rate.on_feedback(now, &report, s);
        self.fastest = self.fastest.max(self.rate.allowed(s));
        self.set_no_feedback_timer(now);
        self.acknowledge(now, ack.ackno, fresh, out);
    }

    /// Moves the accounting on to the acknowledged packet.
    fn acknowledge(&mut self, now: Instant, ackno: Seqno, lost: u64, out: &mut AckOutcome) {
        if let Some(sent) = self.log.get(ackno).copied() {
            let before = self.acked.map_or(0, |(_, data)| data);
            let covered = sent.data.saturating_sub(before);
            // Loss Intervals do not show how many packets a loss event lost; one at least.
            let lost = lost.min(covered);
            out.newly_acked = u32::try_from(covered - lost).unwrap_or(u32::MAX);
            out.newly_lost = u32::try_from(lost).unwrap_or(u32::MAX);
            self.acked = Some((ackno, sent.data));
            if let Some(counter) = self.log.counter(ackno) {
                let rtt = self.rate.rtt().unwrap_or(DEFAULT_RTT);
                self.counter.on_ack(now, counter, rtt);
            }
        }
    }

    fn on_no_feedback(&mut self, now: Instant) -> TimeoutOutcome {
        let s = self.segment();
        let idle = !self.sent_since_set;
        let was_cut = self.rate.on_no_feedback(now, idle, s);
        self.timeouts += u64::from(!idle);
        self.floor = self.log.newest().map(|newest| (newest.seq, self.data_sent));
        if was_cut || !idle {
            self.set_no_feedback_timer(now);
        } else {
            // Nothing changes while the sender stays idle; the next packet sets the timer.
            self.no_feedback = None;
        }
        TimeoutOutcome { timed_out: !idle, gave_up: true }
    }
}

impl CcidSender for Ccid3Sender {
    fn ccid(&self) -> u8 {
        self.ccid
    }

    fn poll_send(&mut self, now: Instant, size_bytes: u32) -> SendVerdict {
        self.wake = None;
        if !self.size.is_measured() && self.data_sent == 0 {
            self.size.expect(size_bytes);
            let s = self.segment();
            self.rate.on_first_segment(s);
            if let Some((_, approved)) = self.quick_start {
                self.rate.raise(approved);
            }
        }
        if self.in_flight() >= self.in_flight_limit {
            return SendVerdict::Blocked;
        }
        let mut at = self.pacer.next(self.interval(self.segment()), self.rate.rtt());
        if let Some((_, gate)) = &self.small {
            at = at.max(gate.next());
        }
        if at > now {
            self.wake = Some(at);
            if let Some((_, gate)) = &mut self.small {
                gate.on_wait();
            }
            return SendVerdict::At(at);
        }
        SendVerdict::Now
    }

    fn quick_start(&mut self, now: Instant, step: QuickStartStep) -> bool {
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
                self.quick_start = Some((before, approved));
                self.rate.raise(approved);
                self.fastest = self.fastest.max(approved);
            }
            //= 5634-3.2.4-3
            QuickStartStep::Validated | QuickStartStep::Congested => self.quick_start = None,
            //= 5634-3.2.4-4
            QuickStartStep::Silent => {
                if let Some((before, approved)) = self.quick_start.take() {
                    self.rate.lower(before.min(approved.halved()));
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
        if packet.has_ack {
            self.owes_ack = false;
            self.ack_sent = Some(now);
        }
        self.data_sent += u64::from(packet.is_data);
        let sent = Sent { seq: packet.seq, at: now, data: self.data_sent };
        self.log.push(sent, self.stamped);
        if !packet.is_data {
            return;
        }
        self.size.on_sent(packet.size_bytes);
        if packet.ecn == Ecn::Ce {
            self.verifier.on_probe(packet.seq);
        }
        if let Some((_, gate)) = &mut self.small {
            gate.on_sent(now);
        }
        self.rate.on_data_sent(now);
        let s = self.segment();
        let allowed = self.rate.allowed(s);
        let steady = self.interval_at(allowed, s);
        if self.pacer.on_sent(now, self.interval(s), steady, self.rate.rtt()) {
            self.data_limited.on_not_limited(now);
        }
        self.fastest = self.fastest.max(allowed);
        if self.no_feedback.is_none() {
            self.set_no_feedback_timer(now);
        }
        self.sent_since_set = true;
    }

    fn on_ack(&mut self, now: Instant, ack: &AckInfo<'_>) -> AckOutcome {
        let mut out = AckOutcome::default();
        let round = self.rate.rtt().unwrap_or(DEFAULT_RTT);
        //= 4342-6.3-1
        //= 4342-6.3-2
        if (ack.ack_vector.is_some() || !ack.data_dropped.is_empty())
            && self.ack_sent.is_none_or(|at| now - at >= round)
        {
            self.owes_ack = true;
        }
        let is_old = self.acked.is_some_and(|(acked, _)| ack.ackno.is_before(acked));
        let is_ours = self.log.newest().is_some_and(|newest| ack.ackno.at_most(newest.seq));
        if !is_old && is_ours {
            self.take_feedback(now, ack, &mut out);
        }
        if is_ours {
            self.move_floor(ack.ackno);
        }
        out
    }

    fn read_reports(&self, ack: &AckInfo<'_>, visit: &mut dyn FnMut(PacketReport, Seqno, Seqno)) {
        let options = Options::read(ack);
        let mut newest = ack.ackno.sub(u64::from(options.skip));
        // Of a hole that is longer than what can be skipped, the rest counts as lossless for now.
        let mut is_settled = usize::from(options.skip) < NDUPACK;
        for interval in options.intervals() {
            let lossless = u64::from(interval.lossless_length);
            if lossless > 0 && is_settled {
                visit(PacketReport::Received, newest, newest.sub(lossless - 1));
            }
            is_settled = true;
            newest = newest.sub(lossless);
            let Some(after_first) = u64::from(interval.loss_length).checked_sub(1) else {
                continue;
            };
            let first = newest.sub(after_first);
            if after_first > 0 {
                visit(PacketReport::Unknown, newest, first.next());
            }
            // A lossy part begins with a loss.
            visit(PacketReport::LostOrMarked, first, first);
            newest = first.prev();
        }
        // Older packets are not reported any more, nor any by themselves in a loss event rate.
        let is_feedback = !options.intervals().is_empty() || options.loss_event_rate.is_some();
        let first = self.log.first().filter(|first| is_feedback && first.at_most(newest));
        if let Some(first) = first {
            visit(PacketReport::Unknown, newest, first);
        }
    }

    fn on_handshake_measured(&mut self, now: Instant, total: Duration) {
        self.rtt_floor.measured(now, total);
    }

    fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        let s = self.segment();
        // An echo is good to 10 us; what is less than that below our own clock is the same.
        if self.rtt_floor.get().is_zero() {
            self.rtt_floor.measured(now, rtt);
        }
        let floor = self.rtt_floor.get();
        let rtt = if rtt + ECHO_UNIT >= floor { rtt } else { floor };
        self.rate.on_handshake_rtt(now, rtt, s);
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
        self.in_flight_limit = packets.max(1);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.no_feedback, self.wake) {
            (Some(timer), Some(wake)) => Some(timer.min(wake)),
            (timer, wake) => timer.or(wake),
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> TimeoutOutcome {
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = None;
        }
        match self.no_feedback {
            Some(at) if at <= now => self.on_no_feedback(now),
            _ => TimeoutOutcome::default(),
        }
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
