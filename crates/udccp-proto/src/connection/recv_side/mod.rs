//! Holds messages for the application, and whether it reads (RFC 4340 sections 11.6 and 11.7).

mod messages;
mod queue;

use udccp_base::Payload;

use crate::config::ConnectionConfig;
pub(super) use messages::Packets;
pub use queue::Delivery;
pub(crate) use queue::Pressure;
use queue::RecvQueue;

/// The receiving side of one connection.
#[derive(Clone, Debug)]
pub(super) struct RecvSide {
    queue: RecvQueue,
    /// The application has stopped reading.
    is_shut: bool,
    /// The application can hardly keep up.
    is_slow: bool,
}

impl RecvSide {
    /// A receiving side with these settings, without messages.
    pub(super) fn new(c: &ConnectionConfig) -> Self {
        let queue = RecvQueue::new(c.recv_queue_packets, c.recv_queue_bytes);
        Self { queue, is_shut: false, is_slow: false }
    }

    /// Number of queued messages, and their bytes.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.queue.packets(), self.queue.bytes())
    }

    /// Sets how full the buffers before this queue are.
    #[inline]
    pub(super) fn set_outside(&mut self, pressure: Pressure) {
        self.queue.set_outside(pressure);
    }

    /// The application stops reading. Queued messages are dropped.
    pub(super) fn shut(&mut self) {
        self.is_shut = true;
        self.queue.clear();
    }

    /// Whether the application has stopped reading.
    #[inline]
    pub(super) fn is_shut(&self) -> bool {
        self.is_shut
    }

    /// Sets whether the application reports that it can hardly keep up.
    pub(super) fn set_slow_receiver(&mut self, is_slow: bool) {
        self.is_slow = is_slow;
    }

    //= 4340-11.6-2
    /// Whether acknowledgements should ask the peer not to send faster.
    #[inline]
    pub(super) fn is_slow(&self) -> bool {
        self.is_slow || self.queue.pressure() >= Pressure::Slow
    }

    /// How full the queue itself is.
    #[inline]
    pub(super) fn pressure(&self) -> Pressure {
        self.queue.own_pressure()
    }

    /// Whether arriving packets count as congestion-marked.
    #[inline(always)]
    pub(super) fn is_marking(&self) -> bool {
        self.queue.is_marking()
    }

    /// Whether there is room for a message of `size` bytes.
    #[inline]
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.queue.has_room(size)
    }

    /// Queues a message for which there is room. Returns whether it is the only one.
    #[inline(always)]
    pub(super) fn push(&mut self, payload: Payload, is_corrupt: bool) -> bool {
        let is_first = self.queue.is_empty();
        if is_corrupt {
            self.queue.mark_next_corrupt();
        }
        self.queue.push(payload);
        is_first
    }

    /// Queues the messages of a buffer, with `size` bytes of data in total, for which there is
    /// room. Returns whether they are the only ones.
    pub(super) fn push_packets(&mut self, packets: Packets, size: usize) -> bool {
        let is_first = self.queue.is_empty();
        self.queue.push_packets(packets, size);
        is_first
    }

    /// How many messages of `size` bytes can be queued before arriving packets count as
    /// congestion-marked.
    pub(super) fn room_before_mark(&self, size: usize) -> usize {
        if self.is_shut { 0 } else { self.queue.room_before_mark(size) }
    }

    /// The message that `pop` would return.
    pub(super) fn front(&self) -> Option<Payload> {
        self.queue.front()
    }

    /// Removes the oldest message.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Delivery> {
        self.queue.pop()
    }

    /// Passes the oldest messages to `take`, at most `max`. Returns how many.
    #[inline]
    pub(super) fn take_many(&mut self, max: usize, take: &mut impl FnMut(Payload)) -> usize {
        self.queue.take_many(max, take)
    }

    /// Removes all messages, if they are zeros and none is corrupt. Returns their bytes.
    #[inline]
    pub(super) fn take_zeros(&mut self) -> Option<usize> {
        self.queue.take_zeros()
    }

    /// Removes all messages. Returns how many there were, and their bytes.
    #[inline]
    pub(super) fn take_all(&mut self) -> (usize, usize) {
        let waiting = self.waiting();
        if waiting.0 > 0 {
            self.queue.take_all();
        }
        waiting
    }

    /// Whether there is a message, or no message will ever come.
    #[inline]
    pub(super) fn is_readable(&self) -> bool {
        !self.queue.is_empty() || self.is_shut
    }
}
