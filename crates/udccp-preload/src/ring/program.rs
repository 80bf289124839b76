//! The program's side of a ring, used by `data` and `receive`, which have the descriptor.

use core::sync::atomic::{Ordering, fence};

use super::*;
use crate::abi::{EAGAIN, EFAULT, IoVec, length};
use crate::probe;

/// A message that was taken, or read and left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its length.
    pub len: usize,
    /// Whether the ring was empty afterwards.
    pub was_last: bool,
    /// Whether the broker waits for room.
    pub has_room: bool,
}

/// The destination of a message: pieces of the program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Into<'a> {
    /// The pieces.
    pub pieces: &'a [IoVec],
    /// The descriptor, used to check the memory with the kernel.
    pub fd: core::ffi::c_int,
}

impl Into<'_> {
    /// Copies as much of a message as fits. Returns the size of the destination.
    ///
    /// # Errors
    /// EFAULT if the program's memory is not writable.
    ///
    /// # Safety
    /// The pieces belong to the program.
    pub unsafe fn fill(&self, message: &[u8]) -> Result<usize, i32> {
        let mut rest = message;
        for piece in self.pieces {
            let (now, later) = rest.split_at(piece.len.min(rest.len()));
            let part = IoVec { base: piece.base, len: now.len() };
            if !probe::is_writable(&part, self.fd) {
                return Err(EFAULT);
            }
            // SAFETY: the program's memory, which the kernel has just found writable.
            unsafe { fast_copy(now.as_ptr(), part.base.cast(), now.len()) };
            rest = later;
        }
        Ok(length(self.pieces))
    }
}

impl Ring {
    /// Sends one message. Returns whether the ring is full now.
    ///
    /// # Errors
    /// EAGAIN if `queue` messages wait; EFAULT if the program's memory is not readable.
    ///
    /// # Safety
    /// The pieces belong to the program; together they are at most [`MAX_MESSAGE`] long.
    pub unsafe fn send(
        self,
        pieces: &[IoVec],
        len: usize,
        priority: u32,
        queue: u64,
    ) -> Result<bool, i32> {
        if self.is_full(queue) {
            return Err(EAGAIN);
        }
        if !pieces.iter().all(probe::is_readable) {
            return Err(EFAULT);
        }
        let mut places = self.reserve(1);
        let place = places.next().ok_or(EAGAIN)?;
        // SAFETY: the caller's promise; only this call has the place until it is published.
        unsafe { self.fill(place, pieces, len, priority) };
        let mut position = self.long(TX_TAIL_AT).load(Ordering::SeqCst);
        let published = self.publish(&mut position, place, queue);
        self.count_published(position);
        if published.is_err() {
            self.set_free(place / 64 * 64, 1 << (place % 64));
        }
        published.map(|()| position >= self.limit(queue))
    }

    /// Writes a message into a place.
    ///
    /// # Safety
    /// As [`Self::send`]; the caller has reserved the place.
    pub(super) unsafe fn fill(self, place: usize, pieces: &[IoVec], len: usize, priority: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let at = self.place(place);
            at.cast::<u32>().write(len as u32);
            at.cast::<u32>().add(1).write(priority);
            let mut to = at.add(PLACE_HEADER);
            for piece in pieces {
                fast_copy(piece.base.cast(), to, piece.len);
                to = to.add(piece.len);
            }
        }
    }

    /// Publishes a place at `position` or the next free one, and sets `position` to the one after
    /// it.
    pub(super) fn publish(self, position: &mut u64, place: usize, queue: u64) -> Result<(), i32> {
        loop {
            let order = self.order(*position);
            let found = order.load(Ordering::SeqCst);
            if found >> PLACE_BITS == *position + 1 {
                // Another sender has published this position and not counted it yet.
                *position += 1;
                continue;
            }
            if *position >= self.limit(queue) {
                return Err(EAGAIN);
            }
            if found >> PLACE_BITS != (*position + 1).saturating_sub(TX_PLACES) {
                // The position was taken long ago.
                let tail = self.long(TX_TAIL_AT).load(Ordering::SeqCst);
                *position = tail.max(self.long(TX_HEAD_AT).load(Ordering::SeqCst));
                continue;
            }
            let entry = (*position + 1) << PLACE_BITS | place as u64;
            if order.compare_exchange(found, entry, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                *position += 1;
                return Ok(());
            }
        }
    }

    /// Counts all messages published before a position.
    pub(super) fn count_published(self, position: u64) {
        self.long(TX_TAIL_AT).fetch_max(position, Ordering::SeqCst);
    }

    /// The broker's current sleep, if it must be woken with a bell.
    pub fn sleep(self) -> Option<u32> {
        fence(Ordering::SeqCst);
        match self.int(TX_SLEEPS_AT).load(Ordering::SeqCst) {
            0 => None,
            sleep => Some(sleep),
        }
    }

    /// Records that a bell or a plug was sent, which ends a sleep of the broker.
    pub fn end_sleep(self, sleep: u32) {
        let order = Ordering::SeqCst;
        let _ = self.int(TX_SLEEPS_AT).compare_exchange(sleep, 0, order, order);
    }

    /// Whether a plug is in the socket pair or about to be.
    pub fn is_plugged(self) -> bool {
        self.int(TX_PLUGGED_AT).load(Ordering::SeqCst) != 0
    }

    /// Records that a plug is about to be sent.
    pub fn plug(self) {
        self.int(TX_PLUGGED_AT).store(1, Ordering::SeqCst);
    }

    /// Shuts down sending.
    pub fn shutdown_sending(self) {
        self.int(TX_SHUT_AT).store(1, Ordering::SeqCst);
    }

    /// Whether sending was shut down.
    pub fn is_shut(self) -> bool {
        self.int(TX_SHUT_AT).load(Ordering::SeqCst) != 0
    }

    /// Whether messages arrive through the ring.
    pub fn is_on(self) -> bool {
        self.int(RX_IS_ON_AT).load(Ordering::SeqCst) != 0
    }

    /// Asks the broker to send messages through the ring.
    pub fn want(self) {
        let wanted = self.int(RX_IS_WANTED_AT);
        if wanted.load(Ordering::Relaxed) == 0 {
            wanted.store(1, Ordering::SeqCst);
        }
    }

    /// The length of the next message, if there is one.
    pub fn next_len(self) -> Option<usize> {
        let head = self.long(RX_HEAD_AT).load(Ordering::SeqCst);
        let is_there = self.long(RX_TAIL_AT).load(Ordering::SeqCst) != head;
        is_there.then(|| self.len_at(self.rx_place(head)))
    }

    pub(super) fn len_at(self, place: u64) -> usize {
        let (header, _) = self.rx(place);
        // SAFETY: places of records are multiples of eight. If another reader took this one
        // meanwhile, the number is arbitrary; it is bounded here and not used then.
        let len = unsafe { &*header.cast::<AtomicU64>() }.load(Ordering::Relaxed);
        (len as usize).min(RX_BYTES - RECORD_HEADER)
    }

    /// Takes the next message, or copies it if `is_peek`. `None` if there is none.
    ///
    /// # Errors
    /// EFAULT if the program's memory is not writable.
    ///
    /// # Safety
    /// The pieces belong to the program.
    pub unsafe fn receive(self, into: &Into<'_>, is_peek: bool) -> Result<Option<Taken>, i32> {
        let head = self.long(RX_HEAD_AT);
        loop {
            let begin = head.load(Ordering::SeqCst);
            let tail = self.long(RX_TAIL_AT).load(Ordering::SeqCst);
            if begin == tail {
                return Ok(None);
            }
            let place = self.rx_place(begin);
            let len = self.len_at(place);
            // SAFETY: the caller's promise.
            unsafe { self.copy(place + RECORD_HEADER as u64, len, into) }?;
            let end = begin + record(len) as u64;
            let is_mine = if is_peek {
                fence(Ordering::SeqCst);
                head.load(Ordering::SeqCst) == begin
            } else {
                head.compare_exchange(begin, end, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            };
            if is_mine {
                let has_room = !is_peek && self.gives_room(end);
                return Ok(Some(Taken { len, was_last: end == tail, has_room }));
            }
        }
    }

    /// Copies as much of a message to the program's memory as fits.
    ///
    /// # Safety
    /// The pieces belong to the program.
    pub(super) unsafe fn copy(self, mut from: u64, len: usize, into: &Into<'_>) -> Result<(), i32> {
        let mut left = len;
        for piece in into.pieces {
            let part = IoVec { base: piece.base, len: piece.len.min(left) };
            if !probe::is_writable(&part, into.fd) {
                return Err(EFAULT);
            }
            let mut done = 0;
            while done < part.len {
                let (at, room) = self.rx(from);
                let some = room.min(part.len - done);
                // SAFETY: the program's memory, which the kernel has just found writable.
                unsafe {
                    fast_copy(at, part.base.cast::<u8>().add(done), some);
                }
                done += some;
                from += some as u64;
            }
            left -= part.len;
        }
        Ok(())
    }

    /// Whether the broker waits for the ring to be read up to here. Returns true to one caller
    /// only.
    pub(super) fn gives_room(self, position: u64) -> bool {
        let wanted = self.long(RX_ROOM_AT);
        let at = wanted.load(Ordering::SeqCst);
        position >= at
            && wanted.compare_exchange(at, NEVER, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Whether the ring to the program is empty.
    pub fn is_empty(self) -> bool {
        let head = self.long(RX_HEAD_AT).load(Ordering::SeqCst);
        self.long(RX_TAIL_AT).load(Ordering::SeqCst) == head
    }

    /// Counts threads that wait for a message.
    pub fn count_waiter(self, begins: bool) {
        let waiters = self.int(RX_WAITERS_AT);
        if begins {
            waiters.fetch_add(1, Ordering::SeqCst);
        } else {
            waiters.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The bell that the caller must take out of the socket pair, with all before it, because the
    /// ring is empty.
    pub fn release(self) -> Option<u32> {
        let released = self.int(RX_RELEASED_AT);
        let rung = self.int(RX_RUNG_AT).load(Ordering::SeqCst);
        let before = released.load(Ordering::SeqCst);
        if !is_after(rung, before) || !self.is_empty() {
            return None;
        }
        let order = Ordering::SeqCst;
        if released.compare_exchange(before, rung, order, order).is_err() {
            return None;
        }
        fence(order);
        if self.is_empty() {
            return Some(rung);
        }
        // A message came before the broker saw the release, so the existing bell is the one for it.
        let _ = released.compare_exchange(rung, before, order, order);
        None
    }

    /// Whether a bell must stay in the socket pair.
    pub fn is_rung(self, bell: u32) -> bool {
        is_after(bell, self.int(RX_RELEASED_AT).load(Ordering::SeqCst))
    }

    /// Records that a bell was taken out of the socket pair. Returns whether the broker must send
    /// another, because that bell was still needed.
    pub fn mark_bell_taken(self, bell: u32) -> bool {
        advance(self.int(RX_GONE_AT), bell);
        advance(self.int(RX_RELEASED_AT), bell) && !self.is_empty()
    }

    /// Whether this bell or a later one was taken out of the socket pair.
    pub fn is_gone(self, bell: u32) -> bool {
        !is_after(bell, self.int(RX_GONE_AT).load(Ordering::SeqCst))
    }
}

/// Copies bytes with `memmove`. This library requests `memcpy` without a symbol version, and would
/// get the oldest glibc's version, which is written for the oldest processors.
///
/// # Safety
/// As [`core::ptr::copy`].
unsafe fn fast_copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy(from, to, len) }
}

/// Raises a number to that of a bell, unless it is later already. Returns whether it did.
fn advance(number: &AtomicU32, bell: u32) -> bool {
    let mut before = number.load(Ordering::SeqCst);
    while is_after(bell, before) {
        let order = Ordering::SeqCst;
        match number.compare_exchange(before, bell, order, order) {
            Ok(_) => return true,
            Err(now) => before = now,
        }
    }
    false
}

/// Whether a bell was rung after another.
const fn is_after(bell: u32, other: u32) -> bool {
    bell.wrapping_sub(other).cast_signed() > 0
}
