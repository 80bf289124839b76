//! Ticks of a kernel's clock.

use udccp_base::{Duration, Instant};

/// Shorter timers in ticks are exact (`LVL_START(1)`). Each level above has eight times the range
/// and an eighth of the resolution.
const FIRST_LEVEL_TICKS: u64 = 63;

/// Resolution of the last level in ticks, as a power of two (`LVL_SHIFT(7)`, for fewer than 1000
/// ticks per second).
const LAST_LEVEL_SHIFT: u32 = 21;

/// The length of a tick; zero for a clock without ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    nanos: u64,
    /// 2^64 divided by it: timers move with every packet, and a division takes long.
    inverse: u64,
}

impl Tick {
    pub(crate) const fn new(length: Duration) -> Self {
        let nanos = length.as_nanos();
        let inverse = match u64::MAX.checked_div(nanos) {
            Some(inverse) => inverse,
            None => 0,
        };
        Self { nanos, inverse }
    }

    /// The time at which a timer of `wait`, set at `now`, expires: one tick late, and for long
    /// timers at a multiple of 8, 64 and so on ticks, as in Linux's timer wheel since 5.8
    /// (`calc_index` of kernel/time/timer.c).
    #[inline(always)]
    pub(crate) fn after(self, now: Instant, wait: Duration) -> Instant {
        if self.nanos == 0 {
            return now + wait;
        }
        let (whole, rest) = self.ticks_in(wait.as_nanos());
        let ticks = whole + u64::from(rest > 0);
        let expires = self.ticks_in(now.as_nanos()).0 + ticks;
        let mut shift = 0;
        while ticks >= FIRST_LEVEL_TICKS << shift && shift < LAST_LEVEL_SHIFT {
            shift += 3;
        }
        Instant::from_nanos((((expires >> shift) + 1) << shift).saturating_mul(self.nanos))
    }

    /// Whole ticks in a time, and the rest in nanoseconds.
    #[inline]
    fn ticks_in(self, nanos: u64) -> (u64, u64) {
        // The estimate is right, or too small by one.
        let ticks = ((u128::from(nanos) * u128::from(self.inverse)) >> u64::BITS) as u64;
        let rest = nanos - ticks * self.nanos;
        if rest < self.nanos { (ticks, rest) } else { (ticks + 1, rest - self.nanos) }
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::Seed;

    use super::*;

    #[test]
    fn timers_expire_on_ticks() {
        let (tick, now) = (Duration::from_millis(4), Instant::from_nanos(10_500_000));
        let after = |wait, tick| Tick::new(tick).after(now, wait);
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        assert_eq!(after(Duration::from_millis(40), tick), ms(52));
        assert_eq!(after(Duration::from_micros(8_200), tick), ms(24));
        let exact = Instant::from_nanos(50_500_000);
        assert_eq!(after(Duration::from_millis(40), Duration::ZERO), exact);
    }

    /// Up to 62 ticks exact to a tick, up to 503 to eight ticks, up to 4031 to 64.
    #[test]
    fn long_timers_expire_on_coarse_ticks() {
        let (tick, now) = (Duration::from_millis(4), Instant::from_nanos(10_500_000));
        let after = |ticks| {
            let at = Tick::new(tick).after(now, tick * ticks);
            (at - Instant::ZERO).as_nanos() / tick.as_nanos()
        };
        assert_eq!((after(62), after(63), after(70)), (65, 72, 80));
        assert_eq!((after(503), after(504), after(700)), (512, 512, 704));
        assert_eq!((after(4031), after(4032)), (4096, 4096));
    }

    #[test]
    fn ticks_are_those_of_a_division() {
        let mut rng = Seed(3).stream("ticks");
        let mut nanos = || rng.next_u64() >> rng.below(64);
        for _ in 0..100_000 {
            let (length, around) = (nanos().max(1), nanos());
            let tick = Tick::new(Duration::from_nanos(length));
            let multiple = around / length * length;
            for time in [around, multiple, multiple.wrapping_sub(1), u64::MAX] {
                assert_eq!(tick.ticks_in(time), (time / length, time % length));
            }
        }
    }
}
