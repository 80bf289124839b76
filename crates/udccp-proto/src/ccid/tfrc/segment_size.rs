//! Estimates the segment size s of the throughput equation.

/// Sizes that go into the allowed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Data in a packet, in the mean, bytes.
    pub(crate) bytes: u32,
    /// s of the throughput equation.
    pub(crate) nominal: u32,
    /// Headers that the allowed rate pays for as well, bytes.
    pub(crate) header: u32,
}

impl From<u32> for Segment {
    /// The segment size of plain TFRC.
    fn from(bytes: u32) -> Self {
        Self { bytes, nominal: bytes, header: 0 }
    }
}

/// Loss intervals that the mean covers (RFC 5348 section 4.1).
const INTERVALS: usize = 4;

/// Mean size of the data packets sent in the last four loss intervals.
///
/// An interval ends here when its successor is reported, which is a round-trip time after it
/// began.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSize {
    /// Bytes and packets of each interval, newest first.
    sums: [(u64, u64); INTERVALS],
    /// What is taken before anything was sent.
    first: u32,
}

impl SegmentSize {
    /// Nothing was sent yet; `first` bytes are expected.
    pub(crate) fn new(first: u32) -> Self {
        Self { sums: [(0, 0); INTERVALS], first: first.max(1) }
    }

    /// Expects the first packet to have this size.
    pub(crate) fn expect(&mut self, bytes: u32) {
        self.first = bytes.max(1);
    }

    //= 5348-4.1-3
    /// A data packet left.
    pub(crate) fn on_sent(&mut self, bytes: u32) {
        self.sums[0].0 += u64::from(bytes);
        self.sums[0].1 += 1;
    }

    /// A loss event was reported: a new interval begins.
    pub(crate) fn on_loss_event(&mut self) {
        if self.sums[0].1 > 0 {
            self.sums.rotate_right(1);
            self.sums[0] = (0, 0);
        }
    }

    /// Whether data was sent.
    pub(crate) fn is_measured(&self) -> bool {
        self.sums.iter().any(|sum| sum.1 > 0)
    }

    /// The mean in bytes, at least 1.
    pub(crate) fn bytes(&self) -> u32 {
        let (bytes, packets) = self.sums.iter().fold((0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
        if packets == 0 {
            return self.first;
        }
        u32::try_from(bytes / packets).unwrap_or(u32::MAX).max(1)
    }
}
