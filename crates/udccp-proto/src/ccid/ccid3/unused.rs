//! The sender half of an end that has sent no data: what the whole half needs to know when the
//! first data is sent.

use udccp_base::{Duration, Instant, MaybeDuration, MaybeInstant};
use udccp_wire::{OptionRef, Seqno};

use super::sender::{DEFAULT_RTT, LEAST_SEQUENCE_WINDOW, handshake_rtt, reads};
use super::{Ccid3Sender, NUMBER};
use crate::ccid::ccid4;
use crate::ccid::tfrc::{LEAST_RTT, RttFloor};
use crate::ccid::{
    AckInfo, AckOutcome, CcidMetrics, CcidSender, SendVerdict, SentInfo, TimeoutOutcome,
};
use crate::config::ConnectionConfig;

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: Seqno,
    at: Instant,
}

/// Stands in for a [`Ccid3Sender`] of CCID 3 or 4 until the first data. Most connections have data
/// in one direction only, and their receiving ends need no more than this.
///
/// Of the packets sent, it keeps the first and the newest. Feedback is about data, so it
/// acknowledges none of the others.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct UnusedCcid3 {
    first: Option<Sent>,
    newest: Option<Sent>,
    ack_sent: MaybeInstant,
    /// The newest packet acknowledged.
    acked: Option<Seqno>,
    /// When the handshake measured the next two: with our clock, and with the peer's echo.
    handshake_at: MaybeInstant,
    handshake_measured: MaybeDuration,
    handshake_echoed: MaybeDuration,
    in_flight_limit: u64,
    packet_size_bytes: u32,
    owes_ack: bool,
    peer_is_slow: bool,
    ccid: u8,
}

impl UnusedCcid3 {
    /// Stands in for a new sender of this CCID, for packets of up to `packet_size_bytes` of data.
    pub(crate) fn new(ccid: u8, packet_size_bytes: u32) -> Self {
        Self {
            ccid,
            first: None,
            newest: None,
            ack_sent: MaybeInstant::NONE,
            acked: None,
            handshake_at: MaybeInstant::NONE,
            handshake_measured: MaybeDuration::NONE,
            handshake_echoed: MaybeDuration::NONE,
            in_flight_limit: u64::MAX,
            packet_size_bytes,
            owes_ack: false,
            peer_is_slow: false,
        }
    }

    /// The whole half, in the state that it would have by now.
    pub(crate) fn whole(&self, config: &ConnectionConfig) -> Ccid3Sender {
        let mut whole = match self.ccid {
            NUMBER => Ccid3Sender::new(&config.ccid3, self.packet_size_bytes),
            _ => ccid4::sender(&config.ccid4, self.packet_size_bytes),
        };
        if let Some(at) = self.handshake_at.get() {
            if let Some(total) = self.handshake_measured.get() {
                whole.on_handshake_measured(at, total);
            }
            if let Some(rtt) = self.handshake_echoed.get() {
                whole.on_handshake_rtt(at, rtt);
            }
        }
        whole.limit_in_flight(self.in_flight_limit);
        if let (Some(first), Some(newest)) = (self.first, self.newest) {
            whole.log_before_data((first.seq, first.at), (newest.seq, newest.at));
        }
        (whole.owes_ack, whole.peer_is_slow) = (self.owes_ack, self.peer_is_slow);
        (whole.ack_sent, whole.drops_read) = (self.ack_sent, self.acked);
        whole
    }

    /// Whether only the whole half can process this acknowledgement.
    pub(crate) fn needs_whole_for(ack: &AckInfo<'_>) -> bool {
        !ack.ccid_options.is_empty() || !ack.data_dropped.is_empty()
    }

    /// Whether only the whole half can take more that the handshake measured.
    pub(crate) fn needs_whole_for_handshake(&self) -> bool {
        self.handshake_at != MaybeInstant::NONE
    }
}

impl CcidSender for UnusedCcid3 {
    fn ccid(&self) -> u8 {
        self.ccid
    }

    fn reads_option(&self, option: &OptionRef<'_>) -> bool {
        reads(self.ccid, option)
    }

    /// The whole half is asked.
    fn poll_send(&mut self, _now: Instant, _size_bytes: u32) -> SendVerdict {
        debug_assert!(false, "the whole half has to be made for the first data");
        SendVerdict::Blocked
    }

    fn on_sent(&mut self, now: Instant, packet: SentInfo) {
        debug_assert!(!packet.is_data, "the whole half has to be made for the first data");
        if packet.has_ack {
            (self.owes_ack, self.ack_sent) = (false, MaybeInstant::some(now));
        }
        let sent = Sent { seq: packet.seq, at: now };
        self.newest = Some(sent);
        self.first.get_or_insert(sent);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckInfo<'_>) -> AckOutcome {
        debug_assert!(!Self::needs_whole_for(ack));
        self.peer_is_slow |= ack.slow_receiver;
        //= 4342-6.3-1
        //= 4342-6.3-2
        if ack.ack_vector.is_some() {
            let round = self.rtt().unwrap_or(DEFAULT_RTT);
            self.owes_ack |= self.ack_sent.get().is_none_or(|at| now - at >= round);
        }
        if self.newest.is_some_and(|newest| ack.ackno.at_most(newest.seq)) {
            self.acked = Some(self.acked.map_or(ack.ackno, |acked| acked.max(ack.ackno)));
        }
        AckOutcome::default()
    }

    fn wants_ack_of_ack(&self) -> bool {
        self.owes_ack
    }

    fn on_handshake_measured(&mut self, now: Instant, total: Duration) {
        self.handshake_at = MaybeInstant::some(now);
        self.handshake_measured = MaybeDuration::some(total);
    }

    fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        self.handshake_at = MaybeInstant::some(now);
        self.handshake_echoed = MaybeDuration::some(rtt);
    }

    /// The initial rate takes at most four packets a round-trip time.
    fn seq_window_needed(&self) -> u64 {
        LEAST_SEQUENCE_WINDOW
    }

    fn limit_in_flight(&mut self, packets: u64) {
        self.in_flight_limit = packets.max(1);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) -> TimeoutOutcome {
        TimeoutOutcome::default()
    }

    fn awaits_reports(&self) -> Option<bool> {
        Some(false)
    }

    fn rtt(&self) -> Option<Duration> {
        let (at, echoed) = (self.handshake_at.get()?, self.handshake_echoed.get()?);
        let mut floor = RttFloor::default();
        if let Some(total) = self.handshake_measured.get() {
            floor.measured(at, total);
        }
        Some(handshake_rtt(&mut floor, at, echoed).max(LEAST_RTT))
    }

    /// Depends on settings that only the whole half has.
    fn rto(&self) -> Duration {
        DEFAULT_RTT
    }

    /// Depends on settings that only the whole half has.
    fn metrics(&self) -> CcidMetrics {
        CcidMetrics::default()
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Ecn, Seed};

    use super::*;

    const SEQ: fn(u64) -> Seqno = Seqno::new;

    /// The same happens to a whole half and to one that stands in for it. Only packets before the
    /// newest are forgotten.
    #[test]
    fn the_whole_half_has_the_state_that_it_would_have_had() {
        let config = ConnectionConfig::default();
        for (seed, ccid) in (0..150).flat_map(|seed| [(seed, NUMBER), (seed, ccid4::NUMBER)]) {
            let mut rng = Seed(seed).stream("unused sender half");
            let mut unused = UnusedCcid3::new(ccid, 1400);
            let mut whole = unused.whole(&config);
            let (mut gss, mut gsr) = (100, 7000);
            for step in 0..rng.below(200) {
                let now = Instant::from_nanos(step * 1_000_000);
                match rng.below(5) {
                    0 if !unused.needs_whole_for_handshake() => {
                        let [total, rtt] = [0; 2].map(|_| Duration::from_micros(rng.below(30_000)));
                        let is_measured = rng.chance(0.8);
                        for half in [&mut whole as &mut dyn CcidSender, &mut unused] {
                            if is_measured {
                                half.on_handshake_measured(now, total);
                            }
                            half.on_handshake_rtt(now, rtt);
                        }
                    }
                    0 => {
                        whole.limit_in_flight(step);
                        unused.limit_in_flight(step);
                    }
                    1 | 2 => {
                        gss += 1;
                        let (seq, has_ack, ecn) = (SEQ(gss), rng.chance(0.8), Ecn::Ect0);
                        let (is_data, size_bytes, app_limited) = (false, 0, true);
                        let sent = SentInfo { seq, size_bytes, is_data, has_ack, app_limited, ecn };
                        whole.on_sent(now, SentInfo { ..sent });
                        unused.on_sent(now, sent);
                    }
                    _ => {
                        gsr += 1;
                        let ack = AckInfo {
                            ackno: SEQ(gss - rng.below(3)),
                            seq: SEQ(gsr),
                            ack_vector: rng.chance(0.5).then_some((&[3], false)),
                            slow_receiver: rng.chance(0.01),
                            ..AckInfo::default()
                        };
                        assert_eq!(whole.on_ack(now, &ack), unused.on_ack(now, &ack));
                    }
                }
                assert_eq!((unused.rtt(), unused.poll_timeout()), (whole.rtt(), None));
                let option = OptionRef::DroppedPackets(&[0; 3]);
                assert_eq!(unused.reads_option(&option), whole.reads_option(&option));
                assert_eq!((whole.poll_timeout(), unused.ccid()), (None, whole.ccid()));
                assert_eq!(unused.wants_ack_of_ack(), whole.wants_ack_of_ack());
                assert_eq!(unused.seq_window_needed(), whole.seq_window_needed());
            }
            let made = unused.whole(&config);
            whole.forget_all_but_the_newest();
            assert_eq!(format!("{made:?}"), format!("{whole:?}"));
        }
    }
}
