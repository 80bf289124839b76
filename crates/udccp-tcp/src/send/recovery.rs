//! Handles acknowledgements and the retransmission timer (RFC 6675 section 5, RFC 6298).

use udccp_base::{Duration, Instant};
use udccp_cc::AckSample;

use super::{AckInfo, Phase, Recovery, SendSide};
use crate::config::{AckCounting, RttSampling, WindowReduction};
use crate::send::observer::Before;
use crate::send::reduction::Reduction;
use crate::send::times::Acked;

/// Number of duplicate acknowledgements that starts fast retransmit (RFC 6675 section 2).
const DUP_THRESH: u32 = 3;

impl SendSide {
    /// Handles an acknowledgement with `una <= ack <= nxt`.
    pub(crate) fn on_ack(&mut self, now: Instant, info: &AckInfo<'_>) {
        let before = self.board.una();
        self.blocked = false;
        let in_flight = self.times.count();
        let is_open = matches!(self.phase, Phase::Open);
        let pipe = if is_open && self.observer.is_none() { 0 } else { self.board.pipe() };
        let in_order = is_open && self.board.sacked_bytes() == 0;
        if info.window_end > self.window_end {
            self.window_end = info.window_end;
            self.persist_deadline = Instant::MAX;
        }
        self.unanswered = 0;
        self.board.begin_ack();
        let mut delivered = 0;
        if !info.blocks.is_empty() {
            self.counts.duplicates_reported += u32::from(self.reports_duplicate(info));
            delivered = self.board.on_sack(info.blocks);
            self.dup_acks += u32::from(delivered > 0);
        }
        // Segments of a window that was cut do not count again, except for those reported by the
        // acknowledgement that ends the recovery.
        let grows = matches!(self.phase, Phase::Open | Phase::Loss { .. });
        let mut acked = Acked::default();
        let high_rxt = self.board.high_rxt();
        let shortest = self.rtt.min_rtt().unwrap_or_default();
        if info.ack > before {
            let sacked = self.board.on_cumulative_ack(info.ack);
            delivered += info.ack - before - sacked;
            acked = self.times.on_ack(now, info.ack);
            if sacked > 0 {
                // Data that had been waiting behind a hole gives no round-trip time and no growth.
                let fresh = delivered.div_ceil(self.mss.into()) as u32;
                acked = Acked { segments: acked.segments.min(fresh), rtt: None, ..acked };
            }
            self.dup_acks = 0;
            self.limited_transmit_bytes = 0;
            self.timed_out = false;
            self.sample_rtt(info.ack, acked.rtt.map(|(oldest, _)| oldest).or(info.timestamp_rtt));
            self.restart_rto(now);
        }
        let sacked = self.detect_after_ack(now, info, acked, high_rxt, shortest);
        let is_safe = info.ack > before && !self.lost_more(is_open, pipe, delivered);
        let ended = self.step_phase(now, info, delivered, in_flight, is_safe);
        self.step_frto(info.ack > before);
        self.enter_own_recovery(now, delivered, is_safe);
        if self.observer.is_some() {
            let before = Before { una: before, pipe, in_order };
            self.observe(now, info, before, delivered, (acked, sacked));
        }
        if self.detection.is_some() {
            self.enter_recovery_if_lost(now, delivered, is_safe);
        }
        let may_grow = !matches!(self.phase, Phase::Recovery(_) | Phase::Reduced { .. });
        if ended && may_grow && self.shared.limits.grows_at_recovery_end {
            let fresh = delivered.div_ceil(self.mss.into()) as u32;
            self.grow(now, before, fresh, acked.newest_rtt(), in_flight);
        }
        if grows && may_grow && acked.segments > 0 {
            let fresh = delivered.div_ceil(self.mss.into()) as u32;
            let segments = if self.detection.is_some() { fresh } else { acked.segments };
            self.grow(now, before, segments, acked.newest_rtt(), in_flight);
        }
        if self.detection.is_none() {
            self.enter_recovery_if_lost(now, delivered, is_safe);
        }
        if info.ack > before {
            self.reschedule_probe(now);
        }
    }

    /// Whether an acknowledgement of `delivered` bytes showed a loss, with `pipe` bytes before it.
    fn lost_more(&self, was_open: bool, pipe: u64, delivered: u64) -> bool {
        if was_open {
            return self.board.head_is_lost();
        }
        pipe > self.board.pipe() + delivered
    }

    /// A congestion control that sets its own window enters the recovery at once.
    fn enter_own_recovery(&mut self, now: Instant, delivered: u64, is_safe: bool) {
        if self.shared.limits.own_recovery {
            self.enter_recovery_if_lost(now, delivered, is_safe);
        }
    }

    /// Starts a recovery if a loss is known and none is in progress. The last acknowledgement
    /// reported `delivered` bytes; `is_safe` means that it advanced and showed no further loss.
    pub(super) fn enter_recovery_if_lost(&mut self, now: Instant, delivered: u64, is_safe: bool) {
        let three = self.dup_acks >= DUP_THRESH && self.detection.is_none();
        let is_open = matches!(self.phase, Phase::Open | Phase::Reduced { .. });
        if is_open && (three || self.board.head_is_lost()) {
            self.enter_recovery(now, delivered, is_safe);
        }
    }

    /// Handles an acknowledgement without blocks that says nothing, because nothing is in flight.
    /// Returns false, and does nothing, if it is another.
    #[inline]
    pub(crate) fn on_idle_ack(&mut self, window_end: u64) -> bool {
        let is_idle = self.board.flight() == 0
            && window_end <= self.window_end
            && self.dup_acks == 0
            && self.observer.is_none()
            && matches!(self.phase, Phase::Open);
        if is_idle {
            self.blocked = false;
            self.unanswered = 0;
        }
        is_idle
    }

    /// RFC 2883: the first block reports a duplicate if it is below the acknowledgement or within
    /// the second block.
    pub(super) fn reports_duplicate(&self, info: &AckInfo<'_>) -> bool {
        match info.blocks {
            [first, ..] if first.start < info.ack => true,
            [first, second, ..] => second.start <= first.start && first.end <= second.end,
            _ => false,
        }
    }

    /// Updates the phase. Returns true if a recovery, or the round trip after a mark, has ended.
    /// `is_safe` means that the acknowledgement advanced and showed no further loss.
    fn step_phase(
        &mut self,
        now: Instant,
        info: &AckInfo<'_>,
        delivered: u64,
        in_flight: u32,
        is_safe: bool,
    ) -> bool {
        let una = self.board.una();
        match &mut self.phase {
            Phase::Open => {
                if info.congestion_echo && self.board.flight() > 0 {
                    self.cut(now, in_flight);
                    self.cwr_owed = true;
                    self.phase = Phase::Reduced { point: self.board.nxt() };
                }
            }
            Phase::Recovery(recovery) if una < recovery.point => {
                let target = u64::from(self.cc.cwnd()) * u64::from(self.mss);
                let mss = u64::from(self.mss);
                let pipe = self.board.pipe();
                recovery.reduction.on_delivered(delivered, pipe, target, mss, is_safe);
            }
            Phase::Reduced { point } | Phase::Loss { point } if una < *point => {}
            Phase::Reduced { .. } | Phase::Loss { .. } | Phase::Recovery(_) => {
                let ended = !matches!(self.phase, Phase::Loss { .. });
                self.phase = Phase::Open;
                self.on_recovery_end();
                return ended;
            }
        }
        false
    }

    /// An acknowledgement up to `ack` measured this round-trip time.
    #[inline(always)]
    pub(super) fn sample_rtt(&mut self, ack: u64, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        match self.shared.limits.sampling {
            RttSampling::EveryAck => self.rtt.sample(rtt),
            RttSampling::OncePerWindow if ack >= self.sample_from => {
                self.rtt.sample(rtt);
                self.sample_from = self.board.nxt();
            }
            RttSampling::OncePerWindow => self.rtt.observe(rtt),
        }
    }

    /// RFC 6298 section 5.2 and 5.3.
    #[inline]
    pub(super) fn restart_rto(&mut self, now: Instant) {
        let idle = self.board.flight() == 0;
        self.rto_deadline = if idle { Instant::MAX } else { self.rto_at(now) };
    }

    /// Lets the window grow for so many segments acknowledged from `before`, and the round-trip
    /// time of the newest.
    pub(super) fn grow(
        &mut self,
        now: Instant,
        before: u64,
        segments: u32,
        rtt: Option<Duration>,
        in_flight: u32,
    ) {
        let newly_acked = match self.shared.limits.ack_counting {
            AckCounting::Segments => segments,
            AckCounting::AtMost(limit) => segments.min(limit),
            AckCounting::OnePerAck => 1,
            AckCounting::OneInSlowStart if self.cc.in_slow_start() => 1,
            AckCounting::OneInAvoidance if !self.cc.in_slow_start() => 1,
            AckCounting::OneInSlowStart | AckCounting::OneInAvoidance => segments,
        };
        self.cc.on_ack(&AckSample {
            now,
            newly_acked,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            in_flight,
            cwnd_limited: self.fills_window(before),
        });
    }

    /// Whether the window may grow for data acknowledged from `before`.
    pub(super) fn fills_window(&self, before: u64) -> bool {
        self.usage.lets_grow(before, || {
            let starts = self.shared.limits.starts_with_room && self.cc.in_slow_start();
            starts.then(|| self.cc.cwnd())
        })
    }

    pub(super) fn cut(&mut self, now: Instant, in_flight: u32) {
        self.cc.on_congestion_event(now, in_flight);
        if self.cc.cwnd() < self.shared.limits.least_window {
            let threshold = self.cc.ssthresh();
            self.cc.set_window(now, self.shared.limits.least_window, threshold);
        }
        self.counts.congestion_events += 1;
    }

    /// RFC 6675 section 5, step 4, after an acknowledgement of `delivered` bytes.
    pub(super) fn enter_recovery(&mut self, now: Instant, delivered: u64, is_safe: bool) {
        let window = u64::from(self.cc.cwnd()) * u64::from(self.mss);
        if matches!(self.phase, Phase::Open) {
            // Segments of limited transmit do not count (RFC 5681 section 3.2, step 2).
            let extra = self.limited_transmit_bytes / self.mss;
            self.cut(now, self.times.count().saturating_sub(extra).max(1));
        }
        self.board.lose_head();
        let target = u64::from(self.cc.cwnd()) * u64::from(self.mss);
        let mss = u64::from(self.mss);
        let kind = self.shared.limits.reduction;
        let mut reduction = Reduction::begin(kind, window, target);
        if kind == WindowReduction::Proportional {
            // The data that starts the recovery counts, or one segment if a timer starts it.
            let newly = delivered.max(mss);
            reduction.on_delivered(newly, self.board.pipe(), target, mss, is_safe);
        }
        self.phase = Phase::Recovery(Box::new(Recovery {
            point: self.board.nxt(),
            reduction,
            fast_retransmit: true,
            rescue: self.shared.limits.rescue,
        }));
        if let Some(detection) = self.detection.as_mut() {
            detection.stop_probes();
        }
        self.limited_transmit_bytes = 0;
        self.dup_acks = 0;
    }
}
