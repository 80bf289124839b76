//! The sender half of an end that has sent no data: what the whole half needs to know when the
//! first data is sent.

use udccp_base::{Duration, Instant, MaybeDuration};
use udccp_cc::{RtoConfig, RttEstimator};
use udccp_wire::Seqno;

use crate::ccid::ccid2::ack_of_ack::AckOfAck;
use crate::ccid::ccid2::ack_ratio::AckRatio;
use crate::ccid::ccid2::sender::{Ccid2Sender, sequence_window_for};
use crate::ccid::ccid2::{Ccid2Config, NUMBER};
use crate::ccid::{
    AckInfo, AckOutcome, CcidMetrics, CcidSender, LONGEST_RTT, ReceivedInfo, ReceivedRun,
    SendVerdict, SentInfo, TimeoutOutcome,
};

/// Stands in for a [`Ccid2Sender`] until the first data. Most connections have data in one
/// direction only, and their receiving ends need no more than this.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct UnusedCcid2 {
    ack_ratio: AckRatio,
    ack_of_ack: AckOfAck,
    packet_size_bytes: u32,
    /// The initial window.
    cwnd: u32,
    in_flight_limit: u32,
    last_sent: Option<Seqno>,
    /// The round-trip time of the handshake, and after it that of a Timestamp Echo.
    handshake_rtt: MaybeDuration,
    echoed_rtt: MaybeDuration,
    next_sample: Option<Seqno>,
}

impl UnusedCcid2 {
    /// Stands in for this sender half, which is new. `None` if its window algorithm has to see
    /// more than this keeps.
    pub(crate) fn of(whole: &Ccid2Sender) -> Option<Self> {
        (!whole.window.observes()).then(|| Self {
            ack_ratio: whole.ack_ratio.clone(),
            ack_of_ack: whole.ack_of_ack.clone(),
            packet_size_bytes: whole.packet_size_bytes,
            cwnd: whole.window.cwnd(),
            in_flight_limit: whole.in_flight_limit,
            last_sent: None,
            handshake_rtt: MaybeDuration::NONE,
            echoed_rtt: MaybeDuration::NONE,
            next_sample: None,
        })
    }

    /// The whole half, in the state that it would have by now.
    pub(crate) fn whole(&self, config: &Ccid2Config) -> Ccid2Sender {
        let mut whole = Ccid2Sender::new(config, self.packet_size_bytes);
        whole.ack_ratio = self.ack_ratio.clone();
        whole.ack_of_ack = self.ack_of_ack.clone();
        whole.in_flight_limit = self.in_flight_limit;
        whole.last_sent = self.last_sent;
        whole.next_sample = self.next_sample;
        whole.rtt = self.estimator(config.rto);
        whole
    }

    /// Whether only the whole half can process this acknowledgement.
    pub(crate) fn needs_whole_for(&self, ack: &AckInfo<'_>) -> bool {
        let is_again = ack.timestamp_echo_rtt.is_some() && self.echoed_rtt != MaybeDuration::NONE;
        is_again || ack.slow_receiver || !ack.data_dropped.is_empty()
    }

    /// Whether only the whole half can take another round-trip time of the handshake.
    pub(crate) fn needs_whole_for_handshake(&self) -> bool {
        (self.handshake_rtt, self.echoed_rtt) != (MaybeDuration::NONE, MaybeDuration::NONE)
    }

    fn estimator(&self, config: RtoConfig) -> RttEstimator {
        let mut rtt = RttEstimator::new(config);
        let samples = [self.handshake_rtt, self.echoed_rtt];
        samples.into_iter().filter_map(MaybeDuration::get).for_each(|sample| rtt.sample(sample));
        rtt
    }

    fn next_seq(&self) -> Seqno {
        self.last_sent.map_or(Seqno::ZERO, Seqno::next)
    }

    /// A packet without data was sent.
    #[inline]
    pub(crate) fn note_sent(&mut self, seq: Seqno, has_ack: bool) {
        self.last_sent = Some(seq);
        self.ack_of_ack.on_sent(false, has_ack);
    }
}

impl CcidSender for UnusedCcid2 {
    fn ccid(&self) -> u8 {
        NUMBER
    }

    /// The whole half is asked.
    fn poll_send(&mut self, _now: Instant, _size_bytes: u32) -> SendVerdict {
        debug_assert!(false, "the whole half has to be made for the first data");
        SendVerdict::Blocked
    }

    fn on_sent(&mut self, _now: Instant, packet: SentInfo) {
        debug_assert!(!packet.is_data, "the whole half has to be made for the first data");
        self.note_sent(packet.seq, packet.has_ack);
    }

    fn on_ack(&mut self, _now: Instant, ack: &AckInfo<'_>) -> AckOutcome {
        debug_assert!(!self.needs_whole_for(ack));
        if let Some(rtt) = ack.timestamp_echo_rtt.filter(|rtt| *rtt <= LONGEST_RTT) {
            self.echoed_rtt = MaybeDuration::some(rtt);
            self.next_sample = Some(self.next_seq());
        }
        if ack.ack_vector.is_some() {
            self.ack_of_ack.on_ack_vector();
        }
        self.ack_ratio.on_ack(ack.ackno, self.next_seq(), self.cwnd);
        AckOutcome::default()
    }

    #[inline]
    fn on_peer_packet(&mut self, _now: Instant, packet: &ReceivedInfo) {
        self.ack_ratio.on_peer_packet(packet);
    }

    fn on_peer_run(&mut self, _now: Instant, run: &ReceivedRun<'_>) {
        self.ack_ratio.on_peer_run(run);
    }

    fn wants_ack_of_ack(&self) -> bool {
        self.ack_of_ack.is_wanted(self.cwnd)
    }

    fn on_handshake_rtt(&mut self, _now: Instant, rtt: Duration) {
        debug_assert!(!self.needs_whole_for_handshake());
        self.handshake_rtt = MaybeDuration::some(rtt);
    }

    #[inline]
    fn wanted_ack_ratio(&self) -> Option<u16> {
        Some(self.ack_ratio.wanted())
    }

    fn on_ack_ratio_confirmed(&mut self, ack_ratio: u16) {
        self.ack_ratio.set_in_force(ack_ratio);
    }

    #[inline]
    fn seq_window_needed(&self) -> u64 {
        sequence_window_for(self.cwnd)
    }

    fn limit_in_flight(&mut self, packets: u64) {
        self.in_flight_limit = u32::try_from(packets.max(1)).unwrap_or(u32::MAX);
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
        // It does not depend on the bounds of the timeout.
        self.estimator(RtoConfig::default()).srtt()
    }

    /// Depends on settings that only the whole half has.
    fn rto(&self) -> Duration {
        self.estimator(RtoConfig::default()).rto()
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

    fn ack(ackno: u64, seq: u64, rng: &mut udccp_base::Rng) -> AckInfo<'static> {
        AckInfo {
            ackno: SEQ(ackno),
            seq: SEQ(seq),
            ack_vector: rng.chance(0.7).then_some((&[3, 0x41, 2], false)),
            timestamp_echo_rtt: rng.chance(0.02).then_some(Duration::from_millis(30)),
            elapsed: rng.chance(0.5).then_some(Duration::from_millis(2)),
            ..AckInfo::default()
        }
    }

    /// The same happens to a whole half and to one that stands in for it.
    #[test]
    fn the_whole_half_has_the_state_that_it_would_have_had() {
        let config = Ccid2Config {
            initial_window: udccp_cc::InitialWindow::Packets(10),
            ..Ccid2Config::default()
        };
        for seed in 0..200 {
            let mut rng = Seed(seed).stream("unused sender half");
            let mut whole = Ccid2Sender::new(&config, 1400);
            let mut unused = UnusedCcid2::of(&whole).unwrap();
            let (mut gss, mut gsr) = (100, 7000);
            for step in 0..rng.below(400) {
                let now = Instant::from_nanos(step * 1_000_000);
                match rng.below(5) {
                    0 if !unused.needs_whole_for_handshake() => {
                        let rtt = Duration::from_millis(20);
                        whole.on_handshake_rtt(now, rtt);
                        unused.on_handshake_rtt(now, rtt);
                    }
                    0 => {
                        whole.limit_in_flight(step);
                        unused.limit_in_flight(step);
                        whole.on_ack_ratio_confirmed(step as u16 % 4);
                        unused.on_ack_ratio_confirmed(step as u16 % 4);
                    }
                    1 | 2 => {
                        gss += 1;
                        let has_ack = rng.chance(0.8);
                        let (seq, ecn) = (SEQ(gss), Ecn::Ect0);
                        let (is_data, size_bytes, app_limited) = (false, 0, true);
                        let sent = SentInfo { seq, size_bytes, is_data, has_ack, app_limited, ecn };
                        whole.on_sent(now, SentInfo { ..sent });
                        unused.on_sent(now, sent);
                    }
                    _ => {
                        gsr += 1 + u64::from(rng.chance(0.1));
                        let (is_data, ecn) = (rng.chance(0.8), Ecn::Ect0);
                        let (size_bytes, ccval, ndp_count) = (1400, 0, None);
                        let seq = SEQ(gsr);
                        let info = ReceivedInfo { seq, is_data, size_bytes, ccval, ecn, ndp_count };
                        whole.on_peer_packet(now, &info);
                        unused.on_peer_packet(now, &info);
                        let ack = ack(gss - rng.below(3), gsr, &mut rng);
                        if unused.needs_whole_for(&ack) {
                            continue;
                        }
                        let out = (whole.on_ack(now, &ack), unused.on_ack(now, &ack));
                        assert_eq!(out.0, out.1);
                    }
                }
                assert_eq!(unused.rtt(), whole.rtt());
                assert_eq!(unused.wanted_ack_ratio(), whole.wanted_ack_ratio());
                assert_eq!(unused.wants_ack_of_ack(), whole.wants_ack_of_ack());
                assert_eq!(unused.seq_window_needed(), whole.seq_window_needed());
                assert_eq!(whole.poll_timeout(), None);
            }
            assert_eq!(format!("{:?}", unused.whole(&config)), format!("{whole:?}"));
        }
    }
}
