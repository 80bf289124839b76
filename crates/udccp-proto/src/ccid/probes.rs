//! Remembers packets that left with a congestion mark of our own (RFC 4340 section 12.3).

use std::collections::VecDeque;

use udccp_wire::Seqno;

/// Marks remembered at most; they are far apart.
const MAX: usize = 16;

/// Marks of our own of which nothing was reported yet; made with the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probes(
    #[expect(clippy::box_collection, reason = "few connections send any, and there are many")]
    Option<Box<VecDeque<Seqno>>>,
);

impl Probes {
    /// A packet left marked; its number is greater than all before.
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

    /// Whether the packet was one, which it is no longer.
    pub(crate) fn take(&mut self, seq: Seqno) -> bool {
        let Some(marks) = &mut self.0 else { return false };
        let at = marks.iter().position(|&probe| probe == seq);
        at.is_some_and(|at| marks.remove(at).is_some())
    }

    /// The oldest, if it is before `end`.
    pub(crate) fn take_before(&mut self, end: Seqno) -> Option<Seqno> {
        let marks = self.0.as_mut()?;
        let oldest = *marks.front()?;
        if oldest.is_before(end) { marks.pop_front() } else { None }
    }

    /// Whether the packet is one.
    pub(crate) fn contains(&self, seq: Seqno) -> bool {
        self.0.as_ref().is_some_and(|marks| marks.contains(&seq))
    }
}
