//! Samples of the delivery rate from cumulative acknowledgements and SACK blocks, for congestion
//! controls that need them.

use std::collections::VecDeque;

use udccp_base::{Duration, Instant};
use udccp_cc::{RateDraft, RateSample, RateStamp};

use crate::ranges::{Range, RangeSet};

/// The packets in flight, on top of the sampler that all senders share.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    shared: udccp_cc::RateSampler,
    packets: VecDeque<Packet>,
    /// Ranges that were SACKed.
    sacked: RangeSet,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    end: u64,
    arrived: bool,
    stamp: RateStamp,
}

impl RateSampler {
    /// `range` is sent for the first time; `idle` means that nothing was in flight.
    pub(crate) fn on_new_data(&mut self, now: Instant, range: Range, idle: bool) {
        let stamp = self.shared.stamp(now, range.end, range.len() as u32, idle);
        self.packets.push_back(Packet { end: range.end, arrived: false, stamp });
    }

    /// `range` is sent again.
    pub(crate) fn on_retransmit(&mut self, now: Instant, range: Range) {
        let from = self.packets.partition_point(|p| p.end <= range.start);
        for p in self.packets.iter_mut().skip(from).take_while(|p| p.end <= range.end) {
            p.stamp = self.shared.stamp(now, p.end, p.stamp.bytes(), false);
        }
    }

    /// The application has nothing to send, with `in_flight` bytes outstanding.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.shared.on_app_limited(in_flight);
    }

    /// Handles an acknowledgement up to `ack` with SACK `blocks`; returns a sample if there is a
    /// valid one.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: u64,
        blocks: &[Range],
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        let mut draft = RateDraft::default();
        let mut sacked = core::mem::take(&mut self.sacked);
        for block in blocks.iter().filter(|b| b.start >= ack) {
            sacked.insert(*block, |part| self.deliver(now, part, &mut draft));
        }
        sacked.remove_below(ack);
        self.sacked = sacked;
        while self.packets.front().is_some_and(|p| p.end <= ack) {
            if let Some(p) = self.packets.pop_front().filter(|p| !p.arrived) {
                self.shared.deliver(now, &p.stamp, &mut draft);
            }
        }
        self.shared.finish(draft, min_rtt)
    }

    /// The packets of `part` arrived out of order.
    fn deliver(&mut self, now: Instant, part: Range, draft: &mut RateDraft) {
        let from = self.packets.partition_point(|p| p.end <= part.start);
        for p in self.packets.iter_mut().skip(from).take_while(|p| p.end <= part.end) {
            if !p.arrived {
                p.arrived = true;
                self.shared.deliver(now, &p.stamp, draft);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const RTT: Duration = Duration::from_millis(40);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS * ms
    }

    const fn seg(n: u64) -> Range {
        Range::new(n * 100, n * 100 + 100)
    }

    /// A segment per 10 ms, acknowledged 40 ms later: 100 bytes in 10 ms from the second window.
    #[test]
    fn a_steady_flow_gives_its_rate() {
        let mut s = RateSampler::default();
        let mut last = None;
        for n in 0..20 {
            s.on_new_data(at(10 * n), seg(n), n == 0);
            if n >= 4 {
                last = s.on_ack(at(10 * n), (n - 3) * 100, &[], Some(RTT));
            }
        }
        // Its packet was sent just before an acknowledgement: five were delivered in 50 ms.
        let sample = last.expect("a sample");
        assert_eq!((sample.delivered_bytes, sample.interval), (500, MS * 50));
        assert!(!sample.app_limited);
    }

    /// A burst of four is acknowledged in one millisecond. Sending took no time, but the
    /// acknowledgements came 40 ms after the last delivery.
    #[test]
    fn compressed_acknowledgements_do_not_raise_the_rate() {
        let mut s = RateSampler::default();
        (0..4).for_each(|n| s.on_new_data(at(10 * n), seg(n), n == 0));
        let sample = s.on_ack(at(70), 400, &[], Some(RTT)).expect("a sample");
        assert_eq!((sample.delivered_bytes, sample.interval), (400, MS * 70));
    }

    #[test]
    fn what_is_sacked_counts_once_and_when_it_arrives() {
        let mut s = RateSampler::default();
        (0..4).for_each(|n| s.on_new_data(at(n), seg(n), n == 0));
        let sample = s.on_ack(at(42), 0, &[Range::new(100, 300)], Some(RTT));
        assert_eq!(sample.map(|s| s.total_delivered), Some(200));
        assert_eq!(s.on_ack(at(43), 0, &[Range::new(100, 300)], Some(RTT)), None);
        s.on_retransmit(at(44), seg(0));
        let sample = s.on_ack(at(90), 400, &[], Some(RTT)).expect("a sample");
        assert_eq!(sample.total_delivered, 400);
        // The retransmission is the newest: 200 bytes had been delivered when it was sent.
        assert_eq!((sample.prior_delivered, sample.interval), (200, MS * 48));
    }

    #[test]
    fn marks_of_the_application_end_with_what_was_in_flight() {
        let mut s = RateSampler::default();
        s.on_new_data(at(0), seg(0), true);
        s.on_app_limited(100);
        s.on_new_data(at(10), seg(1), false);
        assert!(!s.on_ack(at(41), 100, &[], Some(RTT)).expect("a sample").app_limited);
        let marked = s.on_ack(at(51), 200, &[], Some(RTT)).expect("a sample");
        assert!(marked.app_limited);
        s.on_new_data(at(60), seg(2), true);
        let after = s.on_ack(at(101), 300, &[], Some(RTT)).expect("a sample");
        assert!(!after.app_limited);
    }

    /// The only segment in flight is lost and sent again. As data is outstanding, its interval
    /// starts at the last delivery.
    #[test]
    fn what_is_sent_again_does_not_begin_anew() {
        let mut s = RateSampler::default();
        s.on_new_data(at(0), seg(0), true);
        s.on_retransmit(at(300), seg(0));
        let sample = s.on_ack(at(341), 100, &[], Some(RTT)).expect("a sample");
        assert_eq!(sample.interval, MS * 341);
    }

    #[test]
    fn times_are_whole_microseconds() {
        let nanos = Instant::from_nanos;
        let mut s = RateSampler::default();
        s.on_new_data(nanos(999), seg(0), true);
        let sample = s.on_ack(nanos(41_000_500), 100, &[], Some(RTT)).expect("a sample");
        assert_eq!(sample.interval, MS * 41);
    }

    /// The interval of a single packet is its round-trip time, which never counts as shorter than
    /// the smallest, even though both are rounded to microseconds.
    #[test]
    fn the_smallest_round_trip_time_makes_a_sample() {
        let nanos = Instant::from_nanos;
        let mut s = RateSampler::default();
        s.on_new_data(nanos(0), seg(0), true);
        let rtt = Some(Duration::from_nanos(40_000_900));
        assert!(s.on_ack(nanos(40_000_900), 100, &[], rtt).is_some());
    }
}
