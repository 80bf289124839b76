//! Finds the connection to which a packet belongs.

use core::hash::BuildHasher as _;

use hashbrown::HashTable;
use udccp_base::Instant;

use super::numbers::{Secrets, TableHash};
use super::slots::Slots;
use super::timewait::Timewaits;
use crate::tuple::FourTuple;

/// All tuples in use.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// The only connection, or [`NOBODY`].
    only: u32,
    /// The connection that was found last, or [`NOBODY`]. Packets come in trains: the next one is
    /// likely of the same connection.
    last: u32,
    /// All connections, once there have been several.
    several: Option<Box<Several>>,
    /// Absent before the first.
    timewaits: Option<Box<Timewaits>>,
}

/// Indices of connections, hashed by their tuples. The connections hold the tuples.
#[derive(Clone, Debug)]
struct Several {
    indices: HashTable<u32>,
    hash: TableHash,
}

/// No connection.
const NOBODY: u32 = u32::MAX;

impl Table {
    /// An empty table.
    pub(super) fn new() -> Self {
        Self { only: NOBODY, last: NOBODY, several: None, timewaits: None }
    }

    /// The connection that was found last, if its tuple `fits`.
    #[inline]
    pub(super) fn last(&self, slots: &Slots, fits: impl Fn(&FourTuple) -> bool) -> Option<u32> {
        slots.tuple(self.last).is_some_and(fits).then_some(self.last)
    }

    /// The connection that was found last.
    pub(super) fn found_last(&self) -> Option<u32> {
        (self.last != NOBODY).then_some(self.last)
    }

    /// The connection with this tuple.
    pub(super) fn find(&mut self, slots: &Slots, tuple: &FourTuple) -> Option<u32> {
        let index = self.index_of(slots, tuple)?;
        self.last = index;
        Some(index)
    }

    fn index_of(&self, slots: &Slots, tuple: &FourTuple) -> Option<u32> {
        let is_it = |index: &u32| slots.tuple(*index) == Some(tuple);
        match &self.several {
            None => Some(self.only).filter(is_it),
            Some(several) => {
                let Several { indices, hash } = &**several;
                indices.find(hash.hash_one(tuple), is_it).copied()
            }
        }
    }

    /// Whether the tuple is in use, by a connection or by TIMEWAIT.
    pub(super) fn is_taken(&self, slots: &Slots, tuple: &FourTuple) -> bool {
        self.index_of(slots, tuple).is_some()
            || self.timewaits.as_ref().is_some_and(|timewaits| timewaits.contains(tuple))
    }

    /// Adds a connection that is already in its slot.
    pub(super) fn insert(
        &mut self,
        secrets: &Secrets,
        slots: &Slots,
        tuple: &FourTuple,
        index: u32,
    ) {
        if self.only == NOBODY && self.several.is_none() {
            self.only = index;
            return;
        }
        let Several { indices, hash } = &mut **self.several.get_or_insert_with(|| {
            Several { indices: HashTable::new(), hash: secrets.table_hash() }.into()
        });
        let rehash = |index: &u32| slots.tuple(*index).map_or(0, |tuple| hash.hash_one(tuple));
        if self.only != NOBODY {
            indices.insert_unique(rehash(&self.only), self.only, rehash);
            self.only = NOBODY;
        }
        indices.insert_unique(hash.hash_one(tuple), index, rehash);
    }

    /// Removes a connection, before it is removed from its slot. Returns whether it was there.
    pub(super) fn remove(&mut self, tuple: &FourTuple, index: u32) -> bool {
        self.last = NOBODY;
        let Some(several) = &mut self.several else {
            let was_there = self.only == index;
            if was_there {
                self.only = NOBODY;
            }
            return was_there;
        };
        let Several { indices, hash } = &mut **several;
        let entry = indices.find_entry(hash.hash_one(tuple), |i| *i == index);
        entry.is_ok_and(|entry| entry.remove().0 == index)
    }

    /// Reserves the tuple of a removed connection until `until`. There are at most `most` of these.
    pub(super) fn retire(
        &mut self,
        secrets: &Secrets,
        most: u32,
        tuple: &FourTuple,
        until: Instant,
    ) {
        let new = || Timewaits::new(secrets.table_hash(), most as usize).into();
        self.timewaits.get_or_insert_with(new).insert(tuple, until);
    }

    /// Number of tuples in TIMEWAIT.
    pub(super) fn timewaits(&self) -> usize {
        self.timewaits.as_ref().map_or(0, |timewaits| timewaits.len())
    }

    /// How many TIMEWAITs ended early for lack of room.
    pub(super) fn timewaits_evicted(&self) -> u64 {
        self.timewaits.as_ref().map_or(0, |timewaits| timewaits.evicted())
    }

    /// Number of connections.
    pub(super) fn connections(&self) -> usize {
        self.several
            .as_ref()
            .map_or(usize::from(self.only != NOBODY), |several| several.indices.len())
    }

    /// When the next TIMEWAIT ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.timewaits.as_ref()?.next_end()
    }

    /// Frees the tuples whose TIMEWAIT is over.
    pub(super) fn expire(&mut self, now: Instant) {
        if let Some(timewaits) = &mut self.timewaits {
            timewaits.expire(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::numbers::tests::tuple;

    #[test]
    fn one_that_was_removed_before_does_not_remove_its_successor() {
        let (secrets, mut table, slots) = (Secrets::new([5; 32]), Table::new(), Slots::default());
        table.insert(&secrets, &slots, &tuple(1), 0);
        assert!(table.remove(&tuple(1), 0) && table.connections() == 0);
        table.insert(&secrets, &slots, &tuple(2), 1);
        assert!(!table.remove(&tuple(1), 0) && table.connections() == 1);
        assert!(table.remove(&tuple(2), 1) && table.connections() == 0);
        for index in 2..5 {
            table.insert(&secrets, &slots, &tuple(index), index.into());
            assert_eq!(table.connections(), usize::from(index) - 1);
        }
    }
}
