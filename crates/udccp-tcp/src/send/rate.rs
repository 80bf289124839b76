//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00, section 3), for
//! congestion controls that ask for them.

use std::collections::VecDeque;

use udccp_base::{Duration, Instant};
use udccp_cc::RateSample;

use crate::ranges::{Range, RangeSet};

/// The state of the connection (C of the draft) and of its packets (P).
#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    /// Bytes delivered, and when the last of them.
    delivered: u64,
    delivered_at: Instant,
    /// When the packet was sent that was acknowledged last.
    first_sent: Instant,
    /// The application is the limit until so many bytes are delivered.
    app_limited_until: Option<u64>,
    packets: VecDeque<Packet>,
    /// What was SACKed.
    sacked: RangeSet,
}

/// A packet as it was sent last.
#[derive(Clone, Copy, Debug)]
struct Packet {
    end: u64,
    bytes: u32,
    arrived: bool,
    app_limited: bool,
    sent: Instant,
    first_sent: Instant,
    delivered: u64,
    delivered_at: Instant,
}

/// The sample in the making (rs of the draft).
#[derive(Clone, Copy, Debug)]
struct Draft {
    newest: Packet,
    ack_elapsed: Duration,
}

impl RateSampler {
    /// `range` leaves for the first time; `idle` says that nothing was in flight.
    pub(crate) fn on_new_data(&mut self, now: Instant, range: Range, idle: bool) {
        if idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let packet = self.stamp(now, range.end, range.len() as u32);
        self.packets.push_back(packet);
    }

    /// `range` leaves again.
    pub(crate) fn on_retransmit(&mut self, now: Instant, range: Range, idle: bool) {
        if idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let mut i = self.packets.partition_point(|p| p.end <= range.start);
        while let Some(p) = self.packets.get(i).copied().filter(|p| p.end <= range.end) {
            self.packets[i] = Packet { arrived: p.arrived, ..self.stamp(now, p.end, p.bytes) };
            i += 1;
        }
    }

    fn stamp(&self, now: Instant, end: u64, bytes: u32) -> Packet {
        Packet {
            end,
            bytes,
            arrived: false,
            app_limited: self.app_limited_until.is_some(),
            sent: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        }
    }

    /// The application has nothing to send, with `in_flight` bytes outstanding.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// An acknowledgement up to `ack` with SACK `blocks`: the sample, where one can be taken.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: u64,
        blocks: &[Range],
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        let mut draft = None;
        let mut sacked = core::mem::take(&mut self.sacked);
        for block in blocks.iter().filter(|b| b.start >= ack) {
            sacked.insert(*block, |part| self.deliver(now, part, &mut draft));
        }
        sacked.remove_below(ack);
        self.sacked = sacked;
        while self.packets.front().is_some_and(|p| p.end <= ack) {
            if let Some(p) = self.packets.pop_front().filter(|p| !p.arrived) {
                self.take(now, &p, &mut draft);
            }
        }
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let Draft { newest, ack_elapsed } = draft?;
        let interval = ack_elapsed.max(newest.sent - newest.first_sent);
        // Shorter than any round trip: a retransmission whose original arrived.
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        Some(RateSample {
            delivered_bytes: self.delivered - newest.delivered,
            interval,
            prior_delivered: newest.delivered,
            total_delivered: self.delivered,
            app_limited: newest.app_limited,
        })
    }

    /// The packets of `part` arrived out of order.
    fn deliver(&mut self, now: Instant, part: Range, draft: &mut Option<Draft>) {
        let mut i = self.packets.partition_point(|p| p.end <= part.start);
        while let Some(p) = self.packets.get(i).copied().filter(|p| p.end <= part.end) {
            if !p.arrived {
                self.packets[i].arrived = true;
                self.take(now, &p, draft);
            }
            i += 1;
        }
    }

    fn take(&mut self, now: Instant, p: &Packet, draft: &mut Option<Draft>) {
        self.delivered += u64::from(p.bytes);
        self.delivered_at = now;
        let newer = draft.is_none_or(|d| {
            (p.delivered, p.sent, p.end) > (d.newest.delivered, d.newest.sent, d.newest.end)
        });
        if newer {
            *draft = Some(Draft { newest: *p, ack_elapsed: now - p.delivered_at });
            self.first_sent = p.sent;
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

    /// A segment each 10 ms, acknowledged 40 ms later: 100 bytes in 10 ms from the second window.
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
        // Its packet left just before an acknowledgement: five were delivered in 50 ms.
        let sample = last.expect("a sample");
        assert_eq!((sample.delivered_bytes, sample.interval), (500, MS * 50));
        assert!(!sample.app_limited);
    }

    /// A burst of four is acknowledged in one millisecond: the sending took no time, but the
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
        s.on_retransmit(at(44), seg(0), false);
        let sample = s.on_ack(at(90), 400, &[], Some(RTT)).expect("a sample");
        assert_eq!(sample.total_delivered, 400);
        // The retransmission is the newest: 200 bytes had been delivered when it left.
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
}
