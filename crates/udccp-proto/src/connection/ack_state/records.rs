//! Samples the packets in flight that carried the whole Ack Vector. When the peer is known to have
//! one of them, what it reported can be forgotten (RFC 4340 section 11.1).

use udccp_wire::Seqno;

use crate::ackvec::is_received_at_all;

const KEPT: usize = 8;

/// As many as the handshake needs.
const FEW: usize = 2;

/// A sample of packets that carried the whole Ack Vector, newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct AckRecords {
    sent: Sent,
    len: usize,
}

#[derive(Clone, Debug)]
enum Sent {
    Few([Seqno; FEW]),
    /// Used once there are more than `FEW`.
    Kept(Box<[Seqno; KEPT]>),
}

impl Default for Sent {
    fn default() -> Self {
        Self::Few([Seqno::ZERO; FEW])
    }
}

impl AckRecords {
    /// Our packet `seq` was sent with the whole vector.
    #[inline]
    pub(super) fn on_sent(&mut self, seq: Seqno) {
        let len = self.len;
        match self.places().get_mut(len) {
            Some(place) => *place = seq,
            None => self.put_after_others(seq),
        }
        self.len += 1;
    }

    #[inline(never)]
    fn put_after_others(&mut self, seq: Seqno) {
        self.make_room();
        let len = self.len;
        self.places()[len] = seq;
    }

    fn make_room(&mut self) {
        match &mut self.sent {
            Sent::Few(few) => {
                let mut sent = Box::new([Seqno::ZERO; KEPT]);
                sent[..FEW].copy_from_slice(few);
                self.sent = Sent::Kept(sent);
            }
            Sent::Kept(sent) => {
                // Drop every other one, but never the oldest: the rest still spans everything in
                // flight.
                for i in 0..KEPT / 2 {
                    sent[i] = sent[2 * i];
                }
                self.len = KEPT / 2;
            }
        }
    }

    /// The oldest packet of the sample.
    #[inline]
    pub(super) fn oldest(&self) -> Option<Seqno> {
        let first = match &self.sent {
            Sent::Few(few) => few[0],
            Sent::Kept(sent) => sent[0],
        };
        (self.len > 0).then_some(first)
    }

    #[inline]
    fn places(&mut self) -> &mut [Seqno] {
        match &mut self.sent {
            Sent::Few(few) => few,
            Sent::Kept(sent) => &mut sent[..],
        }
    }

    /// Returns the newest of our packets with a vector that the peer is known to have, by its
    /// acknowledgement number or its Ack Vector. Older records are dropped, even of packets that
    /// the peer reports missing: a newer packet has arrived, and serves as well. So are records of
    /// packets before those that the Ack Vector reports: later ones will not report them either.
    #[inline]
    pub(super) fn newest_known(&mut self, ackno: Seqno, cells: Option<&[u8]>) -> Option<Seqno> {
        self.oldest().filter(|oldest| oldest.at_most(ackno))?;
        self.newest_known_of(self.len, ackno, cells.unwrap_or_default())
    }

    #[inline(never)]
    fn newest_known_of(&mut self, len: usize, ackno: Seqno, cells: &[u8]) -> Option<Seqno> {
        let mut candidates = self.places()[..len].partition_point(|seq| seq.at_most(ackno));
        while candidates > 0 {
            let seq = self.places()[candidates - 1];
            match is_received_at_all(seq, ackno, cells) {
                Some(true) => {
                    self.forget(0, candidates);
                    return Some(seq);
                }
                None if cells.is_empty() => {}
                Some(false) | None => self.forget(candidates - 1, candidates),
            }
            candidates -= 1;
        }
        None
    }

    fn forget(&mut self, from: usize, to: usize) {
        let len = self.len;
        self.places().copy_within(to..len, from);
        self.len -= to - from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_received_one_is_found_among_lost_ones() {
        let seq = Seqno::new;
        let mut records = AckRecords::default();
        for n in [1, 4, 7, 10, 13, 16, 19, 22, 25, 28] {
            records.on_sent(seq(n));
        }
        let len = records.len;
        assert_eq!(records.places()[..len], [1, 7, 13, 19, 25, 28].map(seq));
        // Up to 26: 26 received, 25 and 24 missing, 23 to 18 received, the rest not reported.
        let cells = [0, 0xc1, 0x05];
        assert_eq!(records.newest_known(seq(26), Some(&cells)), Some(seq(19)));
        assert_eq!(records.newest_known(seq(26), Some(&cells)), None);
        assert_eq!(records.newest_known(seq(28), None), Some(seq(28)));
        assert_eq!(records.newest_known(seq(29), Some(&[63])), None);
    }

    /// Regression: a packet that was never reported stayed the oldest, and the others of the sample
    /// were always too new to have been reported.
    #[test]
    fn one_that_is_not_reported_any_more_makes_room() {
        let seq = Seqno::new;
        let mut records = AckRecords::default();
        (1..=8).for_each(|n| records.on_sent(seq(10 * n)));
        assert_eq!(records.newest_known(seq(15), None), None);
        assert_eq!(records.oldest(), Some(seq(10)), "15 says nothing about 10");
        // Up to 15: five received.
        assert_eq!(records.newest_known(seq(15), Some(&[4])), None);
        assert_eq!(records.oldest(), Some(seq(20)), "no later vector reports 10");
        // Up to 35: many runs, of which the last has 20.
        let cells = [0, 0xc0, 0, 0xc0, 0, 0xc0, 0, 0xc0, 20];
        records.forget(1, 2);
        assert_eq!(records.newest_known(seq(35), Some(&cells)), Some(seq(20)));
    }
}
