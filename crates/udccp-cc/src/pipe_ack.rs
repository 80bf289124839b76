//! pipeACK: how much of the path a sender has used (RFC 7661 sections 4.2 and 4.5.1).

use udccp_base::{Duration, Instant};

/// Measurement periods that a sampling period is divided into (RFC 7661 section 4.5.1).
const SLOTS: usize = 5;
/// Shortest sampling period (RFC 7661 section 4.2).
pub(crate) const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

/// The packets that an acknowledgement newly acknowledged, and the sender's state after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// Total packets sent so far.
    pub sent_total: u64,
    /// Packets in flight after the acknowledgement.
    pub in_flight: u32,
    /// Smoothed round-trip time.
    pub srtt: Duration,
}

/// The most packets acknowledged in one recent round-trip time.
///
/// A round trip is counted in packets: it ends when everything sent before it began is acknowledged
/// or lost.
#[derive(Clone, Debug, Default)]
pub struct PipeAck {
    open: Option<Sample>,
    /// The current sample is complete when this many packets have left the network.
    round_end: u64,
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
    /// Counts packets acknowledged. Must not be called during loss recovery.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Delivered) {
        let settled = ack.sent_total - u64::from(ack.in_flight);
        match &mut self.open {
            Some(sample) if settled <= self.round_end => sample.packets += ack.packets,
            open => {
                let done = open.replace(Sample { start: ack.now, packets: ack.packets });
                self.round_end = ack.sent_total;
                if let Some(done) = done {
                    self.keep(done, ack.srtt);
                }
            }
        }
    }

    /// The value at `now`; `None` while it is undefined: at the start and after a reset, until the
    /// first sample is complete.
    #[inline(never)]
    pub fn value(&self, now: Instant, srtt: Duration) -> Option<u32> {
        if !self.defined {
            return None;
        }
        let period = sampling_period(srtt);
        let recent = self.slots.iter().chain(&self.open).filter(|s| now - s.start <= period);
        Some(recent.map(|s| s.packets).max().unwrap_or(0))
    }

    /// Whether the value is at least this, or undefined. Mostly the last complete sample says so.
    #[inline(always)]
    pub fn reaches(&self, now: Instant, srtt: Duration, least: u32) -> bool {
        let last = self.slots[self.current];
        let is_recent = now - last.start <= SHORTEST_PERIOD;
        last.packets >= least && is_recent
            || self.value(now, srtt).is_none_or(|value| value >= least)
    }

    /// Makes the value undefined again, as after loss recovery.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    #[inline(never)]
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

    /// A sender that has sent `sent_total` packets, `in_flight` of which are in the network.
    fn ack(p: &mut PipeAck, ms: u64, packets: u32, sent_total: u64, in_flight: u32) {
        p.on_ack(&Delivered { now: at(ms), packets, sent_total, in_flight, srtt: RTT });
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn pipe_ack_is_undefined_until_a_round_trip_was_measured() {
        let mut p = PipeAck::default();
        // Ten in flight; the round ends with the first acknowledgement beyond packet 12.
        ack(&mut p, 1000, 2, 12, 10);
        for k in 1..=5 {
            ack(&mut p, 1000 + 20 * k, 2, 12 + 2 * k, 10);
        }
        assert_eq!(p.value(at(1100), RTT), None);
        ack(&mut p, 1120, 2, 24, 10);
        assert_eq!(p.value(at(1120), RTT), Some(12));
        p.reset();
        assert_eq!(p.value(at(1120), RTT), None);
    }

    #[test]
    fn pipe_ack_is_the_largest_sample_of_the_period() {
        let mut p = PipeAck::default();
        // One burst of 20 packets, then two packets every round-trip time.
        ack(&mut p, 0, 20, 20, 0);
        for k in 1..=8 {
            ack(&mut p, 100 * k, 2, 20 + 2 * k, 0);
        }
        assert_eq!(p.value(at(800), RTT), Some(20));
        for k in 9..=20 {
            ack(&mut p, 100 * k, 2, 20 + 2 * k, 0);
        }
        assert_eq!(p.value(at(2000), RTT), Some(2));
        // Silence counts as zero, not as undefined.
        assert_eq!(p.value(at(9000), RTT), Some(0));
    }
}
