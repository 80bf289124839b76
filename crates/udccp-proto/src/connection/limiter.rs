//! Rate limits.

use udccp_base::{Duration, Instant};

/// How many may follow each other at once.
const BURST: u64 = 4;

/// One in every interval on average, in short bursts: an exchange that clears things up may take
/// a few packets in one go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limiter {
    interval: Duration,
    /// When all that was taken has been paid for.
    paid_at: Instant,
}

impl Limiter {
    /// A limit of one in every `interval`.
    pub(crate) const fn new(interval: Duration) -> Self {
        Self { interval, paid_at: Instant::ZERO }
    }

    /// Takes one if the limit allows.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let credit = self.interval * (BURST - 1);
        if self.paid_at > now + credit {
            return false;
        }
        self.paid_at = self.paid_at.max(now) + self.interval;
        true
    }
}

/// So many a second, with bursts of as many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    per_sec: u64,
    /// Billionths of a token.
    level: u64,
    updated: Instant,
}

const TOKEN: u64 = 1_000_000_000;

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn new(per_sec: u32) -> Self {
        let per_sec = u64::from(per_sec);
        Self { per_sec, level: per_sec * TOKEN, updated: Instant::ZERO }
    }

    /// Takes one if one is there.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let gained = now.saturating_since(self.updated).as_nanos().saturating_mul(self.per_sec);
        self.level = self.level.saturating_add(gained).min(self.per_sec * TOKEN);
        self.updated = now;
        if self.level < TOKEN {
            return false;
        }
        self.level -= TOKEN;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_rate_and_one_burst() {
        let mut bucket = TokenBucket::new(10);
        let start = Instant::from_nanos(5_000_000_000);
        let taken = |b: &mut TokenBucket, t| (0..100).filter(|_| b.take(t)).count();
        assert_eq!(taken(&mut bucket, start), 10);
        assert_eq!(taken(&mut bucket, start + Duration::from_millis(250)), 2);
        assert_eq!(taken(&mut bucket, start + Duration::from_secs(100)), 10);
    }

    #[test]
    fn a_limiter_allows_a_burst_and_then_one_in_every_interval() {
        let mut l = Limiter::new(Duration::from_millis(125));
        let mut taken =
            |ms: u64| (0..10).filter(|_| l.take(Instant::from_nanos(ms * 1_000_000))).count();
        assert_eq!([1000, 1124, 1125, 1400, 9000].map(&mut taken), [4, 0, 1, 2, 4]);
    }
}
