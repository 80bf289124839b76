//! Takes the messages of a program one by one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use bytes::{Bytes, BytesMut};
use udccp::Outgoing;
use udccp_preload::protocol::{Frame, read_frame};
use udccp_preload::ring::CorruptRing;

use crate::pair::{PACKET_BYTES, Packet, Pair};
use crate::shared::SharedRing;
use crate::slabs::Slabs;
use crate::socket::Socket;

/// A program's messages in the ring and in the pair.
#[derive(Debug)]
pub(crate) struct Inbox<'a> {
    socket: &'a Socket,
    pair: &'a Pair,
    /// The ring, once the program has sent a bell for it. Earlier messages are in the pair.
    ring: OnceLock<Arc<SharedRing>>,
    found: Mutex<Found>,
    /// Whether `found` has anything.
    has_found: AtomicBool,
}

/// Messages and the end, as read from the pair.
#[derive(Debug, Default)]
struct Found {
    messages: VecDeque<Outgoing>,
    ended: Option<Packet>,
}

impl<'a> Inbox<'a> {
    pub(crate) fn new(socket: &'a Socket, pair: &'a Pair) -> Self {
        Self {
            socket,
            pair,
            ring: OnceLock::new(),
            found: Mutex::default(),
            has_found: AtomicBool::new(false),
        }
    }

    /// Why there will be no more messages. Those in the ring when the pair ends are still
    /// delivered.
    pub(crate) fn ended(&self) -> Option<Packet> {
        let ended = self.found()?.ended;
        ended.filter(|end| *end == Packet::Reset || !self.has_some())
    }

    /// Whether a message is ready, not counting those in the pair.
    pub(crate) fn has_some(&self) -> bool {
        let is_found = self.found().is_some_and(|found| !found.messages.is_empty());
        is_found || self.ring.get().is_some_and(|ring| ring.has_messages())
    }

    /// What was read from the pair, if anything was.
    fn found(&self) -> Option<MutexGuard<'_, Found>> {
        let has_found = self.has_found.load(Ordering::Relaxed);
        has_found.then(|| self.found.lock().expect("never poisoned"))
    }

    fn find(&self, add: impl FnOnce(&mut Found)) {
        add(&mut self.found.lock().expect("never poisoned"));
        self.has_found.store(true, Ordering::Relaxed);
    }

    /// The first message that was read from the pair.
    fn next_found(&self) -> Option<Outgoing> {
        let mut found = self.found()?;
        let message = found.messages.pop_front();
        let has_more = !found.messages.is_empty() || found.ended.is_some();
        self.has_found.store(has_more, Ordering::Relaxed);
        message
    }

    /// Requests a bell for the next message. Returns whether none arrived meanwhile.
    pub(crate) fn sleep(&self) -> bool {
        self.ring.get().is_none_or(|ring| ring.sleep())
    }

    /// Tells the program that no bell is needed.
    pub(crate) fn wake(&self) {
        if let Some(ring) = self.ring.get() {
            ring.wake();
        }
    }

    /// Publishes how many messages congestion control would send at once now.
    pub(crate) fn grant(&self, messages: usize) {
        if let Some(ring) = self.ring.get() {
            ring.grant(messages.saturating_sub(self.socket.pair_messages()));
        }
    }

    /// Whether the ring had no free places when they were last counted.
    pub(crate) fn was_starved(&self) -> bool {
        self.ring.get().is_some_and(|ring| ring.was_starved())
    }

    /// Makes the program's end writable again if the ring has room.
    pub(crate) fn unplug(&self) {
        let queue = self.socket.pair_messages();
        if self.ring.get().is_some_and(|ring| ring.needs_unplug(queue)) {
            while let Some(message) = self.next_packet() {
                self.find(|found| found.messages.push_back(message));
            }
        }
    }

    /// The next message in the pair. `None` if there is none, or if the ring has messages, which
    /// come first.
    fn next_packet(&self) -> Option<Outgoing> {
        let mut packet = [0; PACKET_BYTES];
        // As soon as the plug is read, a program may try to send: it must find a place, or it plugs
        // again.
        if self.ring.get().is_some_and(|ring| ring.is_starved()) {
            return None;
        }
        loop {
            let len = match self.pair.recv_now(&mut packet)? {
                Packet::Bytes(len) => len,
                end => {
                    self.find(|found| found.ended = Some(end));
                    return None;
                }
            };
            match read_frame(self.socket.broker().region.key(), &packet[..len]) {
                Frame::Data(data, priority) => {
                    return Some(Outgoing::new(Bytes::copy_from_slice(data)).priority(priority));
                }
                Frame::Plug => {
                    if let Some(ring) = self.signalled_ring() {
                        ring.unplug();
                    }
                }
                Frame::Bell => {
                    self.signalled_ring();
                }
            }
            // A program that is faster than the broker plugs a full ring again and again.
            if self.ring.get().is_some_and(|ring| ring.has_messages()) {
                return None;
            }
        }
    }

    fn signalled_ring(&self) -> Option<&SharedRing> {
        if self.ring.get().is_none() {
            let _ = self.ring.set(self.socket.ring()?);
        }
        self.ring.get().map(|ring| &**ring)
    }

    /// The memory to which messages are copied.
    pub(crate) fn slabs(&self) -> &Slabs {
        &self.socket.broker().slabs
    }

    #[inline]
    fn next_of_ring(&self, slab: &mut Option<BytesMut>) -> Option<Outgoing> {
        let ring = self.ring.get()?;
        let slab = self.slabs().with_room(slab);
        match ring.take(slab) {
            Ok(None) => None,
            Ok(Some((len, priority))) => {
                Some(Outgoing::new(slab.split_to(len).freeze()).priority(priority))
            }
            Err(CorruptRing) => {
                self.end_spoiled();
                None
            }
        }
    }

    #[cold]
    fn end_spoiled(&self) {
        tracing::warn!("a program has corrupted the memory of its messages");
        self.find(|found| found.ended = Some(Packet::Reset));
    }

    #[inline]
    fn next(&self, slab: &mut Option<BytesMut>) -> Option<Outgoing> {
        if self.has_found.load(Ordering::Relaxed) {
            return self.next_after_found(slab);
        }
        // Not as a chain of combinators: copying a message that was just written is slow.
        if let Some(message) = self.next_of_ring(slab) {
            return Some(message);
        }
        self.next_of_pair(slab)
    }

    #[cold]
    fn next_after_found(&self, slab: &mut Option<BytesMut>) -> Option<Outgoing> {
        if self.found().is_some_and(|found| found.ended == Some(Packet::Reset)) {
            return None;
        }
        // Messages in the ring when the pair ends are the last ones.
        let first = self.next_found().or_else(|| self.next_of_ring(slab));
        first.or_else(|| self.next_of_pair(slab))
    }

    /// Called when the ring is empty: a packet in the pair may be the bell for a new message in it.
    #[cold]
    fn next_of_pair(&self, slab: &mut Option<BytesMut>) -> Option<Outgoing> {
        self.next_packet().or_else(|| self.next_of_ring(slab))
    }
}

/// Iterates over messages of an inbox, taking each one when it is requested.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    inbox: &'a Inbox<'a>,
    left: usize,
    slab: &'a mut Option<BytesMut>,
}

impl<'a> Taken<'a> {
    /// At most `left` messages, copied to a slab.
    pub(crate) const fn new(
        inbox: &'a Inbox<'a>,
        most: usize,
        slab: &'a mut Option<BytesMut>,
    ) -> Self {
        Self { inbox, left: most, slab }
    }

    /// Whether the full number was taken, so that there may be more.
    pub(crate) const fn are_all(&self) -> bool {
        self.left == 0
    }
}

impl Iterator for Taken<'_> {
    type Item = Outgoing;

    #[inline]
    fn next(&mut self) -> Option<Outgoing> {
        self.left = self.left.checked_sub(1)?;
        self.inbox.next(self.slab)
    }
}
