//! Handles many messages with few atomic exchanges, for `sendmmsg` and `recvmmsg`.

use core::sync::atomic::Ordering;

use super::*;
use crate::abi::{IoVec, MMsgHdr, MsgHdr, length};
use crate::probe;

/// Most places that a sender holds at once, and that are lost if it is killed.
pub(super) const AT_ONCE: usize = 4;

/// Reserved places with consecutive numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    first: usize,
    bits: u64,
}

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let place = (self.bits != 0).then(|| self.first + self.bits.trailing_zeros() as usize);
        self.bits &= self.bits.wrapping_sub(1);
        place
    }
}

/// The combined result of several calls of [`Ring::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenMany {
    /// Messages.
    pub count: usize,
    /// Whether the ring was empty afterwards.
    pub was_last: bool,
    /// Whether the broker waits for room.
    pub has_room: bool,
}

impl Ring {
    /// Reserves at most `count` places; none only if all are in use.
    pub(super) fn reserve(self, count: usize) -> Places {
        for (free, first) in self.free() {
            let mut bits = free.load(Ordering::Relaxed);
            while bits != 0 {
                let rest = (0..count).fold(bits, |rest, _| rest & rest.wrapping_sub(1));
                match free.compare_exchange_weak(bits, rest, Ordering::AcqRel, Ordering::Relaxed) {
                    Ok(_) => return Places { first, bits: bits & !rest },
                    Err(now) => bits = now,
                }
            }
        }
        Places { first: 0, bits: 0 }
    }

    /// Sends messages while there is room for a queue of `queue`, and writes their lengths. Returns
    /// how many were sent. `plain` returns the pieces and the priority of a message, or `None` if
    /// it needs special treatment.
    ///
    /// # Safety
    /// The pieces belong to the program; each message is at most [`MAX_MESSAGE`] long.
    pub unsafe fn send_many(
        self,
        queue: u64,
        all: &mut [MMsgHdr],
        plain: impl Fn(&MsgHdr) -> Option<(&[IoVec], u32)>,
    ) -> usize {
        let mut position = self.long(TX_TAIL_AT).load(Ordering::SeqCst);
        let mut sent = 0;
        'all: while sent < all.len() {
            let room = self.limit(queue).saturating_sub(position) as usize;
            let mut places = self.reserve(room.min(all.len() - sent).min(AT_ONCE));
            if places.bits == 0 {
                break;
            }
            while let Some(place) = places.next() {
                let one = &mut all[sent];
                let message = plain(&one.header).filter(|(p, _)| p.iter().all(probe::is_readable));
                let sent_len = message.map(|(pieces, priority)| {
                    let len = length(pieces);
                    // SAFETY: the caller's promise; the place is this call's alone.
                    unsafe { self.fill(place, pieces, len, priority) };
                    self.publish(&mut position, place, queue).map(|()| len)
                });
                let Some(Ok(len)) = sent_len else {
                    self.set_free(places.first, places.bits | 1 << (place % 64));
                    break 'all;
                };
                one.len = len as u32;
                sent += 1;
            }
        }
        self.count_published(position);
        sent
    }

    /// Takes as many messages as there are, each into one of `all`, and writes their lengths.
    /// `None` if there is no message or the first needs special treatment.
    ///
    /// # Safety
    /// The pieces belong to the program.
    pub unsafe fn receive_many<'a>(
        self,
        all: &mut [MMsgHdr],
        into: impl Fn(&MMsgHdr) -> Option<Into<'a>>,
    ) -> Option<TakenMany> {
        let head = self.long(RX_HEAD_AT);
        loop {
            let begin = head.load(Ordering::SeqCst);
            let tail = self.long(RX_TAIL_AT).load(Ordering::SeqCst);
            let (place, mut at, mut count) = (self.rx_place(begin), begin, 0);
            for one in &mut *all {
                if at == tail {
                    break;
                }
                // If another reader takes these messages meanwhile, the value is arbitrary.
                let place = place.wrapping_add(at - begin);
                let len = self.len_at(place);
                let Some(into) = into(one) else { break };
                // SAFETY: the caller's promise.
                if unsafe { self.copy(place + RECORD_HEADER as u64, len, &into) }.is_err() {
                    break;
                }
                one.len = len as u32;
                at += record(len) as u64;
                count += 1;
            }
            if count == 0 {
                return None;
            }
            if head.compare_exchange(begin, at, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                let has_room = self.gives_room(at);
                return Some(TakenMany { count, was_last: at == tail, has_room });
            }
        }
    }
}
