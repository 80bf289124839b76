//! Memory to which programs' messages are copied, many to a slab.

use std::sync::{Mutex, MutexGuard};

use bytes::BytesMut;
use udccp_preload::protocol::MAX_MESSAGE;

/// Bytes of a slab: as many as one write to a UDP socket can carry.
const SLAB_BYTES: usize = 1 << 16;
/// Most slabs to keep: slightly more than a batch of one connection fills.
const REMEMBERED: usize = 20;

/// Slabs that no connection is filling, most recently used last. A full slab is reused once all its
/// messages have left.
#[derive(Debug, Default)]
pub(crate) struct Slabs(Mutex<Vec<BytesMut>>);

impl Slabs {
    fn all(&self) -> MutexGuard<'_, Vec<BytesMut>> {
        self.0.lock().expect("never poisoned")
    }

    /// The slab that a connection is filling, with room for any message.
    pub(crate) fn with_room<'a>(&self, slab: &'a mut Option<BytesMut>) -> &'a mut BytesMut {
        if !slab.as_ref().is_some_and(has_room) {
            let mut all = self.all();
            remember(&mut all, slab.take());
            *slab = last_free(&mut all);
        }
        slab.get_or_insert_with(|| BytesMut::with_capacity(SLAB_BYTES))
    }

    /// Takes back a slab from a connection that has nothing to send now.
    pub(crate) fn give_back(&self, slab: &mut Option<BytesMut>) {
        remember(&mut self.all(), slab.take());
    }
}

fn remember(all: &mut Vec<BytesMut>, slab: Option<BytesMut>) {
    all.extend(slab);
    if all.len() > REMEMBERED {
        all.remove(0);
    }
}

/// The most recently used slab whose messages have left: it may still be in a cache.
fn last_free(all: &mut Vec<BytesMut>) -> Option<BytesMut> {
    let is_free = |slab: &mut BytesMut| has_room(slab) || slab.try_reclaim(SLAB_BYTES);
    let at = all.iter_mut().rposition(is_free)?;
    Some(all.remove(at))
}

/// Whether any message fits.
fn has_room(slab: &BytesMut) -> bool {
    slab.capacity() >= MAX_MESSAGE
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn slabs_are_reused_and_keep_messages_intact() {
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
