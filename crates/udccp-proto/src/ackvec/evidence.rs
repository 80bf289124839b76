//! Keeps the newest received packets, which show that earlier ones are lost.

use udccp_wire::Seqno;

/// Later packets that must be acknowledged before a packet counts as lost (RFC 4341 section 5).
pub(crate) const NUMDUPACK: usize = 3;

/// The newest packets known to be received, with or without data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    newest: [Seqno; NUMDUPACK],
    known: usize,
}

impl Evidence {
    /// Adds the newest packets of a run, at most `wanted`. Returns how many are still wanted.
    #[inline(always)]
    pub(crate) fn add_run(&mut self, newest: Seqno, oldest: Seqno, wanted: usize) -> usize {
        if self.is_replaced_by(newest, oldest) && wanted == NUMDUPACK {
            // The normal case.
            self.replace(newest);
            return 0;
        }
        self.add_each(newest, oldest, wanted)
    }

    /// Whether the newest packets of this run replace all others.
    #[inline(always)]
    pub(crate) fn is_replaced_by(&self, newest: Seqno, oldest: Seqno) -> bool {
        let is_newest = self.known == 0 || newest.at_least(self.newest[0]);
        is_newest && newest.distance_from(oldest) >= NUMDUPACK as i64 - 1
    }

    /// Adds such a run.
    #[inline(always)]
    pub(crate) fn replace(&mut self, newest: Seqno) {
        self.newest = [newest, newest.sub(1), newest.sub(2)];
        self.known = NUMDUPACK;
    }

    #[inline(never)]
    fn add_each(&mut self, newest: Seqno, oldest: Seqno, mut wanted: usize) -> usize {
        let mut seq = newest;
        while wanted > 0 && seq.at_least(oldest) {
            self.add(seq);
            seq = seq.prev();
            wanted -= 1;
        }
        wanted
    }

    fn add(&mut self, seq: Seqno) {
        let known = &self.newest[..self.known];
        let place = known.iter().position(|&k| seq.at_least(k)).unwrap_or(self.known);
        if place == NUMDUPACK || known.get(place) == Some(&seq) {
            return;
        }
        self.known = (self.known + 1).min(NUMDUPACK);
        self.newest[place..self.known].rotate_right(1);
        self.newest[place] = seq;
    }

    /// Packets before this one are lost if no report says that they arrived.
    pub(crate) fn third_newest(&self) -> Option<Seqno> {
        (self.known == NUMDUPACK).then(|| self.newest[NUMDUPACK - 1])
    }
}
