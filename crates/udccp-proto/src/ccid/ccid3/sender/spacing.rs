//! Remembers the spacing of packets, which is the same for most of them.

use udccp_base::Duration;

use super::Ccid3Sender;
use crate::ccid::tfrc::{Rate, RateBasis, Segment};

/// The spacing of packets, and the state that determines it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spacing {
    basis: RateBasis,
    segment: Segment,
    /// t_ipi.
    pub(super) interval: Duration,
    /// t_ipi at the allowed rate X.
    pub(super) steady: Duration,
    /// X.
    pub(super) allowed: Rate,
}

impl Ccid3Sender {
    /// The current spacing of packets. It is only computed again if that state has changed.
    #[inline]
    pub(super) fn spacing(&mut self) -> &Spacing {
        // Segments are never empty, so the first call never matches the default.
        let (basis, segment) = (self.rate.basis(), self.segment());
        if self.spacing.segment != segment || self.spacing.basis != basis {
            self.compute_spacing(basis, segment);
        }
        &self.spacing
    }

    #[inline(never)]
    fn compute_spacing(&mut self, basis: RateBasis, segment: Segment) {
        let allowed = self.rate.allowed(segment);
        let interval = self.interval_at(self.rate.instantaneous(segment), segment);
        let steady = self.interval_at(allowed, segment);
        self.spacing = Spacing { basis, segment, interval, steady, allowed };
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::Instant;

    use super::*;
    use crate::ccid::ccid3::Ccid3Config;
    use crate::ccid::tfrc::Report;

    /// Checks that the remembered spacing equals a new computation.
    #[track_caller]
    fn check(sender: &mut Ccid3Sender) -> Duration {
        let s = sender.segment();
        let interval = sender.interval_at(sender.rate.instantaneous(s), s);
        let steady = sender.interval_at(sender.rate.allowed(s), s);
        let now = *sender.spacing();
        assert_eq!((now.interval, now.steady), (interval, steady));
        assert_eq!(now.allowed, sender.rate.allowed(s));
        interval
    }

    #[test]
    fn packet_spacing_follows_rate_rtt_and_segment_size() {
        let config = Ccid3Config { oscillation_reduction: true, ..Ccid3Config::default() };
        let mut sender = Ccid3Sender::new(&config, 1000);
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut seen = vec![check(&mut sender)];
        let s = Segment::from(1000);
        sender.rate.on_handshake_rtt(at(0), Duration::from_millis(100), s);
        seen.push(check(&mut sender));
        for (time, rtt_ms, p) in [(100, 100, 0.01), (200, 100, 0.0101), (300, 140, 0.0101)] {
            let report = Report {
                rtt: Some(Duration::from_millis(rtt_ms)),
                x_recv: Rate::from_bytes_per_sec(1_000_000),
                loss_event_rate: p,
                more_loss: true,
                data_limited: false,
            };
            sender.rate.on_feedback(at(time), &report, s);
            seen.push(check(&mut sender));
        }
        sender.size.on_sent(500);
        seen.push(check(&mut sender));
        sender.rate.on_no_feedback(at(900), false, s);
        seen.push(check(&mut sender));
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
    }
}
