//! The algorithm of docs/guides/python.md in Rust: additive increase by a fifth of a packet for
//! every window, and a cut by an eighth. `cargo run -p udccp-cc --example gentle` prints a window.

use udccp_base::Instant;
use udccp_cc::{AckSample, Algorithm, CongestionControl, CustomAlgorithm};

#[derive(Clone, Debug)]
struct Gentle {
    cwnd: f64,
    ssthresh: f64,
    max: f64,
}

impl CongestionControl for Gentle {
    fn name(&self) -> &'static str {
        "gentle"
    }
    fn cwnd(&self) -> u32 {
        self.cwnd as u32
    }
    fn ssthresh(&self) -> u32 {
        self.ssthresh as u32
    }
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.cwnd_limited {
            let growth = if self.in_slow_start() { 1.0 } else { 0.2 / self.cwnd };
            self.cwnd = (self.cwnd + growth * f64::from(ack.newly_acked)).min(self.max);
        }
    }
    fn on_congestion_event(&mut self, _: Instant, _: u32) {
        self.cwnd = (0.875 * self.cwnd).max(1.0);
        self.ssthresh = self.cwnd.max(2.0);
    }
    fn on_rto(&mut self, _: Instant, _: u32) {
        (self.ssthresh, self.cwnd) = ((self.cwnd / 2.0).max(2.0), 1.0);
    }
    fn set_window(&mut self, _: Instant, cwnd: u32, ssthresh: u32) {
        (self.cwnd, self.ssthresh) = (f64::from(cwnd), f64::from(ssthresh));
    }
    fn clamp(&mut self, max: u32) {
        self.max = f64::from(max);
    }
}

fn main() {
    let first = |packets: u32| Gentle { cwnd: f64::from(packets), ssthresh: 1e9, max: 1e9 };
    let gentle = CustomAlgorithm::new("gentle", move |packets| Box::new(first(packets)));
    let mut window = Algorithm::Custom(gentle).build(10);
    window.on_ack(&AckSample::full_window(Instant::ZERO, 10));
    window.on_congestion_event(Instant::ZERO, 20);
    assert_eq!(window.cwnd(), 17);
}
