//! Remembers packets that left with a congestion mark of our own (RFC 4340 section 12.3).

use std::collections::VecDeque;

use udccp_wire::Seqno;

/// Marks remembered at most; they are far apart.
const MAX: usize = 16;

/// Marks of our own of which nothing was reported yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probes(VecDeque<Seqno>);

impl Probes {
    /// A packet left marked; its number is greater than all before.
    pub(crate) fn push(&mut self, seq: Seqno) {
        if self.0.len() == MAX {
            self.0.pop_front();
        }
        self.0.push_back(seq);
    }

    /// Whether the packet was one, which it is no longer.
    pub(crate) fn take(&mut self, seq: Seqno) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let at = self.0.iter().position(|&probe| probe == seq);
        at.is_some_and(|at| self.0.remove(at).is_some())
    }

    /// The oldest, if it is before `end`.
    pub(crate) fn take_before(&mut self, end: Seqno) -> Option<Seqno> {
        let oldest = *self.0.front()?;
        if oldest.is_before(end) { self.0.pop_front() } else { None }
    }

    /// Whether the packet is one.
    pub(crate) fn contains(&self, seq: Seqno) -> bool {
        self.0.contains(&seq)
    }
}
