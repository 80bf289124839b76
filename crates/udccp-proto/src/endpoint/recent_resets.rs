//! Keeps the latest Resets, for peers that could not accept them.
//!
//! If a Reset has invalid numbers, the peer answers it with a Sync. The Reset that answers the Sync
//! has the right numbers, and should repeat code and data of the first one (RFC 4340 section
//! 7.5.4).

use std::collections::VecDeque;

use udccp_wire::ResetCode;

use crate::tuple::FourTuple;

/// Resets that are kept. A search among this many costs almost nothing.
const KEPT: usize = 64;

/// Answers reserved for the peer of an ended connection, even if packets from elsewhere use up the
/// rate limit. They answer a Response in flight and the Sync about our Reset, or Closes after a
/// lost Reset. Without them, a server may keep a connection that the client gave up until its
/// handshake times out.
const OWED: u8 = 2;

#[derive(Clone, Copy, Debug)]
struct Entry {
    tuple: FourTuple,
    code: ResetCode,
    data: [u8; 3],
    owed: u8,
}

/// The latest Resets, with their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentResets(VecDeque<Entry>);

impl RecentResets {
    /// A connection ended with a Reset of this code and data.
    pub(super) fn note_end(&mut self, tuple: FourTuple, code: ResetCode, data: [u8; 3]) {
        self.put(Entry { tuple, code, data, owed: OWED });
    }

    /// A Reset with this code and data answered a packet that belongs to no connection.
    pub(super) fn note(&mut self, tuple: FourTuple, code: ResetCode, data: [u8; 3]) {
        let owed = self.0.iter().find(|known| known.tuple == tuple).map_or(0, |known| known.owed);
        self.put(Entry { tuple, code, data, owed });
    }

    fn put(&mut self, entry: Entry) {
        self.0.retain(|known| known.tuple != entry.tuple);
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    /// Code and data of the last Reset sent to this peer.
    pub(super) fn sent_to(&self, tuple: &FourTuple) -> Option<(ResetCode, [u8; 3])> {
        let found = self.0.iter().find(|known| known.tuple == *tuple);
        found.map(|known| (known.code, known.data))
    }

    /// Takes one of the answers reserved for this peer. Returns whether there was one.
    pub(super) fn take_owed(&mut self, tuple: &FourTuple) -> bool {
        let owing = self.0.iter_mut().find(|known| known.tuple == *tuple && known.owed > 0);
        owing.map(|known| known.owed -= 1).is_some()
    }
}
