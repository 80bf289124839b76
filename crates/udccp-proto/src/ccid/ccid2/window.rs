//! Applies the rules of CCID 2 to the congestion window of any algorithm (RFC 4341 section 5).

use udccp_base::{DataRate, Duration, Instant, MaybeInstant};
use udccp_cc::{AckSample, Delivered, Instance, WindowValidation};
use udccp_wire::Seqno;

use crate::ccid::SentInfo;
use crate::ccid::ccid2::history::Change;
use crate::ccid::ccid2::observer::Observer;
use crate::ccid::ccid2::trains::Pace;
use crate::ccid::ccid2::{Ccid2Config, SlowStartGrowth};

/// Summary of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Packets that left the pipe, received or lost.
    pub(super) left_pipe: u32,
    /// Packets received.
    pub(super) received: u32,
    /// Packets received unmarked that count as growth ([`Window::counts`]).
    pub(super) counted: u32,
    /// Packets inferred lost.
    pub(super) lost: u32,
    /// A packet sent after the last cut was lost or marked.
    pub(super) congested: bool,
    /// Packets reported dropped in a receive buffer.
    pub(super) buffer_drops: u32,
    /// Data Dropped reported something new.
    pub(super) data_dropped: bool,
}

/// State of the connection when an acknowledgement arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    pub(super) now: Instant,
    pub(super) ackno: Seqno,
    /// The sequence number of the next packet.
    pub(super) next: Seqno,
    /// Data packets sent so far.
    pub(super) sent_total: u64,
    /// Packets in the network before this acknowledgement.
    pub(super) pipe: u32,
    pub(super) srtt: Option<Duration>,
    pub(super) min_rtt: Option<Duration>,
    pub(super) rto: Duration,
    /// The round-trip time that this acknowledgement measured.
    pub(super) sample: Option<Duration>,
    pub(super) ack_ratio: u16,
}

/// cwnd and ssthresh, and the rules for changing them.
#[derive(Clone, Debug)]
pub(super) struct Window {
    cc: Instance,
    max_window: u32,
    validation: WindowValidation,
    slow_start: SlowStartGrowth,
    /// Whether packets sent before a cut count as growth too.
    grows_in_recovery: bool,
    /// For algorithms that need more than the growth.
    observer: Option<Box<Observer>>,
    /// Packets from this one on were sent after the last cut. Their loss is a new event.
    recover: Option<Seqno>,
    in_recovery: bool,
    /// Half a packet of slow start growth, carried over.
    half: u32,
    /// The window does not grow until then, because the receiver is slow.
    held_until: MaybeInstant,
    /// The newest packet sent while the window was full.
    filled: Option<Seqno>,
    congestion_events: u32,
}

impl Window {
    pub(super) fn new(config: &Ccid2Config, packet_size_bytes: u32) -> Self {
        let initial = config.initial_window.packets(packet_size_bytes);
        let mut cc = Instance::new(&config.algorithm, initial);
        let needs = cc.needs();
        // Samples of the delivery rate need more than three times the memory.
        let part = if needs.rates { 4 } else { 1 };
        let max_window = (config.max_window / part).max(1);
        cc.clamp(max_window);
        cc.set_trains(config.max_train);
        let grows_in_recovery = cc.grows_in_recovery();
        let observer = Observer::new(needs, packet_size_bytes, max_window);
        Self {
            cc,
            max_window,
            validation: WindowValidation::new(config.idle, initial),
            slow_start: config.slow_start,
            grows_in_recovery,
            observer,
            recover: None,
            in_recovery: false,
            half: 0,
            held_until: MaybeInstant::NONE,
            filled: None,
            congestion_events: 0,
        }
    }

    pub(super) fn algorithm(&self) -> &Instance {
        &self.cc
    }

    pub(super) fn cwnd(&self) -> u32 {
        self.cc.cwnd()
    }

    /// Upper limit of the window.
    pub(super) fn max_window(&self) -> u32 {
        self.max_window
    }

    pub(super) fn congestion_events(&self) -> u64 {
        self.congestion_events.into()
    }

    #[inline]
    pub(super) fn is_non_validated(&self) -> bool {
        self.validation.is_non_validated()
    }

    /// Sets the window, and leaves slow start if `ends_slow_start`.
    pub(super) fn set_window(&mut self, now: Instant, cwnd: u32, ends_slow_start: bool) {
        let ssthresh = if ends_slow_start { cwnd } else { self.cc.ssthresh() };
        self.cc.set_window(now, cwnd, ssthresh);
    }

    /// The first packet sent after the last cut, if there was one.
    pub(super) fn recover(&self) -> Option<Seqno> {
        self.recover
    }

    /// Whether the algorithm observes each packet.
    pub(super) fn observes(&self) -> bool {
        self.observer.is_some()
    }

    /// How packets of `size_bytes` are paced at a rate, computed by `pace`.
    pub(super) fn pace(
        &mut self,
        rate: DataRate,
        size_bytes: u32,
        pace: impl FnOnce() -> Pace,
    ) -> Pace {
        match &mut self.observer {
            Some(observer) => observer.pace(rate, size_bytes, pace),
            None => pace(),
        }
    }

    /// Whether `seq` was sent after the last cut.
    pub(super) fn is_after_cut(&self, seq: Seqno) -> bool {
        self.recover.is_none_or(|recover| seq.at_least(recover))
    }

    /// Whether an unmarked packet counts as growth. `in_pipe` is false after a timeout.
    pub(super) fn counts(&self, seq: Seqno, in_pipe: bool) -> bool {
        if self.grows_in_recovery { in_pipe } else { self.is_after_cut(seq) }
    }

    //= 4341-5.1-1
    /// Data waits. Reduces a window that has not been used for too long.
    #[inline]
    pub(super) fn before_send(&mut self, now: Instant, rto: Duration) {
        if !self.validation.is_settled(now) {
            self.validation.before_send(now, rto, &mut *self.cc);
        }
    }

    /// Until when [`Self::before_send`] certainly changes nothing.
    #[inline]
    pub(super) fn settled_until(&self) -> Option<Instant> {
        self.validation.settled_until()
    }

    /// Data waits while `pipe` packets are in the network. `last` is the last packet sent.
    pub(super) fn on_blocked(&mut self, last: Seqno, pipe: u32) {
        if pipe >= self.cwnd() {
            self.on_filled(last);
        }
    }

    /// The window counts as full with the packets up to `last`, until an acknowledgement arrives.
    pub(super) fn on_filled(&mut self, last: Seqno) {
        self.filled = Some(last);
    }

    /// A data packet was sent, and now `pipe` packets are in the network.
    #[inline(always)]
    pub(super) fn on_sent(&mut self, now: Instant, packet: &SentInfo, pipe: u32, rto: Duration) {
        let cwnd = self.cwnd();
        if pipe >= cwnd {
            self.filled = Some(packet.seq);
        }
        if let Some(observer) = &mut self.observer {
            // Few windows have one. With the clone, inlined code does not write the packet to
            // memory.
            observer.on_sent(now, &packet.clone(), pipe - 1, cwnd);
        }
        if !self.validation.on_usual_sent(now) {
            self.validation.on_sent(now, pipe, rto, &mut *self.cc);
        }
    }

    /// The handshake measured a round-trip time.
    pub(super) fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        if let Some(observer) = &self.observer {
            self.cc.on_delivery(&observer.handshake(now, rtt));
        }
    }

    /// The state of data packet `seq` changed.
    #[inline]
    pub(super) fn on_packet_state(&mut self, now: Instant, seq: Seqno, change: Change) {
        if let Some(observer) = &mut self.observer {
            observer.on_packet_state(now, seq, change != Change::Lost);
        }
    }

    /// Processes an acknowledgement: ends recovery, cuts or grows. Returns whether it cut.
    pub(super) fn on_ack(&mut self, tally: &Tally, at: &AckContext) -> bool {
        //= 4340-11.7.1-1
        if self.in_recovery && self.is_after_cut(at.ackno) {
            self.in_recovery = false;
            self.validation.on_recovery_end(at.now, &mut *self.cc);
        }
        if tally.received > 0 {
            self.validate(tally.received, at.pipe - tally.left_pipe, at);
        }
        let grows = tally.counted > 0 && !tally.data_dropped;
        if grows && self.grows_in_recovery {
            self.grow(tally.counted, at);
        }
        if tally.congested {
            self.cut(at);
        }
        if self.observer.is_some() {
            self.observe(tally, at);
        }
        if grows && !self.grows_in_recovery && !tally.congested {
            self.grow(tally.counted, at);
        }
        self.validation.on_lost(tally.lost);
        if tally.data_dropped {
            self.on_data_dropped(at.now, tally.buffer_drops);
        }
        tally.congested
    }

    /// Whether acknowledgements of packets that arrived without a mark only let the window grow.
    #[inline]
    pub(super) fn only_grows(&self) -> bool {
        !self.in_recovery && self.observer.is_none()
    }

    /// Like [`Self::on_ack`], if [`Self::only_grows`] and `acked` packets, all sent after the last
    /// cut, arrived without a mark.
    #[inline(always)]
    pub(super) fn on_plain_ack(&mut self, acked: u32, at: &AckContext) {
        self.validate(acked, at.pipe - acked, at);
        self.grow(acked, at);
    }

    #[inline(always)]
    fn validate(&mut self, received: u32, in_flight: u32, at: &AckContext) {
        let delivered = Delivered {
            now: at.now,
            packets: received,
            sent_total: at.sent_total,
            in_flight,
            srtt: at.srtt.unwrap_or(at.rto),
        };
        self.validation.on_ack(&delivered, self.cc.cwnd());
    }

    #[inline(never)]
    fn observe(&mut self, tally: &Tally, at: &AckContext) {
        let Some(observer) = &mut self.observer else { return };
        let cwnd_limited = self.filled.is_some_and(|filled| at.ackno.at_most(filled));
        self.cc.on_delivery(&observer.delivery(tally, at, self.in_recovery, cwnd_limited));
    }

    /// One congestion event. It includes all further losses and marks of packets sent until now.
    fn cut(&mut self, at: &AckContext) {
        self.validation.before_cut(at.now, at.pipe, &mut *self.cc);
        self.cc.on_congestion_event(at.now, at.pipe);
        self.recover = Some(at.next);
        self.in_recovery = true;
        self.half = 0;
        self.congestion_events += 1;
    }

    #[inline(always)]
    fn grow(&mut self, counted: u32, at: &AckContext) {
        if self.held_until.get().is_some_and(|until| at.now < until) {
            return;
        }
        let cwnd_limited = self.filled.is_some_and(|filled| at.ackno.at_most(filled));
        if !self.validation.may_grow(cwnd_limited) {
            return;
        }
        let newly_acked = self.growth(counted, at.ack_ratio);
        self.cc.on_ack(&AckSample {
            now: at.now,
            newly_acked,
            rtt: at.sample,
            srtt: at.srtt,
            min_rtt: at.min_rtt,
            in_flight: at.pipe,
            cwnd_limited: true,
        });
    }

    /// How much the window may grow for `counted` packets.
    #[inline(always)]
    fn growth(&mut self, counted: u32, ack_ratio: u16) -> u32 {
        if self.slow_start == SlowStartGrowth::EveryPacket || !self.cc.in_slow_start() {
            return counted;
        }
        self.half += counted.min(u32::from(ack_ratio));
        let packets = self.half / 2;
        self.half %= 2;
        packets
    }

    //= 4341-5.2-1
    //= 4340-11.7-2
    //= 4340-11.7.1-2
    /// Ends slow start. Each packet dropped in a receive buffer reduces the window by one (RFC 4341
    /// section 5.2), in addition to any cut (RFC 4340 section 11.7.1).
    fn on_data_dropped(&mut self, now: Instant, buffer_drops: u32) {
        self.cc.exit_slow_start(now);
        if buffer_drops > 0 {
            let cwnd = self.cwnd().saturating_sub(buffer_drops).max(1);
            let ssthresh = self.cc.ssthresh().min(cwnd);
            self.cc.set_window(now, cwnd, ssthresh);
        }
    }

    //= 4340-11.6-1
    /// The receiver is slow: stops growth for about a round-trip time (RFC 4340 section 11.6).
    pub(super) fn on_slow_receiver(&mut self, now: Instant, rtt: Duration) {
        self.cc.exit_slow_start(now);
        self.held_until = MaybeInstant::some(now + rtt);
    }

    /// The transmit timer expired: cwnd becomes one packet, and ssthresh half the window.
    pub(super) fn on_timeout(&mut self, now: Instant, pipe: u32, next: Seqno) {
        self.validation.on_rto();
        self.cc.on_rto(now, pipe);
        self.recover = Some(next);
        self.in_recovery = false;
        self.half = 0;
    }
}
