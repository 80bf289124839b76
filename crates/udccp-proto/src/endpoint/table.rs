//! Finds the connection that a packet belongs to.

use std::collections::HashMap;

use udccp_base::Instant;

use super::numbers::TableHash;
use super::timewait::Timewaits;
use crate::tuple::FourTuple;

/// All tuples in use.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Connections by index.
    connections: HashMap<FourTuple, u32, TableHash>,
    timewaits: Timewaits,
    /// Packets come in trains: the last one's connection is likely the next one's.
    last: Option<(FourTuple, u32)>,
}

impl Table {
    /// An empty table for at most this many tuples in TIMEWAIT.
    pub(super) fn new(hash: TableHash, max_timewaits: usize) -> Self {
        Self {
            connections: HashMap::with_hasher(hash),
            timewaits: Timewaits::new(hash, max_timewaits),
            last: None,
        }
    }

    /// The connection that was found last, if its tuple `fits`.
    #[inline]
    pub(super) fn last(&self, fits: impl Fn(&FourTuple) -> bool) -> Option<u32> {
        self.last.as_ref().filter(|(tuple, _)| fits(tuple)).map(|(_, index)| *index)
    }

    /// The connection with this tuple.
    pub(super) fn find(&mut self, tuple: &FourTuple) -> Option<u32> {
        let index = *self.connections.get(tuple)?;
        self.last = Some((*tuple, index));
        Some(index)
    }

    /// Whether the tuple is in use, by a connection or by TIMEWAIT.
    pub(super) fn is_taken(&self, tuple: &FourTuple) -> bool {
        self.connections.contains_key(tuple) || self.timewaits.contains(tuple)
    }

    /// Enters a connection.
    pub(super) fn insert(&mut self, tuple: FourTuple, index: u32) {
        self.connections.insert(tuple, index);
    }

    /// Removes a connection; whether it was there.
    pub(super) fn remove(&mut self, tuple: &FourTuple, index: u32) -> bool {
        self.last = None;
        let is_there = self.connections.get(tuple) == Some(&index);
        if is_there {
            self.connections.remove(tuple);
        }
        is_there
    }

    /// Keeps the tuple of a connection that was removed out of use until `until`.
    pub(super) fn retire(&mut self, tuple: &FourTuple, until: Instant) {
        self.timewaits.insert(tuple, until);
    }

    /// Tuples in TIMEWAIT.
    pub(super) fn timewaits(&self) -> &Timewaits {
        &self.timewaits
    }

    /// Connections.
    pub(super) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// When the next TIMEWAIT ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.timewaits.next_end()
    }

    /// Frees the tuples whose TIMEWAIT is over.
    pub(super) fn expire(&mut self, now: Instant) {
        self.timewaits.expire(now);
    }
}
