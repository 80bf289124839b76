//! Keeps the first send time of each outstanding segment, for round-trip times and segment counts.

use udccp_base::{Duration, Instant, Ring};

use super::rack::Sending;

/// Outstanding segments in the order of their first transmission.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendTimes {
    segments: Ring<Sent>,
    /// Everything below was retransmitted, or was SACKed during a retransmission: no samples from
    /// it (Karn's rule, RFC 6298 section 3).
    ambiguous_below: u64,
}

#[derive(Clone, Copy, Debug, Default)]
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

impl Acked {
    /// The time since the newest was sent, if it is a valid round-trip time.
    #[inline]
    pub(crate) fn newest_rtt(&self) -> Option<Duration> {
        self.rtt.map(|(_, newest)| newest)
    }
}

impl SendTimes {
    /// Number of outstanding segments.
    pub(crate) fn count(&self) -> u32 {
        self.segments.len() as u32
    }

    /// A new segment that ends at `end` was sent.
    pub(crate) fn on_new_data(&mut self, now: Instant, end: u64) {
        self.segments.push(Sent { end, at: now });
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
        lost.checked_sub(1).and_then(|i| self.segments.get(i)).map_or(0, |s| s.end)
    }

    /// Everything below `ack` is acknowledged.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, ack: u64) -> Acked {
        let Some(&oldest) = self.segments.front().filter(|s| s.end <= ack) else {
            return Acked::default();
        };
        if oldest.end <= self.ambiguous_below {
            return self.on_ack_of_ambiguous(now, ack);
        }
        let (newest, segments) = self.take(oldest, ack);
        let rtt = Some((now - oldest.at, now - newest.at));
        Acked { segments, rtt, newest: Some(Sending { at: newest.at, end: newest.end }) }
    }

    /// The same if the oldest segment gives no round-trip time.
    #[inline(never)]
    fn on_ack_of_ambiguous(&mut self, now: Instant, ack: u64) -> Acked {
        let ambiguous = self.segments.partition_point(|s| s.end <= self.ambiguous_below);
        let valid = self.segments.get(ambiguous).copied();
        let Some(&first) = self.segments.front() else { return Acked::default() };
        let (newest, segments) = self.take(first, ack);
        let valid = valid.filter(|oldest| oldest.end <= ack);
        let rtt = valid.map(|oldest| (now - oldest.at, now - newest.at));
        Acked { segments, rtt, newest: Some(Sending { at: newest.at, end: newest.end }) }
    }

    /// Removes the `first` segment, and all others below `ack`. Returns the last of them, and how
    /// many they are.
    #[inline(always)]
    fn take(&mut self, first: Sent, ack: u64) -> (Sent, u32) {
        let (mut newest, mut segments) = (first, 1);
        self.segments.pop();
        while let Some(&next) = self.segments.front().filter(|s| s.end <= ack) {
            self.segments.pop();
            newest = next;
            segments += 1;
        }
        (newest, segments)
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
