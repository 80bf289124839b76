//! Evaluates ICMP Too Big messages that quote no packet of ours. They come from a confused router,
//! or from an attacker who sees nothing of the connection (RFC 4340 section 14.1).

use udccp_base::{Duration, Instant};
use udccp_wire::Seqno;

use crate::ackvec::is_received;

/// Up to this many such messages, losses and larger packets may be chance.
const ODD_ENOUGH: u64 = 3;
/// Evidence is collected for this many round-trip times, and then forgotten.
const LASTS_RTTS: u64 = 8;
/// Shortest time to collect evidence, for short round-trip times: a sender with losses waits for
/// transmit timeouts, which are hardly below 200 ms.
const LEAST_SPAN: Duration = Duration::from_secs(3);
/// Maximum number of runs of larger packets that are kept.
const RUNS: usize = 16;

/// Evidence that a router on the path drops packets larger than `mtu` and quotes too little of
/// them. Such a router lets no larger packet through, so one that arrives disproves it.
#[derive(Clone, Debug)]
pub(super) struct OddReports {
    mtu: u16,
    until: Instant,
    /// Greatest number sent when the first message arrived.
    since: Seqno,
    reports: u64,
    /// Packets larger than `mtu` that were sent since, and their numbers in runs, newest last.
    larger: u64,
    runs: [(Seqno, Seqno); RUNS],
    len: usize,
    /// Data packets lost before the first acknowledgement of packets sent since.
    lost_before: Option<u64>,
}

impl OddReports {
    /// Evidence from a first message that reports `mtu`, after we sent packets up to `since`.
    pub(super) fn new(now: Instant, rtt: Duration, mtu: u16, since: Seqno) -> Self {
        Self {
            mtu,
            until: now + (rtt * LASTS_RTTS).max(LEAST_SPAN),
            since,
            reports: 0,
            larger: 0,
            runs: [(Seqno::ZERO, Seqno::ZERO); RUNS],
            len: 0,
            lost_before: None,
        }
    }

    /// Whether a message at `now` that reports `mtu` adds to this evidence.
    pub(super) fn goes_with(&self, now: Instant, mtu: u16) -> bool {
        mtu == self.mtu && now <= self.until
    }

    /// Adds another message, with `lost` packets lost in total. Returns whether to follow it now.
    pub(super) fn add(&mut self, lost: u64) -> bool {
        self.reports += 1;
        let lost_since = self.lost_before.map_or(0, |before| lost - before);
        self.reports.min(lost_since).min(self.larger) > ODD_ENOUGH
    }

    /// Our packet `seq` of `ip_len` bytes, including the IP header, was sent.
    pub(super) fn on_sent(&mut self, seq: Seqno, ip_len: usize) {
        if ip_len <= usize::from(self.mtu) {
            return;
        }
        self.larger += 1;
        if let Some((_, last)) = self.runs[..self.len].last_mut().filter(|r| r.1.next() == seq) {
            *last = seq;
            return;
        }
        if self.len == RUNS {
            self.runs.rotate_left(1);
            self.len -= 1;
        }
        self.runs[self.len] = (seq, seq);
        self.len += 1;
    }

    /// The peer acknowledged `ackno`, with these cells of an Ack Vector if it sent one, and `lost`
    /// data packets are lost in total. Returns whether the evidence still holds: no larger packet
    /// arrived.
    pub(super) fn survives(&mut self, ackno: Seqno, cells: Option<&[u8]>, lost: u64) -> bool {
        if !ackno.is_after(self.since) {
            return true;
        }
        self.lost_before.get_or_insert(lost);
        let cells = cells.unwrap_or_default();
        let arrived = |&(first, last): &(Seqno, Seqno)| {
            let newest = if last.is_after(ackno) { ackno } else { last };
            let known = |seq: Seqno| is_received(seq, ackno, cells) == Some(true);
            first.at_most(ackno) && (known(newest) || known(first))
        };
        !self.runs[..self.len].iter().any(arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn seq(n: u64) -> Seqno {
        Seqno::new(n)
    }

    /// The evidence of a confused router: five larger packets were sent, none arrives.
    fn evidence() -> OddReports {
        let mut odd = OddReports::new(Instant::ZERO, RTT, 1000, seq(10));
        (11..16).for_each(|n| odd.on_sent(seq(n), 1001));
        odd.on_sent(seq(16), 1000);
        assert!(odd.survives(seq(10), None, 7), "before it all");
        assert!(odd.survives(seq(16), Some(&[0, 0xc4]), 7));
        odd
    }

    #[test]
    fn a_router_is_obeyed_after_four_messages_and_four_losses() {
        let mut odd = evidence();
        assert_eq!(
            [10, 10, 10, 10, 11].map(|lost| odd.add(lost)),
            [false, false, false, false, true]
        );
        let mut odd = evidence();
        assert_eq!([11, 11, 11, 11].map(|lost| odd.add(lost)), [false, false, false, true]);
    }

    #[test]
    fn one_larger_packet_that_arrives_disproves_the_report() {
        // The newest; one that an Ack Vector names; the acknowledged one itself.
        assert!(!evidence().survives(seq(16), Some(&[0, 0x00, 0xc3]), 7));
        assert!(!evidence().survives(seq(16), Some(&[0, 0xc3, 0x00]), 7));
        assert!(!evidence().survives(seq(13), None, 7));
        assert!(evidence().survives(seq(16), None, 7));
    }

    #[test]
    fn losses_of_packets_sent_before_the_report_are_no_evidence() {
        let mut odd = OddReports::new(Instant::ZERO, RTT, 1000, seq(10));
        (11..16).for_each(|n| odd.on_sent(seq(n), 1500));
        assert!(odd.survives(seq(10), None, 50));
        assert!((0..10).all(|_| !odd.add(50)));
    }

    #[test]
    fn evidence_is_forgotten_after_a_few_round_trips() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let odd = OddReports::new(Instant::ZERO, Duration::from_millis(500), 1000, seq(10));
        assert!(odd.goes_with(at(4000), 1000) && !odd.goes_with(at(4001), 1000));
        assert!(!odd.goes_with(at(0), 999), "about another size");
        let odd = OddReports::new(Instant::ZERO, Duration::from_millis(1), 1000, seq(10));
        assert!(odd.goes_with(at(3000), 1000) && !odd.goes_with(at(3001), 1000));
    }
}
