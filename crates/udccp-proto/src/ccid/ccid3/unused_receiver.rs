//! The receiver half of an end that has received no data: what the whole half needs to know when
//! the first data arrives.

use udccp_base::{Duration, Instant, MaybeDuration};
use udccp_wire::Seqno;

use super::{Ccid3Receiver, NUMBER};
use crate::ccid::ccid4;
use crate::ccid::{CcidReceiver, Feedback, ReceivedInfo, ReceiverMetrics};
use crate::config::ConnectionConfig;

/// Stands in for a [`Ccid3Receiver`] of CCID 3 or 4 until the first data, or until a packet is out
/// of order: most connections have data in one direction only, and the ends that send it need no
/// more than this.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct UnusedCcid3Receiver {
    ccid: u8,
    packet_size_bytes: u32,
    rtt: MaybeDuration,
    /// The first packet that arrived. All later ones, up to the newest, arrived in order.
    first: Option<Seqno>,
    newest: Option<(Seqno, Instant)>,
}

impl UnusedCcid3Receiver {
    /// Stands in for a new receiver of this CCID, on a path whose packets hold up to
    /// `packet_size_bytes` of data.
    pub(crate) fn new(ccid: u8, packet_size_bytes: u32) -> Self {
        Self { ccid, packet_size_bytes, rtt: MaybeDuration::NONE, first: None, newest: None }
    }

    /// The whole half, in the state that it would have by now.
    pub(crate) fn whole(&self, config: &ConnectionConfig) -> Ccid3Receiver {
        let mut whole = match self.ccid {
            NUMBER => Ccid3Receiver::new(&config.ccid3),
            _ => ccid4::receiver(&config.ccid4, self.packet_size_bytes),
        };
        if let Some(rtt) = self.rtt.get() {
            whole.set_rtt(rtt);
        }
        if let (Some(first), Some(newest)) = (self.first, self.newest) {
            whole.start_without_data(first, newest);
        }
        whole
    }

    /// Whether only the whole half can process this packet.
    pub(crate) fn needs_whole_for(&self, seq: Seqno, is_data: bool) -> bool {
        is_data || self.newest.is_some_and(|(newest, _)| newest.next() != seq)
    }
}

impl CcidReceiver for UnusedCcid3Receiver {
    fn ccid(&self) -> u8 {
        self.ccid
    }

    fn on_packet(&mut self, now: Instant, packet: &ReceivedInfo) {
        debug_assert!(!self.needs_whole_for(packet.seq, packet.is_data));
        self.first.get_or_insert(packet.seq);
        self.newest = Some((packet.seq, now));
    }

    fn feedback(&self, _now: Instant) -> Feedback {
        Feedback::None
    }

    fn on_feedback_sent(&mut self, _now: Instant, _seq: Seqno) {}

    fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = MaybeDuration::some(rtt);
    }

    fn newest(&self) -> Option<(Seqno, Instant)> {
        self.newest
    }

    fn peer_is_quiescent(&self, _now: Instant) -> bool {
        true
    }

    fn metrics(&self, _now: Instant) -> Option<ReceiverMetrics> {
        let rtt = self.rtt.get().map(Ccid3Receiver::credible_rtt);
        Some(ReceiverMetrics { rtt, ..ReceiverMetrics::default() })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}
}

#[cfg(test)]
mod tests {
    use udccp_base::{Ecn, Seed};

    use super::*;

    /// The same happens to a whole half and to one that stands in for it.
    #[test]
    fn the_whole_half_has_the_state_that_it_would_have_had() {
        let config = ConnectionConfig::default();
        for (seed, ccid) in (0..100).flat_map(|seed| [(seed, NUMBER), (seed, ccid4::NUMBER)]) {
            let mut rng = Seed(seed).stream("unused receiver half");
            let mut unused = UnusedCcid3Receiver::new(ccid, 1400);
            let mut whole = unused.whole(&config);
            let mut gsr = 7000;
            for step in 0..rng.below(100) {
                let now = Instant::from_nanos(step * 1_000_000);
                match rng.below(4) {
                    0 => {
                        let rtt = Duration::from_nanos(rng.below(3) * 900);
                        whole.set_rtt(rtt);
                        unused.set_rtt(rtt);
                    }
                    1 => {
                        whole.on_feedback_sent(now, Seqno::new(step));
                        unused.on_feedback_sent(now, Seqno::new(step));
                    }
                    _ => {
                        gsr += 1;
                        let (seq, ecn) = (Seqno::new(gsr), [Ecn::Ect0, Ecn::Ce][step as usize % 2]);
                        let ndp_count = rng.chance(0.5).then_some(step);
                        let (is_data, size_bytes, ccval) = (false, 0, 3);
                        let info = ReceivedInfo { seq, is_data, size_bytes, ccval, ecn, ndp_count };
                        assert!(!unused.needs_whole_for(seq, false));
                        whole.on_packet(now, &info);
                        unused.on_packet(now, &info);
                        let needs = |n, is_data| unused.needs_whole_for(Seqno::new(n), is_data);
                        assert!(needs(gsr + 1, true) && needs(gsr + 2, false));
                        assert!(needs(gsr - 1, false) && !needs(gsr + 1, false));
                    }
                }
                assert_eq!((unused.newest(), unused.ccid()), (whole.newest(), whole.ccid()));
                assert_eq!((unused.feedback(now), whole.poll_timeout()), (Feedback::None, None));
                assert_eq!((whole.feedback(now), whole.feedback_len_bytes()), (Feedback::None, 0));
                assert_eq!(unused.metrics(now), whole.metrics(now));
                assert!(whole.peer_is_quiescent(now) && unused.peer_is_quiescent(now));
            }
            assert_eq!(format!("{:?}", unused.whole(&config)), format!("{whole:?}"));
        }
    }
}
