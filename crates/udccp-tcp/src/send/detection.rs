//! Detects losses by time and probes the tail (RFC 8985), with the timers of both.

use udccp_base::{Duration, Instant};

use super::rack::{Rack, Sending, TIMER_SLACK};
use super::{AckInfo, Phase, SendSide};
use crate::send::times::Acked;

/// Number of SACKed segments that proves a loss if no reordering was ever seen.
const DUP_THRESH: u64 = 3;

/// State of the loss detection of RFC 8985.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detection {
    rack: Rack,
    /// When overtaken segments count as lost.
    pub(super) reorder_deadline: Instant,
    /// When to send a tail loss probe.
    pub(super) probe_deadline: Instant,
    /// When `probe_deadline` was last set.
    scheduled_at: Instant,
    probe: TailProbe,
}

/// The tail loss probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TailProbe {
    /// None is due or in flight.
    Off,
    /// One is due.
    Due,
    /// One is in flight. The next offset to send was `high` when it was sent.
    InFlight { high: u64, retransmission: bool },
}

impl Detection {
    /// The state before anything is sent.
    pub(super) fn new() -> Self {
        Self {
            rack: Rack::new(),
            reorder_deadline: Instant::MAX,
            probe_deadline: Instant::MAX,
            scheduled_at: Instant::ZERO,
            probe: TailProbe::Off,
        }
    }

    /// Whether a probe is due.
    #[inline]
    pub(super) fn probe_due(&self) -> bool {
        self.probe == TailProbe::Due
    }

    /// Whether a probe is in flight.
    #[inline]
    pub(super) const fn is_probing(&self) -> bool {
        matches!(self.probe, TailProbe::InFlight { .. })
    }

    /// The segment `newest`, sent once, was acknowledged in order.
    #[inline]
    pub(super) fn on_next(&mut self, now: Instant, newest: Sending) {
        self.rack.on_delivered(now, newest, Duration::ZERO);
    }

    /// The earliest of its timers.
    pub(super) fn deadline(&self) -> Instant {
        self.reorder_deadline.min(self.probe_deadline)
    }

    /// An acknowledgement up to `ack` reports segments beyond those that it `covered`: one that was
    /// `sacked`, or one sent `again`.
    #[inline(never)]
    fn on_several(
        &mut self,
        now: Instant,
        ack: u64,
        (sacked, covered, again): (Option<Sending>, Option<Sending>, Option<Sending>),
        shortest: Duration,
    ) {
        // In the order of a kernel: first what was SACKed, then what is acknowledged cumulatively.
        let mut arrived = [sacked, covered, again].map(|s| s.map(|s| (s.end <= ack, s.end, s)));
        arrived.sort_unstable_by_key(|s| s.map(|(covered, end, _)| (covered, end)));
        for (_, _, sending) in arrived.into_iter().flatten() {
            let is_again = again == Some(sending);
            let shortest = if is_again { shortest } else { Duration::ZERO };
            self.rack.on_delivered(now, sending, shortest);
        }
    }

    /// A recovery began, or the retransmission timer expired: no probe is needed.
    pub(super) fn stop_probes(&mut self) {
        self.probe_deadline = Instant::MAX;
        self.probe = TailProbe::Off;
    }
}

impl SendSide {
    /// Detects losses after an acknowledgement. `acked` is what it removed from the outstanding
    /// segments, and `high_rxt` the end of the data that had been retransmitted before it. Returns
    /// the newest segment, sent only once, that it SACKed.
    pub(super) fn detect_after_ack(
        &mut self,
        now: Instant,
        info: &AckInfo<'_>,
        acked: Acked,
        high_rxt: u64,
        shortest: Duration,
    ) -> Option<Sending> {
        let detection = self.detection.as_mut()?;
        let (first, again) = self.board.take_newest();
        let sacked = (first > 0).then(|| self.times.sending(first)).flatten();
        // Excludes segments that were SACKed before or sent twice.
        let is_fresh = acked.rtt.is_some();
        let covered = acked.newest.filter(|newest| is_fresh && newest.end > high_rxt);
        if sacked.is_some() || again.is_some() {
            detection.on_several(now, info.ack, (sacked, covered, again), shortest);
        } else if let Some(covered) = covered {
            detection.on_next(now, covered);
        }
        if self.board.take_reordered() > self.times.ambiguous_below() {
            detection.rack.on_reordering();
        }
        self.answer_to_probe(now, info);
        self.find_losses(now);
        sacked
    }

    /// Finds segments that are lost at `now`, and sets the time of the next check.
    #[inline]
    pub(super) fn find_losses(&mut self, now: Instant) {
        let Some(detection) = self.detection.as_mut() else { return };
        detection.reorder_deadline = Instant::MAX;
        let newest = detection.rack.newest();
        if self.times.oldest().is_some_and(|oldest| oldest < newest) {
            self.find_overtaken(now, newest);
        }
    }

    /// Finds segments that are lost at `now`, if any was sent before the `newest` that arrived.
    #[inline(never)]
    fn find_overtaken(&mut self, now: Instant, newest: Sending) {
        let Some(detection) = self.detection.as_mut() else { return };
        let rack = &detection.rack;
        let una = self.board.una();
        let in_recovery = match self.phase {
            Phase::Open | Phase::Reduced { .. } => false,
            Phase::Loss { point } => una < point,
            Phase::Recovery(ref recovery) => una < recovery.point,
        };
        let three = DUP_THRESH * u64::from(self.mss);
        let certain = in_recovery || self.board.sacked_bytes() >= three;
        let window = rack.window(certain, self.rtt.min_rtt(), self.rtt.srtt());
        let overtaken = rack.overtaken(now, window);
        let edge = self.times.lost_edge(|sending| overtaken.covers(sending));
        self.board.lose_overtaken(edge, overtaken);
        let hole = self.board.last_hole_end().filter(|end| *end > edge);
        let hole = hole.and_then(|end| self.times.sending(end));
        if let Some(hole) = hole.filter(|h: &Sending| *h < newest) {
            let left = rack.lost_at(hole.at, window) - now;
            detection.reorder_deadline = self.shared.limits.tick.after(now, left + TIMER_SLACK);
        }
    }

    /// A recovery has ended.
    pub(super) fn on_recovery_end(&mut self) {
        if let Some(detection) = self.detection.as_mut() {
            detection.rack.on_recovery_end();
        }
    }

    /// Sets the time of the probe (RFC 8985 section 7.2). Called when new data was sent, or when an
    /// acknowledgement (`advanced`) restarted the retransmission timer.
    #[inline(always)]
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        let several = self.board.flight() > 2 * u64::from(self.mss);
        let is_known = |d: &Detection| d.scheduled_at == now && d.probe_deadline < Instant::MAX;
        if several && self.detection.as_ref().is_some_and(is_known) {
            // The previous segment was sent, or the acknowledgement arrived, at the same time.
            return;
        }
        self.reschedule_probe(now);
    }

    /// The same after an acknowledgement, which changes the round-trip time.
    #[inline(never)]
    pub(super) fn reschedule_probe(&mut self, now: Instant) {
        self.set_probe(now);
    }

    /// The same, for the acknowledgement that nearly all are.
    #[inline(always)]
    pub(super) fn set_probe(&mut self, now: Instant) {
        let flight = self.board.flight();
        let is_open = matches!(self.phase, Phase::Open | Phase::Reduced { .. });
        let is_silent = flight > 0 && is_open && self.board.sacked_bytes() == 0;
        let srtt = self.rtt.srtt();
        let Some(detection) = self.detection.as_mut() else { return };
        (detection.probe_deadline, detection.scheduled_at) = (Instant::MAX, now);
        let Some(srtt) = srtt.filter(|_| is_silent) else { return };
        // The receiver may delay the acknowledgement of a single segment for its maximum delay.
        let alone = flight <= u64::from(self.mss);
        let slack = if alone { self.shared.min_rto } else { TIMER_SLACK };
        let at = self.shared.limits.tick.after(now, srtt * 2 + slack);
        detection.probe_deadline = at.min(self.rto_deadline);
    }

    /// Handles the timers of this module.
    pub(super) fn on_detection_timeout(&mut self, now: Instant) {
        let Some(detection) = self.detection.as_mut() else { return };
        let is_late = now >= detection.reorder_deadline;
        if now >= detection.probe_deadline {
            detection.probe_deadline = Instant::MAX;
            if !detection.is_probing() {
                detection.probe = TailProbe::Due;
            }
            self.rto_deadline = self.rto_at(now);
        }
        if is_late {
            self.find_losses(now);
            self.enter_recovery_if_lost(now, 0, false);
        }
    }

    /// The probe was sent, as new data or as a retransmission.
    pub(super) fn on_probe_sent(&mut self, now: Instant, retransmission: bool) {
        self.rto_deadline = self.rto_at(now);
        let high = self.board.nxt();
        if let Some(detection) = self.detection.as_mut() {
            detection.probe_deadline = Instant::MAX;
            detection.probe = TailProbe::InFlight { high, retransmission };
        }
    }

    /// RFC 8985 section 7.4: reduces the window if the probe repaired a loss that was not detected
    /// otherwise.
    fn answer_to_probe(&mut self, now: Instant, info: &AckInfo<'_>) {
        let duplicate = self.reports_duplicate(info);
        let Some(detection) = self.detection.as_mut() else { return };
        if duplicate {
            detection.rack.on_duplicate();
        }
        let TailProbe::InFlight { high, retransmission } = detection.probe else { return };
        if info.ack < high {
            return;
        }
        let is_repaired = retransmission && !duplicate && info.ack > high;
        if !retransmission || duplicate || is_repaired {
            detection.probe = TailProbe::Off;
        }
        if is_repaired && matches!(self.phase, Phase::Open) {
            self.cut(now, self.times.count().max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use udccp_cc::Algorithm;

    use super::*;
    use crate::config::TcpConfig;
    use crate::shared::SharedTcpConfig;

    #[test]
    fn no_probe_is_sent_while_one_is_in_flight() {
        let SharedTcpConfig(config) = TcpConfig::new(Algorithm::NEW_RENO).into();
        let mut side = SendSide::new(&config);
        side.establish(Instant::ZERO, 1448, 1 << 30, Some(Duration::from_millis(20)));
        side.write_several(1448, 4);
        let send = |side: &mut SendSide, now| (0..9).map_while(|_| side.next_segment(now)).count();
        assert_eq!(send(&mut side, Instant::ZERO), 4);
        let first = side.deadline();
        side.on_timeout(first);
        assert_eq!(send(&mut side, first), 1, "the probe");
        let (ack, window_end, blocks) = (1449, 1 << 30, &[][..]);
        let (timestamp_rtt, peer_timestamp, congestion_echo) = (None, None, false);
        let info =
            AckInfo { ack, window_end, blocks, timestamp_rtt, peer_timestamp, congestion_echo };
        side.on_ack(first, &info);
        let second = side.deadline();
        assert!(second < first + side.rto(), "the timer of a probe");
        side.on_timeout(second);
        assert_eq!(send(&mut side, second), 0);
        assert_eq!(side.stats().timeouts, 0);
    }
}
