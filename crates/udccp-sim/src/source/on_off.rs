//! Bursts at a constant rate, separated by silence.

use udccp_base::{AppPort, DataRate, Duration, Instant, Rng};

use super::distribution::Distribution;
use super::periods::Periods;
use super::pieces::offer_bytes;
use super::{Source, SourceStats};

/// Offers messages of one size at a constant rate while it is on, and nothing while it is off. It
/// starts on. A message that finds the transport full is dropped and counted as refused. The sum of
/// many such sources is self-similar if the periods are Pareto with a shape between 1 and 2
/// (W. Willinger and others, "Self-Similarity Through High-Variability", 1997).
#[derive(Clone, Debug)]
pub struct OnOff {
    message_bytes: u32,
    gap: Duration,
    periods: Periods,
    next: Option<Instant>,
    stats: SourceStats,
}

impl OnOff {
    /// Messages of `message_bytes` (at least 1) at `rate` of application data while on; `on` and
    /// `off` are lengths of periods in seconds. `rng` should be a stream that nothing else draws
    /// from.
    pub fn new(
        rate: DataRate,
        message_bytes: u32,
        on: Distribution,
        off: Distribution,
        rng: Rng,
    ) -> Self {
        let message_bytes = message_bytes.max(1);
        Self {
            message_bytes,
            gap: rate.time_for(u64::from(message_bytes)),
            periods: Periods::new(on, off, rng),
            next: None,
            stats: SourceStats::default(),
        }
    }
}

impl Source for OnOff {
    fn start(&mut self, now: Instant) {
        // At rate zero the gap is infinite.
        if self.gap < Duration::MAX {
            self.periods.start(now);
            self.next = Some(self.periods.after(self.gap));
        }
    }

    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        let mut taken = false;
        while self.next.is_some_and(|due| due <= now) {
            let bytes = offer_bytes(now, port, self.message_bytes);
            taken |= bytes > 0;
            self.stats.count(bytes, self.message_bytes);
            self.next = Some(self.periods.after(self.gap));
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
