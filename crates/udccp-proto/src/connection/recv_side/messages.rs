//! Stores messages in order. Those that arrived in one buffer are stored together.

use core::fmt;
use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use udccp_base::Payload;

/// Messages, oldest first, without copies.
#[derive(Clone, Default)]
pub(super) struct Messages {
    /// Allocated with the first message that is not of zeros: simulated connections have none.
    others: Option<Box<Others>>,
    /// Newer than all others.
    zeros: Zeros,
}

/// Messages of any kind.
#[derive(Clone, Default)]
struct Others {
    waiting: VecDeque<Waiting>,
    /// Number of messages, and their bytes.
    count: usize,
    bytes: usize,
}

/// Messages of zeros, all of one size, as sent by a source without data of its own.
#[derive(Clone, Copy, Default)]
struct Zeros {
    bytes: u32,
    count: u32,
}

impl Zeros {
    /// Bytes of all messages.
    #[inline]
    fn len(self) -> usize {
        self.bytes as usize * self.count as usize
    }
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
        self.zeros.count as usize + self.others.as_ref().map_or(0, |others| others.count)
    }

    /// Bytes of all messages.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.zeros.len() + self.others.as_ref().map_or(0, |others| others.bytes)
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.zeros.count == 0 && self.are_zeros()
    }

    /// Adds a message.
    #[inline(always)]
    pub(super) fn push(&mut self, payload: Payload) {
        match payload {
            Payload::Zeros(bytes) if self.zeros.count == 0 || self.zeros.bytes == bytes => {
                self.zeros = Zeros { bytes, count: self.zeros.count + 1 };
            }
            other => self.push_other(1, other.len(), Waiting::One(other)),
        }
    }

    #[inline(never)]
    fn push_other(&mut self, count: usize, bytes: usize, other: Waiting) {
        let zeros = core::mem::take(&mut self.zeros);
        let others = self.others.get_or_insert_default();
        let each = || Waiting::One(Payload::Zeros(zeros.bytes));
        others.waiting.extend((0..zeros.count).map(|_| each()));
        others.waiting.push_back(other);
        others.count += zeros.count as usize + count;
        others.bytes += zeros.len() + bytes;
    }

    /// Adds the messages of a buffer, which has at least one, with `size` bytes of data in total.
    pub(super) fn push_packets(&mut self, packets: Packets, size: usize) {
        let count = packets.bytes.len().div_ceil(usize::from(packets.stride));
        self.push_other(count, size, Waiting::Several(packets));
    }

    /// Returns the oldest message without removing it.
    pub(super) fn front(&self) -> Option<Payload> {
        match self.others.as_ref().and_then(|others| others.waiting.front()) {
            Some(Waiting::One(payload)) => Some(payload.clone()),
            Some(Waiting::Several(packets)) => Some(packets.clone().take_first()),
            None => (self.zeros.count > 0).then_some(Payload::Zeros(self.zeros.bytes)),
        }
    }

    /// Removes the oldest message. Inlined, to create the value in its final place: a message that
    /// was just written field by field is slow to copy.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Payload> {
        if let Some(payload) = self.others.as_mut().and_then(|others| others.pop()) {
            return Some(payload);
        }
        self.zeros.count = self.zeros.count.checked_sub(1)?;
        Some(Payload::Zeros(self.zeros.bytes))
    }

    /// Passes the oldest messages to `take`, at most `max`. Returns how many.
    #[inline]
    pub(super) fn take_many(&mut self, max: usize, take: &mut impl FnMut(Payload)) -> usize {
        let mut count = 0;
        while count < max {
            let Some(payload) = self.pop() else { break };
            count += 1;
            take(payload);
        }
        count
    }

    /// Removes all messages.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.are_zeros() {
            self.clear_others();
        }
        self.zeros.count = 0;
    }

    /// Whether all messages are zeros of one size.
    #[inline]
    fn are_zeros(&self) -> bool {
        self.others.as_ref().is_none_or(|others| others.waiting.is_empty())
    }

    /// Removes all messages, if they are zeros of one size. Returns their bytes.
    #[inline]
    pub(super) fn take_zeros(&mut self) -> Option<usize> {
        self.are_zeros().then(|| core::mem::take(&mut self.zeros).len())
    }

    #[inline(never)]
    fn clear_others(&mut self) {
        if let Some(others) = &mut self.others {
            others.waiting.clear();
            (others.count, others.bytes) = (0, 0);
        }
    }
}

impl Others {
    /// Removes the oldest message.
    #[inline(always)]
    fn pop(&mut self) -> Option<Payload> {
        let payload = match self.waiting.front_mut()? {
            Waiting::Several(packets) if packets.are_several() => packets.take_first(),
            _ => match self.waiting.pop_front()? {
                Waiting::One(payload) => payload,
                Waiting::Several(mut last) => last.take_first(),
            },
        };
        self.count -= 1;
        self.bytes -= payload.len();
        Some(payload)
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
        messages.push_packets(Packets { bytes: buffer.clone(), stride: 5, header_len: 2 }, 7);
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
        assert_eq!(messages.bytes(), 0);
    }

    #[test]
    fn taking_many_equals_taking_one_by_one() {
        let buffer = Bytes::from((0..25).collect::<Vec<u8>>());
        let mut one = Messages::default();
        for _ in 0..3 {
            one.push(Payload::Zeros(5));
            one.push_packets(Packets { bytes: buffer.clone(), stride: 10, header_len: 2 }, 19);
        }
        for max in 0..15 {
            let (mut one, mut many, mut taken) = (one.clone(), one.clone(), Vec::new());
            let (before, count) = (many.bytes(), many.take_many(max, &mut |p| taken.push(p)));
            let expected: Vec<_> = core::iter::from_fn(|| one.pop()).take(max).collect();
            assert_eq!(taken, expected);
            assert_eq!((count, many.len()), (expected.len(), 12 - expected.len()));
            assert_eq!(before - many.bytes(), expected.iter().map(Payload::len).sum::<usize>());
        }
    }

    #[test]
    fn the_last_message_of_a_buffer_lets_go_of_it() {
        let buffer = Bytes::from(vec![7; 30]);
        let mut messages = Messages::default();
        messages.push_packets(Packets { bytes: buffer.clone(), stride: 10, header_len: 4 }, 18);
        (0..3).for_each(|_| drop(messages.pop()));
        assert!(buffer.is_unique());
    }
}
