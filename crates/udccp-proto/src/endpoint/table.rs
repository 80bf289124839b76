//! Finds the connection to which a packet belongs.

use core::hash::BuildHasher as _;

use hashbrown::HashTable;
use udccp_base::Instant;

use super::numbers::TableHash;
use super::slots::Slots;
use super::timewait::Timewaits;
use crate::tuple::FourTuple;

/// All tuples in use.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Indices of connections, hashed by their tuples. The connections hold the tuples.
    connections: HashTable<u32>,
    hash: TableHash,
    max_timewaits: usize,
    /// Absent before the first.
    timewaits: Option<Box<Timewaits>>,
    /// Packets come in trains: the next one is likely of the same connection as the last one.
    last: Option<(FourTuple, u32)>,
}

impl Table {
    /// An empty table for at most this many tuples in TIMEWAIT.
    pub(super) fn new(hash: TableHash, max_timewaits: usize) -> Self {
        Self { connections: HashTable::new(), hash, max_timewaits, timewaits: None, last: None }
    }

    /// The connection that was found last, if its tuple `fits`.
    #[inline]
    pub(super) fn last(&self, fits: impl Fn(&FourTuple) -> bool) -> Option<u32> {
        self.last.as_ref().filter(|(tuple, _)| fits(tuple)).map(|(_, index)| *index)
    }

    /// The connection that was found last.
    pub(super) fn found_last(&self) -> Option<u32> {
        self.last.as_ref().map(|(_, index)| *index)
    }

    /// The connection with this tuple.
    pub(super) fn find(&mut self, slots: &Slots, tuple: &FourTuple) -> Option<u32> {
        let index = self.index_of(slots, tuple)?;
        self.last = Some((*tuple, index));
        Some(index)
    }

    fn index_of(&self, slots: &Slots, tuple: &FourTuple) -> Option<u32> {
        let is_it = |index: &u32| slots.tuple(*index) == Some(tuple);
        self.connections.find(self.hash.hash_one(tuple), is_it).copied()
    }

    /// Whether the tuple is in use, by a connection or by TIMEWAIT.
    pub(super) fn is_taken(&self, slots: &Slots, tuple: &FourTuple) -> bool {
        self.index_of(slots, tuple).is_some()
            || self.timewaits.as_ref().is_some_and(|timewaits| timewaits.contains(tuple))
    }

    /// Adds a connection that is already in its slot.
    pub(super) fn insert(&mut self, slots: &Slots, tuple: &FourTuple, index: u32) {
        let hash = self.hash;
        let rehash = |index: &u32| slots.tuple(*index).map_or(0, |tuple| hash.hash_one(tuple));
        self.connections.insert_unique(hash.hash_one(tuple), index, rehash);
    }

    /// Removes a connection, before it is removed from its slot. Returns whether it was there.
    pub(super) fn remove(&mut self, tuple: &FourTuple, index: u32) -> bool {
        self.last = None;
        let entry = self.connections.find_entry(self.hash.hash_one(tuple), |i| *i == index);
        entry.is_ok_and(|entry| entry.remove().0 == index)
    }

    /// Reserves the tuple of a removed connection until `until`.
    pub(super) fn retire(&mut self, tuple: &FourTuple, until: Instant) {
        let new = || Timewaits::new(self.hash, self.max_timewaits).into();
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
        self.connections.len()
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
