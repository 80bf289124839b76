//! Remembers which received packets carried ECN nonce 1.

use udccp_wire::Seqno;

/// One bit for each packet of the vector, in a ring; there is none until the first nonce comes,
/// since today's senders set ECT(0) alone (RFC 8311 section 6).
#[derive(Clone, Debug)]
pub(super) struct Nonces {
    words: Vec<u64>,
    /// Packets that the ring has room for; a power of two.
    capacity: u64,
    /// Parity of all bits.
    parity: bool,
}

impl Nonces {
    /// Room for any `packets` consecutive packets.
    pub(super) fn new(packets: u64) -> Self {
        let capacity = packets.next_power_of_two().max(64);
        Self { words: Vec::new(), capacity, parity: false }
    }

    /// The parity of all nonces.
    pub(super) fn parity(&self) -> bool {
        self.parity
    }

    /// The packet carried nonce 1.
    pub(super) fn set(&mut self, seq: Seqno) {
        if self.words.is_empty() {
            self.words = vec![0; (self.capacity / 64) as usize];
        }
        let (word, bit) = self.place(seq);
        self.parity ^= self.words[word] & bit == 0;
        self.words[word] |= bit;
    }

    /// Forgets the nonces of `count` packets from `oldest` upwards.
    pub(super) fn clear(&mut self, oldest: Seqno, count: u64) {
        let mut left = self.range(oldest, count);
        while let Some((word, mask)) = left.next(self) {
            self.parity ^= (self.words[word] & mask).count_ones() % 2 == 1;
            self.words[word] &= !mask;
        }
    }

    /// The parity of the nonces of `count` packets from `oldest` upwards.
    pub(super) fn parity_of(&self, oldest: Seqno, count: u64) -> bool {
        let mut left = self.range(oldest, count);
        let mut ones = 0;
        while let Some((word, mask)) = left.next(self) {
            ones += (self.words[word] & mask).count_ones();
        }
        ones % 2 == 1
    }

    fn range(&self, oldest: Seqno, count: u64) -> Range {
        let left = if self.words.is_empty() { 0 } else { count.min(self.capacity) };
        Range { seq: oldest, left }
    }

    fn place(&self, seq: Seqno) -> (usize, u64) {
        let index = seq.value() & (self.capacity - 1);
        ((index / 64) as usize, 1 << (index % 64))
    }
}

/// Consecutive packets, word by word.
struct Range {
    seq: Seqno,
    left: u64,
}

impl Range {
    /// The next word, and which of its bits belong to the range.
    fn next(&mut self, nonces: &Nonces) -> Option<(usize, u64)> {
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
