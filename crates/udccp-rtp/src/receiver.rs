//! Reception statistics of a source: RFC 3550 appendices A.1, A.3 and A.8.

/// A forward jump of less than this counts as loss; after a larger one, the sender has restarted.
const MAX_DROPOUT: u16 = 3000;
/// A backward step of less than this counts as reordering.
const MAX_MISORDER: u16 = 100;
const SEQUENCE_MOD: u32 = 1 << 16;

/// Reception statistics of one source.
#[derive(Clone, Debug)]
pub(crate) struct Reception {
    max_seq: u16,
    /// Number of wraps of the sequence number, shifted by 16 bits.
    cycles: u32,
    base: u32,
    /// The number expected after a jump. If it arrives next, the sender has restarted.
    bad_seq: u32,
    received: u32,
    expected_prior: u32,
    received_prior: u32,
    /// Arrival minus timestamp of the last packet, modulo 2^32.
    transit: Option<u32>,
    /// In 1/16 units of the RTP clock.
    jitter: u64,
}

impl Reception {
    pub(crate) fn new(seq: u16) -> Self {
        Self {
            max_seq: seq.wrapping_sub(1),
            cycles: if seq == 0 { 0_u32.wrapping_sub(SEQUENCE_MOD) } else { 0 },
            base: u32::from(seq),
            bad_seq: SEQUENCE_MOD + 1,
            received: 0,
            expected_prior: 0,
            received_prior: 0,
            transit: None,
            jitter: 0,
        }
    }

    /// Counts a packet that arrived at `arrival` (in units of the RTP clock). Returns its extended
    /// sequence number; `None` if the number is not plausible.
    pub(crate) fn packet(&mut self, seq: u16, timestamp: u32, arrival: u32) -> Option<u32> {
        let extended = self.sequence(seq)?;
        self.received = self.received.wrapping_add(1);
        let transit = arrival.wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            // Timestamps start at any value, so the transit time may wrap between two packets.
            let d = u64::from((transit.wrapping_sub(before) as i32).unsigned_abs());
            self.jitter = self.jitter + d - ((self.jitter + 8) >> 4);
        }
        Some(extended)
    }

    fn sequence(&mut self, seq: u16) -> Option<u32> {
        let ahead = seq.wrapping_sub(self.max_seq);
        if ahead < MAX_DROPOUT {
            if seq < self.max_seq {
                self.cycles = self.cycles.wrapping_add(SEQUENCE_MOD);
            }
            self.max_seq = seq;
        } else if ahead <= u16::MAX - MAX_MISORDER + 1 {
            if u32::from(seq) != self.bad_seq {
                self.bad_seq = (u32::from(seq) + 1) & (SEQUENCE_MOD - 1);
                return None;
            }
            *self = Self { transit: self.transit, jitter: self.jitter, ..Self::new(seq) };
            return self.sequence(seq);
        } else if seq > self.max_seq {
            // A late packet from before the last wrap.
            return Some(self.cycles.wrapping_sub(SEQUENCE_MOD).wrapping_add(u32::from(seq)));
        }
        Some(self.cycles.wrapping_add(u32::from(seq)))
    }

    /// The highest sequence number, extended by wraps.
    pub(crate) fn highest(&self) -> u32 {
        self.cycles.wrapping_add(u32::from(self.max_seq))
    }

    fn expected(&self) -> u32 {
        self.highest().wrapping_sub(self.base).wrapping_add(1)
    }

    pub(crate) fn received(&self) -> u32 {
        self.received
    }

    /// Packets lost so far; negative if there were duplicates.
    pub(crate) fn lost(&self) -> i32 {
        // Both counts wrap, but at different times.
        self.expected().wrapping_sub(self.received) as i32
    }

    /// Mean deviation of the transit time, in units of the RTP clock.
    pub(crate) fn jitter(&self) -> u32 {
        u32::try_from(self.jitter >> 4).unwrap_or(u32::MAX)
    }

    /// The fraction lost since the last call, in 1/256.
    pub(crate) fn fraction_lost(&mut self) -> u8 {
        let expected = self.expected().wrapping_sub(self.expected_prior);
        let received = self.received.wrapping_sub(self.received_prior);
        (self.expected_prior, self.received_prior) = (self.expected(), self.received);
        match expected.checked_sub(received) {
            Some(lost) if expected > 0 => {
                u8::try_from((u64::from(lost) << 8) / u64::from(expected)).unwrap_or(u8::MAX)
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_what_is_missing_below_the_highest() {
        let mut r = Reception::new(10);
        for seq in [10, 11, 13, 12, 16, 17, 19] {
            r.packet(seq, 0, 0);
        }
        assert_eq!((r.lost(), r.received(), r.highest()), (3, 7, 19));
        assert_eq!(r.fraction_lost(), (3 * 256 / 10) as u8);
        assert_eq!(r.fraction_lost(), 0, "nothing was expected since");
        r.packet(20, 0, 0);
        assert_eq!(r.fraction_lost(), 0);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut r = Reception::new(65_534);
        let seen: Vec<_> = [65_534, 65_535, 0, 1, 65_533].map(|s| r.packet(s, 0, 0)).into();
        assert_eq!(seen, [65_534, 65_535, 65_536, 65_537, 65_533].map(Some));
        assert_eq!(r.highest(), 65_537);
        let mut first = Reception::new(0);
        assert_eq!(first.packet(0, 0, 0), Some(0));
        assert_eq!((first.highest(), first.lost()), (0, 0));
    }

    /// After 2^32 packets, which takes 50 days at 1,000 per second.
    #[test]
    fn counts_wrap_and_what_is_lost_stays_what_it_was() {
        let mut r = Reception::new(10);
        for seq in [10, 11, 13] {
            r.packet(seq, 0, 0);
        }
        // As if all packets of many wraps had arrived meanwhile.
        let most = 0_u32.wrapping_sub(SEQUENCE_MOD);
        (r.cycles, r.received) = (most, r.received.wrapping_add(most));
        r.fraction_lost();
        for seq in 14..=u16::MAX {
            r.packet(seq, 0, 0);
        }
        for seq in 0..20 {
            r.packet(seq, 0, 0);
            assert_eq!((r.lost(), r.fraction_lost()), (1, 0), "{seq}");
        }
    }

    #[test]
    fn sequence_jump_is_accepted_at_the_second_packet() {
        let mut r = Reception::new(1);
        r.packet(1, 0, 0);
        assert_eq!(r.packet(40_000, 0, 0), None);
        assert_eq!(r.packet(40_001, 0, 0), Some(40_001));
        assert_eq!((r.lost(), r.received()), (0, 1));
    }

    /// RFC 3550 appendix A.8, computed by hand: J += (|D| - J) / 16.
    #[test]
    fn a_jump_is_what_appendix_a_1_calls_one() {
        let after = |seq: u16| {
            let mut r = Reception::new(10_000);
            r.packet(10_000, 0, 0);
            (r.packet(seq, 0, 0), r.highest())
        };
        assert_eq!(after(12_999), (Some(12_999), 12_999), "2999 ahead");
        assert_eq!(after(13_000), (None, 10_000), "MAX_DROPOUT ahead");
        assert_eq!(after(9_900), (None, 10_000), "MAX_MISORDER behind");
        assert_eq!(after(9_901), (Some(9_901), 10_000), "99 behind");
    }

    #[test]
    fn transit_and_jitter_outlive_a_jump() {
        let mut r = Reception::new(0);
        for (seq, arrival) in [(0, 0), (1, 160), (40_000, 160), (40_001, 0)] {
            r.packet(seq, 0, arrival);
        }
        // As above: 10, and then 19.4. The first packet after the jump does not count.
        assert_eq!(r.jitter(), 19);
    }

    #[test]
    fn jitter_is_rounded_as_in_appendix_a_8() {
        let mut r = Reception::new(0);
        for n in 0..3_u16 {
            r.packet(n, 0, u32::from(n) * 8);
        }
        // Sixteenths: 8, then 8 + 8 - (8 + 8)/16 = 15. Without rounding it would be 16.
        assert_eq!(r.jitter(), 0);
    }

    #[test]
    fn jitter_is_the_smoothed_deviation_of_transit() {
        let mut r = Reception::new(0);
        for (n, late) in [0, 0, 160, 0].into_iter().enumerate() {
            let n = n as u32;
            r.packet(n as u16, n * 160, 5000 + n * 160 + late);
        }
        // 160/16 = 10, then 10 + (160 - 10)/16 = 19.4.
        assert_eq!(r.jitter(), 19);
    }

    #[test]
    fn a_transit_time_that_wraps_is_no_jitter() {
        for border in [0, 1_u32 << 31] {
            let mut r = Reception::new(0);
            for n in 0..20_u32 {
                let late = n % 2 * 2;
                r.packet(
                    n as u16,
                    n * 160,
                    border.wrapping_add(late).wrapping_sub(1).wrapping_add(n * 160),
                );
            }
            assert!(r.jitter() <= 2, "{} at {border}", r.jitter());
        }
    }
}
