//! Stores messages in order. Those that arrived in one buffer are stored together.

use core::fmt;
use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use udccp_base::Payload;

/// Messages, oldest first, without copies.
#[derive(Clone, Default)]
pub(super) struct Messages {
    /// Allocated with the first message that is not of zeros.
    #[expect(clippy::box_collection, reason = "simulated connections have none, and are many")]
    waiting: Option<Box<VecDeque<Waiting>>>,
    /// Newer than all of `waiting`.
    zeros: Zeros,
    count: usize,
}

/// Messages of zeros, all of one size, as sent by a source without data of its own.
#[derive(Clone, Copy, Default)]
struct Zeros {
    bytes: u32,
    count: u32,
}

#[derive(Clone)]
enum Waiting {
    One(Payload),
    Several(Packets),
}

/// Packets that are contiguous in a buffer; the data of each is a message.
#[derive(Clone, Debug)]
pub(in super::super) struct Packets {
    /// The bytes of all packets, and nothing else.
    pub(in super::super) bytes: Bytes,
    /// Length of each packet; the last may be shorter.
    pub(in super::super) stride: u16,
    /// Length of each packet's header.
    pub(in super::super) header_len: u16,
}

impl Packets {
    /// Whether there is more than one.
    #[inline]
    fn are_several(&self) -> bool {
        self.bytes.len() > usize::from(self.stride)
    }

    /// Removes the first packet, and returns its data.
    #[inline]
    fn take_first(&mut self) -> Payload {
        let stride = usize::from(self.stride);
        let mut packet = match self.are_several() {
            true => self.bytes.split_to(stride),
            // The last one frees our reference to the buffer.
            false => core::mem::take(&mut self.bytes),
        };
        packet.advance(usize::from(self.header_len));
        if packet.is_empty() { Payload::EMPTY } else { Payload::Bytes(packet) }
    }
}

impl Messages {
    /// Number of messages.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a message.
    #[inline(always)]
    pub(super) fn push(&mut self, payload: Payload) {
        self.count += 1;
        match payload {
            Payload::Zeros(bytes) if self.zeros.count == 0 || self.zeros.bytes == bytes => {
                self.zeros = Zeros { bytes, count: self.zeros.count + 1 };
            }
            other => self.push_other(Waiting::One(other)),
        }
    }

    #[inline(never)]
    fn push_other(&mut self, other: Waiting) {
        let Zeros { bytes, count } = core::mem::take(&mut self.zeros);
        let waiting = self.waiting.get_or_insert_default();
        waiting.extend((0..count).map(|_| Waiting::One(Payload::Zeros(bytes))));
        waiting.push_back(other);
    }

    /// Adds the messages of a buffer, which has at least one.
    pub(super) fn push_packets(&mut self, packets: Packets) {
        self.count += packets.bytes.len().div_ceil(usize::from(packets.stride));
        self.push_other(Waiting::Several(packets));
    }

    /// Returns the oldest message without removing it.
    pub(super) fn front(&self) -> Option<Payload> {
        match self.waiting.as_ref().and_then(|waiting| waiting.front()) {
            Some(Waiting::One(payload)) => Some(payload.clone()),
            Some(Waiting::Several(packets)) => Some(packets.clone().take_first()),
            None => (self.count > 0).then_some(Payload::Zeros(self.zeros.bytes)),
        }
    }

    /// Removes the oldest message. Inlined, to create the value in its final place: a message that
    /// was just written field by field is slow to copy.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Payload> {
        let first = self.waiting.as_mut().and_then(|waiting| waiting.front_mut());
        if let Some(Waiting::Several(packets)) = first {
            if packets.are_several() {
                self.count -= 1;
                return Some(packets.take_first());
            }
        }
        if self.count == 0 {
            return None;
        }
        self.count -= 1;
        Some(match self.waiting.as_mut().and_then(|waiting| waiting.pop_front()) {
            Some(Waiting::One(payload)) => payload,
            Some(Waiting::Several(mut packets)) => packets.take_first(),
            None => {
                self.zeros.count -= 1;
                Payload::Zeros(self.zeros.bytes)
            }
        })
    }

    /// Passes the oldest messages to `take`, at most `max`. Returns how many, and their bytes.
    #[inline]
    pub(super) fn take_many(
        &mut self,
        max: usize,
        take: &mut impl FnMut(Payload),
    ) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        while count < max {
            let Some(payload) = self.pop() else { break };
            (count, bytes) = (count + 1, bytes + payload.len());
            take(payload);
        }
        (count, bytes)
    }

    /// Removes all messages.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.are_zeros() {
            self.clear_others();
        }
        self.clear_zeros();
    }

    /// Whether all messages are zeros of one size.
    #[inline]
    pub(super) fn are_zeros(&self) -> bool {
        self.waiting.as_ref().is_none_or(|waiting| waiting.is_empty())
    }

    /// Removes all messages, which are zeros.
    #[inline]
    pub(super) fn clear_zeros(&mut self) {
        (self.zeros.count, self.count) = (0, 0);
    }

    #[inline(never)]
    fn clear_others(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.clear();
        }
    }
}

impl fmt::Debug for Messages {
    /// Prints the messages only, not how they arrived.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.clone();
        f.debug_list().entries(core::iter::from_fn(|| rest.pop())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_buffer_come_out_one_by_one_and_in_order() {
        let buffer = Bytes::from_static(b"__one__two__3");
        let mut messages = Messages::default();
        messages.push(Payload::Zeros(5));
        messages.push_packets(Packets { bytes: buffer.clone(), stride: 5, header_len: 2 });
        messages.push(Payload::EMPTY);
        let mut expected = vec![
            Payload::EMPTY,
            Payload::Bytes(buffer.slice(12..)),
            Payload::Bytes(buffer.slice(7..10)),
            Payload::Bytes(buffer.slice(2..5)),
            Payload::Zeros(5),
        ];
        let text: Vec<_> = expected.iter().rev().collect();
        assert_eq!(format!("{messages:?}"), format!("{text:?}"));
        while let Some(next) = expected.pop() {
            assert_eq!(messages.len(), expected.len() + 1);
            assert_eq!(messages.front().as_ref(), Some(&next));
            assert_eq!(messages.pop(), Some(next));
        }
        assert!(messages.is_empty() && messages.pop().is_none() && messages.front().is_none());
    }

    #[test]
    fn taking_many_equals_taking_one_by_one() {
        let buffer = Bytes::from((0..25).collect::<Vec<u8>>());
        let mut one = Messages::default();
        for _ in 0..3 {
            one.push(Payload::Zeros(5));
            one.push_packets(Packets { bytes: buffer.clone(), stride: 10, header_len: 2 });
        }
        for max in 0..15 {
            let (mut one, mut many, mut taken) = (one.clone(), one.clone(), Vec::new());
            let (count, bytes) = many.take_many(max, &mut |payload| taken.push(payload));
            let expected: Vec<_> = core::iter::from_fn(|| one.pop()).take(max).collect();
            assert_eq!(taken, expected);
            assert_eq!((count, many.len()), (expected.len(), 12 - expected.len()));
            assert_eq!(bytes, expected.iter().map(Payload::len).sum::<usize>());
        }
    }

    #[test]
    fn the_last_message_of_a_buffer_lets_go_of_it() {
        let buffer = Bytes::from(vec![7; 30]);
        let mut messages = Messages::default();
        messages.push_packets(Packets { bytes: buffer.clone(), stride: 10, header_len: 4 });
        (0..3).for_each(|_| drop(messages.pop()));
        assert!(buffer.is_unique());
    }
}
