//! Measures bursts of acknowledgements: packets acknowledged beyond what the path delivers in that
//! time.

use udccp_base::{Duration, Instant};

use super::path::carried;

/// Rounds in each of the two windows of the maximum (`bbr_extra_acked_win_rtts`).
const ROUNDS: u32 = 5;
/// The result is limited to what the path delivers in this time (`bbr_extra_acked_max_us`).
const LONGEST: Duration = Duration::from_millis(100);
/// Packets after which a new measurement begins (`bbr_ack_epoch_acked_reset_thresh`).
const MOST_PACKETS: u32 = 1 << 20;

/// The most packets acknowledged beyond the estimate of the path, over five to ten rounds
/// (`bbr_update_ack_aggregation` of Linux since 5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtraAcked {
    most: [u32; 2],
    current: usize,
    rounds: u32,
    /// Start of the measurement, and the number of packets acknowledged since.
    since: Instant,
    acked: u32,
}

impl ExtraAcked {
    /// Takes into account that `acked` packets were acknowledged on a path of `bandwidth`.
    pub(super) fn update(
        &mut self,
        now: Instant,
        acked: u32,
        round_start: bool,
        bandwidth: u64,
        cwnd: u32,
    ) {
        self.rounds += u32::from(round_start);
        if self.rounds >= ROUNDS {
            self.rounds = 0;
            self.current = 1 - self.current;
            self.most[self.current] = 0;
        }
        let mut expected = carried(bandwidth, now - self.since);
        if self.acked <= expected || self.acked.saturating_add(acked) >= MOST_PACKETS {
            (self.acked, self.since, expected) = (0, now, 0);
        }
        self.acked += acked;
        let extra = self.acked.saturating_sub(expected).min(cwnd);
        self.most[self.current] = self.most[self.current].max(extra);
    }

    /// The number of packets to add to the window on a path of `bandwidth`.
    pub(super) fn most(&self, bandwidth: u64) -> u32 {
        self.most[0].max(self.most[1]).min(carried(bandwidth, LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 packets per second, rounded up.
    const RATE: u64 = (1_000 << 24) / 1_000_000 + 1;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// At 1,000 packets per second, eight at once every 4 ms are four more than the path delivers.
    #[test]
    fn extra_acked_is_kept_for_five_to_ten_rounds() {
        let mut bursts = ExtraAcked::default();
        bursts.update(at(1_000), 4, false, RATE, 100);
        bursts.update(at(1_004), 8, false, RATE, 100);
        assert_eq!(bursts.most(RATE), 8);
        for round in 0..9 {
            bursts.update(at(2_000 + round), 1, true, RATE, 100);
            assert_eq!(bursts.most(RATE), 8, "round {round}");
        }
        bursts.update(at(2_100), 1, true, RATE, 100);
        assert_eq!(bursts.most(RATE), 1);
    }

    #[test]
    fn extra_acked_is_capped_by_the_window_and_100_ms() {
        let mut bursts = ExtraAcked::default();
        bursts.update(at(5), 50, false, RATE, 20);
        assert_eq!(bursts.most(RATE), 20);
        assert_eq!(bursts.most(RATE / 10 + 1), 10);
    }
}
