//! Schedules the samples of recorders.

use core::ops::Range;

use udccp_base::{Duration, Instant};

use super::Interval;

/// Something that recorders do at a set time, before the events of that time.
#[derive(Clone, Copy, Debug)]
pub enum Mark {
    /// An interval of the series ends.
    Sample(Interval),
    /// The measured window begins.
    WindowBegins,
    /// The measured window ends.
    WindowEnds,
}

/// All marks of a run in order.
#[derive(Debug)]
pub struct Schedule {
    duration: Duration,
    interval: Duration,
    last_sample: Duration,
    window: [Option<(Duration, Mark)>; 2],
}

impl Schedule {
    /// Intervals up to `duration` (the last may be short), and the window.
    pub fn new(duration: Duration, interval: Duration, window: &Range<Duration>) -> Self {
        Self {
            duration,
            interval,
            last_sample: Duration::ZERO,
            window: [
                Some((window.start, Mark::WindowBegins)),
                Some((window.end, Mark::WindowEnds)),
            ],
        }
    }

    /// How many samples there are in all.
    pub fn samples(&self) -> usize {
        self.duration.as_nanos().div_ceil(self.interval.as_nanos().max(1)) as usize
    }

    /// When the next mark is; [`Instant::MAX`] after the last.
    pub fn next(&self) -> Instant {
        let sample = self.next_sample().unwrap_or(Duration::MAX);
        let window = self.next_window().map_or(Duration::MAX, |(at, _)| at);
        Instant::ZERO + sample.min(window)
    }

    /// Takes the next mark.
    pub fn take(&mut self) -> Option<Mark> {
        let sample = self.next_sample();
        match self.next_window() {
            Some((at, mark)) if sample.is_none_or(|s| at <= s) => {
                *self.window.iter_mut().find(|w| w.is_some())? = None;
                Some(mark)
            }
            _ => {
                let end = sample?;
                let span = end - self.last_sample;
                self.last_sample = end;
                Some(Mark::Sample(Interval { end, span }))
            }
        }
    }

    fn next_sample(&self) -> Option<Duration> {
        let next = (self.last_sample + self.interval).min(self.duration);
        (self.last_sample < self.duration).then_some(next)
    }

    fn next_window(&self) -> Option<(Duration, Mark)> {
        self.window.iter().flatten().next().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_in_order_and_the_last_interval_may_be_short() {
        let s = |ms| Duration::from_millis(ms);
        let mut schedule = Schedule::new(s(2_500), s(1_000), &(s(500)..s(2_000)));
        assert_eq!(schedule.samples(), 3);
        let mut seen = Vec::new();
        while schedule.next() < Instant::MAX {
            let at = schedule.next();
            seen.push((
                at.as_nanos() / 1_000_000,
                match schedule.take().unwrap() {
                    Mark::Sample(i) => i.span.as_millis(),
                    Mark::WindowBegins => 1,
                    Mark::WindowEnds => 2,
                },
            ));
        }
        assert_eq!(seen, [(500, 1), (1_000, 1_000), (2_000, 2), (2_000, 1_000), (2_500, 500)]);
        assert!(schedule.take().is_none());
    }
}
