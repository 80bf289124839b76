//! The acknowledgement that nearly all are: it advances, and nothing is or was missing.

use udccp_base::{Duration, Instant};

use super::{Phase, SendSide};
use crate::send::timeout::Frto;

impl SendSide {
    /// Handles an acknowledgement up to `ack` without blocks and marks, as [`Self::on_ack`] does,
    /// if all outstanding data was sent once and none is known to be SACKed or lost. Otherwise
    /// returns false, and does nothing. `timestamp_rtt` is the time from the echoed timestamp.
    #[inline(always)]
    pub(crate) fn on_next_ack(
        &mut self,
        now: Instant,
        (ack, window_end): (u64, u64),
        timestamp_rtt: impl FnOnce() -> Option<Duration>,
    ) -> bool {
        let before = self.board.una();
        let is_next = ack > before
            && self.shared.limits.is_plain
            && matches!(self.phase, Phase::Open)
            && self.board.is_in_order(ack)
            && self.detection.as_ref().is_some_and(|d| !d.is_probing());
        if is_next {
            self.blocked = false;
            self.unanswered = 0;
            self.frto = Frto::Off;
            if window_end > self.window_end {
                self.window_end = window_end;
                self.persist_deadline = Instant::MAX;
            }
            self.advance(now, (before, ack), timestamp_rtt);
        }
        is_next
    }

    /// Takes data in order from `before` to `ack` as delivered.
    #[inline(always)]
    fn advance(
        &mut self,
        now: Instant,
        (before, ack): (u64, u64),
        timestamp_rtt: impl FnOnce() -> Option<Duration>,
    ) {
        let (in_flight, high_rxt) = (self.times.count(), self.board.high_rxt());
        self.board.begin_ack();
        self.board.on_cumulative_ack(ack);
        let acked = self.times.on_ack(now, ack);
        (self.dup_acks, self.limited_transmit_bytes) = (0, 0);
        self.sample_rtt(ack, acked.rtt.map(|(oldest, _)| oldest).or_else(timestamp_rtt));
        self.restart_rto(now);
        if let Some(detection) = self.detection.as_mut()
            && let Some(newest) = acked.newest.filter(|newest| newest.end > high_rxt)
            && acked.rtt.is_some()
        {
            detection.on_next(now, newest);
        }
        self.find_losses(now);
        if self.board.head_is_lost() {
            self.enter_recovery(now, ack - before, false);
        } else if acked.segments > 0 {
            let segments = self.segments_of(ack - before, acked.segments);
            self.grow(now, before, segments, acked.newest_rtt(), in_flight);
        }
        self.set_probe(now);
    }

    /// The segments in `bytes`, rounded up. Saves a division if they are so many full ones.
    #[inline(always)]
    fn segments_of(&self, bytes: u64, full: u32) -> u32 {
        let mss = u64::from(self.mss);
        if bytes == u64::from(full) * mss { full } else { bytes.div_ceil(mss) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Rng, Seed};
    use udccp_cc::{Algorithm, CubicConfig};

    use super::*;
    use crate::config::TcpConfig;
    use crate::ranges::Range;
    use crate::send::{AckInfo, Segment};
    use crate::shared::SharedTcpConfig;

    const RTT: Duration = Duration::from_millis(20);

    /// Two senders with the same input. Only the first has the short ways.
    struct Pair {
        now: Instant,
        short: SendSide,
        general: SendSide,
        /// Whether the application writes little.
        is_lean: bool,
        /// How often the short ways were taken: for acknowledgements, and for segments.
        taken: [u32; 2],
    }

    impl Pair {
        fn new(algorithm: Algorithm) -> Self {
            let SharedTcpConfig(config) = TcpConfig::new(algorithm).into();
            let new = || {
                let mut side = SendSide::new(&config);
                side.establish(Instant::ZERO, config.segment_payload() as u32, 1 << 30, Some(RTT));
                side
            };
            let (short, general) = (new(), new());
            Self { now: Instant::ZERO, short, general, is_lean: false, taken: [0; 2] }
        }

        fn send(&mut self) -> bool {
            let full = self.short.next_full(self.now);
            self.taken[1] += u32::from(full.is_some());
            let sent = full.map(|(start, data)| Segment {
                range: Range::new(start, start + u64::from(data)),
                data,
                fin: false,
                push: false,
                retransmission: false,
            });
            let sent = sent.or_else(|| self.short.next_segment(self.now));
            assert_eq!(sent, self.general.next_segment(self.now));
            let leaves = self.now + Duration::from_micros(500);
            if sent.is_some() {
                self.short.on_device(self.now, leaves);
                self.general.on_device(self.now, leaves);
            }
            sent.is_some()
        }

        fn acknowledge(&mut self, rng: &mut Rng) {
            let (una, nxt) = (self.short.una(), self.short.nxt());
            let mss = u64::from(self.short.segment_payload());
            let odd = if rng.below(20) == 0 { rng.below(mss) } else { 0 };
            let ack = (una + rng.below(4) * mss + odd).min(nxt);
            let start = ack + (1 + rng.below(3)) * mss;
            let block = Range::new(start, (start + mss).min(nxt));
            let has_block = rng.below(30) == 0 && block.start < block.end;
            let timestamp_rtt = Some(RTT);
            let info = AckInfo {
                ack,
                window_end: ack + (1 << 30),
                blocks: if has_block { &[block] } else { &[] },
                timestamp_rtt,
                peer_timestamp: Some(1),
                congestion_echo: rng.below(100) == 0,
            };
            let is_plain = info.blocks.is_empty() && !info.congestion_echo;
            let ends = (ack, info.window_end);
            if is_plain && self.short.on_next_ack(self.now, ends, || timestamp_rtt) {
                self.taken[0] += 1;
            } else {
                self.short.on_ack(self.now, &info);
            }
            self.general.on_ack(self.now, &info);
        }

        fn step(&mut self, rng: &mut Rng) {
            self.now += Duration::from_micros(rng.below(3) * 700);
            let mss = self.short.segment_payload();
            // For some time, the data lasts; for some, it does not.
            self.is_lean ^= rng.below(200) == 0;
            let most = rng.below(if self.is_lean { 3 } else { 9 }) as u32;
            let taken = self.short.write_several(mss.into(), most);
            assert_eq!(
                taken,
                (0..most).take_while(|_| self.general.write(mss.into())).count() as u32
            );
            if rng.below(100) == 0 {
                self.now = self.now.max(self.short.deadline().min(self.now + RTT * 100));
            }
            if self.now >= self.short.deadline() {
                let probe = self.short.on_timeout(self.now);
                assert_eq!(probe, self.general.on_timeout(self.now));
            }
            self.acknowledge(rng);
            let most = rng.below(6);
            (0..most).all(|_| self.send());
            assert_eq!(format!("{:?}", self.short), format!("{:?}", self.general));
        }
    }

    #[test]
    fn the_short_ways_have_the_effect_of_the_general_ones() {
        let cubic = Algorithm::Cubic(CubicConfig::default());
        for (seed, algorithm) in [(1, Algorithm::NEW_RENO), (2, cubic)] {
            let (mut pair, mut rng) = (Pair::new(algorithm), Seed(seed).stream("short ways"));
            (0..20_000).for_each(|_| pair.step(&mut rng));
            let stats = pair.short.stats();
            assert!(stats.timeouts > 3 && stats.retransmits > 100, "{stats:?}");
            assert!(pair.taken[1] > 1000, "{:?}", pair.taken);
        }
    }
}
