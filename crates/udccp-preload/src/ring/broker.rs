//! The broker's side of a ring: it believes nothing that a program wrote.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, fence};

use bytes::{BufMut, BytesMut};

use super::*;
use crate::sys;

/// A program wrote what the library does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense;

/// The broker's mapping, and what it does not trust a program to keep.
#[derive(Debug)]
pub struct BrokerRing {
    ring: Ring,
    tx_head: AtomicU64,
    /// Places of messages that were taken, which programs do not know yet.
    tx_freed: [AtomicU64; TX_PLACES as usize / 64],
    /// For how many messages there were places.
    tx_room: AtomicU64,
    sleep: AtomicU32,
    rx_tail: AtomicU64,
    rx_base: AtomicU64,
    rx_rung: AtomicU32,
    rx_is_on: AtomicBool,
}

// SAFETY: the mapping belongs to this value and is shared with other processes anyway: all that is
// in it is read and written as atomics, or copied.
unsafe impl Send for BrokerRing {}
// SAFETY: as above.
unsafe impl Sync for BrokerRing {}

impl Drop for BrokerRing {
    fn drop(&mut self) {
        sys::unmap(self.ring.at, RING_BYTES);
    }
}

impl BrokerRing {
    /// Maps a file of [`RING_BYTES`] zeros, which nobody can make shorter.
    ///
    /// # Errors
    /// The system has no memory.
    pub fn map(file: BorrowedFd<'_>, cookie: u64) -> io::Result<Self> {
        let at = sys::map_to_write(file.as_raw_fd(), core::ptr::null_mut(), RING_BYTES);
        if at.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // SAFETY: it was mapped just now, and is until the value is dropped.
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

    /// Whether a program has sent something.
    pub fn has_messages(&self) -> bool {
        self.next().is_some()
    }

    /// Takes the next message of the program, and adds its bytes to those of `room`; its length
    /// and its priority. Programs have its room with the next
    /// [`Self::tell_taken`], which all that grants room or waits does.
    ///
    /// # Errors
    /// It is none.
    pub fn take(&self, room: &mut BytesMut) -> Result<Option<(usize, u32)>, Nonsense> {
        let Some(index) = self.next() else { return Ok(None) };
        if index >= TX_PLACES {
            return Err(Nonsense);
        }
        let place = self.ring.place(index as usize);
        // SAFETY: within the place, aligned.
        let (len, priority) = unsafe {
            let numbers = place.cast::<AtomicU32>();
            ((*numbers).load(Ordering::Relaxed), (*numbers.add(1)).load(Ordering::Relaxed))
        };
        let len = len as usize;
        if len > MAX_MESSAGE {
            return Err(Nonsense);
        }
        room.reserve(len);
        // SAFETY: as many bytes are in the place, and now in the room. A program that writes them
        // meanwhile sends other bytes.
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

    /// Tells programs of what was taken: there is room for as many.
    pub fn tell_taken(&self) {
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

    /// Tells programs for how many messages there are places: all but those that somebody fills, or
    /// was killed with.
    fn tell_places(&self) {
        let tail = self.ring.long(TX_TAIL_AT);
        let before = tail.load(Ordering::SeqCst);
        let free = self.ring.free_places() as u64;
        if tail.load(Ordering::SeqCst) != before {
            // The places of what was sent meanwhile are in neither number: they would be missing.
            return;
        }
        let waiting = before.saturating_sub(self.tx_head.load(Ordering::Relaxed)).min(TX_PLACES);
        let room = (free + waiting).min(TX_MOST as u64);
        self.ring.long(TX_ROOM_AT).store(room, Ordering::SeqCst);
        self.tx_room.store(room, Ordering::Relaxed);
    }

    /// Whether nobody can send any more, unless somebody is still about to fill a place.
    pub fn is_starved(&self) -> bool {
        self.tell_taken();
        self.tell_places();
        self.was_starved()
    }

    /// The same, as of when places were last counted.
    pub fn was_starved(&self) -> bool {
        self.tx_room.load(Ordering::Relaxed) == 0
    }

    /// Lets programs send this many messages beyond those taken so far and the queue.
    pub fn grant(&self, messages: usize) {
        self.tell_taken();
        self.tell_places();
        let grant = self.tx_head.load(Ordering::Relaxed) + messages.min(TX_MOST) as u64;
        self.ring.long(TX_GRANT_AT).store(grant, Ordering::SeqCst);
    }

    /// Whether a plug is in the socket pair although programs can send, or none will any more: then
    /// who waits for room has to learn that.
    pub fn must_unplug(&self, queue: usize) -> bool {
        self.tell_taken();
        fence(Ordering::SeqCst);
        if !self.ring.is_plugged() {
            return false;
        }
        if self.ring.is_shut() {
            return true;
        }
        self.tell_places();
        !self.ring.is_full(queue as u64)
    }

    /// Says that the broker will wait for a bell; whether it may, because nothing came meanwhile.
    pub fn sleep(&self) -> bool {
        self.tell_taken();
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

    /// Says that the broker is awake: no bell is necessary.
    pub fn wake(&self) {
        self.ring.int(TX_SLEEPS_AT).store(0, Ordering::SeqCst);
    }

    /// Says that the plug was read.
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

    /// Has messages to the program go through the ring from now on.
    pub fn turn_on(&self) {
        self.rx_is_on.store(true, Ordering::Relaxed);
        self.ring.int(RX_IS_ON_AT).store(1, Ordering::SeqCst);
    }

    /// Bytes that the program has not read.
    fn unread(&self) -> Result<usize, Nonsense> {
        let tail = self.rx_tail.load(Ordering::Relaxed);
        let head = self.ring.long(RX_HEAD_AT).load(Ordering::SeqCst);
        match tail.checked_sub(head) {
            Some(bytes) if bytes <= RX_BYTES as u64 => Ok(bytes as usize),
            _ => Err(Nonsense),
        }
    }

    /// Whether the program has something to read here.
    pub fn has_unread(&self) -> bool {
        self.unread() != Ok(0)
    }

    /// Puts a message into the ring, where no more than `most` bytes wait, and at least one
    /// message; whether it had room.
    ///
    /// # Errors
    /// What the program wrote of its reading cannot be.
    pub fn put(&self, message: &[u8], most: usize) -> Result<bool, Nonsense> {
        let unread = self.unread()?;
        let need = record(message.len());
        if unread + need > most.min(RX_BYTES) && (unread > 0 || need > RX_BYTES) {
            return Ok(false);
        }
        let tail = self.rx_tail.load(Ordering::Relaxed);
        if unread == 0 {
            // Whoever still copies what was read finds that it was read.
            self.rx_base.store(tail, Ordering::Relaxed);
            self.ring.long(RX_BASE_AT).store(tail, Ordering::Release);
        }
        let place = tail - self.rx_base.load(Ordering::Relaxed);
        let (header, _) = self.ring.rx(place);
        // SAFETY: records are aligned to eight bytes and fit; the program does not read them yet,
        // and what it does instead changes bytes that only it reads.
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
        // `bells` and `want_room` have the fence.
        self.ring.long(RX_TAIL_AT).store(tail + need as u64, Ordering::Release);
        Ok(true)
    }

    /// How many bells a program needs now that this many messages were put in, and the number of
    /// the first.
    pub fn bells(&self, put: usize) -> (u32, u32) {
        fence(Ordering::SeqCst);
        let rung = self.rx_rung.load(Ordering::Relaxed);
        let is_released = self.ring.int(RX_RELEASED_AT).load(Ordering::SeqCst) == rung;
        self.ring_bells(put, is_released)
    }

    /// The same where nothing is in the socket pair: whoever took the last bell was killed before
    /// it could say so, or is about to say so.
    pub fn bells_again(&self) -> (u32, u32) {
        fence(Ordering::SeqCst);
        self.ring_bells(0, true)
    }

    fn ring_bells(&self, put: usize, is_released: bool) -> (u32, u32) {
        let rung = self.rx_rung.load(Ordering::Relaxed);
        // A bell wakes one thread: where several wait, each gets its own.
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

    /// Asks for a bell once the program has read half of what waits; whether that is still to come.
    ///
    /// # Errors
    /// What the program wrote of its reading cannot be.
    pub fn want_room(&self) -> Result<bool, Nonsense> {
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
