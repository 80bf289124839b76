//! A sender with a full window on a path of constant round-trip time.

use udccp_base::{Duration, Instant};
use udccp_cc::{AckSample, Algorithm, CongestionControl, Delivery};

pub(crate) struct Path {
    pub(crate) cc: Box<dyn CongestionControl>,
    pub(crate) now: Instant,
    pub(crate) rtt: Duration,
    pub(crate) min_rtt: Duration,
    pub(crate) in_recovery: bool,
}

impl Path {
    /// Starts in slow start with a window of `cwnd`.
    pub(crate) fn new(algorithm: &Algorithm, cwnd: u32, rtt_ms: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        Self {
            cc: algorithm.build(cwnd),
            now: Instant::ZERO,
            rtt,
            min_rtt: rtt,
            in_recovery: false,
        }
    }

    /// Has a first congestion event at a window of `cwnd`.
    pub(crate) fn cut_at(algorithm: &Algorithm, cwnd: u32, rtt_ms: u64) -> Self {
        let mut path = Self::new(algorithm, cwnd, rtt_ms);
        path.lose();
        path
    }

    /// Causes a congestion event.
    pub(crate) fn lose(&mut self) {
        let cwnd = self.cc.cwnd();
        self.cc.on_congestion_event(self.now, cwnd);
    }

    /// Runs round trips. Each acknowledges the window at its start, evenly spread.
    pub(crate) fn rounds(&mut self, n: u32) -> u32 {
        for _ in 0..n {
            let acks = self.cc.cwnd();
            let end = self.now + self.rtt;
            for k in 1..=acks {
                let now = end - self.rtt + self.rtt * u64::from(k) / u64::from(acks);
                self.ack(now, k == 1);
            }
            self.now = end;
        }
        self.cc.cwnd()
    }

    /// Runs round trips for about `seconds`.
    pub(crate) fn run(&mut self, seconds: f64) -> u32 {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.rounds(1);
        }
        self.cc.cwnd()
    }

    /// Acknowledges one packet.
    pub(crate) fn ack(&mut self, now: Instant, round_start: bool) {
        let (rtt, srtt, min_rtt) = (Some(self.rtt), Some(self.rtt), Some(self.min_rtt));
        let in_flight = self.cc.cwnd();
        if self.cc.needs().deliveries {
            self.cc.on_delivery(&Delivery {
                now,
                acked: 1,
                delivered: 1,
                rtt,
                srtt,
                min_rtt,
                in_flight,
                in_recovery: self.in_recovery,
                round_start,
                cwnd_limited: true,
                ..Delivery::default()
            });
        }
        if !self.in_recovery {
            let full = AckSample::full_window(now, 1);
            self.cc.on_ack(&AckSample { rtt, srtt, min_rtt, in_flight, ..full });
        }
    }
}

/// Panics if `got` differs by more than `tolerance` from the closed form's `want`.
#[track_caller]
pub(crate) fn near(got: u32, want: f64, tolerance: f64) {
    assert!((f64::from(got) - want).abs() <= tolerance, "{got}, expected {want}");
}
