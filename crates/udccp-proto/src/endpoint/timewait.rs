//! Reserves addresses and ports in TIMEWAIT (RFC 4340 section 8.3).
//!
//! Anybody who can open connections can create many of these. So they do not count as connections,
//! have their own limit, and are as small as possible: the key is a keyed hash of addresses and
//! ports. Two tuples share a hash with a chance of 2^-64, and nobody can search for such a pair
//! without the key. If it happens, one of them is reserved without need, or freed too early.

use core::cmp::Reverse;
use core::hash::BuildHasher;
use std::collections::{BinaryHeap, HashSet};

use udccp_base::Instant;

use super::numbers::TableHash;
use crate::tuple::FourTuple;

/// All tuples in TIMEWAIT.
#[derive(Clone, Debug)]
pub(super) struct Timewaits {
    limit: usize,
    hash: TableHash,
    keys: HashSet<u64, TableHash>,
    /// When each ends, earliest on top, with its key.
    ends: BinaryHeap<Reverse<(Instant, u64)>>,
    /// How many ended early for lack of room.
    evicted: u64,
}

impl Timewaits {
    /// An empty set for at most `limit` tuples.
    pub(super) fn new(hash: TableHash, limit: usize) -> Self {
        let (keys, ends) = (HashSet::with_hasher(hash), BinaryHeap::new());
        Self { limit, hash, keys, ends, evicted: 0 }
    }

    /// Reserves a tuple until `until`. If there is no room, the one that ends first is removed,
    /// which is the oldest if all last equally long.
    pub(super) fn insert(&mut self, tuple: &FourTuple, until: Instant) {
        let key = self.hash.hash_one(tuple);
        if !self.keys.insert(key) {
            return;
        }
        self.ends.push(Reverse((until, key)));
        if self.ends.len() > self.limit {
            self.remove_first();
            self.evicted += 1;
        }
    }

    /// Whether the tuple is reserved.
    pub(super) fn contains(&self, tuple: &FourTuple) -> bool {
        !self.keys.is_empty() && self.keys.contains(&self.hash.hash_one(tuple))
    }

    /// Number of tuples.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many ended early for lack of room.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// When the next one ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.ends.peek().map(|Reverse((until, _))| *until)
    }

    /// Frees the tuples whose time is over.
    #[inline]
    pub(super) fn expire(&mut self, now: Instant) {
        if self.next_end().is_some_and(|until| until <= now) {
            self.remove_ended(now);
        }
    }

    #[inline(never)]
    fn remove_ended(&mut self, now: Instant) {
        while self.next_end().is_some_and(|until| until <= now) {
            self.remove_first();
        }
        if self.ends.is_empty() {
            // Free the memory after a flood, too.
            self.ends.shrink_to_fit();
            self.keys.shrink_to_fit();
        }
    }

    fn remove_first(&mut self) {
        if let Some(Reverse((_, key))) = self.ends.pop() {
            self.keys.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::numbers::Secrets;
    use udccp_base::Duration;

    fn tuple(n: u32) -> FourTuple {
        let [a, b, c, d] = n.to_be_bytes();
        FourTuple {
            local: "[fd00::1]:6511".parse().unwrap(),
            local_port: 5001,
            remote: format!("[fd00::2:{a:x}{b:02x}]:6511").parse().unwrap(),
            remote_port: u16::from_be_bytes([c, d]),
        }
    }

    fn timewaits(limit: usize) -> Timewaits {
        let hash = Secrets::new([5; 32]).table_hash();
        Timewaits::new(hash, limit)
    }

    fn at(n: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(n)
    }

    #[test]
    fn each_timewait_takes_at_most_64_bytes_its_place_in_the_tables_included() {
        let mut all = timewaits(usize::MAX);
        for n in 1..200_000_u32 {
            all.insert(&tuple(n), at(u64::from(n) % 977));
            if n < 500 || n % 61 != 0 {
                continue;
            }
            let heap = all.ends.capacity() * size_of::<Reverse<(Instant, u64)>>();
            // A hash table fills at most 7 of 8 slots, and has one more byte for each.
            let places = (all.keys.capacity() * 8).div_ceil(7).next_power_of_two();
            let bytes = heap + places * (size_of::<u64>() + 1);
            assert!(bytes <= 64 * all.len(), "{bytes} bytes for {}", all.len());
        }
        all.expire(at(10_000));
        assert_eq!((all.len(), all.ends.capacity(), all.keys.capacity()), (0, 0, 0));
    }

    #[test]
    fn the_oldest_goes_first_where_there_is_no_room_and_is_counted() {
        let mut all = timewaits(3);
        for n in [5, 1, 4, 2, 3] {
            all.insert(&tuple(n), at(u64::from(n)));
        }
        assert_eq!((all.len(), all.evicted(), all.next_end()), (3, 2, Some(at(3))));
        assert_eq!(
            [1, 2, 3, 4, 5].map(|n| all.contains(&tuple(n))),
            [false, false, true, true, true]
        );
        all.expire(at(4));
        assert_eq!([3, 4, 5].map(|n| all.contains(&tuple(n))), [false, false, true]);
        assert_eq!(all.evicted(), 2, "an end in time is none");
    }

    #[test]
    fn without_room_for_any_none_is_kept() {
        let mut all = timewaits(0);
        all.insert(&tuple(1), at(1));
        assert_eq!((all.len(), all.evicted(), all.contains(&tuple(1))), (0, 1, false));
    }
}
