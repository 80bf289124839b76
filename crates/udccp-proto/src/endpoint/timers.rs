//! Orders connections by their next wake-up, in a binary heap that knows where each entry is.

use udccp_base::{Instant, MaybeInstant};

const NOWHERE: u32 = u32::MAX;

/// The next wake-up of each connection. Most endpoints have one connection only; a heap is made for
/// the second.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// The earliest of all.
    at: MaybeInstant,
    /// Its connection; without a heap, the only connection.
    who: u32,
    /// All of them, once there have been several connections.
    heap: Option<Box<TimerHeap>>,
}

impl Default for Timers {
    fn default() -> Self {
        Self { at: MaybeInstant::NONE, who: NOWHERE, heap: None }
    }
}

impl Timers {
    /// The earliest wake-up.
    #[inline]
    pub(super) fn earliest(&self) -> MaybeInstant {
        self.at
    }

    /// The earliest wake-up, and its connection.
    #[inline]
    pub(super) fn peek(&self) -> Option<(Instant, u32)> {
        self.at.get().map(|at| (at, self.who))
    }

    /// Sets, moves or (none) removes the wake-up of connection `who`.
    #[inline]
    pub(super) fn set(&mut self, who: u32, at: MaybeInstant) {
        if self.who == who && self.heap.is_none() {
            self.at = at;
        } else {
            self.set_among_others(who, at);
        }
    }

    #[inline(never)]
    fn set_among_others(&mut self, who: u32, at: MaybeInstant) {
        if self.who == NOWHERE && self.heap.is_none() {
            (self.who, self.at) = (who, at);
            return;
        }
        let (only, its) = (self.who, self.at);
        let heap = self.heap.get_or_insert_with(|| {
            let mut heap = TimerHeap::default();
            heap.set(only, its.get());
            Box::new(heap)
        });
        heap.set(who, at.get());
        let first = heap.heap.first();
        self.at = first.map(|(at, _)| *at).into();
        self.who = first.map_or(NOWHERE, |(_, who)| *who);
    }
}

/// Orders connections by their wake-ups, and moves any in O(log n).
#[derive(Clone, Debug, Default)]
struct TimerHeap {
    heap: Vec<(Instant, u32)>,
    /// Position of each connection in the heap.
    place: Vec<u32>,
}

impl TimerHeap {
    /// Sets, moves or (none) removes the wake-up of connection `who`.
    fn set(&mut self, who: u32, at: Option<Instant>) {
        let needed = who as usize + 1;
        if self.place.len() < needed {
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
    fn the_earliest_timer_comes_first_among_few_and_many_connections() {
        let mut rng = Seed(7).stream("timer heap");
        for connections in [1, 2, 50] {
            let (mut timers, mut model) = (Timers::default(), vec![None; 50]);
            for _ in 0..5000 {
                let who = rng.below(connections) as u32;
                let at = rng.chance(0.8).then(|| Instant::from_nanos(rng.below(1000)));
                timers.set(who, at.into());
                model[who as usize] = at;
                let earliest = model.iter().flatten().min().copied();
                assert_eq!(timers.peek().map(|top| top.0), earliest);
                assert_eq!(timers.earliest().get(), earliest);
                if let Some((at, who)) = timers.peek() {
                    assert_eq!(model[who as usize], Some(at));
                }
            }
            assert_eq!(timers.heap.is_some(), connections > 1);
        }
    }
}
