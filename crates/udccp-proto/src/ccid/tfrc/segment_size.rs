//! Estimates the segment size s of the throughput equation.

/// Sizes that determine the allowed rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Mean size of the data in a packet, in bytes.
    pub(crate) bytes: u32,
    /// s of the throughput equation.
    pub(crate) nominal: u32,
    /// Bytes of headers that count against the allowed rate.
    pub(crate) header: u32,
}

impl From<u32> for Segment {
    /// The segment size of plain TFRC.
    fn from(bytes: u32) -> Self {
        Self { bytes, nominal: bytes, header: 0 }
    }
}

/// Number of loss intervals in the mean (RFC 5348 section 4.1).
const INTERVALS: usize = 4;

/// Mean size of the data packets sent in the last four loss intervals.
///
/// An interval ends here when its successor is reported, a round-trip time after that began.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSize {
    /// Bytes and packets of each interval, newest first.
    sums: [(u64, u64); INTERVALS],
    /// The sum over all intervals.
    total: (u64, u64),
    /// Their mean in bytes, at least 1. Before anything was sent, the expected size.
    mean: u32,
}

impl SegmentSize {
    /// Creates an estimate. Before anything was sent, it is `first` bytes.
    pub(crate) fn new(first: u32) -> Self {
        Self { sums: [(0, 0); INTERVALS], total: (0, 0), mean: first.max(1) }
    }

    /// Sets the expected size of the first packet.
    pub(crate) fn expect(&mut self, bytes: u32) {
        if !self.is_measured() {
            self.mean = bytes.max(1);
        }
    }

    //= 5348-4.1-3
    /// A data packet was sent.
    pub(crate) fn on_sent(&mut self, bytes: u32) {
        let is_mean = bytes == self.mean;
        let bytes = u64::from(bytes);
        self.sums[0].0 += bytes;
        self.sums[0].1 += 1;
        self.total = (self.total.0 + bytes, self.total.1 + 1);
        // A packet of the mean size does not change the mean, even if that was rounded down.
        if !is_mean {
            self.update_mean();
        }
    }

    /// A loss event was reported, so a new interval begins.
    pub(crate) fn on_loss_event(&mut self) {
        if self.sums[0].1 > 0 {
            let (bytes, packets) = self.sums[INTERVALS - 1];
            self.sums.rotate_right(1);
            self.sums[0] = (0, 0);
            self.total = (self.total.0 - bytes, self.total.1 - packets);
            self.update_mean();
        }
    }

    /// Whether data has been sent.
    pub(crate) fn is_measured(&self) -> bool {
        self.total.1 > 0
    }

    /// The mean in bytes, at least 1.
    pub(crate) fn bytes(&self) -> u32 {
        self.mean
    }

    fn update_mean(&mut self) {
        let (bytes, packets) = self.total;
        if let Some(mean) = bytes.checked_div(packets) {
            self.mean = u32::try_from(mean).unwrap_or(u32::MAX).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= 5348-4.1-3 test
    //= 4828-3-5 test
    #[test]
    fn the_mean_is_of_the_last_four_loss_intervals() {
        let mut size = SegmentSize::new(1000);
        size.expect(500);
        assert_eq!(size.bytes(), 500);
        // An interval in which nothing was sent does not count.
        size.on_loss_event();
        assert_eq!(size.bytes(), 500);
        for bytes in [100, 200, 300, 400] {
            size.on_loss_event();
            size.on_sent(bytes);
        }
        assert_eq!(size.bytes(), 250);
        size.on_loss_event();
        assert_eq!(size.bytes(), 300, "the first interval is forgotten where a fifth begins");
        size.on_sent(700);
        assert_eq!(size.bytes(), 400);
    }
    #[test]
    fn the_mean_is_rounded_down_whether_or_not_packets_have_it() {
        let mut size = SegmentSize::new(1000);
        let (mut total, mut packets) = (0, 0);
        for bytes in [1000, 1000, 7, 671, 669, 669, 669, 2, 586, 573, 573, 0, 1, 1] {
            size.on_sent(bytes);
            (total, packets) = (total + bytes, packets + 1);
            assert_eq!(size.bytes(), total / packets, "{packets}");
        }
        let mut small = SegmentSize::new(0);
        [0, 1, 0, 1, 1].into_iter().for_each(|bytes| small.on_sent(bytes));
        assert_eq!(small.bytes(), 1);
    }
}
