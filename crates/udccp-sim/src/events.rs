//! The event queue: who is next?

use udccp_base::Instant;

/// One pending event per component, found by a tournament: every inner node holds the earlier of
/// its two children, so the root is the next event and a change costs one walk to the root. Equal
/// times go by insertion. A walk never stops half-way and has no branch that depends on keys: it
/// would be guessed wrong half of the time, which costs more than the few steps to the root.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// Two siblings each. Node `n` has the children `2 n` and `2 n + 1`, which are pair `n`; the
    /// root is 1, leaves begin at `leaves`.
    pairs: Vec<[Key; 2]>,
    leaves: usize,
    inserted: u64,
}

const COMPONENT_BITS: u32 = 24;
const ORDER_BITS: u32 = 40;
const ROOT: usize = 1;

/// When, in which order of insertion, and whose.
#[derive(Clone, Copy, Debug)]
struct Key {
    due: Instant,
    order: u64,
}

const NEVER: Key = Key { due: Instant::MAX, order: u64::MAX };

impl Key {
    #[inline]
    const fn as_number(self) -> u128 {
        (self.due.as_nanos() as u128) << 64 | self.order as u128
    }

    /// The smaller of two, without a branch.
    #[inline]
    const fn min(self, other: Self) -> Self {
        let is_first = self.as_number() < other.as_number();
        Self {
            due: if is_first { self.due } else { other.due },
            order: if is_first { self.order } else { other.order },
        }
    }
}

impl EventQueue {
    /// Most components that a queue can have.
    pub(crate) const MAX_COMPONENTS: usize = 1 << COMPONENT_BITS;

    /// A queue for components `0..count`, none of them with an event.
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        Self { pairs: vec![[NEVER; 2]; leaves], leaves, inserted: 0 }
    }

    /// The next event: when, and whose.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<(Instant, usize)> {
        let key = self.pairs[ROOT / 2][ROOT % 2];
        let component = key.order as usize & (Self::MAX_COMPONENTS - 1);
        (key.due < Instant::MAX).then_some((key.due, component))
    }

    /// When the event of `component` is due; [`Instant::MAX`] for none.
    #[inline]
    pub(crate) fn due(&self, component: usize) -> Instant {
        let leaf = self.leaves + component;
        self.pairs[leaf / 2][leaf % 2].due
    }

    /// Replaces the event of `component`. An unchanged time keeps its place among its equals.
    #[inline]
    pub(crate) fn set(&mut self, component: usize, due: Option<Instant>) {
        let due = due.unwrap_or(Instant::MAX);
        if self.due(component) == due {
            return;
        }
        let mut key = NEVER;
        if due != Instant::MAX {
            // 2^40 insertions are days of processor time; beyond that equals go by component.
            self.inserted = (self.inserted + 1) & ((1 << ORDER_BITS) - 1);
            key = Key { due, order: self.inserted << COMPONENT_BITS | component as u64 };
        }
        let pairs = self.pairs.as_mut_slice();
        let mut at = self.leaves + component;
        while at > ROOT {
            let pair = &mut pairs[at / 2];
            pair[at % 2] = key;
            key = key.min(pair[(at % 2) ^ 1]);
            at /= 2;
        }
        pairs[ROOT / 2][ROOT % 2] = key;
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
        assert_eq!(q.earliest(), None);
        for component in [3, 1, 4] {
            q.set(component, Some(at(10)));
        }
        q.set(3, Some(at(10)));
        assert_eq!(q.earliest(), Some((at(10), 3)));
        q.set(3, None);
        assert_eq!(q.earliest(), Some((at(10), 1)));
        q.set(0, Some(at(9)));
        assert_eq!(q.earliest(), Some((at(9), 0)));
        assert_eq!((q.due(4), q.due(3)), (at(10), Instant::MAX));
    }

    proptest! {
        #[test]
        fn the_earliest_is_that_of_a_sorted_list(
            count in 1..70_usize,
            changes in prop::collection::vec((0..70_usize, prop::option::of(0..50_u64)), 1..400),
        ) {
            let mut q = EventQueue::new(count);
            let mut list: Vec<(u64, usize, usize)> = Vec::new();
            for (order, (component, due)) in changes.into_iter().enumerate() {
                let component = component % count;
                q.set(component, due.map(at));
                if !list.iter().any(|e| e.2 == component && Some(e.0) == due) {
                    list.retain(|e| e.2 != component);
                    list.extend(due.map(|due| (due, order, component)));
                }
                list.sort_unstable();
                prop_assert_eq!(q.earliest(), list.first().map(|e| (at(e.0), e.2)));
            }
        }
    }
}
