//! Remembers packets that we sent with a congestion mark of our own (RFC 4340 section 12.3).

use std::collections::VecDeque;

use udccp_wire::Seqno;

/// Largest number of marks to remember. They are sent far apart.
const MAX: usize = 16;

/// Our own marks that have not been reported yet. Allocated with the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probes(
    #[expect(clippy::box_collection, reason = "few connections send any, and there are many")]
    Option<Box<VecDeque<Seqno>>>,
);

impl Probes {
    /// Records a packet sent with a mark. Its sequence number is greater than all before.
    pub(crate) fn push(&mut self, seq: Seqno) {
        let marks = self.0.get_or_insert_default();
        if marks.len() == MAX {
            marks.pop_front();
        }
        marks.push_back(seq);
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|marks| marks.is_empty())
    }

    /// Removes the packet. Returns whether it was marked.
    pub(crate) fn take(&mut self, seq: Seqno) -> bool {
        let Some(marks) = &mut self.0 else { return false };
        let at = marks.iter().position(|&probe| probe == seq);
        at.is_some_and(|at| marks.remove(at).is_some())
    }

    /// Removes and returns the oldest marked packet if it is before `end`.
    pub(crate) fn take_before(&mut self, end: Seqno) -> Option<Seqno> {
        let marks = self.0.as_mut()?;
        let oldest = *marks.front()?;
        if oldest.is_before(end) { marks.pop_front() } else { None }
    }

    /// Whether the packet was marked.
    pub(crate) fn contains(&self, seq: Seqno) -> bool {
        self.0.as_ref().is_some_and(|marks| marks.contains(&seq))
    }
}
