//! Remembers the latest Resets, for peers that could not believe them.
//!
//! A Reset made without knowing the numbers is answered by a Sync. The Reset that answers the Sync
//! has the right numbers, and should carry what the first one carried (RFC 4340 section 7.5.4).

use std::collections::VecDeque;

use udccp_wire::ResetCode;

use crate::tuple::FourTuple;

/// Resets remembered: a search among this many costs nothing.
const KEPT: usize = 64;

/// Answers that the peer of an ended connection gets whatever strangers do: to a Response that was
/// on its way and to the Sync that asks about our Reset, or to Closes after a Reset that was lost.
/// Without, a server may hold what a client gave up for as long as a handshake may take.
const OWED: u8 = 2;

#[derive(Clone, Copy, Debug)]
struct Entry {
    tuple: FourTuple,
    code: ResetCode,
    data: [u8; 3],
    owed: u8,
}

/// The latest Resets by addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentResets(VecDeque<Entry>);

impl RecentResets {
    /// A connection ended with a Reset of this code and data.
    pub(super) fn note_end(&mut self, tuple: FourTuple, code: ResetCode, data: [u8; 3]) {
        self.put(Entry { tuple, code, data, owed: OWED });
    }

    /// A Reset with this code and data was made for a packet of no connection.
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

    /// Code and data of the last Reset to this peer.
    pub(super) fn sent_to(&self, tuple: &FourTuple) -> Option<(ResetCode, [u8; 3])> {
        let found = self.0.iter().find(|known| known.tuple == *tuple);
        found.map(|known| (known.code, known.data))
    }

    /// Takes one of the answers that are owed to this peer; whether there was one.
    pub(super) fn take_owed(&mut self, tuple: &FourTuple) -> bool {
        let owing = self.0.iter_mut().find(|known| known.tuple == *tuple && known.owed > 0);
        owing.map(|known| known.owed -= 1).is_some()
    }
}
