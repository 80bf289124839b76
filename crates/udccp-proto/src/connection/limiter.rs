//! Rate limits.

use udccp_base::{Duration, Instant};

/// Maximum number that may follow one another at once.
const BURST: u64 = 4;

/// One per interval on average, in short bursts: an exchange that resynchronizes may need a few
/// packets at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limiter {
    interval: Duration,
    /// When the credit for everything taken is earned.
    paid_at: Instant,
}

impl Limiter {
    /// A limit of one per `interval`.
    pub(crate) const fn new(interval: Duration) -> Self {
        Self { interval, paid_at: Instant::ZERO }
    }

    /// Takes one if the limit allows it.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let credit = self.interval * (BURST - 1);
        if self.paid_at > now + credit {
            return false;
        }
        self.paid_at = self.paid_at.max(now) + self.interval;
        true
    }
}

/// Maximum number in a span of eight intervals.
const IN_SPAN: usize = 8;

/// At most eight in any span of eight intervals, wherever the span begins. Unlike [`Limiter`] it
/// allows no burst on top of the rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlidingLimit {
    span: Duration,
    /// When the last eight were taken, as a ring buffer.
    taken_at: [Option<Instant>; IN_SPAN],
    oldest: u8,
}

impl SlidingLimit {
    /// A limit of one per `interval` on average.
    pub(crate) fn new(interval: Duration) -> Self {
        Self { span: interval * IN_SPAN as u64, taken_at: [None; IN_SPAN], oldest: 0 }
    }

    /// Takes one if the limit allows it.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let oldest = &mut self.taken_at[usize::from(self.oldest)];
        if oldest.is_some_and(|at| now.saturating_since(at) <= self.span) {
            return false;
        }
        *oldest = Some(now);
        self.oldest = (self.oldest + 1) % IN_SPAN as u8;
        true
    }
}

/// The limits of a connection. Anybody can use up one of them with invalid packets, so each kind of
/// answer has its own. Allocated at first use, since most connections need none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits(Option<Box<Used>>);

#[derive(Clone, Debug)]
struct Used {
    syncs: SlidingLimit,
    vector_syncs: Limiter,
    acks_of_drops: Limiter,
    refusals: Limiter,
}

impl Limits {
    /// Whether a Sync may answer an invalid packet: one per `interval` on average.
    pub(crate) fn allow_sync(&mut self, now: Instant, interval: Duration) -> bool {
        self.used(interval).syncs.take(now)
    }

    /// Whether a Sync may request an acknowledgement of acknowledgements.
    pub(crate) fn allow_vector_sync(&mut self, now: Instant, interval: Duration) -> bool {
        self.used(interval).vector_syncs.take(now)
    }

    /// Whether an Ack may confirm a report of drops at once.
    pub(crate) fn allow_ack_of_drops(&mut self, now: Instant, interval: Duration) -> bool {
        self.used(interval).acks_of_drops.take(now)
    }

    /// Whether a Reset may answer a packet in REQUEST.
    pub(crate) fn allow_refusal(&mut self, now: Instant, interval: Duration) -> bool {
        self.used(interval).refusals.take(now)
    }

    fn used(&mut self, interval: Duration) -> &mut Used {
        self.0.get_or_insert_with(|| {
            let (syncs, others) = (SlidingLimit::new(interval), Limiter::new(interval));
            Box::new(Used { syncs, vector_syncs: others, acks_of_drops: others, refusals: others })
        })
    }
}

/// At most `per_sec` a second, with bursts of as many.
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

    /// Takes a token if there is one.
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
    fn a_sliding_limit_allows_eight_in_any_span_and_no_ninth() {
        let mut l = SlidingLimit::new(Duration::from_millis(125));
        let mut taken =
            |ms: u64| (0..20).filter(|_| l.take(Instant::from_nanos(ms * 1_000_000))).count();
        assert_eq!([0, 500, 1000, 1001, 1500, 2001, 2002].map(&mut taken), [8, 0, 0, 8, 0, 0, 8]);
        let mut l = SlidingLimit::new(Duration::from_millis(125));
        let steady = (0..1000).filter(|i| l.take(Instant::from_nanos(i * 10_000_000))).count();
        // Ten seconds: after a silent span the next eight may follow at once.
        assert!((72..=80).contains(&steady), "{steady}");
    }

    #[test]
    fn a_limiter_allows_a_burst_and_then_one_in_every_interval() {
        let mut l = Limiter::new(Duration::from_millis(125));
        let mut taken =
            |ms: u64| (0..10).filter(|_| l.take(Instant::from_nanos(ms * 1_000_000))).count();
        assert_eq!([1000, 1124, 1125, 1400, 9000].map(&mut taken), [4, 0, 1, 2, 4]);
    }
}
