//! Remembers which received packets carried ECN nonce 1.

use udccp_wire::Seqno;

/// A ring with one bit for each packet of the vector. It is created when the first nonce arrives,
/// because senders today only set ECT(0) (RFC 8311 section 6).
#[derive(Clone, Debug, Default)]
pub(super) struct Nonces(Option<Box<Ring>>);

#[derive(Clone, Debug)]
struct Ring {
    /// The length is a power of two.
    words: Vec<u64>,
    /// Parity of all bits.
    parity: bool,
}

impl Nonces {
    /// Whether a nonce was ever recorded.
    #[inline]
    pub(super) fn are_any(&self) -> bool {
        self.0.is_some()
    }

    /// The parity of all nonces.
    #[inline]
    pub(super) fn parity(&self) -> bool {
        self.0.as_ref().is_some_and(|ring| ring.parity)
    }

    /// Records that the packet carried nonce 1. The first call creates a ring for `packets`
    /// consecutive packets.
    pub(super) fn set(&mut self, seq: Seqno, packets: u64) {
        self.0.get_or_insert_with(|| Box::new(Ring::new(packets))).set(seq);
    }

    /// Clears the nonces of `count` packets from `oldest` upwards.
    #[inline]
    pub(super) fn clear(&mut self, oldest: Seqno, count: u64) {
        if let Some(ring) = &mut self.0 {
            ring.clear(oldest, count);
        }
    }

    /// The parity of the nonces of `count` packets from `oldest` upwards.
    pub(super) fn parity_of(&self, oldest: Seqno, count: u64) -> bool {
        self.0.as_ref().is_some_and(|ring| ring.parity_of(oldest, count))
    }
}

impl Ring {
    fn new(packets: u64) -> Self {
        let words = packets.next_power_of_two().max(64) / 64;
        Self { words: vec![0; words as usize], parity: false }
    }

    fn set(&mut self, seq: Seqno) {
        let (word, bit) = self.place(seq);
        self.parity ^= self.words[word] & bit == 0;
        self.words[word] |= bit;
    }

    fn clear(&mut self, oldest: Seqno, count: u64) {
        let mut left = self.range(oldest, count);
        while let Some((word, mask)) = left.next(self) {
            self.parity ^= (self.words[word] & mask).count_ones() % 2 == 1;
            self.words[word] &= !mask;
        }
    }

    fn parity_of(&self, oldest: Seqno, count: u64) -> bool {
        let mut left = self.range(oldest, count);
        let mut ones = 0;
        while let Some((word, mask)) = left.next(self) {
            ones += (self.words[word] & mask).count_ones();
        }
        ones % 2 == 1
    }

    fn range(&self, oldest: Seqno, count: u64) -> Range {
        Range { seq: oldest, left: count.min(self.packets()) }
    }

    /// Number of packets in the ring.
    fn packets(&self) -> u64 {
        64 * self.words.len() as u64
    }

    fn place(&self, seq: Seqno) -> (usize, u64) {
        let index = seq.value() & (self.packets() - 1);
        ((index / 64) as usize, 1 << (index % 64))
    }
}

/// A range of consecutive packets, read word by word.
struct Range {
    seq: Seqno,
    left: u64,
}

impl Range {
    /// Returns the next word and the mask of its bits in the range.
    fn next(&mut self, nonces: &Ring) -> Option<(usize, u64)> {
        if self.left == 0 {
            return None;
        }
        let (word, bit) = nonces.place(self.seq);
        let start = u64::from(bit.trailing_zeros());
        let here = self.left.min(64 - start);
        let mask = if here == 64 { u64::MAX } else { ((1 << here) - 1) << start };
        self.seq = self.seq.add(here);
        self.left -= here;
        Some((word, mask))
    }
}
