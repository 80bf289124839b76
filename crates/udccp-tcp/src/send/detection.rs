//! Detects losses by time and probes a silent tail (RFC 8985), with the timers of both.

use udccp_base::{Duration, Instant};

use super::rack::{Rack, Sending, TIMER_SLACK};
use super::{AckInfo, Phase, SendSide};
use crate::send::times::Acked;

/// SACKed segments from which on losses are certain where nothing was ever reordered.
const DUP_THRESH: u64 = 3;

/// State of the loss detection of RFC 8985.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detection {
    rack: Rack,
    /// When what has been overtaken is lost.
    pub(super) reorder_deadline: Instant,
    /// When a silent tail is probed.
    pub(super) probe_deadline: Instant,
    /// A probe is to be sent.
    pub(super) probe_due: bool,
    /// The probe that is on its way.
    probe: Option<Probe>,
    /// Least time that a delayed acknowledgement of a single segment is given.
    min_rto: Duration,
}

/// A probe on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Next offset to send when it left.
    high: u64,
    retransmission: bool,
}

impl Detection {
    /// Nothing sent.
    pub(super) fn new(min_rto: Duration) -> Self {
        Self {
            rack: Rack::new(),
            reorder_deadline: Instant::MAX,
            probe_deadline: Instant::MAX,
            probe_due: false,
            probe: None,
            min_rto,
        }
    }

    /// The next of its timers.
    pub(super) fn deadline(&self) -> Instant {
        self.reorder_deadline.min(self.probe_deadline)
    }

    /// A recovery begins, or the retransmission timer expired: there is nothing to probe.
    pub(super) fn stop_probes(&mut self) {
        self.probe_deadline = Instant::MAX;
        self.probe_due = false;
        self.probe = None;
    }
}

impl SendSide {
    /// An acknowledgement was taken in, with `acked` taken out of the outstanding segments and
    /// `high_rxt` the end of what had been retransmitted before.
    pub(super) fn detect_after_ack(
        &mut self,
        now: Instant,
        info: &AckInfo<'_>,
        acked: Acked,
        high_rxt: u64,
    ) {
        let Some(mut detection) = self.detection.take() else { return };
        let (first, again) = self.board.take_newest();
        let sacked = (first > 0).then(|| self.times.sending(first)).flatten();
        let covered = acked.newest.filter(|newest| newest.end > high_rxt);
        for sending in sacked.into_iter().chain(covered) {
            detection.rack.on_delivered(now, sending, Duration::ZERO);
        }
        if let Some(sending) = again {
            let shortest = self.rtt.min_rtt().unwrap_or_default();
            detection.rack.on_delivered(now, sending, shortest);
        }
        if self.board.take_reordered() > self.times.ambiguous_below() {
            detection.rack.on_reordering();
        }
        self.answer_to_probe(now, info, &mut detection);
        self.detection = Some(detection);
        self.find_losses(now);
    }

    /// Looks for what is lost by now, and when the next thing will be.
    pub(super) fn find_losses(&mut self, now: Instant) {
        let Some(mut detection) = self.detection.take() else { return };
        let rack = &detection.rack;
        detection.reorder_deadline = Instant::MAX;
        let newest = rack.newest();
        let oldest = self.times.oldest().unwrap_or(newest);
        if oldest < newest {
            let una = self.board.una();
            let in_recovery = match self.phase {
                Phase::Open | Phase::Reduced { .. } => false,
                Phase::Recovery { point, .. } | Phase::Loss { point } => una < point,
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
                detection.reorder_deadline = rack.lost_at(hole.at, window) + TIMER_SLACK;
            }
        }
        self.detection = Some(detection);
    }

    /// A recovery is over.
    pub(super) fn on_recovery_end(&mut self) {
        if let Some(detection) = self.detection.as_mut() {
            detection.rack.on_recovery_end();
        }
    }

    /// Says when the tail is probed (RFC 8985 section 7.2): new data left, or an acknowledgement
    /// (`advanced`) restarted the retransmission timer.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        let flight = self.board.flight();
        let is_open = matches!(self.phase, Phase::Open | Phase::Reduced { .. });
        let is_silent = flight > 0 && is_open && self.board.sacked_bytes() == 0;
        let srtt = self.rtt.srtt();
        let Some(detection) = self.detection.as_mut() else { return };
        detection.probe_deadline = Instant::MAX;
        let Some(srtt) = srtt.filter(|_| is_silent) else { return };
        // The receiver may keep the acknowledgement of a single segment for its longest delay.
        let alone = flight <= u64::from(self.mss);
        let slack = if alone { detection.min_rto } else { TIMER_SLACK };
        detection.probe_deadline = (now + srtt * 2 + slack).min(self.rto_deadline);
    }

    /// The timers of this module.
    pub(super) fn on_detection_timeout(&mut self, now: Instant) {
        let Some(detection) = self.detection.as_mut() else { return };
        if now >= detection.probe_deadline {
            detection.probe_deadline = Instant::MAX;
            detection.probe_due = detection.probe.is_none();
            self.rto_deadline = now + self.rtt.rto();
        }
        if now >= detection.reorder_deadline {
            self.find_losses(now);
            self.enter_recovery_if_lost(now);
        }
    }

    /// The probe left, as new data or as a retransmission.
    pub(super) fn on_probe_sent(&mut self, now: Instant, retransmission: bool) {
        self.rto_deadline = now + self.rtt.rto();
        let high = self.board.nxt();
        if let Some(detection) = self.detection.as_mut() {
            detection.probe_due = false;
            detection.probe_deadline = Instant::MAX;
            detection.probe = Some(Probe { high, retransmission });
        }
    }

    /// RFC 8985 section 7.4: whether the probe repaired a loss that nothing else showed.
    fn answer_to_probe(&mut self, now: Instant, info: &AckInfo<'_>, detection: &mut Detection) {
        let duplicate = self.reports_duplicate(info);
        if duplicate {
            detection.rack.on_duplicate();
        }
        let Some(probe) = detection.probe.filter(|p| info.ack >= p.high) else { return };
        let is_repaired = probe.retransmission && !duplicate && info.ack > probe.high;
        if !probe.retransmission || duplicate || is_repaired {
            detection.probe = None;
        }
        if is_repaired && matches!(self.phase, Phase::Open) {
            self.cut(now, self.times.count().max(1));
        }
    }
}
