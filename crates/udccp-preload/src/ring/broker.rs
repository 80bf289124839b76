//! The broker's side of a ring. It trusts nothing that a program wrote.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, fence};

use bytes::{BufMut, BytesMut};

use super::*;
use crate::sys;

/// A program wrote data that the library never writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptRing;

/// The broker's mapping, with its own copy of the state that programs could corrupt.
#[derive(Debug)]
pub struct BrokerRing {
    ring: Ring,
    tx_head: AtomicU64,
    /// Places of messages that were taken and not yet published as free.
    tx_freed: [AtomicU64; TX_PLACES as usize / 64],
    /// How many messages there were places for when they were last counted.
    tx_room: AtomicU64,
    sleep: AtomicU32,
    rx_tail: AtomicU64,
    rx_base: AtomicU64,
    rx_rung: AtomicU32,
    rx_is_on: AtomicBool,
}

// SAFETY: this value owns the mapping. The memory is shared with other processes anyway: all
// accesses are atomic or copies.
unsafe impl Send for BrokerRing {}
// SAFETY: as above.
unsafe impl Sync for BrokerRing {}

impl Drop for BrokerRing {
    fn drop(&mut self) {
        sys::unmap(self.ring.at, RING_BYTES);
    }
}

impl BrokerRing {
    /// Maps a file of [`RING_BYTES`] zeros that cannot be truncated.
    ///
    /// # Errors
    /// The system is out of memory.
    pub fn map(file: BorrowedFd<'_>, cookie: u64) -> io::Result<Self> {
        let at = sys::map_to_write(file.as_raw_fd(), core::ptr::null_mut(), RING_BYTES);
        if at.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // SAFETY: it was just mapped, and stays mapped until the value is dropped.
        let ring = unsafe { Ring::at(at) };
        ring.free().for_each(|(bits, _)| bits.store(u64::MAX, Ordering::Relaxed));
        ring.long(TX_ROOM_AT).store(TX_MOST as u64, Ordering::Relaxed);
        ring.long(RX_ROOM_AT).store(NEVER, Ordering::Relaxed);
        ring.int(TX_SLEEPS_AT).store(1, Ordering::Relaxed);
        ring.long(COOKIE_AT).store(cookie, Ordering::Release);
        Ok(Self {
            ring,
            tx_head: AtomicU64::new(0),
            tx_freed: Default::default(),
            tx_room: AtomicU64::new(TX_MOST as u64),
            sleep: AtomicU32::new(1),
            rx_tail: AtomicU64::new(0),
            rx_base: AtomicU64::new(0),
            rx_rung: AtomicU32::new(0),
            rx_is_on: AtomicBool::new(false),
        })
    }

    fn next(&self) -> Option<u64> {
        let head = self.tx_head.load(Ordering::Relaxed);
        let entry = self.ring.order(head).load(Ordering::SeqCst);
        let is_there = entry >> PLACE_BITS == (head + 1) & (u64::MAX >> PLACE_BITS);
        is_there.then_some(entry & ((1 << PLACE_BITS) - 1))
    }

    /// Whether a program has sent a message.
    pub fn has_messages(&self) -> bool {
        self.next().is_some()
    }

    /// Takes the next message of the program and appends its bytes to `room`. Returns its length
    /// and priority. Programs can reuse its place after the next [`Self::publish_taken`], which
    /// every method that grants room or waits calls.
    ///
    /// # Errors
    /// The entry is invalid.
    pub fn take(&self, room: &mut BytesMut) -> Result<Option<(usize, u32)>, CorruptRing> {
        let Some(index) = self.next() else { return Ok(None) };
        if index >= TX_PLACES {
            return Err(CorruptRing);
        }
        let place = self.ring.place(index as usize);
        // SAFETY: within the place, aligned.
        let (len, priority) = unsafe {
            let numbers = place.cast::<AtomicU32>();
            ((*numbers).load(Ordering::Relaxed), (*numbers.add(1)).load(Ordering::Relaxed))
        };
        let len = len as usize;
        if len > MAX_MESSAGE {
            return Err(CorruptRing);
        }
        room.reserve(len);
        // SAFETY: the place has `len` bytes, and `room` has reserved as many. If a program writes
        // them meanwhile, other bytes are sent.
        unsafe {
            let to = room.spare_capacity_mut().as_mut_ptr();
            core::ptr::copy_nonoverlapping(place.add(PLACE_HEADER), to.cast(), len);
            room.advance_mut(len);
        }
        let freed = &self.tx_freed[index as usize / 64];
        freed.store(freed.load(Ordering::Relaxed) | 1 << (index % 64), Ordering::Relaxed);
        self.tx_head.store(self.tx_head.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(Some((len, priority)))
    }

    /// Publishes the places and the number of messages taken so far, which gives programs room.
    pub fn publish_taken(&self) {
        for (n, freed) in self.tx_freed.iter().enumerate() {
            let bits = freed.load(Ordering::Relaxed);
            if bits != 0 {
                freed.store(0, Ordering::Relaxed);
                self.ring.set_free(n * 64, bits);
            }
        }
        let head = self.tx_head.load(Ordering::Relaxed);
        self.ring.long(TX_HEAD_AT).store(head, Ordering::Release);
    }

    /// Publishes how many messages there are places for: all places except those that a sender is
    /// filling, or held when it was killed.
    fn publish_places(&self) {
        let tail = self.ring.long(TX_TAIL_AT);
        let before = tail.load(Ordering::SeqCst);
        let free = self.ring.free_places() as u64;
        if tail.load(Ordering::SeqCst) != before {
            // Messages were sent during the count. Their places would be in neither number, so the
            // count is too low.
            return;
        }
        let waiting = before.saturating_sub(self.tx_head.load(Ordering::Relaxed)).min(TX_PLACES);
        let room = (free + waiting).min(TX_MOST as u64);
        self.ring.long(TX_ROOM_AT).store(room, Ordering::SeqCst);
        self.tx_room.store(room, Ordering::Relaxed);
    }

    /// Whether no program can send any more, except one that is filling a place right now.
    pub fn is_starved(&self) -> bool {
        self.publish_taken();
        self.publish_places();
        self.was_starved()
    }

    /// The same, as of the last count of places.
    pub fn was_starved(&self) -> bool {
        self.tx_room.load(Ordering::Relaxed) == 0
    }

    /// Lets programs send this many messages in addition to those taken so far and the queue.
    pub fn grant(&self, messages: usize) {
        self.publish_taken();
        self.publish_places();
        let grant = self.tx_head.load(Ordering::Relaxed) + messages.min(TX_MOST) as u64;
        self.ring.long(TX_GRANT_AT).store(grant, Ordering::SeqCst);
    }

    /// Whether the socket pair has a plug although programs can send, or sending is shut down: then
    /// those that wait for room must be woken.
    pub fn needs_unplug(&self, queue: usize) -> bool {
        self.publish_taken();
        fence(Ordering::SeqCst);
        if !self.ring.is_plugged() {
            return false;
        }
        if self.ring.is_shut() {
            return true;
        }
        self.publish_places();
        !self.ring.is_full(queue as u64)
    }

    /// Announces that the broker will wait for a bell. Returns whether it may: no message has come
    /// meanwhile.
    pub fn sleep(&self) -> bool {
        self.publish_taken();
        let sleep = self.sleep.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.sleep.store(sleep, Ordering::Relaxed);
        self.ring.int(TX_SLEEPS_AT).store(sleep, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.has_messages() {
            self.wake();
            return false;
        }
        true
    }

    /// Announces that the broker is awake and needs no bell.
    pub fn wake(&self) {
        self.ring.int(TX_SLEEPS_AT).store(0, Ordering::SeqCst);
    }

    /// Records that the plug was read.
    pub fn unplug(&self) {
        self.ring.int(TX_PLUGGED_AT).store(0, Ordering::SeqCst);
    }

    /// Whether messages to the program go through the ring.
    pub fn is_on(&self) -> bool {
        self.rx_is_on.load(Ordering::Relaxed)
    }

    /// Whether a program can receive through the ring.
    pub fn is_wanted(&self) -> bool {
        self.ring.int(RX_IS_WANTED_AT).load(Ordering::SeqCst) != 0
    }

    /// Switches messages to the program to the ring.
    pub fn turn_on(&self) {
        self.rx_is_on.store(true, Ordering::Relaxed);
        self.ring.int(RX_IS_ON_AT).store(1, Ordering::SeqCst);
    }

    /// Bytes that the program has not read yet.
    fn unread(&self) -> Result<usize, CorruptRing> {
        let tail = self.rx_tail.load(Ordering::Relaxed);
        let head = self.ring.long(RX_HEAD_AT).load(Ordering::SeqCst);
        match tail.checked_sub(head) {
            Some(bytes) if bytes <= RX_BYTES as u64 => Ok(bytes as usize),
            _ => Err(CorruptRing),
        }
    }

    /// Whether the ring has unread messages.
    pub fn has_unread(&self) -> bool {
        self.unread() != Ok(0)
    }

    /// Puts a message into the ring, unless more than `most` bytes would then be unread; the first
    /// message is accepted whatever its size. Returns whether there was room.
    ///
    /// # Errors
    /// The program has written an impossible read position.
    pub fn put(&self, message: &[u8], most: usize) -> Result<bool, CorruptRing> {
        let unread = self.unread()?;
        let need = record(message.len());
        if unread + need > most.min(RX_BYTES) && (unread > 0 || need > RX_BYTES) {
            return Ok(false);
        }
        let tail = self.rx_tail.load(Ordering::Relaxed);
        if unread == 0 {
            // A reader that is still copying an old message will find that it was taken.
            self.rx_base.store(tail, Ordering::Relaxed);
            self.ring.long(RX_BASE_AT).store(tail, Ordering::Release);
        }
        let place = tail - self.rx_base.load(Ordering::Relaxed);
        let (header, _) = self.ring.rx(place);
        // SAFETY: records are aligned to eight bytes and fit. The program does not read this part
        // yet; if it does, only it sees the changed bytes.
        unsafe {
            (*header.cast::<AtomicU64>()).store(message.len() as u64, Ordering::Relaxed);
            let (to, room) = self.ring.rx(place + RECORD_HEADER as u64);
            let first = room.min(message.len());
            core::ptr::copy_nonoverlapping(message.as_ptr(), to, first);
            if let Some(rest) = message.get(first..).filter(|rest| !rest.is_empty()) {
                let (to, _) = self.ring.rx(0);
                core::ptr::copy_nonoverlapping(rest.as_ptr(), to, rest.len());
            }
        }
        self.rx_tail.store(tail + need as u64, Ordering::Relaxed);
        // The fence for this store is in `bells` and `want_room`.
        self.ring.long(RX_TAIL_AT).store(tail + need as u64, Ordering::Release);
        Ok(true)
    }

    /// How many bells the program needs after this many messages were put in, and the first bell's
    /// number.
    pub fn bells(&self, put: usize) -> (u32, u32) {
        fence(Ordering::SeqCst);
        let rung = self.rx_rung.load(Ordering::Relaxed);
        let is_released = self.ring.int(RX_RELEASED_AT).load(Ordering::SeqCst) == rung;
        self.ring_bells(put, is_released)
    }

    /// The same if the socket pair is empty: the reader that took the last bell was killed before
    /// it could say so, or is about to say so.
    pub fn resend_bells(&self) -> (u32, u32) {
        fence(Ordering::SeqCst);
        self.ring_bells(0, true)
    }

    fn ring_bells(&self, put: usize, is_released: bool) -> (u32, u32) {
        let rung = self.rx_rung.load(Ordering::Relaxed);
        // A bell wakes one thread; if several wait, each gets its own.
        let waiters = self.ring.int(RX_WAITERS_AT).load(Ordering::SeqCst) as usize;
        let count = match (is_released, waiters) {
            _ if !self.has_unread() => 0,
            (_, 2..) => waiters.min(put).min(BELLS_AT_ONCE).max(is_released.into()),
            _ => is_released.into(),
        };
        let last = rung.wrapping_add(count as u32);
        self.rx_rung.store(last, Ordering::Relaxed);
        self.ring.int(RX_RUNG_AT).store(last, Ordering::SeqCst);
        (rung.wrapping_add(1), count as u32)
    }

    /// Requests a bell once the program has read half of the unread bytes. Returns false if it
    /// already has.
    ///
    /// # Errors
    /// The program has written an impossible read position.
    pub fn want_room(&self) -> Result<bool, CorruptRing> {
        let unread = self.unread()? as u64;
        let tail = self.rx_tail.load(Ordering::Relaxed);
        let at = tail - unread / 2;
        self.ring.long(RX_ROOM_AT).store(at, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_there = tail - self.unread()? as u64 >= at;
        if is_there {
            self.ring.long(RX_ROOM_AT).store(NEVER, Ordering::SeqCst);
        }
        Ok(!is_there)
    }
}

/// Most bells for one batch of messages.
const BELLS_AT_ONCE: usize = 16;
