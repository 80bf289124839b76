//! Queues messages for the application: bounded, with levels that steer the peer.

use std::collections::VecDeque;

use udccp_base::Payload;

use super::messages::{Messages, Packets};

/// How full the queue is, as far as the peer is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// Below a quarter: no reaction.
    None,
    /// From a quarter: Slow Receiver asks the peer not to go faster (RFC 4340 section 11.6).
    Slow,
    /// From half: acknowledgements wait until the application has read, so that the peer's window
    /// stays shut; what is in flight still finds room.
    Hold,
    /// From three quarters: the peer's window is too large for that, and arriving packets count as
    /// congestion-marked, which makes it smaller. The queue is the last one on the path and marks
    /// before it has to drop.
    Mark,
}

impl Pressure {
    /// The pressure of `n` in a place for `max`.
    pub(crate) const fn of(n: usize, max: usize) -> Self {
        // Compared in quarters, without a division.
        match n.saturating_mul(4) {
            n if n >= 3 * max => Self::Mark,
            n if n >= 2 * max => Self::Hold,
            n if n >= max => Self::Slow,
            _ => Self::None,
        }
    }

    /// The most in a place for `max` that is below [`Self::Mark`].
    const fn most_before_mark(max: usize) -> usize {
        (3 * max).saturating_sub(1) / 4
    }
}

/// A message as it is delivered to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The data.
    pub payload: Payload,
    /// Whether the Data Checksum shows that the data was damaged on the way. Only connections with
    /// `ConnectionConfig::deliver_corrupt` deliver such data (RFC 4340 section 9.3).
    pub is_corrupt: bool,
}

/// A bounded queue of payloads, none of them copied.
#[derive(Clone, Debug)]
pub(super) struct RecvQueue {
    waiting: Messages,
    bytes: usize,
    max_packets: u32,
    max_bytes: usize,
    outside: Pressure,
    /// Messages ever taken out.
    popped: u64,
    /// Messages known to be corrupt, by their number among all messages ever.
    #[expect(clippy::box_collection, reason = "few connections take such, and there are many")]
    corrupt: Option<Box<VecDeque<u64>>>,
}

impl RecvQueue {
    /// An empty queue.
    pub(super) fn new(max_packets: usize, max_bytes: usize) -> Self {
        Self {
            waiting: Messages::default(),
            bytes: 0,
            max_packets: u32::try_from(max_packets).unwrap_or(u32::MAX),
            max_bytes,
            outside: Pressure::None,
            popped: 0,
            corrupt: None,
        }
    }

    fn max_packets(&self) -> usize {
        self.max_packets as usize
    }

    /// Messages that wait.
    pub(super) fn packets(&self) -> usize {
        self.waiting.len()
    }

    /// Payload bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether there is room for `size` bytes; an empty queue has room for every message.
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.waiting.is_empty()
            || (self.waiting.len() < self.max_packets() && self.bytes + size <= self.max_bytes)
    }

    /// Queues a message for which there is room.
    #[inline(always)]
    pub(super) fn push(&mut self, payload: Payload) {
        self.bytes += payload.len();
        self.waiting.push(payload);
    }

    /// Queues the messages of a buffer, `size` bytes of data together, for which there is room.
    pub(super) fn push_packets(&mut self, packets: Packets, size: usize) {
        self.bytes += size;
        self.waiting.push_packets(packets);
    }

    /// Messages of `size` bytes that can be queued before arriving packets count as marked.
    pub(super) fn room_before_mark(&self, size: usize) -> usize {
        if self.is_marking() {
            return 0;
        }
        let left = |n: usize, max: usize| Pressure::most_before_mark(max).saturating_sub(n);
        let bytes = left(self.bytes, self.max_bytes) / size.max(1);
        bytes.min(left(self.waiting.len(), self.max_packets()))
    }

    /// The next message to be queued is corrupt, and its reader will be notified.
    pub(super) fn mark_next_corrupt(&mut self) {
        let number = self.popped + self.waiting.len() as u64;
        self.corrupt.get_or_insert_default().push_back(number);
    }

    /// The oldest message, which stays.
    pub(super) fn front(&self) -> Option<Payload> {
        self.waiting.front()
    }

    /// The oldest message.
    pub(super) fn pop(&mut self) -> Option<Delivery> {
        let payload = self.waiting.pop()?;
        self.bytes -= payload.len();
        let corrupt = self.corrupt.as_mut().filter(|c| c.front() == Some(&self.popped));
        let is_corrupt = corrupt.and_then(|c| c.pop_front()).is_some();
        self.popped += 1;
        Some(Delivery { payload, is_corrupt })
    }

    /// Gives the oldest messages to `take`, at most `max`; how many.
    #[inline]
    pub(super) fn take_many(&mut self, max: usize, take: &mut impl FnMut(Payload)) -> usize {
        let (count, bytes) = self.waiting.take_many(max, take);
        self.bytes -= bytes;
        self.popped += count as u64;
        if let Some(corrupt) = &mut self.corrupt {
            while corrupt.front().is_some_and(|number| *number < self.popped) {
                corrupt.pop_front();
            }
        }
        count
    }

    /// Takes everything out.
    pub(super) fn take_all(&mut self) {
        self.popped += self.waiting.len() as u64;
        self.waiting.clear();
        if self.corrupt.is_some() {
            self.forget_corrupt();
        }
        self.bytes = 0;
    }

    #[cold]
    fn forget_corrupt(&mut self) {
        self.corrupt = None;
    }

    /// Drops everything and gives the memory back.
    pub(super) fn clear(&mut self) {
        self.popped += self.waiting.len() as u64;
        self.waiting = Messages::default();
        self.corrupt = None;
        self.bytes = 0;
    }

    /// How full the buffers before this queue are.
    pub(super) fn set_outside(&mut self, pressure: Pressure) {
        self.outside = pressure;
    }

    /// How full the queue, or what lies before it, is.
    pub(super) fn pressure(&self) -> Pressure {
        self.own_pressure().max(self.outside)
    }

    /// How full the queue itself is, which holds acknowledgements back from [`Pressure::Hold`]. The
    /// buffers before it hold nothing back, since reading here does not empty them; they mark.
    pub(super) fn own_pressure(&self) -> Pressure {
        if self.waiting.is_empty() {
            return Pressure::None;
        }
        let bytes = Pressure::of(self.bytes, self.max_bytes);
        bytes.max(Pressure::of(self.waiting.len(), self.max_packets()))
    }

    /// Whether arriving packets count as congestion-marked.
    #[inline(always)]
    pub(super) fn is_marking(&self) -> bool {
        (!self.is_empty() && self.own_pressure() >= Pressure::Mark)
            || self.outside >= Pressure::Hold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_rises_with_bytes_or_packets() {
        let mut q = RecvQueue::new(100, 1000);
        let mut seen = Vec::new();
        while q.has_room(100) {
            seen.push(q.pressure());
            q.push(Payload::Zeros(100));
        }
        use Pressure::{Hold, Mark, None, Slow};
        assert_eq!(seen, [None, None, None, Slow, Slow, Hold, Hold, Hold, Mark, Mark]);
        assert_eq!(Pressure::of(usize::MAX, 1000), Mark);
        let mut q = RecvQueue::new(4, 1000);
        (0..3).for_each(|_| q.push(Payload::EMPTY));
        assert_eq!(q.pressure(), Mark);
        q.clear();
        assert_eq!((q.packets(), q.bytes(), q.pressure()), (0, 0, None));
    }

    #[test]
    fn many_taken_at_once_leave_the_marks_of_the_others() {
        for taken in 0..5 {
            let mut q = RecvQueue::new(100, 1000);
            for n in 0..5 {
                if n % 2 == 1 {
                    q.mark_next_corrupt();
                }
                q.push(Payload::Zeros(n));
            }
            assert_eq!(q.take_many(taken, &mut drop), taken);
            assert_eq!(q.bytes(), (taken..5).sum());
            let marks: Vec<_> = core::iter::from_fn(|| q.pop()).map(|d| d.is_corrupt).collect();
            assert_eq!(marks, [false, true, false, true, false][taken..]);
        }
    }

    #[test]
    fn buffers_before_the_queue_mark_but_never_hold() {
        let mut q = RecvQueue::new(8, 8000);
        q.set_outside(Pressure::of(500, 1000));
        assert!(
            q.is_marking()
                && q.own_pressure() < Pressure::Hold
                && q.own_pressure() < Pressure::Slow
        );
        q.set_outside(Pressure::None);
        (0..4).for_each(|_| q.push(Payload::EMPTY));
        assert!(
            q.own_pressure() == Pressure::Hold
                && !q.is_marking()
                && q.own_pressure() >= Pressure::Slow
        );
        (0..3).for_each(|_| drop(q.pop()));
        assert!(q.own_pressure() < Pressure::Hold && q.own_pressure() < Pressure::Slow);
    }
}
