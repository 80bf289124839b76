//! Reads a feedback packet (RFC 4342 sections 6 and 8).

use udccp_wire::{LossInterval, OptionRef, RawOptions, Seqno};

use crate::ccid::AckInfo;

/// Largest number of loss intervals that are used: NINTERVAL + 1.
pub(crate) const MOST_INTERVALS: usize = 9;

/// The contents of CCID 3's own options in an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Bytes per second.
    pub(crate) receive_rate: Option<u32>,
    /// Data packets per loss event; `u32::MAX` if there was no loss.
    pub(crate) loss_event_rate: Option<u32>,
    /// Skip Length.
    pub(crate) skip: u8,
    intervals: [LossInterval; MOST_INTERVALS],
    known: usize,
    /// Drop Counts of the intervals (CCID 4 only).
    drops: [u32; MOST_INTERVALS],
    counted: usize,
}

/// Number of packets in an interval.
pub(crate) fn length_of(interval: &LossInterval) -> u64 {
    u64::from(interval.lossless_length) + u64::from(interval.loss_length)
}

impl Options {
    //= 4342-8.3-2
    //= 4342-8.5-1
    //= 4342-8.6-2
    /// Reads the options in their order.
    pub(crate) fn read(ack: &AckInfo<'_>) -> Self {
        let mut this = Self::default();
        let mut reports = 0;
        for raw in RawOptions::new(ack.ccid_options).flatten() {
            match OptionRef::from_raw(raw) {
                Ok(OptionRef::ReceiveRate(rate)) => this.receive_rate = Some(rate),
                Ok(OptionRef::LossEventRate(n)) => this.loss_event_rate = Some(n),
                Ok(OptionRef::LossIntervals { skip_length, intervals }) => {
                    //= 4342-8.6.1-4
                    if reports == 0 || skip_length == 0 {
                        this.skip = if reports == 0 { skip_length } else { this.skip };
                        this.add(intervals);
                    }
                    reports += 1;
                }
                Ok(OptionRef::DroppedPackets(counts)) => this.count(counts),
                _ => {}
            }
        }
        this
    }

    //= 5622-8.7-5
    fn count(&mut self, counts: &[u8]) {
        for count in OptionRef::drop_counts(counts) {
            if let Some(place) = self.drops.get_mut(self.counted) {
                *place = count;
                self.counted += 1;
            }
        }
    }

    //= 5622-8.7-4
    //= 5622-8.7-6
    //= 5622-8.7-8
    /// Number of lost or marked packets in an interval, at most the length of its lossy part. If no
    /// count was reported, all of that part.
    pub(crate) fn drops(&self, index: usize) -> u32 {
        let most = self.intervals[index].loss_length;
        self.drops[..self.counted].get(index).map_or(most, |&count| count.min(most))
    }

    fn add(&mut self, intervals: &[u8]) {
        for interval in LossInterval::iter(intervals) {
            if let Some(place) = self.intervals.get_mut(self.known) {
                *place = interval;
                self.known += 1;
            }
        }
    }

    /// Removes what another sender half sent over another path, before packet `first`. An interval
    /// that extends beyond `first` now begins there, without a loss.
    pub(crate) fn leave_out_before(&mut self, ackno: Seqno, first: Seqno) {
        let mut end = ackno.sub(u64::from(self.skip)).next();
        for i in 0..self.known {
            let interval = &mut self.intervals[i];
            let start = end.sub(length_of(interval));
            if start.at_least(first) {
                end = start;
                continue;
            }
            let ours = u32::try_from(end.distance_from(first)).unwrap_or(0);
            let data_length = interval.data_length.min(ours);
            *interval =
                LossInterval { lossless_length: ours, loss_length: 0, data_length, ..*interval };
            self.known = if ours > 0 { i + 1 } else { i };
            return;
        }
    }

    /// Loss intervals, newest first. Empty if there is no such option.
    pub(crate) fn intervals(&self) -> &[LossInterval] {
        &self.intervals[..self.known]
    }
}
