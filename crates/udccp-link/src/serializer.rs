//! A transmitter of a given rate: exact times, however long it stays busy.

use udccp_base::{DataRate, Duration, Instant};

/// Transmission time of a byte at 1 bit/s, in nanoseconds.
const BYTE_NANOS: u64 = 8_000_000_000;

/// When a packet is transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    /// The first whole nanosecond at which serialisation has begun.
    pub(crate) begin: Instant,
    /// The first whole nanosecond at which it has ended.
    pub(crate) end: Instant,
}

/// Serialises packets one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Serializer {
    times: TransmissionTimes,
    busy: Busy,
}

/// Until when a transmitter is busy. The end of each packet is kept as whole nanoseconds and a
/// remainder in units of 1/rate nanoseconds, so a long busy period does not drift: its n-th end is
/// the exact sum of n transmission times, rounded up once.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    /// The first whole nanosecond at which all is transmitted: with a remainder, the last of them
    /// has begun when it is.
    free_at: u64,
    free_remainder: u64,
}

/// The same where many have the same rate: in half the memory.
#[derive(Clone, Debug, Default)]
pub struct SmallSerializer {
    busy: Busy,
    last: Known,
}

/// The transmission times at a rate.
#[derive(Clone, Debug)]
pub struct TransmissionTimes {
    /// 0 if transmission takes no time.
    bits_per_sec: u64,
    /// Of the last length that takes whole nanoseconds.
    whole: Known,
    /// Of lengths seen lately, by their lowest bits but two. At first, those of no bytes.
    known: [Known; KNOWN],
}

/// How many transmission times are kept, a power of two.
const KNOWN: usize = 8;

/// The whole nanoseconds that a length takes to transmit, if that is less than 4 s. It saves a
/// division.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    len: u32,
    ns: u32,
}

/// A transmission time.
#[derive(Clone, Copy, Debug)]
struct Cost {
    ns: u64,
    /// What it takes beyond these, in units of 1/rate nanoseconds.
    remainder: u64,
}

impl Busy {
    /// Whether a packet that arrives at `now` would have to wait.
    #[inline(always)]
    const fn is_busy(&self, now: Instant) -> bool {
        self.free_at > now.as_nanos()
    }

    /// An idle transmitter begins to transmit.
    #[inline(always)]
    const fn begin(&mut self, now: Instant) {
        self.free_remainder = 0;
        self.free_at = now.as_nanos();
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

    /// Adds the cost of a packet that does not take whole nanoseconds.
    #[inline]
    fn add_fraction(&mut self, cost: Cost, bits_per_sec: u64) {
        let mut free_ns = self.free_ns().saturating_add(cost.ns);
        let mut remainder = self.free_remainder + cost.remainder;
        if remainder >= bits_per_sec {
            remainder -= bits_per_sec;
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

    /// When all that it has taken is transmitted; a time that has passed if it is idle.
    #[inline(always)]
    const fn free_at(&self) -> Instant {
        Instant::from_nanos(self.free_at)
    }
}

impl TransmissionTimes {
    /// Those of a rate; with `None`, transmission takes no time. Rate zero becomes 1 bit/s.
    pub fn new(rate: Option<DataRate>) -> Self {
        let (whole, known) = (Known::default(), [Known::default(); KNOWN]);
        Self { bits_per_sec: Self::bits_per_sec(rate), whole, known }
    }

    fn bits_per_sec(rate: Option<DataRate>) -> u64 {
        rate.map_or(0, |r| r.bits_per_sec().max(1))
    }

    /// Whether they are those of this rate.
    pub fn are_of(&self, rate: Option<DataRate>) -> bool {
        self.bits_per_sec == Self::bits_per_sec(rate)
    }

    /// Adds a packet to what a transmitter has begun to transmit.
    #[inline(always)]
    fn append(&mut self, busy: &mut Busy, len: u32) -> Transmission {
        if self.whole.len != len {
            return self.append_any(busy, len);
        }
        busy.append_whole(self.whole.ns.into())
    }

    /// The general case of [`Self::append`].
    #[inline(never)]
    fn append_any(&mut self, busy: &mut Busy, len: u32) -> Transmission {
        self.append_with_cost(busy, len)
    }

    #[inline(always)]
    fn append_with_cost(&mut self, busy: &mut Busy, len: u32) -> Transmission {
        let cost = self.cost(len);
        if cost.remainder == 0 {
            if let Ok(ns) = u32::try_from(cost.ns) {
                self.whole = Known { len, ns };
            }
            return busy.append_whole(cost.ns);
        }
        let begin = busy.free_at;
        busy.add_fraction(cost, self.bits_per_sec);
        let [begin, end] = [begin, busy.free_at].map(Instant::from_nanos);
        Transmission { begin, end }
    }

    /// The transmission time of a packet, which is then known.
    #[inline(always)]
    fn cost(&mut self, len: u32) -> Cost {
        let known = self.known[len as usize / 4 % KNOWN];
        if len != 0 && len == known.len {
            // All but the remainder, which is less than the rate, has no effect modulo 2^64.
            let ns = u64::from(known.ns);
            let units = u64::from(len).wrapping_mul(BYTE_NANOS);
            return Cost { ns, remainder: units.wrapping_sub(ns.wrapping_mul(self.bits_per_sec)) };
        }
        self.divide(len)
    }

    #[cold]
    #[inline(never)]
    fn divide(&mut self, len: u32) -> Cost {
        let rate = self.bits_per_sec;
        if rate == 0 {
            return Cost { ns: 0, remainder: 0 };
        }
        let (ns, remainder) = match u64::from(len).checked_mul(BYTE_NANOS) {
            Some(n) => (n / rate, n % rate),
            None => {
                let n = u128::from(len) * u128::from(BYTE_NANOS);
                let rate = u128::from(rate);
                (u64::try_from(n / rate).unwrap_or(u64::MAX), (n % rate) as u64)
            }
        };
        if let Ok(ns) = u32::try_from(ns) {
            self.known[len as usize / 4 % KNOWN] = Known { len, ns };
        }
        Cost { ns, remainder }
    }
}

impl Serializer {
    /// A transmitter of `rate`; with `None`, transmission takes no time. Rate zero becomes 1 bit/s.
    pub(crate) fn new(rate: Option<DataRate>) -> Self {
        Self { times: TransmissionTimes::new(rate), busy: Busy::default() }
    }

    /// How long it has been idle at `now`, in nanoseconds. It must be idle.
    #[inline]
    pub(crate) const fn idle_ns(&self, now: Instant) -> u64 {
        now.as_nanos() - self.busy.free_ns()
    }

    /// Adds a packet that finds the transmitter idle.
    #[inline(always)]
    pub(crate) fn begin(&mut self, now: Instant, len: u32) -> Transmission {
        self.busy.begin(now);
        self.append(len)
    }

    /// Adds a packet that has to wait.
    #[inline(always)]
    pub(crate) fn append(&mut self, len: u32) -> Transmission {
        self.times.append(&mut self.busy, len)
    }

    /// Whether a packet that arrives at `now` would have to wait.
    #[inline]
    pub(crate) const fn is_busy(&self, now: Instant) -> bool {
        self.busy.is_busy(now)
    }

    /// The rate; `None` where transmission takes no time.
    pub(crate) fn rate(&self) -> Option<DataRate> {
        let rate = self.times.bits_per_sec;
        (rate > 0).then(|| DataRate::from_bits_per_sec(rate))
    }

    /// When all that it has taken is transmitted; a time that has passed if it is idle.
    #[inline]
    pub(crate) const fn free_at(&self) -> Instant {
        self.busy.free_at()
    }

    /// Time that the transmitter has been busy up to `now`, of which it was idle for `idle_ns`
    /// before packets that found it so.
    pub(crate) fn busy(&self, now: Instant, idle_ns: u64) -> Duration {
        let free_ns = self.busy.free_ns();
        let ahead = free_ns.saturating_sub(now.as_nanos());
        Duration::from_nanos((free_ns - idle_ns).saturating_sub(ahead))
    }
}

impl SmallSerializer {
    /// Transmits a packet of `len` bytes that arrives at `now`, behind all that came before, and
    /// returns when it is transmitted. `rate` is always the index of the same rate.
    #[inline(always)]
    pub fn transmit(
        &mut self,
        now: Instant,
        len: u32,
        times: &mut [TransmissionTimes],
        rate: usize,
    ) -> Instant {
        if !self.busy.is_busy(now) {
            self.busy.begin(now);
        }
        if self.last.len != len {
            return self.transmit_any(len, times, rate);
        }
        self.busy.append_whole(self.last.ns.into()).end
    }

    /// The general case of [`Self::transmit`].
    #[inline(never)]
    fn transmit_any(&mut self, len: u32, times: &mut [TransmissionTimes], rate: usize) -> Instant {
        let times = &mut times[rate];
        let sent = times.append_with_cost(&mut self.busy, len);
        if times.whole.len == len {
            self.last = times.whole;
        }
        sent.end
    }

    /// When all that it has taken is transmitted; a time that has passed if it is idle.
    #[inline(always)]
    pub const fn free_at(&self) -> Instant {
        self.busy.free_at()
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
                let mut new = Serializer { times: TransmissionTimes::new(Some(rate)), ..known };
                assert_eq!(known.append(len), new.append(len), "{len} at {rate}");
                let remainders = [&known, &new].map(|s| s.busy.free_remainder);
                assert_eq!(remainders[0], remainders[1], "{len} at {rate}");
            }
        }
    }

    #[test]
    fn sharing_a_rate_changes_no_time() {
        let rates = [0, 1, 1_000, 3_000_000_000, 12_000_000_000, 1 << 62];
        let rates = rates.map(|rate| Some(DataRate::from_bits_per_sec(rate)));
        for rate in rates.into_iter().chain([None]) {
            let mut times = [TransmissionTimes::new(rate)];
            let mut small = [SmallSerializer::default(), SmallSerializer::default()];
            let mut own = [Serializer::new(rate), Serializer::new(rate)];
            let lens = [1500, 52, 1500, 53, 0, 52, u32::MAX, 1500, 1, 1500, 0, 52, u32::MAX];
            for (i, len) in lens.into_iter().cycle().take(100).enumerate() {
                let now = Instant::from_nanos(40 * i as u64);
                let (small, own) = (&mut small[i % 2], &mut own[i % 2]);
                let end = small.transmit(now, len, &mut times, 0);
                assert_eq!(end, own.transmit(now, len).end, "{len} at {rate:?}");
                assert_eq!(small.free_at(), own.free_at(), "{len} at {rate:?}");
            }
        }
        let zero = Some(DataRate::from_bits_per_sec(0));
        assert!(TransmissionTimes::new(None).are_of(None));
        assert!(!TransmissionTimes::new(None).are_of(zero));
    }

    #[test]
    fn enormous_packets_and_tiny_rates_saturate() {
        let mut s = Serializer::new(Some(DataRate::from_bits_per_sec(0)));
        let t = s.transmit(Instant::ZERO, u32::MAX);
        assert_eq!(t.end.as_nanos(), u64::from(u32::MAX).saturating_mul(BYTE_NANOS));
        s.transmit(Instant::ZERO, 1500);
    }
}
