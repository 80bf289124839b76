//! CUBIC's place: until its curve is here, its windows move like NewReno's with CUBIC's cut.

use udccp_base::Instant;

use crate::algorithm::{AckSample, CongestionControl};
use crate::newreno::NewReno;
use crate::parts::Cut;

/// Parameters of CUBIC.
#[derive(Clone, Debug, PartialEq)]
pub struct CubicConfig {
    /// What is kept of the window after a congestion event.
    pub cut: Cut,
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self { cut: Cut { keep_permille: 800 } }
    }
}

/// CUBIC (unfinished).
#[derive(Clone, Debug)]
pub struct Cubic(NewReno);

impl Cubic {
    /// Starts in slow start with `initial_cwnd` packets.
    pub fn new(initial_cwnd: u32, config: CubicConfig) -> Self {
        Self(NewReno::new(initial_cwnd, config.cut))
    }
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }
    fn cwnd(&self) -> u32 {
        self.0.cwnd()
    }
    fn ssthresh(&self) -> u32 {
        self.0.ssthresh()
    }
    fn on_ack(&mut self, ack: &AckSample) {
        self.0.on_ack(ack);
    }
    fn on_congestion_event(&mut self, now: Instant, in_flight: u32) {
        self.0.on_congestion_event(now, in_flight);
    }
    fn on_rto(&mut self, now: Instant, in_flight: u32) {
        self.0.on_rto(now, in_flight);
    }
    fn set_window(&mut self, now: Instant, cwnd: u32, ssthresh: u32) {
        self.0.set_window(now, cwnd, ssthresh);
    }
    fn clamp(&mut self, max_cwnd: u32) {
        self.0.clamp(max_cwnd);
    }
}
