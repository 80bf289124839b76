//! The sender half.

use udccp_base::{Duration, Instant};
use udccp_cc::{CongestionControl, RttEstimator};

use crate::ccid::ccid2::{Ccid2Config, NUMBER};
use crate::ccid::{AckInfo, AckOutcome, CcidMetrics, CcidSender, SendVerdict, SentInfo};

/// The sender half of CCID 2.
#[derive(Debug)]
pub struct Ccid2Sender {
    cc: Box<dyn CongestionControl>,
    rtt: RttEstimator,
}

impl Ccid2Sender {
    /// A sender of packets of up to `packet_size_bytes` of data.
    pub fn new(config: &Ccid2Config, packet_size_bytes: u32) -> Self {
        let window = config.initial_window.packets(packet_size_bytes);
        Self { cc: config.algorithm.build(window), rtt: RttEstimator::new(config.rto) }
    }
}

impl CcidSender for Ccid2Sender {
    fn ccid(&self) -> u8 {
        NUMBER
    }

    fn poll_send(&mut self, _now: Instant, _size_bytes: u32) -> SendVerdict {
        SendVerdict::Now
    }

    fn on_sent(&mut self, _now: Instant, _packet: SentInfo) {}

    fn on_ack(&mut self, _now: Instant, _ack: &AckInfo<'_>) -> AckOutcome {
        AckOutcome::default()
    }

    fn seq_window_needed(&self) -> u64 {
        u64::from(self.cc.cwnd()) * 5
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn rtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    fn metrics(&self) -> CcidMetrics {
        CcidMetrics { cwnd: Some(self.cc.cwnd()), ..CcidMetrics::default() }
    }
}
