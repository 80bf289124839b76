//! Reading a feedback packet (RFC 4342 sections 6 and 8).

use udccp_wire::{LossInterval, OptionRef, RawOptions};

use crate::ccid::AckInfo;

/// Loss intervals that are of any use: NINTERVAL + 1.
pub(super) const MOST_INTERVALS: usize = 9;

/// What an acknowledgement says in CCID 3's own options.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Bytes per second.
    pub(super) receive_rate: Option<u32>,
    /// Data packets for each loss event; `u32::MAX` where there was none.
    pub(super) loss_event_rate: Option<u32>,
    /// Skip Length.
    pub(super) skip: u8,
    intervals: [LossInterval; MOST_INTERVALS],
    known: usize,
}

impl Options {
    /// Reads the options in their order.
    //= 4342-8.3-2
    //= 4342-8.5-1
    //= 4342-8.6-2
    pub(super) fn read(ack: &AckInfo<'_>) -> Self {
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
                _ => {}
            }
        }
        this
    }

    fn add(&mut self, intervals: &[u8]) {
        for interval in LossInterval::iter(intervals) {
            if let Some(place) = self.intervals.get_mut(self.known) {
                *place = interval;
                self.known += 1;
            }
        }
    }

    /// Loss intervals, newest first; empty where there is no such option.
    pub(super) fn intervals(&self) -> &[LossInterval] {
        &self.intervals[..self.known]
    }
}
