//! Live video: frames of a regular pattern, or with the sizes in a trace.

use std::sync::Arc;

use udccp_base::{AppPort, DataRate, Duration, Instant, Payload};

use super::live::Outbox;
use super::{End, Outcome, Source, SourceStats};

/// A sequence of frame sizes, which repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames(Arc<[u32]>);

impl Frames {
    /// The sizes of a trace in bytes. If it is empty, nothing is sent.
    pub fn of(sizes: impl Into<Arc<[u32]>>) -> Self {
        Self(sizes.into())
    }

    /// Groups of `group` pictures with mean rate `rate`, one picture per `every`. The first of a
    /// group (I) is `ratio` times as long as each of the others (P).
    pub fn pattern(rate: DataRate, every: Duration, group: u32, ratio: f64) -> Self {
        let group = group.max(1);
        let all = rate.bits_per_sec() as f64 * every.as_secs_f64() / 8.0 * f64::from(group);
        let p = all / (ratio + f64::from(group - 1));
        let size = |bytes: f64| ((bytes + 0.5) as u32).max(1);
        let sizes = (0..group).map(|i| size(if i == 0 { ratio * p } else { p }));
        Self(sizes.collect())
    }

    /// The size of a frame, counted from 0, in bytes; 0 if there are no frames.
    pub fn size(&self, frame: u32) -> u32 {
        let at = frame as usize % self.0.len().max(1);
        self.0.get(at).copied().unwrap_or(0)
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.0.iter().map(|&bytes| f64::from(bytes)).sum::<f64>() / self.0.len().max(1) as f64
    }
}

/// A camera: frames at regular intervals, each in as many packets as it needs.
///
/// A frame that cannot leave in time is dropped, not queued (see [`Video::new`]). A frame that
/// loses a packet does not arrive.
#[derive(Clone, Debug)]
pub struct Video {
    frames: Frames,
    every: Duration,
    start: Option<Instant>,
    made: u64,
    outbox: Outbox,
}

impl Video {
    /// A frame per `every`. Parts of a frame that wait for longer than `patience` are dropped.
    pub fn new(frames: Frames, every: Duration, patience: Duration) -> Self {
        let every = every.max(Duration::from_micros(1));
        Self { frames, every, start: None, made: 0, outbox: Outbox::new(patience) }
    }
}

impl Source for Video {
    fn start(&mut self, now: Instant) {
        self.start = Some(now);
    }

    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        while let Some(due) = self.poll_timeout().filter(|due| *due <= now) {
            let sizes = &self.frames.0;
            self.outbox.push(due, sizes[(self.made % sizes.len() as u64) as usize]);
            self.made += 1;
        }
        self.outbox.offer(now, port)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let start = self.start.filter(|_| !self.frames.0.is_empty())?;
        Some(start + self.every * self.made)
    }

    fn stats(&self) -> SourceStats {
        self.outbox.stats()
    }

    fn tracks_delivery(&self) -> bool {
        true
    }

    fn delivered(&mut self, now: Instant, end: End, payload: &Payload) {
        if end == End::Receiver {
            self.outbox.delivered(now, payload);
        }
    }

    fn outcome(&self) -> Outcome {
        Outcome::Messages(self.outbox.times().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_the_rate_and_the_ratio_asked_for() {
        let rate = DataRate::from_mbps(2);
        let frames = Frames::pattern(rate, Duration::from_millis(40), 12, 5.0);
        // 10 kB a frame on average: 120 kB are 5 + 11 parts.
        assert_eq!(frames.0[..3], [37_500, 7_500, 7_500]);
        assert!((frames.mean() - 10_000.0).abs() < 1.0);
        let mut none = Video::new(Frames::of([]), Duration::from_millis(40), Duration::ZERO);
        none.start(Instant::ZERO);
        assert_eq!(none.poll_timeout(), None);
    }
}
