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

/// The SACK blocks of one segment, as wire sequence numbers (left edge, right edge).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// As many as fit in the option space without timestamps; three with them.
    pub const MAX: usize = 4;

    /// The blocks in the order of the option: the most recent first.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Appends a block; false when four are there.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let free = self.blocks.get_mut(usize::from(self.len));
        let fits = free.map(|slot| *slot = (left, right)).is_some();
        self.len += u8::from(fits);
        fits
    }

    /// Whether there is no block.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// All options that the model reads and writes; unknown ones are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Largest segment the sender of this option takes, in bytes (on SYN only).
    pub mss: Option<u16>,
    /// Shift of later window fields (on SYN only; RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK may be used towards the sender of this option (on SYN only).
    pub sack_permitted: bool,
    /// TSval and TSecr in ticks of one millisecond.
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
}

/// Longest option list in bytes.
pub(crate) const MAX_OPTIONS: usize = 40;

impl TcpOptions {
    /// Reads an option list. A malformed rest is left out, as kernels do: what came before it
    /// counts, and no bytes can make this panic.
    pub fn parse(bytes: &[u8]) -> Self {
        if let Some(only_timestamps) = Self::parse_usual(bytes) {
            return only_timestamps;
        }
        let mut options = Self::default();
        let mut rest = bytes;
        loop {
            rest = match rest {
                [] | [kind::END, ..] => return options,
                [kind::NOP, tail @ ..] => tail,
                [kind, len, ..] if *len >= 2 && usize::from(*len) <= rest.len() => {
                    let (option, tail) = rest.split_at(usize::from(*len));
                    options.take(*kind, &option[2..]);
                    tail
                }
                _ => return options,
            };
        }
    }

    /// The layout of nearly every segment: two NOPs and timestamps (RFC 7323 appendix A).
    #[inline]
    fn parse_usual(bytes: &[u8]) -> Option<Self> {
        let b: &[u8; 12] = bytes.try_into().ok()?;
        if b[..4] != [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10] {
            return None;
        }
        let val = u32::from_be_bytes([b[4], b[5], b[6], b[7]]);
        let ecr = u32::from_be_bytes([b[8], b[9], b[10], b[11]]);
        Some(Self { timestamps: Some((val, ecr)), ..Self::default() })
    }

    fn take(&mut self, kind: u8, value: &[u8]) {
        let word = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
        match (kind, value) {
            (kind::MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            // Shifts above 14 count as 14 (RFC 7323 section 2.3).
            (kind::WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift.min(14)),
            (kind::SACK_PERMITTED, &[]) => self.sack_permitted = true,
            (kind::TIMESTAMPS, v) if v.len() == 8 => {
                self.timestamps = Some((word(&v[..4]), word(&v[4..])));
            }
            (kind::SACK, v) if v.len().is_multiple_of(8) => {
                for block in v.chunks_exact(8) {
                    self.sack.push(word(&block[..4]), word(&block[4..]));
                }
            }
            _ => {}
        }
    }

    /// Writes the list into `out`, padded to a multiple of 4 bytes; returns its length. SACK
    /// blocks that do not fit are left out (three fit beside timestamps).
    pub fn emit(&self, out: &mut [u8; MAX_OPTIONS]) -> usize {
        let mut w = Writer { out, len: 0 };
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
        let blocks = self.sack.as_slice();
        let fitting = blocks.len().min((MAX_OPTIONS - w.len).saturating_sub(4) / 8);
        if fitting > 0 {
            w.put(&[kind::NOP, kind::NOP, kind::SACK, 2 + 8 * fitting as u8]);
            for (left, right) in &blocks[..fitting] {
                w.put(&left.to_be_bytes());
                w.put(&right.to_be_bytes());
            }
        }
        w.len
    }
}

/// Appends to the option space; every list the model composes fits.
struct Writer<'a> {
    out: &'a mut [u8; MAX_OPTIONS],
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

    fn round_trip(options: TcpOptions) {
        let mut out = [0; MAX_OPTIONS];
        let len = options.emit(&mut out);
        assert!(len.is_multiple_of(4) && len <= MAX_OPTIONS);
        assert_eq!(TcpOptions::parse(&out[..len]), options);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut sack = SackBlocks::default();
        for i in 0..3 {
            assert!(sack.push(i * 100, i * 100 + 50));
        }
        let timestamps = Some((0x0102_0304, 0xfefd_fcfb));
        round_trip(TcpOptions::default());
        round_trip(TcpOptions { timestamps, ..TcpOptions::default() });
        round_trip(TcpOptions { timestamps, sack, ..TcpOptions::default() });
        let syn = TcpOptions { mss: Some(1460), window_scale: Some(7), ..TcpOptions::default() };
        round_trip(TcpOptions { sack_permitted: true, timestamps, ..syn });
        assert!(sack.push(7, 9) && !sack.push(8, 9));
        round_trip(TcpOptions { sack, ..TcpOptions::default() });
    }

    #[test]
    fn a_fourth_block_gives_way_to_timestamps() {
        let mut options = TcpOptions { timestamps: Some((1, 2)), ..TcpOptions::default() };
        (0..4).for_each(|i| assert!(options.sack.push(i, i + 1)));
        let mut out = [0; MAX_OPTIONS];
        let len = options.emit(&mut out);
        assert_eq!(TcpOptions::parse(&out[..len]).sack.as_slice().len(), 3);
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        let mut rng = Seed(3).stream("options");
        for _ in 0..20_000 {
            let len = rng.below(41) as usize;
            let bytes: Vec<u8> = (0..len)
                .map(|_| if rng.chance(0.5) { rng.below(12) as u8 } else { rng.next_u64() as u8 })
                .collect();
            TcpOptions::parse(&bytes);
        }
    }
}
