//! The retransmission timeout (RFC 6298 sections 5.4 to 5.7), and F-RTO (RFC 5682).

use udccp_base::Instant;

use super::{Phase, SendSide};

/// The state of the test whether a timeout was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    /// No test is in progress.
    Off,
    /// Waits for the next acknowledgement that advances.
    Waits,
    /// It has arrived: new data is sent, and nothing is retransmitted before the next one.
    SendsNew,
}

impl SendSide {
    /// The retransmission timer expired.
    pub(super) fn on_rto(&mut self, now: Instant) {
        self.rtt.back_off();
        self.counts.timeouts += 1;
        self.unanswered += 1;
        let again = self.timed_out;
        let una = self.board.una();
        let is_same_loss = match self.phase {
            Phase::Reduced { point } => una < point,
            Phase::Recovery(ref recovery) => una < recovery.point,
            Phase::Open | Phase::Loss { .. } => false,
        };
        let threshold = self.cc.ssthresh();
        self.cc.on_rto(now, self.times.count());
        // The threshold is kept if the same segment times out again (RFC 5681 3.1).
        if again || (is_same_loss && self.shared.limits.timeout_keeps_threshold) {
            let cwnd = self.cc.cwnd();
            self.cc.set_window(now, cwnd, threshold);
        }
        let was_open = matches!(self.phase, Phase::Open | Phase::Reduced { .. });
        let is_tested = self.shared.limits.frto && (was_open || again);
        self.frto = if is_tested { Frto::Waits } else { Frto::Off };
        self.timed_out = true;
        self.board.on_timeout();
        self.times.on_retransmit(self.board.nxt());
        self.phase = Phase::Loss { point: self.board.nxt() };
        if let Some(detection) = self.detection.as_mut() {
            detection.stop_probes();
        }
        self.dup_acks = 0;
        self.limited_transmit_bytes = 0;
        self.rto_deadline = self.rto_at(now);
    }

    /// Handles an acknowledgement, which may have `advanced` (RFC 5682 section 3.1, step 2).
    #[inline]
    pub(super) fn step_frto(&mut self, advanced: bool) {
        if self.frto == Frto::Off {
            return;
        }
        let is_lost = matches!(self.phase, Phase::Loss { .. });
        self.frto = match self.frto {
            Frto::Waits if is_lost && !advanced => Frto::Waits,
            Frto::Waits if is_lost && self.has_new_data() => Frto::SendsNew,
            _ => Frto::Off,
        };
    }
}
