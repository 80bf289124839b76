//! A bounded queue of messages for the application. Its fill level controls the peer's rate.

use std::collections::VecDeque;

use udccp_base::Payload;

use super::messages::{Messages, Packets};

/// Fill levels of the queue, and the reaction to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// Below a quarter: no reaction.
    None,
    /// From a quarter: Slow Receiver asks the peer not to send faster (RFC 4340 section 11.6).
    Slow,
    /// From half: acknowledgements wait until the application has read, which keeps the peer's
    /// window closed. Packets in flight still have room.
    Hold,
    /// From three quarters: the peer's window is too large for that. Arriving packets count as
    /// congestion-marked, which shrinks it. As the last queue of the path, this one marks before it
    /// has to drop.
    Mark,
}

impl Pressure {
    /// The level of `n` out of `max`.
    pub(crate) const fn of(n: usize, max: usize) -> Self {
        // Compared in quarters, without a division.
        match n.saturating_mul(4) {
            n if n >= 3 * max => Self::Mark,
            n if n >= 2 * max => Self::Hold,
            n if n >= max => Self::Slow,
            _ => Self::None,
        }
    }

    /// The largest fill out of `max` that is below [`Self::Mark`].
    const fn most_before_mark(max: usize) -> usize {
        (3 * max).saturating_sub(1) / 4
    }
}

/// The largest limit in messages.
const MOST_PACKETS: u32 = u32::MAX / 4;

/// A message as it is delivered to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The data.
    pub payload: Payload,
    /// Whether the Data Checksum shows that the data was damaged on the way. Only connections with
    /// `ConnectionConfig::deliver_corrupt` deliver such data (RFC 4340 section 9.3).
    pub is_corrupt: bool,
}

/// A bounded queue of payloads, without copies.
#[derive(Clone, Debug)]
pub(super) struct RecvQueue {
    waiting: Messages,
    max_packets: u32,
    max_bytes: usize,
    outside: Pressure,
    /// Allocated with the first message that is known to be corrupt.
    corrupt: Option<Box<Corrupt>>,
}

/// Which messages are known to be corrupt.
#[derive(Clone, Debug, Default)]
struct Corrupt {
    /// Messages removed since this was made.
    popped: u64,
    /// Numbers of corrupt messages, if the first of all had the number 0.
    numbers: VecDeque<u64>,
}

impl Corrupt {
    /// `count` messages were removed. Returns whether any of them is corrupt.
    fn on_popped(&mut self, count: u64) -> bool {
        self.popped += count;
        let before = self.numbers.len();
        while self.numbers.front().is_some_and(|number| *number < self.popped) {
            self.numbers.pop_front();
        }
        self.numbers.len() != before
    }
}

impl RecvQueue {
    /// An empty queue.
    pub(super) fn new(max_packets: usize, max_bytes: usize) -> Self {
        Self {
            waiting: Messages::default(),
            // "Unlimited" must leave room for `Pressure`, which computes with multiples of them.
            max_packets: u32::try_from(max_packets).map_or(MOST_PACKETS, |n| n.min(MOST_PACKETS)),
            max_bytes: max_bytes.min(usize::MAX / 4),
            outside: Pressure::None,
            corrupt: None,
        }
    }

    fn max_packets(&self) -> usize {
        self.max_packets as usize
    }

    /// Number of queued messages.
    pub(super) fn packets(&self) -> usize {
        self.waiting.len()
    }

    /// Queued payload bytes.
    pub(super) fn bytes(&self) -> usize {
        self.waiting.bytes()
    }

    /// Whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether there is room for `size` bytes; an empty queue takes a message of any size.
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.waiting.is_empty()
            || (self.waiting.len() < self.max_packets() && self.bytes() + size <= self.max_bytes)
    }

    /// Queues a message for which there is room.
    #[inline(always)]
    pub(super) fn push(&mut self, payload: Payload) {
        self.waiting.push(payload);
    }

    /// Queues the messages of a buffer, with `size` bytes of data in total, for which there is
    /// room.
    pub(super) fn push_packets(&mut self, packets: Packets, size: usize) {
        self.waiting.push_packets(packets, size);
    }

    /// How many messages of `size` bytes can be queued before arriving packets count as marked.
    pub(super) fn room_before_mark(&self, size: usize) -> usize {
        if self.is_marking() {
            return 0;
        }
        let left = |n: usize, max: usize| Pressure::most_before_mark(max).saturating_sub(n);
        let bytes = left(self.bytes(), self.max_bytes) / size.max(1);
        bytes.min(left(self.waiting.len(), self.max_packets()))
    }

    /// Records that the next message to be queued is corrupt, to report that to its reader.
    pub(super) fn mark_next_corrupt(&mut self) {
        let corrupt = self.corrupt.get_or_insert_default();
        corrupt.numbers.push_back(corrupt.popped + self.waiting.len() as u64);
    }

    /// Returns the oldest message without removing it.
    pub(super) fn front(&self) -> Option<Payload> {
        self.waiting.front()
    }

    /// Removes the oldest message.
    pub(super) fn pop(&mut self) -> Option<Delivery> {
        let payload = self.waiting.pop()?;
        let is_corrupt = self.corrupt.as_mut().is_some_and(|corrupt| corrupt.on_popped(1));
        Some(Delivery { payload, is_corrupt })
    }

    /// Passes the oldest messages to `take`, at most `max`. Returns how many.
    #[inline]
    pub(super) fn take_many(&mut self, max: usize, take: &mut impl FnMut(Payload)) -> usize {
        let count = self.waiting.take_many(max, take);
        if let Some(corrupt) = &mut self.corrupt {
            corrupt.on_popped(count as u64);
        }
        count
    }

    /// Removes all messages, if they are zeros and none is corrupt. Returns their bytes.
    #[inline]
    pub(super) fn take_zeros(&mut self) -> Option<usize> {
        if self.corrupt.is_some() { None } else { self.waiting.take_zeros() }
    }

    /// Removes all messages.
    pub(super) fn take_all(&mut self) {
        self.waiting.clear();
        if self.corrupt.is_some() {
            self.forget_corrupt();
        }
    }

    #[cold]
    fn forget_corrupt(&mut self) {
        self.corrupt = None;
    }

    /// Drops all messages and frees the memory.
    pub(super) fn clear(&mut self) {
        self.waiting = Messages::default();
        self.corrupt = None;
    }

    /// Sets how full the buffers before this queue are.
    pub(super) fn set_outside(&mut self, pressure: Pressure) {
        self.outside = pressure;
    }

    /// The higher level of this queue and of the buffers before it.
    pub(super) fn pressure(&self) -> Pressure {
        self.own_pressure().max(self.outside)
    }

    /// How full this queue itself is. From [`Pressure::Hold`] it holds acknowledgements back. The
    /// buffers before it only mark, since reading here does not empty them.
    pub(super) fn own_pressure(&self) -> Pressure {
        if self.waiting.is_empty() {
            return Pressure::None;
        }
        let bytes = Pressure::of(self.bytes(), self.max_bytes);
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
    fn zeros_are_taken_at_once_and_nothing_else_is() {
        let (mut one, mut other) = (RecvQueue::new(100, 1000), RecvQueue::new(100, 1000));
        for count in 0..4 {
            for q in [&mut one, &mut other] {
                (0..count).for_each(|_| q.push(Payload::Zeros(7)));
            }
            assert_eq!(one.take_zeros(), Some(other.bytes()));
            other.take_all();
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
        }
        one.push(Payload::Zeros(7));
        one.push(Payload::Zeros(8));
        other.mark_next_corrupt();
        other.push(Payload::Zeros(7));
        for mut q in [one, other] {
            let before = format!("{q:?}");
            assert_eq!(q.take_zeros(), None);
            assert_eq!(format!("{q:?}"), before);
        }
    }

    #[test]
    fn taking_many_keeps_the_marks_of_the_others() {
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
