//! How much is acknowledged at once, beyond what the path carries meanwhile.

use udccp_base::Instant;

/// Rounds of one of the two windows of the maximum (`bbr_extra_acked_win_rtts`).
const ROUNDS: u32 = 5;
/// At most what the path carries in this time counts, in seconds (`bbr_extra_acked_max_us`).
const MOST_SECONDS: f64 = 0.1;
/// Packets after which a new stretch begins (`bbr_ack_epoch_acked_reset_thresh`).
const LONGEST: u32 = 1 << 20;

/// The most packets acknowledged beyond the estimate of the path, over five to ten rounds
/// (`bbr_update_ack_aggregation` of Linux since 5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bursts {
    most: [u32; 2],
    current: usize,
    rounds: u32,
    /// Since when, and how many packets were acknowledged since.
    since: Instant,
    acked: u32,
}

impl Bursts {
    /// `acked` packets were acknowledged; the path carries `rate` packets a second.
    pub(super) fn update(
        &mut self,
        now: Instant,
        acked: u32,
        round_start: bool,
        rate: f64,
        cwnd: u32,
    ) {
        self.rounds += u32::from(round_start);
        if self.rounds >= ROUNDS {
            self.rounds = 0;
            self.current = 1 - self.current;
            self.most[self.current] = 0;
        }
        let mut expected = (rate * (now - self.since).as_secs_f64()) as u32;
        if self.acked <= expected || self.acked.saturating_add(acked) >= LONGEST {
            (self.acked, self.since, expected) = (0, now, 0);
        }
        self.acked += acked;
        let extra = self.acked.saturating_sub(expected).min(cwnd);
        self.most[self.current] = self.most[self.current].max(extra);
    }

    /// Packets by which the window is larger, where the path carries `rate` packets a second.
    pub(super) fn most(&self, rate: f64) -> u32 {
        self.most[0].max(self.most[1]).min((rate * MOST_SECONDS) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// 1,000 packets a second: eight at once every 4 ms are four beyond what the path carries.
    #[test]
    fn what_comes_at_once_beyond_the_path_is_remembered_for_five_to_ten_rounds() {
        let mut bursts = Bursts::default();
        bursts.update(at(1_000), 4, false, 1_000.0, 100);
        bursts.update(at(1_004), 8, false, 1_000.0, 100);
        assert_eq!(bursts.most(1_000.0), 8);
        for round in 0..9 {
            bursts.update(at(2_000 + round), 1, true, 1_000.0, 100);
            assert_eq!(bursts.most(1_000.0), 8, "round {round}");
        }
        bursts.update(at(2_100), 1, true, 1_000.0, 100);
        assert_eq!(bursts.most(1_000.0), 1);
    }

    #[test]
    fn neither_the_window_nor_a_tenth_of_a_second_is_exceeded() {
        let mut bursts = Bursts::default();
        bursts.update(at(5), 50, false, 1_000.0, 20);
        assert_eq!(bursts.most(1_000.0), 20);
        assert_eq!(bursts.most(100.0), 10);
    }
}
