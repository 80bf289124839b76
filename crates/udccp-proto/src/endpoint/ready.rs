//! A queue of connections that may have something to send.

use std::collections::VecDeque;

/// No connection.
const NOBODY: u32 = u32::MAX;

/// Indices of connections in order of their turns. Usually there is at most one, which is stored
/// apart from the others.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    first: u32,
    /// How many packets the first has sent in its turn.
    pub(super) turn: u32,
    #[expect(clippy::box_collection, reason = "few endpoints have any, and there are many")]
    others: Option<Box<VecDeque<u32>>>,
}

impl Ready {
    /// An empty queue.
    pub(super) const fn new() -> Self {
        Self { first: NOBODY, turn: 0, others: None }
    }

    /// Whether no connection is ready.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NOBODY
    }

    /// The connection whose turn it is.
    #[inline]
    pub(super) fn front(&self) -> Option<u32> {
        (self.first != NOBODY).then_some(self.first)
    }

    /// All connections in the queue.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.front().into_iter().chain(self.others.iter().flat_map(|others| others.iter().copied()))
    }

    /// Whether others wait for their turns.
    #[inline]
    pub(super) fn has_others(&self) -> bool {
        self.others.as_ref().is_some_and(|others| !others.is_empty())
    }

    /// Adds a connection that is not in the queue, behind all others.
    #[inline(always)]
    pub(super) fn push_back(&mut self, index: u32) {
        if self.first == NOBODY {
            self.first = index;
        } else {
            self.others.get_or_insert_default().push_back(index);
        }
    }

    /// Ends a turn and removes the connection.
    #[inline]
    pub(super) fn pop_front(&mut self) {
        self.turn = 0;
        self.first = match &mut self.others {
            None => NOBODY,
            Some(others) => others.pop_front().unwrap_or(NOBODY),
        };
    }

    /// Ends a turn and puts the connection last.
    pub(super) fn rotate(&mut self) {
        let index = self.first;
        self.pop_front();
        self.push_back(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_connections_are_served_in_order_of_arrival() {
        let mut ready = Ready::new();
        assert!(ready.is_empty() && ready.front().is_none());
        ready.push_back(7);
        ready.rotate();
        assert!(ready.front() == Some(7) && !ready.has_others());
        ready.push_back(3);
        ready.push_back(5);
        ready.rotate();
        assert_eq!(ready.all().collect::<Vec<_>>(), [3, 5, 7]);
        let mut turns = Vec::new();
        while let Some(index) = ready.front() {
            turns.push((index, ready.has_others()));
            ready.pop_front();
        }
        assert_eq!(turns, [(3, true), (5, true), (7, false)]);
        assert!(ready.is_empty());
    }
}
