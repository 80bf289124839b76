//! Shared memory that carries the messages of one connection, next to its descriptor.
//!
//! There are two rings: one from the programs to the broker, one back. Any thread of any process
//! that has the descriptor may send and receive at any time, be interrupted by a signal, or be
//! killed, so there are no locks. A message is first copied, and then taken or published by one
//! atomic exchange. If another thread was faster, the copy is discarded.
//!
//! # How poll, select and epoll stay correct
//! - The descriptor is readable while the ring to the program has messages: the broker keeps a
//!   *bell* in the socket pair, a packet with a number. The reader that takes the last message also
//!   takes the bell. It first writes the bell's number to `RX_RELEASED`; from then on, the broker
//!   sends a new bell for a new message. So a bell may stay a moment too long, but never disappears
//!   too early. If a reader takes a newer bell than it intended, it reports that, and the broker
//!   sends another. The broker also does so by itself after some time, because the reader may have
//!   been killed.
//! - The ring to the broker is full when the socket's queue of messages is waiting in it. Messages
//!   that congestion control would send at once do not count as waiting: the broker publishes the
//!   position up to which it would send.
//! - The descriptor is not writable while the ring is full: the sender that fills it puts a *plug*
//!   into the socket pair, a packet that is charged more than a quarter of the send buffer. The
//!   broker reads it once the ring has room.
//! - A writable descriptor promises room for a message, but the broker does not know of such
//!   promises when congestion control allows fewer messages than before. A sender that finds the
//!   ring full and the descriptor writable sends one more message, and plugs.
//! - When a sender is killed, it keeps the places of a few messages. The broker counts the
//!   remaining ones: a ring without free places counts as full, and a connection whose places are
//!   all lost is ended.
//! - When the program has read everything, the ring to it restarts at the beginning of its memory.
//!   So only as much memory is used as messages wait, and it stays in the cache.
//! - The broker sleeps on the socket pair. `TX_SLEEPS` says so, and the next sender sends a bell.
//!   Each sleep has a number, so that no sender ends a later sleep by mistake.
//!
//! # Trust
//! A program can write anything anywhere in this memory. The broker keeps its own positions, reads
//! each number once and validates it, and ends the connection if the data are invalid. The memory
//! cannot shrink (its file is sealed).

#[cfg(not(udccp_shim))]
mod broker;
mod many;
mod program;
#[cfg(all(test, not(udccp_shim)))]
mod tests;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(not(udccp_shim))]
pub use broker::{BrokerRing, CorruptRing};
pub use many::TakenMany;
pub use program::{Into, Taken};

use crate::protocol::MAX_MESSAGE;

/// The cookie of the program's end.
const COOKIE_AT: usize = 0;
/// Messages published by programs. Written by programs.
const TX_TAIL_AT: usize = 64;
/// Whether a plug is in the socket pair or about to be. Written by both.
const TX_PLUGGED_AT: usize = 80;
/// Whether the program has shut down sending. Written by programs.
const TX_SHUT_AT: usize = 84;
/// Messages taken by the broker. Written by the broker.
const TX_HEAD_AT: usize = 128;
/// Position up to which congestion control would send at once. Written by the broker.
const TX_GRANT_AT: usize = 144;
/// The number of the broker's current sleep, in which it waits for a bell; 0 while it is awake.
/// Written by both.
const TX_SLEEPS_AT: usize = 136;
/// How many messages there are places for. Written by the broker.
const TX_ROOM_AT: usize = 152;
/// One bit for each place, set while it is free. Written by both.
const TX_FREE_AT: usize = 192;
/// Bytes taken by programs. Written by programs.
const RX_HEAD_AT: usize = 768;
/// The last bell that a reader is about to take. Written by programs.
const RX_RELEASED_AT: usize = 776;
/// Threads that wait for a message. Written by programs.
const RX_WAITERS_AT: usize = 780;
/// The last bell that was taken out of the socket pair. Written by programs.
const RX_GONE_AT: usize = 792;
/// Bytes published by the broker. Written by the broker.
const RX_TAIL_AT: usize = 832;
/// The read position at which the broker wants a bell, because the ring was full. Written by both.
const RX_ROOM_AT: usize = 840;
/// The last bell that the broker sent. Written by the broker.
const RX_RUNG_AT: usize = 848;
/// Whether messages to the program go through the ring. Written by the broker.
const RX_IS_ON_AT: usize = 852;
/// Whether a program can receive through the ring. Written by programs.
const RX_IS_WANTED_AT: usize = 788;

/// The position at the beginning of the ring's memory. Written by the broker.
const RX_BASE_AT: usize = 856;

/// Places for messages to the broker; more than a socket's queue may hold.
const TX_PLACES: u64 = 1024;
/// For each position, modulo [`TX_PLACES`]: the position plus one, and the place's index.
const TX_ORDER_AT: usize = 4096;
/// Bits of the place's index in an entry of the order.
const PLACE_BITS: u32 = 16;
const TX_PLACES_AT: usize = TX_ORDER_AT + TX_PLACES as usize * 8;
/// Most messages that wait, in addition to what congestion control allows. The other places
/// compensate for those lost with killed senders.
pub const TX_MOST: usize = 960;
/// Bytes before a message: its length and priority.
const PLACE_HEADER: usize = 16;
const PLACE_BYTES: usize = (PLACE_HEADER + MAX_MESSAGE).next_multiple_of(64);
const RX_AT: usize = TX_PLACES_AT + TX_PLACES as usize * PLACE_BYTES;
/// Bytes of the ring to the program; a power of two.
pub const RX_BYTES: usize = 1 << 21;
/// Bytes before a message: its length.
const RECORD_HEADER: usize = 8;
/// Bytes of the shared memory: a multiple of every page size, since the system cannot free part of
/// a page.
pub const RING_BYTES: usize = (RX_AT + RX_BYTES).next_multiple_of(1 << 16);
/// No position.
const NEVER: u64 = u64::MAX;

/// Bytes that a message takes in the ring to the program.
const fn record(len: usize) -> usize {
    RECORD_HEADER + len.next_multiple_of(8)
}

/// The shared memory, mapped in this process.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    at: *mut u8,
}

impl Ring {
    /// A ring at an address.
    ///
    /// # Safety
    /// [`RING_BYTES`] are mapped there, readable and writable, as long as the ring is used.
    pub const unsafe fn at(at: *mut u8) -> Self {
        Self { at }
    }

    /// The cookie of the program's end of the socket.
    pub fn cookie(self) -> u64 {
        self.long(COOKIE_AT).load(Ordering::Acquire)
    }

    fn long<'a>(self, at: usize) -> &'a AtomicU64 {
        // SAFETY: within the mapping and aligned; both sides use only atomics.
        unsafe { &*self.at.add(at).cast::<AtomicU64>() }
    }

    fn int<'a>(self, at: usize) -> &'a AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.at.add(at).cast::<AtomicU32>() }
    }

    /// The free bits of 64 places each, with the index of the first.
    fn free<'a>(self) -> impl Iterator<Item = (&'a AtomicU64, usize)> {
        (0..TX_PLACES as usize / 64).map(move |n| (self.long(TX_FREE_AT + n * 8), n * 64))
    }

    /// Marks places as free: bits of the 64 from `first` on.
    fn set_free(self, first: usize, bits: u64) {
        self.long(TX_FREE_AT + first / 8).fetch_or(bits, Ordering::AcqRel);
    }

    /// The entry at a position of the order of messages.
    fn order<'a>(self, position: u64) -> &'a AtomicU64 {
        self.long(TX_ORDER_AT + (position % TX_PLACES) as usize * 8)
    }

    /// The first position without room if `queue` messages may wait.
    fn limit(self, queue: u64) -> u64 {
        let head = self.long(TX_HEAD_AT).load(Ordering::SeqCst);
        let grant = self.long(TX_GRANT_AT).load(Ordering::SeqCst);
        let room = self.long(TX_ROOM_AT).load(Ordering::SeqCst).min(TX_MOST as u64);
        // The broker calls this too, and a program can write any number here, so the sum saturates.
        grant.max(head).saturating_add(queue).min(head.saturating_add(room))
    }

    /// Whether no message can be sent if `queue` messages may wait.
    pub fn is_full(self, queue: u64) -> bool {
        // The tail may lack messages that a sender published and did not count before it was
        // killed.
        self.long(TX_TAIL_AT).load(Ordering::SeqCst) >= self.limit(queue)
    }

    /// How many places are free.
    fn free_places(self) -> usize {
        self.free().map(|(bits, _)| bits.load(Ordering::SeqCst).count_ones() as usize).sum()
    }

    /// Whether a place is free.
    pub fn has_place(self) -> bool {
        self.free().any(|(bits, _)| bits.load(Ordering::SeqCst) != 0)
    }

    /// The place of a message to the broker.
    const fn place(self, index: usize) -> *mut u8 {
        // SAFETY: callers have checked the index.
        unsafe { self.at.add(TX_PLACES_AT + index * PLACE_BYTES) }
    }

    /// The offset of a position of the ring to the program from the base. The base is correct as
    /// long as the message there is unread.
    fn rx_place(self, position: u64) -> u64 {
        let base = self.long(RX_BASE_AT).load(Ordering::SeqCst);
        position.wrapping_sub(base) & !7
    }

    /// The address of an offset in the ring to the program, and the bytes up to the end of its
    /// memory.
    const fn rx(self, place: u64) -> (*mut u8, usize) {
        let at = place as usize % RX_BYTES;
        // SAFETY: within the mapping.
        (unsafe { self.at.add(RX_AT + at) }, RX_BYTES - at)
    }
}
