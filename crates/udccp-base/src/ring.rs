//! A first-in, first-out queue in a ring whose size is a power of two.

use core::fmt;

/// Size of the first allocation.
const FIRST_PLACES: usize = 4;

/// A queue like `VecDeque`, for one end each: a place is found with a mask, which takes fewer
/// instructions than a comparison. Places that hold nothing have the default value.
#[derive(Clone, Default)]
pub struct Ring<T> {
    /// None, or a power of two of them.
    places: Box<[T]>,
    /// Of the oldest value, and of the next one: modulo 2^32, and masked for the place.
    first: u32,
    next: u32,
}

impl<T: Default> Ring<T> {
    /// Number of values.
    #[inline]
    pub const fn len(&self) -> usize {
        self.next.wrapping_sub(self.first) as usize
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.next == self.first
    }

    /// Adds a value behind all others.
    #[inline(always)]
    pub fn push(&mut self, value: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let place = self.place(self.next);
        if let Some(place) = self.places.get_mut(place) {
            *place = value;
            self.next = self.next.wrapping_add(1);
        }
    }

    /// Takes the oldest value.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let place = self.place(self.first);
        self.first = self.first.wrapping_add(1);
        self.places.get_mut(place).map(core::mem::take)
    }

    /// Removes all values, and keeps the places.
    pub fn clear(&mut self) {
        while self.pop().is_some() {}
    }

    /// The oldest value.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.places.get(self.place(self.first)) }
    }

    /// The value with so many older ones.
    #[inline]
    pub fn get(&self, older: usize) -> Option<&T> {
        let at = self.first.wrapping_add(older as u32);
        if older < self.len() { self.places.get(self.place(at)) } else { None }
    }

    /// How many values there are from the oldest to the last for which `is_before` is true. If it
    /// is true for one, it must be true for all older ones.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.get(middle).is_some_and(&is_before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    #[inline(always)]
    const fn place(&self, at: u32) -> usize {
        at as usize & self.places.len().wrapping_sub(1)
    }

    /// Doubles the number of places.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = self.len();
        let count = (2 * len).max(FIRST_PLACES);
        let mut places = Vec::with_capacity(count);
        places.extend(core::iter::from_fn(|| self.pop()));
        places.resize_with(count, T::default);
        *self = Self { places: places.into_boxed_slice(), first: 0, next: len as u32 };
    }
}

impl<T: Default + fmt::Debug> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((0..self.len()).filter_map(|older| self.get(older))).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::Seed;

    #[test]
    fn it_is_a_queue_of_any_length_and_at_any_place() {
        let mut rng = Seed(7).stream("ring");
        for start in [0, u32::MAX - 30] {
            let mut ring = Ring::<u64> { first: start, next: start, ..Ring::default() };
            let mut queue = VecDeque::new();
            for value in 0..10_000 {
                // Longer and shorter for some time.
                if rng.below(20) < if value / 500 % 2 == 0 { 11 } else { 9 } {
                    ring.push(value);
                    queue.push_back(value);
                } else {
                    assert_eq!(ring.pop(), queue.pop_front());
                }
                assert_eq!((ring.len(), ring.is_empty()), (queue.len(), queue.is_empty()));
                assert_eq!(ring.front(), queue.front());
                let older = rng.below(60) as usize;
                assert_eq!(ring.get(older), queue.get(older));
                let bound = value.saturating_sub(rng.below(100));
                let before = queue.partition_point(|v| *v < bound);
                assert_eq!(ring.partition_point(|v| *v < bound), before);
            }
            assert_eq!(format!("{ring:?}"), format!("{queue:?}"));
            ring.clear();
            assert_eq!((ring.len(), ring.front()), (0, None));
        }
    }
}
