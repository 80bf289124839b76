//! Paces packets.

use udccp_base::{DataRate, Duration, Instant};

/// Below this rate, packets leave one at a time.
const TRAIN_RATE: DataRate = DataRate::from_bytes_per_sec(150_000);

/// How many packets of `packet_bytes` leave at once at a paced rate: as many as the rate allows in
/// a millisecond, at least two from 1.2 Mbit/s, and at most `max` (TSO autosizing of Linux since
/// 4.20 with BBR). One at a time if `max` is 1.
pub fn train_of(rate: DataRate, packet_bytes: u32, max: u32) -> u32 {
    let least = if rate < TRAIN_RATE { 1 } else { 2 };
    let in_a_millisecond = rate.bytes_per_sec() / 1024 / u64::from(packet_bytes.max(1));
    u32::try_from(in_a_millisecond).unwrap_or(u32::MAX).max(least).min(max.max(1))
}

/// Lets one packet pass per interval, after bursts of limited size.
#[derive(Clone, Debug)]
pub struct Pacer {
    burst: u32,
    /// When the next packet would leave if no burst were allowed.
    due: Instant,
}

impl Pacer {
    /// A pacer that lets `burst` packets (at least 1) pass at once after a pause.
    pub fn new(burst: u32) -> Self {
        Self { burst: burst.max(1), due: Instant::ZERO }
    }

    /// When the next packet may leave, at one packet per `interval`. If it may leave at once, this
    /// is now or in the past.
    pub fn next(&self, interval: Duration) -> Instant {
        self.due - interval * u64::from(self.burst - 1)
    }

    /// When the next packet is due. With bursts it may leave earlier.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, now: Instant, interval: Duration) {
        self.on_sent_late(now, interval, Duration::ZERO);
    }

    /// A packet was sent. If it was late, the following packets may catch up by at most `credit`.
    pub fn on_sent_late(&mut self, now: Instant, interval: Duration, credit: Duration) {
        self.due = self.due.max(now - credit) + interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_packet_per_interval() {
        let interval = Duration::from_millis(10);
        let mut pacer = Pacer::new(3);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let mut left = Vec::new();
        while left.len() < 6 {
            now = now.max(pacer.next(interval));
            pacer.on_sent(now, interval);
            left.push(now.as_nanos() / 1_000_000);
        }
        assert_eq!(left, [1000, 1000, 1000, 1010, 1020, 1030]);
    }
}
