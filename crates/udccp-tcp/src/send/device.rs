//! Keeps the queue of the host's own device short (TCP Small Queues, `tcp_small_queue_check` of
//! Linux since 3.6). Packets there are not in the network yet, and delay later packets.

use udccp_base::{DataRate, Instant, Ring};
use udccp_cc::train_of;

/// Memory that a kernel accounts to a packet in addition to its data, in bytes: header room, and
/// the packet's descriptor (`SKB_TRUESIZE`).
const OVERHEAD_BYTES: u64 = 1_280;

/// The queue may hold the data of this time, a power of two: 1 s / 1024 (`sk_pacing_shift`).
const RATE_SHIFT: u32 = 10;

/// Segments of this sender that are in the device's queue.
#[derive(Debug)]
pub(super) struct DeviceQueue {
    /// Segments per packet of the host, which the device splits; 1 without offload.
    max_train: u32,
    /// When the newest leaves the device.
    last: Instant,
    /// When the segments before it leave.
    leaves: Ring<Instant>,
    /// Whether a segment waits until the first of them leaves.
    holds: bool,
}

impl DeviceQueue {
    /// Starts with an empty queue.
    pub(super) fn new(max_train: u32) -> Self {
        Self { max_train, last: Instant::ZERO, leaves: Ring::default(), holds: false }
    }

    /// The segment that was sent at `now` leaves the device at `leaves`.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, leaves: Instant) {
        if self.last > now {
            self.leaves.push(self.last);
        } else if !self.leaves.is_empty() {
            self.leaves.clear();
        }
        self.last = leaves;
    }

    /// Whether two or more are in the device at `now`; with fewer, no segment has to wait.
    #[inline]
    pub(super) fn has_several(&mut self, now: Instant) -> bool {
        !self.leaves.is_empty() && self.forget_left(now)
    }

    /// Removes segments that have left, except for the newest; returns whether any remain.
    #[inline(never)]
    fn forget_left(&mut self, now: Instant) -> bool {
        while self.leaves.front().is_some_and(|leaves| *leaves <= now) {
            self.leaves.pop();
        }
        self.holds = false;
        !self.leaves.is_empty()
    }

    /// Whether the next segment has to wait. Called if [`Self::has_several`]; segments have `mss`
    /// bytes, and the sending rate is `rate`. `factor` times as much may be queued as for new data.
    pub(super) fn holds(&mut self, mss: u32, factor: u64, rate: DataRate) -> bool {
        let train = train_of(rate, mss, self.max_train).max(1);
        let memory = |segments: u64| {
            segments * u64::from(mss) + segments.div_ceil(u64::from(train)) * OVERHEAD_BYTES
        };
        let limit = memory(2 * u64::from(train)).max(rate.bytes_per_sec() >> RATE_SHIFT);
        self.holds = memory(self.leaves.len() as u64 + 1) >= limit.saturating_mul(factor);
        self.holds
    }

    /// Ends the wait for the device; sending is decided again.
    pub(super) fn release(&mut self) {
        self.holds = false;
    }

    /// Whether a segment waits for the device.
    #[inline]
    pub(super) fn is_holding(&self) -> bool {
        self.holds
    }

    /// When to decide again; [`Instant::MAX`] if no segment waits for the device.
    #[inline]
    pub(super) fn until(&self) -> Instant {
        let first = if self.holds { self.leaves.front() } else { None };
        first.copied().unwrap_or(Instant::MAX)
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::Duration;
    use udccp_cc::Algorithm;

    use super::*;
    use crate::config::TcpConfig;
    use crate::send::SendSide;
    use crate::shared::SharedTcpConfig;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(1_000 * us)
    }

    /// A queue whose segments leave every 100 us, starting at 100 us.
    fn queue(segments: u64) -> DeviceQueue {
        let mut queue = DeviceQueue::new(1);
        (1..=segments).for_each(|n| queue.on_sent(at(0), at(100 * n)));
        queue
    }

    /// Whether a segment that is offered at this time in microseconds has to wait.
    fn waits(queue: &mut DeviceQueue, us: u64, mbps: u64, factor: u64) -> bool {
        queue.has_several(at(us)) && queue.holds(1448, factor, DataRate::from_mbps(mbps))
    }

    /// The number of segments that may be queued at this rate.
    fn most(mbps: u64, factor: u64) -> u64 {
        (0..100).take_while(|n| !waits(&mut queue(*n), 0, mbps, factor)).count() as u64
    }

    #[test]
    fn two_segments_may_wait_or_what_a_millisecond_carries() {
        assert_eq!((most(1, 1), most(40, 1)), (2, 2));
        // 14,648 bytes, in segments of 2,728 each.
        assert_eq!((most(120, 1), most(120, 2)), (6, 11));
        assert_eq!((most(1, 2), most(1000, 1)), (4, 45));
    }

    #[test]
    fn with_trains_two_of_them_may_wait() {
        let mut queue = DeviceQueue::new(44);
        let train = u64::from(train_of(DataRate::from_mbps(100), 1448, 44));
        let mut sent = 0;
        while !waits(&mut queue, 0, 100, 1) {
            sent += 1;
            queue.on_sent(at(0), at(100 * sent));
        }
        assert_eq!(sent, 2 * train);
    }

    #[test]
    fn what_waits_is_decided_anew_when_the_first_has_left() {
        let mut queue = queue(3);
        assert!(waits(&mut queue, 0, 1, 1) && queue.until() == at(100));
        assert!(waits(&mut queue, 99, 1, 1) && queue.until() == at(100));
        // The first has left, and two are still queued.
        assert!(waits(&mut queue, 100, 1, 1) && queue.until() == at(200));
        assert!(!waits(&mut queue, 200, 1, 1) && queue.until() == Instant::MAX);
        queue.on_sent(at(350), at(450));
        assert!(!waits(&mut queue, 350, 1, 1), "the device was empty");
        let mut queue = self::queue(3);
        assert!(!waits(&mut queue, 200, 1, 1));
        queue.on_sent(at(200), at(400));
        assert!(waits(&mut queue, 250, 1, 1));
        queue.release();
        assert_eq!(queue.until(), Instant::MAX);
    }

    #[test]
    fn a_sender_whose_segment_waits_wakes_when_the_first_leaves() {
        let config = TcpConfig { small_queues: true, ..TcpConfig::new(Algorithm::NEW_RENO) };
        let mut side = SendSide::new(&SharedTcpConfig::from(config).0);
        side.establish(at(0), 1448, 1 << 30, Some(Duration::from_millis(20)));
        side.write_several(1448, 10);
        let mut sent = 0;
        while side.next_segment(at(0)).is_some() {
            sent += 1;
            side.on_device(at(0), at(1_000 * sent));
        }
        assert!(sent < 10, "{sent} left");
        assert_eq!(side.deadline(), at(1_000));
    }
}
