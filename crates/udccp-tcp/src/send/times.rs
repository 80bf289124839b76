//! Keeps the first send time of each outstanding segment, for round-trip times and segment counts.

use std::collections::VecDeque;

use udccp_base::{Duration, Instant};

use super::rack::Sending;

/// Outstanding segments in the order of their first transmission.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendTimes {
    segments: VecDeque<Sent>,
    /// Everything below was retransmitted, or was SACKed during a retransmission: no samples from
    /// it (Karn's rule, RFC 6298 section 3).
    ambiguous_below: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    at: Instant,
}

/// The segments removed by a cumulative acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    /// Number of completely acknowledged segments.
    pub(crate) segments: u32,
    /// Times since the oldest and the newest of them were sent, if these are valid round-trip
    /// times. The oldest includes the receiver's delay and is for the RTO; the newest does not.
    pub(crate) rtt: Option<(Duration, Duration)>,
    /// The first transmission of the newest of them.
    pub(crate) newest: Option<Sending>,
}

impl SendTimes {
    /// Number of outstanding segments.
    pub(crate) fn count(&self) -> u32 {
        self.segments.len() as u32
    }

    /// A new segment that ends at `end` was sent.
    pub(crate) fn on_new_data(&mut self, now: Instant, end: u64) {
        self.segments.push_back(Sent { end, at: now });
    }

    /// Data up to `end` was retransmitted.
    pub(crate) fn on_retransmit(&mut self, end: u64) {
        self.ambiguous_below = self.ambiguous_below.max(end);
    }

    /// The first transmission of the oldest outstanding segment.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Sending> {
        self.segments.front().map(|s| Sending { at: s.at, end: s.end })
    }

    /// Offsets below may have been sent more than once.
    pub(crate) fn ambiguous_below(&self) -> u64 {
        self.ambiguous_below
    }

    /// The first transmission of the segment that contains the byte before `end`.
    pub(crate) fn sending(&self, end: u64) -> Option<Sending> {
        let i = self.segments.partition_point(|s| s.end < end);
        self.segments.get(i).map(|s| Sending { at: s.at, end: s.end })
    }

    /// End of the initial segments, from the oldest, for whose first transmission `is_lost` returns
    /// true.
    pub(crate) fn lost_edge(&self, is_lost: impl Fn(Sending) -> bool) -> u64 {
        let lost = self.segments.partition_point(|s| is_lost(Sending { at: s.at, end: s.end }));
        lost.checked_sub(1).map_or(0, |i| self.segments[i].end)
    }

    /// Everything below `ack` is acknowledged.
    pub(crate) fn on_ack(&mut self, now: Instant, ack: u64) -> Acked {
        let mut acked = Acked::default();
        let mut oldest = None;
        while let Some(&Sent { end, at }) = self.segments.front().filter(|s| s.end <= ack) {
            acked.segments += 1;
            acked.newest = Some(Sending { at, end });
            if oldest.is_none() && end > self.ambiguous_below {
                oldest = Some(at);
            }
            self.segments.pop_front();
        }
        let times = oldest.zip(acked.newest);
        acked.rtt = times.map(|(oldest, newest)| (now - oldest, now - newest.at));
        acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_acknowledgement_of_two_segments_gives_both_times() {
        let mut times = SendTimes::default();
        times.on_new_data(at(0), 100);
        times.on_new_data(at(3), 200);
        times.on_new_data(at(5), 300);
        let acked = times.on_ack(at(10), 200);
        let rtt = Some((Duration::from_millis(10), Duration::from_millis(7)));
        let newest = Some(Sending { at: at(3), end: 200 });
        assert_eq!(acked, Acked { segments: 2, rtt, newest });
        assert_eq!(times.count(), 1);
    }

    #[test]
    fn retransmitted_segments_give_no_sample() {
        let mut times = SendTimes::default();
        times.on_new_data(at(0), 100);
        times.on_new_data(at(0), 200);
        times.on_retransmit(100);
        assert_eq!(times.on_ack(at(9), 100).rtt, None);
        assert!(times.on_ack(at(9), 200).rtt.is_some());
    }
}
