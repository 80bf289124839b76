//! The event queue: who is next?

use udccp_base::Instant;

/// One pending event per component, found by a tournament: every inner node holds the smaller of
/// its two children, so the root is the next event and a change costs one walk to the root. Keys
/// are (time, insertion order, component) in one integer; equal times go by insertion.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// Node `i` has the children `2 i` and `2 i + 1`; leaves begin at `leaves`.
    nodes: Vec<u128>,
    leaves: usize,
    inserted: u64,
}

const COMPONENT_BITS: u32 = 24;
const ORDER_BITS: u32 = 40;
const NEVER: u128 = u128::MAX;

impl EventQueue {
    /// Most components that a queue can have.
    pub(crate) const MAX_COMPONENTS: usize = 1 << COMPONENT_BITS;

    /// A queue for components `0..count`, none of them with an event.
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        Self { nodes: vec![NEVER; 2 * leaves], leaves, inserted: 0 }
    }

    /// The next event: when, and whose.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<(Instant, usize)> {
        let key = self.nodes[1];
        (key != NEVER).then(|| (time_of(key), (key as usize) & (Self::MAX_COMPONENTS - 1)))
    }

    /// When the event of `component` is due; [`Instant::MAX`] for none.
    #[inline]
    pub(crate) fn due(&self, component: usize) -> Instant {
        time_of(self.nodes[self.leaves + component])
    }

    /// Replaces the event of `component`. An unchanged time keeps its place among its equals.
    #[inline]
    pub(crate) fn set(&mut self, component: usize, due: Option<Instant>) {
        let due = due.unwrap_or(Instant::MAX);
        let mut at = self.leaves + component;
        if time_of(self.nodes[at]) == due {
            return;
        }
        let mut key = NEVER;
        if due != Instant::MAX {
            // 2^40 insertions are days of processor time; beyond that equals go by component.
            self.inserted = (self.inserted + 1) & ((1 << ORDER_BITS) - 1);
            key = u128::from(due.as_nanos()) << 64
                | u128::from(self.inserted << COMPONENT_BITS | component as u64);
        }
        self.nodes[at] = key;
        while at > 1 {
            let winner = key.min(self.nodes[at ^ 1]);
            at /= 2;
            if self.nodes[at] == winner {
                break;
            }
            self.nodes[at] = winner;
            key = winner;
        }
    }
}

#[inline]
const fn time_of(key: u128) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
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
            count in 1..40_usize,
            changes in prop::collection::vec((0..40_usize, prop::option::of(0..50_u64)), 1..400),
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
