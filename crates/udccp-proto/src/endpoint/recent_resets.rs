//! Remembers the latest Resets, for peers that could not believe them.
//!
//! A Reset made without knowing the numbers is answered by a Sync. The Reset that answers the Sync
//! has the right numbers, and should carry what the first one carried (RFC 4340 section 7.5.4).

use std::collections::VecDeque;

use udccp_wire::ResetCode;

use crate::tuple::FourTuple;

/// Resets remembered. Answers to Syncs are rate limited, so a search among this many costs nothing.
const KEPT: usize = 64;

/// The latest Resets by addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentResets(VecDeque<(FourTuple, ResetCode, [u8; 3])>);

impl RecentResets {
    /// A Reset with this code and data was made.
    pub(super) fn note(&mut self, tuple: FourTuple, code: ResetCode, data: [u8; 3]) {
        self.0.retain(|(known, ..)| *known != tuple);
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((tuple, code, data));
    }

    /// Code and data of the last Reset to this peer.
    pub(super) fn sent_to(&self, tuple: &FourTuple) -> Option<(ResetCode, [u8; 3])> {
        let found = self.0.iter().find(|(known, ..)| known == tuple);
        found.map(|&(_, code, data)| (code, data))
    }
}
