//! A sender with a full window on a path of constant round-trip time.

use udccp_base::{Duration, Instant};
use udccp_cc::{AckSample, Algorithm, CongestionControl};

pub(crate) struct Path {
    pub(crate) cc: Box<dyn CongestionControl>,
    pub(crate) now: Instant,
    pub(crate) rtt: Duration,
    pub(crate) min_rtt: Duration,
}

impl Path {
    /// In slow start with a window of `cwnd`.
    pub(crate) fn new(algorithm: &Algorithm, cwnd: u32, rtt_ms: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        Self { cc: algorithm.build(cwnd), now: Instant::ZERO, rtt, min_rtt: rtt }
    }

    /// A first congestion event was met at `cwnd`.
    pub(crate) fn cut_at(algorithm: &Algorithm, cwnd: u32, rtt_ms: u64) -> Self {
        let mut path = Self::new(algorithm, cwnd, rtt_ms);
        path.lose();
        path
    }

    /// A congestion event.
    pub(crate) fn lose(&mut self) {
        let cwnd = self.cc.cwnd();
        self.cc.on_congestion_event(self.now, cwnd);
    }

    /// Round trips: each acknowledges the window with which it began, evenly spread.
    pub(crate) fn rounds(&mut self, n: u32) -> u32 {
        for _ in 0..n {
            let acks = self.cc.cwnd();
            let end = self.now + self.rtt;
            for k in 1..=acks {
                self.ack(end - self.rtt + self.rtt * u64::from(k) / u64::from(acks));
            }
            self.now = end;
        }
        self.cc.cwnd()
    }

    fn ack(&mut self, now: Instant) {
        let (rtt, srtt, min_rtt) = (Some(self.rtt), Some(self.rtt), Some(self.min_rtt));
        let in_flight = self.cc.cwnd();
        let full = AckSample::full_window(now, 1);
        self.cc.on_ack(&AckSample { rtt, srtt, min_rtt, in_flight, ..full });
    }
}

/// Panics where `got` is further than `tolerance` from the closed form's `want`.
#[track_caller]
pub(crate) fn near(got: u32, want: f64, tolerance: f64) {
    assert!((f64::from(got) - want).abs() <= tolerance, "{got}, expected {want}");
}
