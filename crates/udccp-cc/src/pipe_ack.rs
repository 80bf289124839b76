//! pipeACK: how much of the path a sender has shown to use (RFC 7661 sections 4.2 and 4.5.1).

use udccp_base::{Duration, Instant};

/// Measurement periods that a sampling period is divided into (RFC 7661 section 4.5.1).
const SLOTS: usize = 5;
/// Shortest sampling period (RFC 7661 section 4.2).
pub(crate) const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

/// The most packets acknowledged in one round-trip time of the recent past.
#[derive(Clone, Debug, Default)]
pub struct PipeAck {
    open: Option<Sample>,
    slots: [Sample; SLOTS],
    current: usize,
    defined: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    start: Instant,
    packets: u32,
}

impl PipeAck {
    /// Counts packets acknowledged at `now`. Not to be called during loss recovery. Without a
    /// round-trip time there is nothing to measure.
    pub fn on_ack(&mut self, now: Instant, packets: u32, srtt: Duration) {
        if srtt.is_zero() {
            return;
        }
        match &mut self.open {
            Some(sample) if now - sample.start < srtt => sample.packets += packets,
            open => {
                let done = open.replace(Sample { start: now, packets });
                if let Some(done) = done {
                    self.keep(done, srtt);
                }
            }
        }
    }

    /// The value at `now`; `None` while it is undefined: at the start and after a reset, until
    /// a first sample is complete.
    pub fn value(&self, now: Instant, srtt: Duration) -> Option<u32> {
        if !self.defined {
            return None;
        }
        let period = sampling_period(srtt);
        let recent = self.slots.iter().chain(&self.open).filter(|s| now - s.start <= period);
        Some(recent.map(|s| s.packets).max().unwrap_or(0))
    }

    /// Back to undefined, as after loss recovery.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn keep(&mut self, done: Sample, srtt: Duration) {
        let slot = &mut self.slots[self.current];
        if self.defined && done.start - slot.start < sampling_period(srtt) / SLOTS as u64 {
            slot.packets = slot.packets.max(done.packets);
        } else {
            self.current = (self.current + 1) % SLOTS;
            self.slots[self.current] = done;
        }
        self.defined = true;
    }
}

/// The pipeACK Sampling Period: max(3 RTT, 1 s).
fn sampling_period(srtt: Duration) -> Duration {
    (srtt * 3).max(SHORTEST_PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn it_is_undefined_until_a_round_trip_was_measured() {
        let mut p = PipeAck::default();
        p.on_ack(at(1000), 2, RTT);
        p.on_ack(at(1050), 2, RTT);
        assert_eq!(p.value(at(1060), RTT), None);
        p.on_ack(at(1100), 1, RTT);
        assert_eq!(p.value(at(1100), RTT), Some(4));
        p.reset();
        assert_eq!(p.value(at(1100), RTT), None);
    }

    #[test]
    fn it_is_the_largest_sample_of_the_period_and_forgets_older_ones() {
        let mut p = PipeAck::default();
        // One burst of 20 packets, then two packets every round-trip time.
        p.on_ack(at(0), 20, RTT);
        for k in 1..=8 {
            p.on_ack(at(100 * k), 2, RTT);
        }
        assert_eq!(p.value(at(800), RTT), Some(20));
        for k in 9..=20 {
            p.on_ack(at(100 * k), 2, RTT);
        }
        assert_eq!(p.value(at(2000), RTT), Some(2));
        // Silence counts as zero, not as undefined.
        assert_eq!(p.value(at(9000), RTT), Some(0));
    }
}
