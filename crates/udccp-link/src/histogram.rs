//! A histogram of delays with 128 buckets per power of two, so that quantiles are accurate to 0.4
//! %.

use udccp_base::Duration;

/// Buckets per octave, as a power of two.
const BITS: u32 = 7;
const PER_OCTAVE: u64 = 1 << BITS;

/// Buckets are kept in blocks of so many, a power of two.
const BLOCK: usize = 16;

/// Counts of delays in log-linear buckets. Memory grows with the range of the delays: 128 bytes per
/// octave, at most 7 kB, and 16 bytes for each bucket with 256 delays or more. Recording is a shift
/// and an increment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayHistogram {
    /// The bucket of the first count.
    first: usize,
    counts: Box<[u8]>,
    /// `None` if no count is full.
    full: Option<Box<Full>>,
    total: u64,
    sum_ns: u64,
    max_ns: u64,
}

/// Buckets with more delays than their counts say, in order, and how often 2^8 more.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Full(Vec<(usize, u64)>);

impl Default for Full {
    /// An empty list with room: where one bucket is full, others soon are.
    fn default() -> Self {
        Self(Vec::with_capacity(BLOCK / 2))
    }
}

impl Full {
    fn add(&mut self, bucket: usize, carry: u64) {
        match self.0.binary_search_by_key(&bucket, |full| full.0) {
            Ok(at) => self.0[at].1 += carry,
            Err(at) => self.0.insert(at, (bucket, carry)),
        }
    }

    fn of(&self, bucket: usize) -> u64 {
        let at = self.0.binary_search_by_key(&bucket, |full| full.0);
        at.map_or(0, |at| self.0[at].1)
    }
}

impl DelayHistogram {
    /// Records one delay.
    #[inline]
    pub fn record(&mut self, delay: Duration) {
        let ns = delay.as_nanos();
        let bucket = bucket_of(ns);
        let count = self.counts.get_mut(bucket.wrapping_sub(self.first));
        match count.map(|count| (count.overflowing_add(1), count)) {
            Some(((more, false), count)) => *count = more,
            _ => self.record_beyond(bucket),
        }
        self.total += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        if ns > self.max_ns {
            self.max_ns = ns;
        }
    }

    /// Records the same delay several times.
    pub(crate) fn record_several(&mut self, delay: Duration, times: u64) {
        if times > 0 {
            let (ns, bucket) = (delay.as_nanos(), bucket_of(delay.as_nanos()));
            self.reach(bucket, bucket + 1);
            self.add(bucket, times);
            self.total += times;
            self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(times));
            self.max_ns = self.max_ns.max(ns);
        }
    }

    #[cold]
    fn record_beyond(&mut self, bucket: usize) {
        self.reach(bucket, bucket + 1);
        self.add(bucket, 1);
    }

    /// Counts more delays in a bucket that there is.
    fn add(&mut self, bucket: usize, more: u64) {
        let count = &mut self.counts[bucket - self.first];
        let sum = u64::from(*count) + more;
        *count = sum as u8;
        let carry = sum >> u8::BITS;
        if carry > 0 {
            self.full.get_or_insert_default().add(bucket, carry);
        }
    }

    /// Each bucket, and how many delays it has.
    fn buckets(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        self.counts.iter().enumerate().map(|(index, &count)| {
            let bucket = self.first + index;
            let carry = self.full.as_ref().map_or(0, |full| full.of(bucket));
            (bucket, u64::from(count) + (carry << u8::BITS))
        })
    }

    /// Makes room for the counts of these buckets.
    fn reach(&mut self, from: usize, to: usize) {
        let (from, to) = (from / BLOCK * BLOCK, to.next_multiple_of(BLOCK));
        if self.counts.is_empty() {
            self.first = from;
        }
        let end = self.first + self.counts.len();
        if from < self.first || to > end {
            let first = self.first.min(from);
            let mut counts = vec![0; to.max(end) - first];
            counts[self.first - first..end - first].copy_from_slice(&self.counts);
            (self.first, self.counts) = (first, counts.into_boxed_slice());
        }
    }

    /// Number of delays recorded.
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// The exact mean; `None` if nothing was recorded.
    pub fn mean(&self) -> Option<Duration> {
        self.sum_ns.checked_div(self.total).map(Duration::from_nanos)
    }

    /// The longest delay; `None` if nothing was recorded. It is exact for a whole run; for a
    /// difference of histograms it is accurate to the width of a bucket.
    pub const fn max(&self) -> Option<Duration> {
        if self.total == 0 { None } else { Some(Duration::from_nanos(self.max_ns)) }
    }

    /// The quantile `q` (0 to 1), accurate to 0.4 %: the middle of the bucket of the sample with
    /// rank `ceil(q n)`; `None` if nothing was recorded.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        if self.total == 0 {
            return None;
        }
        let rank = (q.clamp(0.0, 1.0) * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                let (low, width) = bounds_of(bucket);
                return Some(Duration::from_nanos((low + width / 2).min(self.max_ns)));
            }
        }
        self.max()
    }

    /// Adds the delays of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if !other.counts.is_empty() {
            self.reach(other.first, other.first + other.counts.len());
            for (bucket, count) in other.buckets() {
                self.add(bucket, count);
            }
        }
        self.total += other.total;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// What was recorded since `earlier`, an earlier copy of this histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = Self { first: self.first, ..Self::default() };
        // The earlier copy reaches no further down.
        let mut before = earlier.buckets().peekable();
        let mut full = Vec::with_capacity(self.full.as_ref().map_or(0, |full| full.0.len()));
        let counts = self.buckets().map(|(bucket, now)| {
            let before = before.next_if(|(at, _)| *at <= bucket).map_or(0, |(_, count)| count);
            let count = now.saturating_sub(before);
            let carry = count >> u8::BITS;
            full.extend((carry > 0).then_some((bucket, carry)));
            count as u8
        });
        since.counts = counts.collect();
        since.full = (!full.is_empty()).then(|| Box::new(Full(full)));
        let highest = since.buckets().rfind(|(_, count)| *count > 0);
        let edge = highest.map_or(0, |(bucket, _)| {
            let (low, width) = bounds_of(bucket);
            low + width - 1
        });
        since.total = self.total.saturating_sub(earlier.total);
        since.sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
        since.max_ns = self.max_ns.min(edge);
        since
    }
}

/// The bucket of a delay: exact below 256 ns, then 128 buckets per octave.
#[inline]
const fn bucket_of(ns: u64) -> usize {
    let shift = (ns | PER_OCTAVE).ilog2() - BITS;
    (shift as u64 * PER_OCTAVE + (ns >> shift)) as usize
}

/// The smallest delay of a bucket and the bucket's width, in nanoseconds.
const fn bounds_of(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < 2 * PER_OCTAVE {
        return (index, 1);
    }
    let shift = index / PER_OCTAVE - 1;
    ((index - shift * PER_OCTAVE) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(delays: &[u64]) -> DelayHistogram {
        let mut h = DelayHistogram::default();
        for &ns in delays {
            h.record(Duration::from_nanos(ns));
        }
        h
    }

    #[test]
    fn buckets_join_without_gaps_and_stay_narrow() {
        let mut edge = 0;
        for index in 0..7424 {
            let (low, width) = bounds_of(index);
            assert_eq!(low, edge, "bucket {index}");
            assert_eq!(bucket_of(low), index);
            assert_eq!(bucket_of(low + (width - 1)), index);
            assert!(width * PER_OCTAVE <= low.max(PER_OCTAVE), "bucket {index} is {width} ns wide");
            edge = low.wrapping_add(width);
        }
        assert_eq!(edge, 0, "the last bucket ends at 2^64");
    }

    #[test]
    fn quantiles_of_a_known_set_are_right_to_half_a_bucket() {
        let delays: Vec<u64> = (1..=100_000).map(|i| i * 1_000).collect();
        let h = of(&delays);
        for (q, want) in [(0.5, 50e6), (0.95, 95e6), (0.99, 99e6), (1.0, 100e6)] {
            let got = h.quantile(q).unwrap().as_nanos() as f64;
            assert!((got / want - 1.0).abs() < 0.004, "q {q}: {got} for {want}");
        }
        assert_eq!(h.mean(), Some(Duration::from_nanos(50_000_500)));
        assert_eq!(h.max(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn memory_is_that_of_the_range_whatever_the_order() {
        let up = of(&[40_000_000, 60_000_000, 90_000_000]);
        let down = of(&[90_000_000, 60_000_000, 40_000_000]);
        assert_eq!(up, down);
        assert!(up.counts.len() <= 12 * BLOCK);
        assert_eq!(up.quantile(0.0), down.quantile(0.1));
        let mut all = of(&[5]);
        all.merge(&up);
        assert_eq!(all, of(&[5, 40_000_000, 60_000_000, 90_000_000]));
        assert_eq!(all.quantile(0.25), Some(Duration::from_nanos(5)));
    }

    #[test]
    fn a_bucket_holds_more_than_a_word() {
        let few = of(&[5, 5, 9]);
        let mut many = few.clone();
        for times in 0..33 {
            assert_eq!(many.buckets().nth(9), Some((9, 1 << times)));
            many.merge(&many.clone());
        }
        many.record(Duration::from_nanos(9));
        assert_eq!(many.count(), (3 << 33) + 1);
        assert_eq!(many.buckets().nth(5), Some((5, 2 << 33)));
        let more = many.since(&few);
        assert_eq!(more.buckets().nth(9), Some((9, 1 << 33)));
        let mut sum = few;
        sum.merge(&more);
        assert_eq!(sum, many);
        sum.counts[9] = u8::MAX;
        sum.record(Duration::from_nanos(9));
        assert_eq!(sum.buckets().nth(9), Some((9, (1 << 33) + (1 << 8))));
    }

    #[test]
    fn an_empty_histogram_has_no_numbers() {
        let h = DelayHistogram::default();
        assert_eq!((h.quantile(0.5), h.mean(), h.max()), (None, None, None));
    }

    #[test]
    fn histogram_difference_holds_only_new_values() {
        let before = of(&[10_000, 9_000_000]);
        let mut after = before.clone();
        after.record(Duration::from_nanos(77));
        after.record(Duration::from_nanos(99));
        let between = after.since(&before);
        assert_eq!(between.count(), 2);
        assert_eq!(between.quantile(0.5), Some(Duration::from_nanos(77)));
        assert_eq!(between.max(), Some(Duration::from_nanos(99)));
        assert_eq!(between.mean(), Some(Duration::from_nanos(88)));
        let mut sum = before.clone();
        sum.merge(&between);
        assert_eq!((sum.count(), sum.mean()), (after.count(), after.mean()));
    }
}
