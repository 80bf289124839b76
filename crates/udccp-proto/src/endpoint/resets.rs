//! Limits the Resets that answer packets of no connection, and keeps the latest Resets, for peers
//! that could not accept them.
//!
//! If a Reset has invalid numbers, the peer answers it with a Sync. The Reset that answers the Sync
//! has the right numbers, and should repeat code and data of the first one (RFC 4340 section
//! 7.5.4).

use std::collections::VecDeque;

use udccp_base::Instant;
use udccp_wire::ResetCode;

use crate::connection::limiter::TokenBucket;
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

/// The Resets of one endpoint. Most endpoints send none, so their state is made with the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Resets(Option<Box<Used>>);

#[derive(Clone, Debug, Default)]
struct Used {
    /// Limits those that answer packets of no connection, from the first of them on.
    limit: Option<TokenBucket>,
    /// The latest Resets, with their addresses.
    latest: VecDeque<Entry>,
}

impl Resets {
    fn used(&mut self) -> &mut Used {
        self.0.get_or_insert_default()
    }

    /// The latest Reset to this peer.
    fn latest_to(&mut self, tuple: &FourTuple) -> Option<&mut Entry> {
        self.0.as_mut()?.latest.iter_mut().find(|known| known.tuple == *tuple)
    }

    /// Whether a Reset may answer a packet of no connection: at most `per_sec` a second. If so, it
    /// counts as sent.
    pub(super) fn allow(&mut self, now: Instant, per_sec: u32) -> bool {
        self.used().limit.get_or_insert_with(|| TokenBucket::new(per_sec)).take(now)
    }

    /// A connection ended with a Reset of this code and data.
    pub(super) fn note_end(&mut self, tuple: FourTuple, code: ResetCode, data: [u8; 3]) {
        self.put(Entry { tuple, code, data, owed: OWED });
    }

    /// A Reset with this code and data answered a packet that belongs to no connection.
    pub(super) fn note(&mut self, tuple: FourTuple, code: ResetCode, data: [u8; 3]) {
        let owed = self.latest_to(&tuple).map_or(0, |known| known.owed);
        self.put(Entry { tuple, code, data, owed });
    }

    fn put(&mut self, entry: Entry) {
        let latest = &mut self.used().latest;
        latest.retain(|known| known.tuple != entry.tuple);
        if latest.len() == KEPT {
            latest.pop_front();
        }
        latest.push_back(entry);
    }

    /// Code and data of the last Reset sent to this peer.
    pub(super) fn sent_to(&mut self, tuple: &FourTuple) -> Option<(ResetCode, [u8; 3])> {
        self.latest_to(tuple).map(|known| (known.code, known.data))
    }

    /// Takes one of the answers reserved for this peer. Returns whether there was one.
    pub(super) fn take_owed(&mut self, tuple: &FourTuple) -> bool {
        let owing = self.latest_to(tuple).filter(|known| known.owed > 0);
        owing.map(|known| known.owed -= 1).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_resets_are_kept() {
        let tuple = |port| FourTuple {
            local: "10.0.0.1:0".parse().unwrap(),
            local_port: 5001,
            remote: "10.0.0.2:0".parse().unwrap(),
            remote_port: port,
        };
        let mut resets = Resets::default();
        assert!(resets.sent_to(&tuple(1)).is_none() && !resets.take_owed(&tuple(1)));
        assert!(resets.0.is_none(), "made with the first");
        for port in 0..100 {
            resets.note_end(tuple(port), ResetCode::Aborted, [port as u8, 0, 0]);
        }
        assert_eq!(resets.sent_to(&tuple(35)), None);
        assert_eq!(resets.sent_to(&tuple(36)), Some((ResetCode::Aborted, [36, 0, 0])));
        // Answers that are owed are kept when the same peer gets another Reset.
        resets.note(tuple(99), ResetCode::BadServiceCode, [0; 3]);
        let owed = (0..5).filter(|_| resets.take_owed(&tuple(99))).count();
        assert_eq!(owed, usize::from(OWED));
        let now = Instant::from_nanos(1);
        assert_eq!([0; 3].map(|_| resets.allow(now, 2)), [true, true, false]);
    }
}
