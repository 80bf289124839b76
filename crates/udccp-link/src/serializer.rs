//! A transmitter of a given rate: exact times, however long it stays busy.

use udccp_base::{DataRate, Duration, Instant};

/// Transmission time of a byte at 1 bit/s, in nanoseconds.
const BYTE_NANOS: u64 = 8_000_000_000;

/// The transmission times of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    /// The first whole nanosecond at which serialisation has begun.
    pub(crate) begin: Instant,
    /// The first whole nanosecond at which it has ended.
    pub(crate) end: Instant,
}

/// Serialises packets one after the other. The end of each is kept as whole nanoseconds and a
/// remainder in units of 1/rate nanoseconds, so a long busy period does not drift: its n-th end is
/// the exact sum of n transmission times, rounded up once.
#[derive(Clone, Debug)]
pub(crate) struct Serializer {
    bits_per_sec: u64,
    /// The first whole nanosecond at which all is transmitted: with a remainder, the last of them
    /// has begun when it is.
    free_at: u64,
    free_remainder: u64,
    known: Known,
}

/// Transmission times of the last lengths seen that take less than 4 s, to save a division: of one
/// that takes whole nanoseconds, and of one that does not. At first, those of no bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    whole_len: u32,
    whole_ns: u32,
    other_len: u32,
    other_ns: u32,
}

/// A transmission time.
#[derive(Clone, Copy, Debug)]
struct Cost {
    ns: u64,
    /// What it takes beyond these, in units of 1/rate nanoseconds.
    remainder: u64,
}

impl Serializer {
    /// A transmitter of `rate`; with `None`, transmission takes no time. Rate zero becomes 1 bit/s.
    pub(crate) fn new(rate: Option<DataRate>) -> Self {
        Self {
            bits_per_sec: rate.map_or(0, |r| r.bits_per_sec().max(1)),
            free_at: 0,
            free_remainder: 0,
            known: Known::default(),
        }
    }

    /// How long it has been idle at `now`, in nanoseconds. It must be idle.
    #[inline]
    pub(crate) const fn idle_ns(&self, now: Instant) -> u64 {
        now.as_nanos() - self.free_ns()
    }

    /// Adds a packet that finds the transmitter idle.
    #[inline(always)]
    pub(crate) fn begin(&mut self, now: Instant, len: u32) -> Transmission {
        self.free_remainder = 0;
        self.free_at = now.as_nanos();
        self.append(len)
    }

    /// Adds a packet that has to wait.
    #[inline(always)]
    pub(crate) fn append(&mut self, len: u32) -> Transmission {
        if self.known.whole_len != len {
            return self.append_any(len);
        }
        self.append_whole(self.known.whole_ns.into())
    }

    /// Adds a packet that takes whole nanoseconds, as nearly all do. What remains of a nanosecond
    /// from earlier stays as it is.
    #[inline(always)]
    fn append_whole(&mut self, ns: u64) -> Transmission {
        let begin = self.free_at;
        self.free_at = begin.saturating_add(ns);
        let [begin, end] = [begin, self.free_at].map(Instant::from_nanos);
        Transmission { begin, end }
    }

    /// The general case of [`Self::append`].
    #[inline(never)]
    fn append_any(&mut self, len: u32) -> Transmission {
        let cost = self.cost(len);
        if cost.remainder == 0 {
            return self.append_whole(cost.ns);
        }
        let begin = self.free_at;
        self.add_fraction(cost);
        let [begin, end] = [begin, self.free_at].map(Instant::from_nanos);
        Transmission { begin, end }
    }

    /// Adds the cost of a packet that does not take whole nanoseconds.
    #[inline]
    fn add_fraction(&mut self, cost: Cost) {
        let mut free_ns = self.free_ns().saturating_add(cost.ns);
        let mut remainder = self.free_remainder + cost.remainder;
        if remainder >= self.bits_per_sec {
            remainder -= self.bits_per_sec;
            free_ns = free_ns.saturating_add(1);
        }
        self.free_remainder = remainder;
        self.free_at = free_ns.saturating_add(u64::from(remainder > 0));
    }

    /// The last whole nanosecond at which not more than all was transmitted.
    #[inline]
    const fn free_ns(&self) -> u64 {
        self.free_at - (self.free_remainder > 0) as u64
    }

    /// Whether a packet that arrives at `now` would have to wait.
    #[inline]
    pub(crate) const fn is_busy(&self, now: Instant) -> bool {
        self.free_at > now.as_nanos()
    }

    /// The rate; `None` where transmission takes no time.
    pub(crate) fn rate(&self) -> Option<DataRate> {
        (self.bits_per_sec > 0).then(|| DataRate::from_bits_per_sec(self.bits_per_sec))
    }

    /// When all that it has taken is transmitted; a time that has passed if it is idle.
    #[inline]
    pub(crate) const fn free_at(&self) -> Instant {
        Instant::from_nanos(self.free_at)
    }

    /// Time that the transmitter has been busy up to `now`, of which it was idle for `idle_ns`
    /// before packets that found it so.
    pub(crate) fn busy(&self, now: Instant, idle_ns: u64) -> Duration {
        let ahead = self.free_ns().saturating_sub(now.as_nanos());
        let begun = self.free_ns() - idle_ns;
        Duration::from_nanos(begun.saturating_sub(ahead))
    }

    /// The transmission time of a packet, which is then known.
    fn cost(&mut self, len: u32) -> Cost {
        if len != 0 && len == self.known.other_len {
            // All but the remainder, which is less than the rate, has no effect modulo 2^64.
            let ns = u64::from(self.known.other_ns);
            let units = u64::from(len).wrapping_mul(BYTE_NANOS);
            return Cost { ns, remainder: units.wrapping_sub(ns.wrapping_mul(self.bits_per_sec)) };
        }
        let cost = self.divide(len);
        if let Ok(ns) = u32::try_from(cost.ns) {
            if cost.remainder == 0 {
                (self.known.whole_len, self.known.whole_ns) = (len, ns);
            } else {
                (self.known.other_len, self.known.other_ns) = (len, ns);
            }
        }
        cost
    }

    #[cold]
    #[inline(never)]
    fn divide(&self, len: u32) -> Cost {
        let rate = self.bits_per_sec;
        let (ns, remainder) = match u64::from(len).checked_mul(BYTE_NANOS) {
            _ if rate == 0 => (0, 0),
            Some(n) => (n / rate, n % rate),
            None => {
                let n = u128::from(len) * u128::from(BYTE_NANOS);
                let rate = u128::from(rate);
                (u64::try_from(n / rate).unwrap_or(u64::MAX), (n % rate) as u64)
            }
        };
        Cost { ns, remainder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Serializer {
        /// Adds a packet after those in transmission or waiting.
        fn transmit(&mut self, now: Instant, len: u32) -> Transmission {
            self.transmit_after(now, len, &mut 0)
        }

        /// The same, and counts how long it was idle before.
        fn transmit_after(&mut self, now: Instant, len: u32, idle_ns: &mut u64) -> Transmission {
            if self.is_busy(now) {
                return self.append(len);
            }
            *idle_ns += self.idle_ns(now);
            self.begin(now, len)
        }
    }

    #[test]
    fn a_busy_period_of_a_million_packets_drifts_by_nothing() {
        // 1500 B at 7 Mbit/s is 1714285.714... ns: rounding each up would gain 0.29 ms.
        let mut s = Serializer::new(Some(DataRate::from_mbps(7)));
        let mut last = Instant::ZERO;
        for n in 1..=1_000_000_u64 {
            let t = s.transmit(Instant::ZERO, 1500);
            assert_eq!(t.begin, last);
            assert_eq!(t.end.as_nanos(), (n * 1500 * 8_000).div_ceil(7));
            last = t.end;
        }
    }

    #[test]
    fn a_packet_at_the_last_nanosecond_waits_for_the_fraction() {
        let mut s = Serializer::new(Some(DataRate::from_bits_per_sec(3_000_000_000)));
        // One byte takes 2.67 ns.
        assert_eq!(s.transmit(Instant::ZERO, 1).end.as_nanos(), 3);
        let t = s.transmit(Instant::from_nanos(2), 1);
        assert_eq!((t.begin.as_nanos(), t.end.as_nanos()), (3, 6));
        let t = s.transmit(Instant::from_nanos(6), 1);
        assert_eq!((t.begin.as_nanos(), t.end.as_nanos()), (6, 9), "the fraction is forgotten");
    }

    #[test]
    fn whole_nanoseconds_keep_the_fraction_before_them() {
        let mut s = Serializer::new(Some(DataRate::from_bits_per_sec(3_000_000_000)));
        let ends = [1, 3, 3, 1].map(|len| s.transmit(Instant::ZERO, len).end.as_nanos());
        // 2.67, 10.67, 18.67 and 21.33 ns.
        assert_eq!(ends, [3, 11, 19, 22]);
    }

    #[test]
    fn a_transmitter_is_idle_from_the_last_whole_nanosecond_of_a_packet() {
        let mut s = Serializer::new(Some(DataRate::from_bits_per_sec(3_000_000_000)));
        // A byte takes 2.67 ns, of which two are whole.
        let mut idle_ns = 0;
        for n in 0..100 {
            s.transmit_after(Instant::from_nanos(10 * n), 1, &mut idle_ns);
        }
        assert_eq!(s.busy(Instant::from_nanos(2_000), idle_ns), Duration::from_nanos(200));
    }

    #[test]
    fn busy_time_counts_to_the_instant_asked_about() {
        let mut s = Serializer::new(Some(DataRate::from_mbps(12)));
        let mut idle_ns = 0;
        s.transmit_after(Instant::from_nanos(500_000), 1500, &mut idle_ns);
        let busy = |us: u64| s.busy(Instant::from_nanos(us * 1_000), idle_ns);
        assert_eq!(busy(500), Duration::ZERO);
        assert_eq!(busy(900), Duration::from_micros(400));
        assert_eq!(busy(1_500), Duration::from_millis(1));
        assert_eq!(busy(9_000), Duration::from_millis(1));
    }

    #[test]
    fn lengths_take_the_same_time_again_whatever_came_between() {
        for rate in [1, 1_000, 3_000_000_000, 12_000_000_000, 1 << 62] {
            let rate = DataRate::from_bits_per_sec(rate);
            let mut known = Serializer::new(Some(rate));
            for len in [1500, 52, 1500, 53, 0, 52, u32::MAX, 1500, 1, 1500, 0, 52, u32::MAX] {
                let mut new = Serializer { known: Known::default(), ..known.clone() };
                assert_eq!(known.append(len), new.append(len), "{len} at {rate}");
                assert_eq!(known.free_remainder, new.free_remainder, "{len} at {rate}");
            }
        }
    }

    #[test]
    fn enormous_packets_and_tiny_rates_saturate() {
        let mut s = Serializer::new(Some(DataRate::from_bits_per_sec(0)));
        let t = s.transmit(Instant::ZERO, u32::MAX);
        assert_eq!(t.end.as_nanos(), u64::from(u32::MAX).saturating_mul(BYTE_NANOS));
        s.transmit(Instant::ZERO, 1500);
    }
}
