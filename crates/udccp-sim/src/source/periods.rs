//! Alternating periods of speech and silence.

use udccp_base::{Duration, Instant, Rng};

use super::distribution::Distribution;

/// Periods of speech and silence, in seconds. Messages are timed by a clock that stops during
/// silence, so the mean rate is exactly the rate of speech times its share of time.
#[derive(Clone, Debug)]
pub(super) struct Periods {
    on: Distribution,
    off: Distribution,
    rng: Rng,
    at: Instant,
    /// End of the current period of speech.
    end: Instant,
}

impl Periods {
    pub(super) const fn new(on: Distribution, off: Distribution, rng: Rng) -> Self {
        Self { on, off, rng, at: Instant::ZERO, end: Instant::ZERO }
    }

    /// Starts the first period of speech.
    pub(super) fn start(&mut self, now: Instant) {
        self.at = now;
        self.end = now + self.draw(self.on);
    }

    /// The time after another `speech` of speech.
    pub(super) fn after(&mut self, mut speech: Duration) -> Instant {
        loop {
            let room = self.end - self.at;
            if speech <= room {
                self.at += speech;
                return self.at;
            }
            speech -= room;
            self.at = self.end + self.draw(self.off);
            self.end = self.at + self.draw(self.on);
            if self.end == Instant::MAX {
                return Instant::MAX;
            }
        }
    }

    /// Draws a period of at least a nanosecond, so that time advances.
    fn draw(&mut self, of: Distribution) -> Duration {
        Duration::from_secs_f64(of.sample(&mut self.rng)).max(Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::Seed;

    use super::*;

    #[test]
    fn the_clock_of_speech_stands_still_in_silence() {
        let (on, off) = (Distribution::Constant(1.0), Distribution::Constant(3.0));
        let mut periods = Periods::new(on, off, Seed(1).stream("periods"));
        periods.start(Instant::from_nanos(500_000_000));
        let gap = Duration::from_millis(400);
        let times: Vec<u64> = (0..6).map(|_| periods.after(gap).as_nanos() / 1_000_000).collect();
        // Speech is from 0.5 to 1.5 s, from 4.5 to 5.5 s and from 8.5 s on.
        assert_eq!(times, [900, 1_300, 4_700, 5_100, 5_500, 8_900]);
    }
}
