//! Remembers the spacing of packets, which is the same for most of them.

use super::Ccid3Sender;
use crate::ccid::tfrc::{Pace, Rate, RateControl};

/// The spacing of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spacing {
    /// The segments for which it was computed, in bytes, at least 1. 0 if the rate has changed
    /// since.
    segment_bytes: u32,
    pub(super) pace: Pace,
    /// X.
    pub(super) allowed: Rate,
}

impl Ccid3Sender {
    /// The current spacing of packets. It is only computed again if rate or segments have changed.
    #[inline]
    pub(super) fn spacing(&mut self) -> &Spacing {
        if self.spacing.segment_bytes != self.segment_bytes() {
            self.spacing = self.compute_spacing();
        }
        debug_assert_eq!(self.spacing, self.compute_spacing());
        &self.spacing
    }

    /// The rate and round-trip time, to be changed.
    pub(super) fn rate_mut(&mut self) -> &mut RateControl {
        self.spacing.segment_bytes = 0;
        &mut self.rate
    }

    #[inline(never)]
    fn compute_spacing(&self) -> Spacing {
        let segment = self.segment();
        let allowed = self.rate.allowed(segment);
        let interval = self.interval_at(self.rate.instantaneous(segment), segment);
        let steady = self.interval_at(allowed, segment);
        let limit = self.credit_limit(interval);
        let pace = self.pacer.pace(interval, steady, self.rate.rtt(), limit);
        Spacing { segment_bytes: segment.bytes, pace, allowed }
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Duration, Instant};

    use super::*;
    use crate::ccid::ccid3::Ccid3Config;
    use crate::ccid::tfrc::{Report, Segment};

    /// Checks that the remembered spacing equals a new computation.
    #[track_caller]
    fn check(sender: &mut Ccid3Sender) -> Duration {
        let s = sender.segment();
        let interval = sender.interval_at(sender.rate.instantaneous(s), s);
        let steady = sender.interval_at(sender.rate.allowed(s), s);
        let now = *sender.spacing();
        let (rtt, limit) = (sender.rate.rtt(), sender.credit_limit(interval));
        assert_eq!(now.pace, sender.pacer.pace(interval, steady, rtt, limit));
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
        sender.rate_mut().on_handshake_rtt(at(0), Duration::from_millis(100), s);
        seen.push(check(&mut sender));
        for (time, rtt_ms, p) in [(100, 100, 0.01), (200, 100, 0.0101), (300, 140, 0.0101)] {
            let report = Report {
                rtt: Some(Duration::from_millis(rtt_ms)),
                x_recv: Rate::from_bytes_per_sec(1_000_000),
                loss_event_rate: p,
                more_loss: true,
                data_limited: false,
            };
            sender.rate_mut().on_feedback(at(time), &report, s);
            seen.push(check(&mut sender));
        }
        sender.size.on_sent(500);
        seen.push(check(&mut sender));
        sender.rate_mut().on_no_feedback(at(900), false, s);
        seen.push(check(&mut sender));
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
    }
}
