//! Constant bit rate: messages at regular intervals, whatever the network does.

use udccp_base::{AppPort, DataRate, Instant};

use super::pieces::offer_bytes;
use super::{Source, SourceStats};

/// Offers messages of one size at a constant rate of application bytes, from the start of the flow.
/// A message that finds the transport full is dropped and counted as refused. One longer than a
/// packet is split.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    rate: DataRate,
    message_bytes: u32,
    start: Option<Instant>,
    offered: u64,
    next: Option<Instant>,
    stats: SourceStats,
}

impl ConstantRate {
    /// Messages of `message_bytes` (at least 1) at `rate` of application data (no headers). A rate
    /// of zero never offers anything.
    pub fn new(rate: DataRate, message_bytes: u32) -> Self {
        let stats = SourceStats::default();
        let message_bytes = message_bytes.max(1);
        Self { rate, message_bytes, start: None, offered: 0, next: None, stats }
    }

    /// The exact time of message number `n`: a sum of rounded gaps would drift.
    fn time_of(&self, n: u64) -> Option<Instant> {
        let bit_nanos = u128::from(n) * u128::from(self.message_bytes) * 8_000_000_000;
        let nanos = bit_nanos.checked_div(u128::from(self.rate.bits_per_sec()))?;
        let since = u64::try_from(nanos).unwrap_or(u64::MAX);
        Some(self.start? + udccp_base::Duration::from_nanos(since))
    }
}

impl Source for ConstantRate {
    fn start(&mut self, now: Instant) {
        self.start = Some(now);
        self.next = self.time_of(0);
    }

    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        let mut taken = false;
        while self.next.is_some_and(|due| due <= now) {
            let bytes = offer_bytes(now, port, self.message_bytes);
            taken |= bytes > 0;
            self.stats.count(bytes, self.message_bytes);
            self.offered += 1;
            self.next = self.time_of(self.offered);
        }
        taken
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn stats(&self) -> SourceStats {
        self.stats
    }
}
