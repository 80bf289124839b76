//! The event queue: who is next?

use core::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use udccp_base::Instant;

const COMPONENT_BITS: u32 = 24;
const ORDER_BITS: u32 = 40;

/// When, in which order of insertion, and whose. Equal times go by insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    due: Instant,
    order: u64,
}

const NEVER: Key = Key { due: Instant::MAX, order: u64::MAX };

impl Key {
    const fn component(self) -> usize {
        self.order as usize & (EventQueue::MAX_COMPONENTS - 1)
    }

    #[inline]
    const fn as_number(self) -> u128 {
        (self.due.as_nanos() as u128) << 64 | self.order as u128
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_number().cmp(&other.as_number())
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Places of the short list; a power of two, so that an index is masked instead of checked.
const PLACES: usize = 32;

/// One pending event per component. The next few events of all stand in a short sorted list, the
/// others in a heap. Nearly every change is to one of the next few: a packet that leaves a
/// link sets two events at most, both due within a packet's time or so, while the timers of hosts
/// stay far off. So a change costs a few steps in the short list, however many components there
/// are.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// The next events, latest first, each before all that are in `far`. The first place is never
    /// used, so that a search ends there.
    near: [Key; PLACES],
    /// Places used, the first one included.
    len: usize,
    far: Far,
    /// The event of each component.
    keys: Vec<Key>,
    inserted: u64,
}

impl EventQueue {
    /// Most components that a queue can have.
    pub(crate) const MAX_COMPONENTS: usize = 1 << COMPONENT_BITS;

    /// A queue for components `0..count`, none of them with an event.
    pub(crate) fn new(count: usize) -> Self {
        let far = Far::default();
        Self { near: [NEVER; PLACES], len: 1, far, keys: vec![NEVER; count], inserted: 0 }
    }

    /// The next event: when, and whose; at [`Instant::MAX`] for none.
    #[inline]
    pub(crate) fn earliest(&self) -> (Instant, usize) {
        let key = self.near[self.len.wrapping_sub(1) % PLACES];
        (key.due, key.component())
    }

    /// When the first event is due, or the one behind it; [`Instant::MAX`] for none.
    #[inline]
    pub(crate) fn next(&self, behind_first: bool) -> Instant {
        let place = self.len.wrapping_sub(1 + usize::from(behind_first)) % PLACES;
        if place == 0 { self.far.earliest().due } else { self.near[place].due }
    }

    /// When the event of `component` is due; [`Instant::MAX`] for none.
    #[inline]
    pub(crate) fn due(&self, component: usize) -> Instant {
        self.keys[component].due
    }

    /// Replaces the event of `component` by one at `due`; [`Instant::MAX`] for none. An unchanged
    /// time keeps its place among its equals.
    #[inline]
    pub(crate) fn set(&mut self, component: usize, due: Instant) {
        if self.keys[component].due != due {
            self.replace(component, due);
        }
    }

    /// As [`Self::set`] for the component whose event is the first of all.
    #[inline(always)]
    pub(crate) fn set_first(&mut self, component: usize, due: Instant) {
        debug_assert_eq!(self.earliest(), (self.keys[component].due, component));
        if self.keys[component].due == due {
            return;
        }
        self.len -= 1;
        if self.len == 1 {
            self.refill();
        }
        if due == Instant::MAX {
            self.keys[component] = NEVER;
        } else {
            self.insert(component, due);
        }
    }

    #[inline(never)]
    fn replace(&mut self, component: usize, due: Instant) {
        let old = self.keys[component];
        if old.due != Instant::MAX {
            // Mostly it is the first, which just happened.
            if old.order == self.near[self.len.wrapping_sub(1) % PLACES].order {
                self.len -= 1;
            } else {
                self.remove(component, old);
            }
            if self.len == 1 {
                self.refill();
            }
        }
        if due == Instant::MAX {
            self.keys[component] = NEVER;
        } else {
            self.insert(component, due);
        }
    }

    /// Takes the event of a component out.
    fn remove(&mut self, component: usize, old: Key) {
        let latest = self.near[1];
        if self.len == 1 || old > latest {
            self.keys[component] = NEVER;
            return self.far.drop_stale(&self.keys);
        }
        let mut at = self.len - 1;
        let mut moved = self.near[at % PLACES];
        while moved != old {
            at -= 1;
            core::mem::swap(&mut moved, &mut self.near[at % PLACES]);
        }
        self.len -= 1;
    }

    /// Enters an event; a new one comes after all others of the same time.
    #[inline(always)]
    fn insert(&mut self, component: usize, due: Instant) {
        // 2^40 insertions are days of processor time; beyond that equals go by component.
        self.inserted = (self.inserted + 1) & ((1 << ORDER_BITS) - 1);
        let key = Key { due, order: self.inserted << COMPONENT_BITS | component as u64 };
        self.keys[component] = key;
        if self.len == PLACES {
            self.make_room();
        }
        if due >= self.near[1].due && !self.far.is_empty() {
            return self.far.push(key, &self.keys);
        }
        let mut at = self.len;
        self.len += 1;
        loop {
            let later = self.near[at.wrapping_sub(1) % PLACES];
            // The first place is never, and so later than all.
            if later.due > due {
                break;
            }
            self.near[at % PLACES] = later;
            at -= 1;
        }
        self.near[at % PLACES] = key;
    }

    /// The latest half of the short list goes to the others.
    #[cold]
    fn make_room(&mut self) {
        for &key in &self.near[1..PLACES / 2] {
            self.far.push(key, &self.keys);
        }
        self.near.copy_within(PLACES / 2.., 1);
        self.len -= PLACES / 2 - 1;
    }

    /// The short list is empty: the next few of the others come in.
    #[cold]
    fn refill(&mut self) {
        let mut next = [NEVER; PLACES / 2];
        let mut count = 0;
        for place in &mut next {
            let Some(key) = self.far.pop(&self.keys) else { break };
            *place = key;
            count += 1;
        }
        for (place, &key) in self.near[1..].iter_mut().zip(next[..count].iter().rev()) {
            *place = key;
        }
        self.len = 1 + count;
    }
}

/// Events that are not soon: a heap from which none is taken out but the first. An event that is
/// moved or removed stays as a stale copy, which nothing else in the queue equals, until it comes
/// up. So a change costs a push at most, where the timers of many hosts are moved all the time.
#[derive(Debug, Default)]
struct Far {
    /// The first is never stale.
    heap: BinaryHeap<Reverse<Key>>,
}

/// Places beside two for each component; with more, stale copies are thrown out.
const SPARE: usize = 64;

impl Far {
    #[inline]
    fn earliest(&self) -> Key {
        self.heap.peek().map_or(NEVER, |first| first.0)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Enters an event that is the current one of its component.
    #[inline(never)]
    fn push(&mut self, key: Key, current: &[Key]) {
        if self.heap.len() >= 2 * current.len() + SPARE {
            self.heap.retain(|Reverse(key)| is_current(*key, current));
        }
        self.heap.push(Reverse(key));
    }

    /// Takes the first event out.
    #[inline]
    fn pop(&mut self, current: &[Key]) -> Option<Key> {
        let first = self.heap.pop()?.0;
        self.drop_stale(current);
        Some(first)
    }

    /// Takes out what is stale before the first event that is not.
    #[inline]
    fn drop_stale(&mut self, current: &[Key]) {
        while self.heap.peek().is_some_and(|first| !is_current(first.0, current)) {
            self.heap.pop();
        }
    }
}

/// Whether this event is that of its component now.
#[inline]
fn is_current(key: Key, current: &[Key]) -> bool {
    current[key.component()] == key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn equal_times_go_by_insertion_and_an_unchanged_time_keeps_its_place() {
        let mut q = EventQueue::new(5);
        assert_eq!(q.earliest().0, Instant::MAX);
        for component in [3, 1, 4] {
            q.set(component, at(10));
        }
        q.set(3, at(10));
        assert_eq!(q.earliest(), (at(10), 3));
        q.set(3, Instant::MAX);
        assert_eq!(q.earliest(), (at(10), 1));
        q.set(0, at(9));
        assert_eq!(q.earliest(), (at(9), 0));
        assert_eq!((q.due(4), q.due(3)), (at(10), Instant::MAX));
    }

    impl EventQueue {
        /// The short list is sorted, and all in it is before all that is not.
        fn check(&self) {
            assert_eq!(self.near[0], NEVER);
            let near = &self.near[1..self.len];
            assert!(near.windows(2).all(|w| w[0] > w[1]));
            let next = self.far.earliest();
            assert!(near.first().is_none_or(|latest| *latest < next));
            assert!(next == NEVER || is_current(next, &self.keys));
            assert!(self.far.heap.len() <= 2 * self.keys.len() + SPARE);
            let far = self.far.heap.iter().filter(|k| is_current(k.0, &self.keys)).count();
            let set = self.keys.iter().filter(|&&k| k != NEVER).count();
            assert_eq!(near.len() + far, set);
            assert!(!near.is_empty() || set == 0);
        }
    }

    proptest! {
        #[test]
        fn the_earliest_is_that_of_a_sorted_list(
            count in 1..200_usize,
            changes in prop::collection::vec(
                (0..200_usize, prop::option::weighted(0.9, 0..200_u64)),
                1..1200,
            ),
        ) {
            let mut q = EventQueue::new(count);
            let mut list: Vec<(u64, usize, usize)> = Vec::new();
            for (order, (component, due)) in changes.into_iter().enumerate() {
                let component = component % count;
                let (first, due_at) = (q.earliest(), due.map_or(Instant::MAX, at));
                if first.0 < Instant::MAX && first.1 == component {
                    q.set_first(component, due_at);
                } else {
                    q.set(component, due_at);
                }
                if !list.iter().any(|e| e.2 == component && Some(e.0) == due) {
                    list.retain(|e| e.2 != component);
                    list.extend(due.map(|due| (due, order, component)));
                }
                list.sort_unstable();
                let next = Some(q.earliest()).filter(|(due, _)| *due < Instant::MAX);
                prop_assert_eq!(next, list.first().map(|e| (at(e.0), e.2)));
                q.check();
            }
        }
    }
}
