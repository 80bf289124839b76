//! NewReno: slow start, additive increase and a cut (RFC 5681; RFC 4341 section 5).

use udccp_base::Instant;

use crate::control::{AckSample, CongestionControl};
use crate::parts::{AdditiveIncrease, Cut, GrowthAfterCut, SlowStart};

/// The standard window algorithm, with configurable cut.
#[derive(Clone, Debug)]
pub struct NewReno {
    cwnd: u32,
    ssthresh: u32,
    max_cwnd: u32,
    cut: Cut,
    after_cut: GrowthAfterCut,
    increase: AdditiveIncrease,
}

impl NewReno {
    /// Starts in slow start with `initial_cwnd` packets (at least 1).
    pub fn new(initial_cwnd: u32, cut: Cut, after_cut: GrowthAfterCut) -> Self {
        Self {
            cwnd: initial_cwnd.max(1),
            ssthresh: u32::MAX,
            max_cwnd: u32::MAX,
            cut,
            after_cut,
            increase: AdditiveIncrease::default(),
        }
    }
}

impl CongestionControl for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn grows_in_recovery(&self) -> bool {
        self.after_cut == GrowthAfterCut::Continues
    }

    #[inline(always)]
    fn on_ack(&mut self, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        let (cwnd, rest) = SlowStart::grow(self.cwnd, self.ssthresh, ack.newly_acked);
        self.cwnd = cwnd;
        if self.cwnd >= self.ssthresh {
            self.cwnd += self.increase.grow(self.cwnd, rest);
        }
        self.cwnd = self.cwnd.min(self.max_cwnd);
    }

    fn may_pace(&self) -> bool {
        false
    }

    fn on_congestion_event(&mut self, _now: Instant, _in_flight: u32) {
        self.cwnd = self.cut.apply(self.cwnd).max(1);
        self.ssthresh = self.cwnd.max(2);
        if self.after_cut == GrowthAfterCut::Pauses {
            self.increase.reset();
        }
    }

    fn on_rto(&mut self, _now: Instant, _in_flight: u32) {
        self.ssthresh = Cut::HALF.apply(self.cwnd).max(2);
        self.cwnd = 1;
        self.increase.reset();
    }

    fn set_window(&mut self, _now: Instant, cwnd: u32, ssthresh: u32) {
        self.cwnd = cwnd.clamp(1, self.max_cwnd);
        self.ssthresh = ssthresh.max(2);
        self.increase.reset();
    }

    fn clamp(&mut self, max_cwnd: u32) {
        self.max_cwnd = max_cwnd.max(1);
        self.cwnd = self.cwnd.min(self.max_cwnd);
    }
}
