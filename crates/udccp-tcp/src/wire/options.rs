//! TCP options: maximum segment size, window scale, SACK, timestamps.

/// Option kinds (RFC 9293 section 3.1, RFC 7323, RFC 2018).
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

/// Longest option list in bytes.
pub(crate) const MAX_OPTIONS: usize = 40;

/// First word of an option list with only timestamps (RFC 7323 appendix A): NOP, NOP, kind, length.
pub(crate) const TIMESTAMPS_ALONE: u32 = u32::from_be_bytes([1, 1, kind::TIMESTAMPS, 10]);

/// Length of one SACK block on the wire.
const BLOCK: usize = 8;

/// SACK blocks as stored in a segment, the most recent first (RFC 2018 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks<'a>(&'a [[u8; BLOCK]]);

impl<'a> SackBlocks<'a> {
    /// The left and right edges, as wire sequence numbers.
    pub fn iter(self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        self.0.iter().map(|b| {
            let [l0, l1, l2, l3, r0, r1, r2, r3] = *b;
            (u32::from_be_bytes([l0, l1, l2, l3]), u32::from_be_bytes([r0, r1, r2, r3]))
        })
    }

    /// Whether there is no block.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// A buffer for blocks to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SackBuffer {
    blocks: [[u8; BLOCK]; Self::MAX],
    len: usize,
}

impl SackBuffer {
    /// As many as fit in the option space without timestamps; three with them.
    pub(crate) const MAX: usize = 4;

    /// Appends a block; ignored if the buffer is full.
    pub(crate) fn push(&mut self, left: u32, right: u32) {
        if let Some(slot) = self.blocks.get_mut(self.len) {
            let (l, r) = (left.to_be_bytes(), right.to_be_bytes());
            *slot = [l[0], l[1], l[2], l[3], r[0], r[1], r[2], r[3]];
            self.len += 1;
        }
    }

    /// The blocks so far.
    pub(crate) fn blocks(&self) -> SackBlocks<'_> {
        SackBlocks(&self.blocks[..self.len])
    }
}

/// All options that the model reads and writes; unknown ones are skipped.
///
/// It contains no array, so that the values of nearly every segment stay in registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions<'a> {
    /// Largest segment that the sender of this option accepts, in bytes (on SYN only).
    pub mss: Option<u16>,
    /// Shift of later window fields (on SYN only; RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK may be used towards the sender of this option (on SYN only).
    pub sack_permitted: bool,
    /// TSval and TSecr in ticks of one millisecond.
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements.
    pub sack: SackBlocks<'a>,
}

impl<'a> TcpOptions<'a> {
    /// Reads an option list. A malformed rest is ignored, as in kernels: the options before it are
    /// valid. No bytes can cause a panic.
    pub fn parse(bytes: &'a [u8]) -> Self {
        let mut options = Self::default();
        options.read(bytes);
        options
    }

    /// Reads an option list into a value without options.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &'a [u8]) {
        if let Ok(usual) = <&[u8; 12]>::try_from(bytes)
            && let (words, []) = usual.as_chunks::<4>()
            && u32::from_be_bytes(words[0]) == TIMESTAMPS_ALONE
        {
            // The layout of nearly every segment.
            self.timestamps = Some((u32::from_be_bytes(words[1]), u32::from_be_bytes(words[2])));
        } else {
            self.read_any(bytes);
        }
    }

    fn read_any(&mut self, bytes: &'a [u8]) {
        let mut rest = bytes;
        loop {
            rest = match rest {
                [] | [kind::END, ..] => return,
                [kind::NOP, tail @ ..] => tail,
                [kind, len, ..] if *len >= 2 && usize::from(*len) <= rest.len() => {
                    let (option, tail) = rest.split_at(usize::from(*len));
                    self.take(*kind, &option[2..]);
                    tail
                }
                _ => return,
            };
        }
    }

    fn take(&mut self, kind: u8, value: &'a [u8]) {
        match (kind, value) {
            (kind::MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            // Shifts above 14 count as 14 (RFC 7323 section 2.3).
            (kind::WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift.min(14)),
            (kind::SACK_PERMITTED, &[]) => self.sack_permitted = true,
            (kind::TIMESTAMPS, &[v0, v1, v2, v3, e0, e1, e2, e3]) => {
                let val = u32::from_be_bytes([v0, v1, v2, v3]);
                self.timestamps = Some((val, u32::from_be_bytes([e0, e1, e2, e3])));
            }
            (kind::SACK, v) => {
                let (blocks, rest) = v.as_chunks();
                if rest.is_empty() {
                    self.sack = SackBlocks(blocks);
                }
            }
            _ => {}
        }
    }

    /// The timestamps of a list that has no other options.
    #[inline]
    pub(crate) fn only_timestamps(&self) -> Option<(u32, u32)> {
        let others = self.mss.is_some() || self.window_scale.is_some() || self.sack_permitted;
        self.timestamps.filter(|_| !others && self.sack.is_empty())
    }

    /// Writes the list into the first 40 bytes of `out`, padded to a multiple of 4 bytes; returns
    /// its length. SACK blocks that do not fit are left out (three fit beside timestamps).
    ///
    /// # Panics
    /// If `out` is shorter than 40 bytes.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let mut w = Writer { out: &mut out[..MAX_OPTIONS], len: 0 };
        if let Some(mss) = self.mss {
            w.put(&[kind::MSS, 4]);
            w.put(&mss.to_be_bytes());
        }
        if self.sack_permitted {
            w.put(&[kind::NOP, kind::NOP, kind::SACK_PERMITTED, 2]);
        }
        if let Some((val, ecr)) = self.timestamps {
            w.put(&[kind::NOP, kind::NOP, kind::TIMESTAMPS, 10]);
            w.put(&val.to_be_bytes());
            w.put(&ecr.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            w.put(&[kind::NOP, kind::WINDOW_SCALE, 3, shift]);
        }
        let room = (MAX_OPTIONS - w.len).saturating_sub(4) / BLOCK;
        let blocks = &self.sack.0[..self.sack.0.len().min(room)];
        if !blocks.is_empty() {
            w.put(&[kind::NOP, kind::NOP, kind::SACK, (2 + BLOCK * blocks.len()) as u8]);
            w.put(blocks.as_flattened());
        }
        w.len
    }
}

/// Appends to the option space; every list that the model writes fits.
struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::Seed;

    use super::*;

    fn round_trip(options: TcpOptions<'_>) {
        let mut out = [0; MAX_OPTIONS];
        let len = options.emit(&mut out);
        assert!(len.is_multiple_of(4) && len <= MAX_OPTIONS);
        assert_eq!(TcpOptions::parse(&out[..len]), options);
        if let Some((val, echo)) = options.only_timestamps() {
            let words = [TIMESTAMPS_ALONE, val, echo].map(u32::to_be_bytes);
            assert_eq!(&out[..len], words.as_flattened());
        }
    }

    #[test]
    fn options_round_trip() {
        let mut buffer = SackBuffer::default();
        (0..3).for_each(|i| buffer.push(i * 100, i * 100 + 50));
        let (sack, timestamps) = (buffer.blocks(), Some((0x0102_0304, 0xfefd_fcfb)));
        assert_eq!(sack.iter().collect::<Vec<_>>(), [(0, 50), (100, 150), (200, 250)]);
        round_trip(TcpOptions::default());
        round_trip(TcpOptions { timestamps, ..TcpOptions::default() });
        round_trip(TcpOptions { timestamps, sack, ..TcpOptions::default() });
        let syn = TcpOptions { mss: Some(1460), window_scale: Some(7), ..TcpOptions::default() };
        round_trip(TcpOptions { sack_permitted: true, timestamps, ..syn });
    }

    #[test]
    fn a_fourth_block_gives_way_to_timestamps() {
        let mut buffer = SackBuffer::default();
        (0..9).for_each(|i| buffer.push(i, i + 1));
        let sack = buffer.blocks();
        for (timestamps, fitting) in [(Some((1, 2)), 3), (None, 4)] {
            let mut out = [0; MAX_OPTIONS];
            let options = TcpOptions { timestamps, sack, ..TcpOptions::default() };
            let len = options.emit(&mut out);
            assert_eq!(TcpOptions::parse(&out[..len]).sack.iter().count(), fitting);
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        let mut rng = Seed(3).stream("options");
        for _ in 0..20_000 {
            let len = rng.below(41) as usize;
            let bytes: Vec<u8> = (0..len)
                .map(|_| if rng.chance(0.5) { rng.below(12) as u8 } else { rng.next_u64() as u8 })
                .collect();
            TcpOptions::parse(&bytes).sack.iter().count();
        }
    }
}
