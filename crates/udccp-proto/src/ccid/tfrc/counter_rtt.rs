//! Reads the receiver's round-trip time off the window counter (RFC 4342 section 8.1).

use udccp_base::{Duration, Instant};

/// Values that the counter can have.
pub(crate) const WCTRMAX: u8 = 16;
/// Counter steps remembered: the newest, and the four before it.
const STEPS: usize = 5;
/// Adjacent packets differ by no more, unless packets between them were lost.
const MAX_STEP: u8 = 5;

/// How far the counter moved from `from` to `to`, modulo 16.
pub(crate) const fn distance(from: u8, to: u8) -> u8 {
    to.wrapping_sub(from) % WCTRMAX
}

/// First arrivals of the last few counter values, and the estimate made of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CounterRtt {
    /// Counter without modulus, first arrival; oldest first.
    steps: [Option<(u64, Instant)>; STEPS],
    newest: Option<(u64, u8)>,
}

impl CounterRtt {
    /// A data packet with this CCVal arrived, newer than all before. Returns a sample if the
    /// counter stepped onto one.
    pub(crate) fn on_data(&mut self, now: Instant, ccval: u8) -> Option<Duration> {
        let Some((total, last)) = self.newest else {
            self.restart(now, ccval);
            return None;
        };
        let step = distance(last, ccval);
        if step == 0 {
            return None;
        }
        if step > MAX_STEP {
            self.restart(now, ccval);
            return None;
        }
        let total = total + u64::from(step);
        self.newest = Some((total, ccval));
        let sample = self.sample(now, total);
        self.steps.rotate_left(1);
        self.steps[STEPS - 1] = Some((total, now));
        sample
    }

    //= 4342-8.1-4
    //= 4342-8.1-5
    /// (T(K+D) - T(K)) 4/D, with D = 4 before 3 before 2.
    fn sample(&self, now: Instant, total: u64) -> Option<Duration> {
        [4_u64, 3, 2].into_iter().find_map(|d| {
            let wanted = total.checked_sub(d)?;
            let (_, at) = self.steps.iter().flatten().find(|(t, _)| *t == wanted)?;
            Some((now - *at) * 4 / d)
        })
    }

    fn restart(&mut self, now: Instant, ccval: u8) {
        self.steps = [None; STEPS];
        self.steps[STEPS - 1] = Some((0, now));
        self.newest = Some((0, ccval));
    }
}
