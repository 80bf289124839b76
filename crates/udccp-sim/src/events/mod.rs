//! The event queue: which component has the next event.

mod wheel;

use core::cmp::Ordering;

use udccp_base::Instant;

pub(crate) use wheel::Event;
use wheel::{NONE, Wheel};

const COMPONENT_BITS: u32 = 24;

/// Time, order of insertion, and component of an event. Equal times are ordered by insertion.
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

/// Size of the short list: a power of two, since an index is masked instead of checked.
const PLACES: usize = 32;

/// A list of keys. Times and orders are apart, so that a processor can address either by its index.
#[derive(Debug)]
struct Near {
    due: [Instant; PLACES],
    order: [u64; PLACES],
}

impl Near {
    const EMPTY: Self = Self { due: [NEVER.due; PLACES], order: [NEVER.order; PLACES] };

    #[inline(always)]
    const fn get(&self, at: usize) -> Key {
        Key { due: self.due[at % PLACES], order: self.order[at % PLACES] }
    }

    #[inline(always)]
    const fn put(&mut self, at: usize, key: Key) {
        self.due[at % PLACES] = key.due;
        self.order[at % PLACES] = key.order;
    }
}

/// One pending event per component. The next few events of all are in a short sorted list, the
/// others in a timing wheel. Nearly every change is to one of the next few: a packet that leaves a
/// link sets at most two events, both due within about a packet's time, while the timers of hosts
/// are far away. So a change costs a few steps in the short list, whatever the number of
/// components.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// The next events, latest first, each before all that are in `far`. The first entry is always
    /// [`NEVER`], and stops a search.
    near: Near,
    /// The place of the next event; 0 if there is none.
    last: usize,
    far: Wheel,
    /// The event of each component.
    events: Vec<Event>,
    inserted: u64,
}

impl EventQueue {
    /// Maximum number of components that a queue can have.
    pub(crate) const MAX_COMPONENTS: usize = 1 << COMPONENT_BITS;

    /// A queue for components `0..count`, none of them with an event.
    pub(crate) fn new(count: usize) -> Self {
        let events = vec![Event::at(NEVER); count];
        Self { near: Near::EMPTY, last: 0, far: Wheel::default(), events, inserted: 0 }
    }

    /// Time and component of the next event; [`Instant::MAX`] if there is none.
    #[inline]
    pub(crate) fn earliest(&self) -> (Instant, usize) {
        let key = self.near.get(self.last);
        (key.due, key.component())
    }

    /// When the event of `component` is due; [`Instant::MAX`] if it has none.
    #[inline]
    pub(crate) fn due(&self, component: usize) -> Instant {
        self.events[component].key.due
    }

    /// Replaces the event of `component` by one at `due`, or removes it for [`Instant::MAX`]. If
    /// the time is unchanged, so is its order among events of the same time.
    #[inline]
    pub(crate) fn set(&mut self, component: usize, due: Instant) {
        match self.events[component].key.due {
            old if old == due => {}
            Instant::MAX => self.insert(component, due),
            _ => self.replace(component, due),
        }
    }

    /// Moves the event of `component` behind all others of its time.
    #[cold]
    pub(crate) fn put_last(&mut self, component: usize) {
        let due = self.due(component);
        self.set(component, Instant::MAX);
        self.set(component, due);
    }

    /// Like [`Self::set`], for the component whose event is the first of all, and for another time.
    #[inline(always)]
    pub(crate) fn set_first(&mut self, component: usize, due: Instant) {
        debug_assert_eq!(self.earliest(), (self.events[component].key.due, component));
        debug_assert!(self.events[component].key.due != due, "another time");
        if self.last > 1 && due < self.near.due[1] {
            // It stays in the list, as nearly always.
            let key = self.next_key(component, due);
            return self.settle(key);
        }
        self.last -= 1;
        if self.last == 0 {
            self.refill();
        }
        self.put(component, due);
    }

    /// The same if the component has an event, at another time.
    #[inline(never)]
    fn replace(&mut self, component: usize, due: Instant) {
        let old = self.events[component].key;
        // Usually it is the first, which has just been processed.
        if old.order == self.near.get(self.last).order {
            self.last -= 1;
        } else {
            self.remove(component, old);
        }
        if self.last == 0 {
            self.refill();
        }
        self.put(component, due);
    }

    /// Gives a component that has no event one at `due`, or none for [`Instant::MAX`].
    #[inline(always)]
    fn put(&mut self, component: usize, due: Instant) {
        if due == Instant::MAX {
            self.events[component].key = NEVER;
        } else {
            self.insert(component, due);
        }
    }

    /// Removes the event of a component.
    fn remove(&mut self, component: usize, old: Key) {
        let latest = self.near.get(1);
        if self.last == 0 || old > latest {
            return self.far.remove(component as u32, &mut self.events);
        }
        let mut at = self.last;
        let mut moved = self.near.get(at);
        while moved != old {
            at -= 1;
            let next = self.near.get(at);
            self.near.put(at, moved);
            moved = next;
        }
        self.last -= 1;
    }

    /// Inserts an event of a component that has none, after all others of the same time.
    #[inline(never)]
    fn insert(&mut self, component: usize, due: Instant) {
        if self.last == PLACES - 1 {
            // The rest is done by a call at the end, so that no register has to be saved.
            return self.insert_with_room(component, due);
        }
        let key = self.next_key(component, due);
        if due >= self.near.due[1] && !self.far.is_empty() {
            return self.far.push(component as u32, &mut self.events);
        }
        self.last += 1;
        self.settle(key);
    }

    /// The same if the short list is full.
    #[cold]
    fn insert_with_room(&mut self, component: usize, due: Instant) {
        self.make_room();
        self.insert(component, due);
    }

    /// Gives a component an event at `due`, after all others of the same time.
    #[inline(always)]
    fn next_key(&mut self, component: usize, due: Instant) -> Key {
        // 2^40 insertions take days. Beyond that, the bits of the order that are used wrap, and the
        // order of equal times changes.
        self.inserted += 1;
        let key = Key { due, order: self.inserted << COMPONENT_BITS | component as u64 };
        self.events[component].key = key;
        key
    }

    /// Puts an event in the short list, whose last entry is vacant.
    #[inline(always)]
    fn settle(&mut self, key: Key) {
        let Near { due, order } = &mut self.near;
        // So the compiler knows that all places are in the arrays.
        let mut at = self.last % PLACES;
        while at > 0 && due[at - 1] <= key.due {
            (due[at], order[at]) = (due[at - 1], order[at - 1]);
            at -= 1;
        }
        (due[at], order[at]) = (key.due, key.order);
    }

    /// Moves the later half of the short list to the wheel.
    #[cold]
    fn make_room(&mut self) {
        for at in 1..PLACES / 2 {
            self.far.push(self.near.get(at).component() as u32, &mut self.events);
        }
        self.near.due.copy_within(PLACES / 2.., 1);
        self.near.order.copy_within(PLACES / 2.., 1);
        self.last -= PLACES / 2 - 1;
    }

    /// The short list is empty: moves the next few events from the wheel to it.
    #[cold]
    fn refill(&mut self) {
        let mut first = [NEVER; PLACES / 2];
        let mut count = 0;
        while count < first.len() {
            let mut at = self.far.take_first(&mut self.events);
            if at == NONE {
                break;
            }
            while at != NONE {
                let key = self.events[at as usize].key;
                at = wheel::after(at, &self.events);
                if count < first.len() {
                    count += 1;
                } else {
                    // No room: the latest goes back to the wheel.
                    let latest = key.max(first[count - 1]);
                    self.far.push(latest.component() as u32, &mut self.events);
                    if latest == key {
                        continue;
                    }
                }
                let mut place = count - 1;
                while place > 0 && first[place - 1] > key {
                    first[place] = first[place - 1];
                    place -= 1;
                }
                first[place] = key;
            }
        }
        for (at, &key) in first[..count].iter().rev().enumerate() {
            self.near.put(1 + at, key);
        }
        self.last = count;
    }
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

    #[test]
    fn an_event_moved_last_comes_after_all_of_its_time_and_before_later_ones() {
        let mut q = EventQueue::new(3);
        for (component, ns) in [(0, 10), (1, 10), (2, 11)] {
            q.set(component, at(ns));
        }
        q.put_last(0);
        let mut order = Vec::new();
        while q.earliest().0 != Instant::MAX {
            let (due, component) = q.earliest();
            order.push((component, due));
            q.set(component, Instant::MAX);
        }
        assert_eq!(order, [(1, at(10)), (0, at(10)), (2, at(11))]);
    }

    impl EventQueue {
        /// Checks that the short list is sorted, and that its events are before all others.
        fn check(&self) {
            assert_eq!(self.near.get(0), NEVER);
            let near: Vec<Key> = (1..=self.last).map(|at| self.near.get(at)).collect();
            assert!(near.windows(2).all(|w| w[0] > w[1]));
            let mut all = self.far.keys(&self.events);
            assert_eq!(all.is_empty(), self.far.is_empty());
            assert!(near.first().is_none_or(|latest| all.iter().all(|key| latest < key)));
            all.extend(&near);
            all.sort_unstable();
            let mut set: Vec<Key> = self.events.iter().map(|e| e.key).collect();
            set.retain(|key| *key != NEVER);
            set.sort_unstable();
            assert_eq!(all, set);
            assert!(!near.is_empty() || set.is_empty());
        }
    }

    proptest! {
        #[test]
        fn the_earliest_is_that_of_a_sorted_list(
            count in 1..200_usize,
            unit in 0..50_u32,
            changes in prop::collection::vec(
                (0..200_usize, prop::option::weighted(0.9, 0..200_u64)),
                1..1200,
            ),
        ) {
            let mut q = EventQueue::new(count);
            let mut list: Vec<(u64, usize, usize)> = Vec::new();
            for (order, (component, due)) in changes.into_iter().enumerate() {
                let (component, due) = (component % count, due.map(|due| due << unit));
                let (first, due_at) = (q.earliest(), due.map_or(Instant::MAX, at));
                if first.0 < Instant::MAX && first.1 == component && first.0 != due_at {
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
