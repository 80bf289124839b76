//! Orders connections by their next wake-up, in a binary heap that knows where each entry is.

use udccp_base::{Instant, MaybeInstant};

const NOWHERE: u32 = u32::MAX;

/// Finds the earliest wake-up, and moves any in O(log n).
#[derive(Clone, Debug, Default)]
pub(super) struct TimerHeap {
    heap: Vec<(Instant, u32)>,
    /// Position of each connection in the heap.
    place: Vec<u32>,
}

impl TimerHeap {
    /// The earliest wake-up.
    #[inline]
    pub(super) fn earliest(&self) -> MaybeInstant {
        // An instant that never comes is none.
        self.heap.first().map_or(MaybeInstant::NONE, |(at, _)| MaybeInstant::some(*at))
    }

    /// The earliest wake-up, and its connection.
    #[inline]
    pub(super) fn peek(&self) -> Option<(Instant, u32)> {
        self.heap.first().copied().filter(|(at, _)| *at != Instant::MAX)
    }

    /// Sets, moves or (none) removes the wake-up of connection `who`. If it is the only one, it
    /// is set to never instead of being removed, since it is usually set again soon.
    #[inline]
    pub(super) fn set(&mut self, who: u32, at: MaybeInstant) {
        match &mut self.heap[..] {
            [(due, whose)] if *whose == who => *due = at.get().unwrap_or(Instant::MAX),
            _ => self.set_among_others(who, at.get()),
        }
    }

    fn set_among_others(&mut self, who: u32, at: Option<Instant>) {
        let needed = who as usize + 1;
        if self.place.len() < needed {
            if self.heap.capacity() == 0 {
                // Most endpoints have one connection only.
                self.heap.reserve_exact(1);
            }
            self.place.resize(needed, NOWHERE);
        }
        let at_place = self.place[who as usize];
        match (at, at_place) {
            (None, NOWHERE) => {}
            (None, place) => self.remove(place as usize),
            (Some(at), NOWHERE) => {
                self.heap.push((at, who));
                self.up(self.heap.len() - 1);
            }
            (Some(at), place) => {
                let place = place as usize;
                if self.heap[place].0 != at {
                    self.heap[place].0 = at;
                    self.up(place);
                    self.down(self.place[who as usize] as usize);
                }
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let (_, who) = self.heap.swap_remove(place);
        self.place[who as usize] = NOWHERE;
        if let Some(&(_, moved)) = self.heap.get(place) {
            self.up(place);
            self.down(self.place[moved as usize] as usize);
        }
    }

    fn up(&mut self, mut place: usize) {
        let item = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= item {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, item);
    }

    fn down(&mut self, mut place: usize) {
        let item = self.heap[place];
        loop {
            let left = 2 * place + 1;
            let Some(&first) = self.heap.get(left) else { break };
            let right = self.heap.get(left + 1).is_some_and(|r| *r < first);
            let child = left + usize::from(right);
            if self.heap[child] >= item {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, item);
    }

    fn put(&mut self, place: usize, item: (Instant, u32)) {
        self.heap[place] = item;
        self.place[item.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use udccp_base::Seed;

    #[test]
    fn the_heap_returns_the_earliest_timer_first() {
        let mut rng = Seed(7).stream("timer heap");
        let (mut heap, mut model) = (TimerHeap::default(), vec![None; 50]);
        for _ in 0..5000 {
            let who = rng.below(50) as u32;
            let at = rng.chance(0.8).then(|| Instant::from_nanos(rng.below(1000)));
            heap.set(who, at.into());
            model[who as usize] = at;
            let earliest = model.iter().flatten().min().copied();
            assert_eq!(heap.peek().map(|top| top.0), earliest);
            if let Some((at, who)) = heap.peek() {
                assert_eq!(model[who as usize], Some(at));
            }
        }
    }
}
