//! Which connection a packet belongs to.

use std::collections::{BTreeMap, HashMap};

use udccp_base::Instant;

use super::FourTuple;
use super::numbers::TableHash;

/// What is known of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// A connection, by index.
    Connection(u32),
    /// Nothing more than that it must not be used again before this time.
    TimeWait(Instant),
}

/// All tuples in use.
#[derive(Clone, Debug)]
pub(super) struct Table {
    entries: HashMap<FourTuple, Entry, TableHash>,
    /// TIMEWAITs in order of their ends; the number tells equal ends apart.
    timewaits: BTreeMap<(Instant, u64), FourTuple>,
    timewaits_ever: u64,
    /// Packets come in trains: the last one's connection is likely the next one's.
    last: Option<(FourTuple, u32)>,
}

impl Table {
    /// An empty table.
    pub(super) fn new(hash: TableHash) -> Self {
        Self {
            entries: HashMap::with_hasher(hash),
            timewaits: BTreeMap::new(),
            timewaits_ever: 0,
            last: None,
        }
    }

    /// The connection with this tuple.
    pub(super) fn find(&mut self, tuple: &FourTuple) -> Option<u32> {
        match &self.last {
            Some((last, index)) if last == tuple => return Some(*index),
            _ => {}
        }
        match self.entries.get(tuple) {
            Some(&Entry::Connection(index)) => {
                self.last = Some((*tuple, index));
                Some(index)
            }
            _ => None,
        }
    }

    /// Whether the tuple is in use, by a connection or by TIMEWAIT.
    pub(super) fn is_taken(&self, tuple: &FourTuple) -> bool {
        self.entries.contains_key(tuple)
    }

    /// Enters a connection.
    pub(super) fn insert(&mut self, tuple: FourTuple, index: u32) {
        self.entries.insert(tuple, Entry::Connection(index));
    }

    /// Removes a connection; whether it was there.
    pub(super) fn remove(&mut self, tuple: &FourTuple, index: u32) -> bool {
        self.last = None;
        let is_there = self.entries.get(tuple) == Some(&Entry::Connection(index));
        if is_there {
            self.entries.remove(tuple);
        }
        is_there
    }

    /// Keeps a connection's tuple out of use until `until`.
    pub(super) fn retire(&mut self, tuple: &FourTuple, until: Instant) {
        self.entries.insert(*tuple, Entry::TimeWait(until));
        self.timewaits.insert((until, self.timewaits_ever), *tuple);
        self.timewaits_ever += 1;
        self.last = None;
    }

    /// Tuples in TIMEWAIT without a connection.
    pub(super) fn timewaits(&self) -> usize {
        self.timewaits.len()
    }

    /// Connections.
    pub(super) fn connections(&self) -> usize {
        self.entries.len() - self.timewaits.len()
    }

    /// When the next TIMEWAIT ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.timewaits.first_key_value().map(|((until, _), _)| *until)
    }

    /// Frees the tuples whose TIMEWAIT is over.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(first) = self.timewaits.first_entry().filter(|f| f.key().0 <= now) {
            let tuple = first.remove();
            self.entries.remove(&tuple);
        }
    }
}
