//! Memory that messages of programs are copied to, many into one piece of it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use bytes::BytesMut;
use udccp_preload::protocol::MAX_MESSAGE;

/// Bytes of a slab. As many as one write to a socket of UDP takes.
const SLAB_BYTES: usize = 1 << 16;
/// Most slabs that are remembered: what a batch of one connection fills, and some.
const REMEMBERED: usize = 16;

/// Slabs that no connection fills. A full one is filled again once all its messages have left.
#[derive(Debug, Default)]
pub(crate) struct Slabs(Mutex<VecDeque<BytesMut>>);

impl Slabs {
    fn all(&self) -> MutexGuard<'_, VecDeque<BytesMut>> {
        self.0.lock().expect("never poisoned")
    }

    /// The slab that a connection fills, which has room for any message.
    pub(crate) fn with_room<'a>(&self, slab: &'a mut Option<BytesMut>) -> &'a mut BytesMut {
        if !slab.as_ref().is_some_and(has_room) {
            let full = slab.take();
            let mut all = self.all();
            *slab = first_free(&mut all);
            all.extend(full);
            all.truncate(REMEMBERED);
        }
        slab.get_or_insert_with(|| BytesMut::with_capacity(SLAB_BYTES))
    }

    /// Takes a slab back from a connection that has nothing to send now.
    pub(crate) fn give_back(&self, slab: &mut Option<BytesMut>) {
        if let Some(slab) = slab.take() {
            let mut all = self.all();
            all.push_front(slab);
            all.truncate(REMEMBERED);
        }
    }
}

/// Messages leave mostly in order, so that the slab of the oldest is free first.
fn first_free(all: &mut VecDeque<BytesMut>) -> Option<BytesMut> {
    let mut slab = all.pop_front()?;
    if has_room(&slab) || slab.try_reclaim(SLAB_BYTES) {
        return Some(slab);
    }
    all.push_back(slab);
    None
}

/// Whether any message fits.
fn has_room(slab: &BytesMut) -> bool {
    slab.capacity() >= MAX_MESSAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_as_they_are_and_slabs_come_back() {
        let slabs = Slabs::default();
        let (mut slab, mut held) = (None, VecDeque::new());
        for n in 0..10_000usize {
            let message = vec![n as u8; n % 1500];
            let room = slabs.with_room(&mut slab);
            assert!(has_room(room));
            room.extend_from_slice(&message);
            held.push_back((room.split_to(message.len()).freeze(), message));
            if held.len() > 200 {
                let (bytes, message) = held.pop_front().unwrap();
                assert_eq!(bytes, message);
            }
            if n % 100 == 0 {
                slabs.give_back(&mut slab);
            }
        }
        assert!(slabs.all().len() <= 6, "{} slabs", slabs.all().len());
    }
}
