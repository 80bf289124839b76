//! Schedules RTCP packets: RFC 3550 section 6.3 and appendix A.7.

use std::time::Duration;

/// RFC 3550 section 6.2: RTCP's share of the session bandwidth.
const RTCP_SHARE: f64 = 0.05;
/// Section 6.3.1: e - 3/2 compensates for timer reconsideration, which makes reports less frequent.
const COMPENSATION: f64 = std::f64::consts::E - 1.5;
/// The senders' share of RTCP's bandwidth while there are few senders.
const SENDER_SHARE: f64 = 0.25;

/// The parameters of the interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) members: usize,
    pub(crate) senders: usize,
    pub(crate) we_sent: bool,
    /// Session bandwidth in bits per second.
    pub(crate) bandwidth: u32,
    /// Mean size of RTCP packets including lower headers, in bytes.
    pub(crate) average_bytes: f64,
    pub(crate) minimum: Duration,
    /// Whether nothing has been sent yet.
    pub(crate) initial: bool,
}

impl Interval {
    /// The deterministic interval Td (section 6.3.1, steps 1 to 4).
    pub(crate) fn deterministic(&self) -> Duration {
        let mut rate = f64::from(self.bandwidth) / 8.0 * RTCP_SHARE;
        let mut n = self.members;
        if (self.senders as f64) <= self.members as f64 * SENDER_SHARE {
            if self.we_sent {
                rate *= SENDER_SHARE;
                n = self.senders;
            } else {
                rate *= 1.0 - SENDER_SHARE;
                n -= self.senders;
            }
        }
        let least = if self.initial { self.minimum / 2 } else { self.minimum };
        let needed = self.average_bytes * n.max(1) as f64 / rate.max(1.0);
        Duration::from_secs_f64(needed).max(least)
    }

    /// The interval with `chance` in `0..1` (steps 5 and 6).
    pub(crate) fn randomised(&self, chance: f64) -> Duration {
        self.deterministic().mul_f64((0.5 + chance) / COMPENSATION)
    }
}

/// Mean size of RTCP packets after one of `bytes` (section 6.3.3).
pub(crate) fn average(before: f64, bytes: usize) -> f64 {
    before * 15.0 / 16.0 + bytes as f64 / 16.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Interval {
        Interval {
            members: 2,
            senders: 1,
            we_sent: true,
            bandwidth: 64_000,
            average_bytes: 100.0,
            minimum: Duration::from_secs(5),
            initial: false,
        }
    }

    //= 5762-4.2-1 test
    #[test]
    fn the_minimum_holds_for_small_sessions() {
        assert_eq!(two().deterministic(), Duration::from_secs(5));
        let first = Interval { initial: true, ..two() };
        assert_eq!(first.deterministic(), Duration::from_millis(2500));
        // 0.5 and 1.5 times the interval, divided by 1.21828.
        let (low, high) = (two().randomised(0.0), two().randomised(1.0));
        assert!((low.as_secs_f64() - 2.052).abs() < 0.001);
        assert!((high.as_secs_f64() - 6.156).abs() < 0.001);
    }

    /// 64 kbit/s: RTCP has 400 bytes per second, three quarters of it for 99 receivers.
    #[test]
    fn a_large_session_shares_five_percent() {
        let many = Interval { members: 100, senders: 1, we_sent: false, ..two() };
        assert_eq!(many.deterministic(), Duration::from_secs(33));
        let sender = Interval { we_sent: true, average_bytes: 1000.0, ..many };
        assert_eq!(sender.deterministic(), Duration::from_secs(10));
    }

    /// If more than a quarter of the members send, all share equally (RFC 3550 section 6.3.1).
    #[test]
    fn where_many_send_all_share_alike() {
        for we_sent in [true, false] {
            let talk = Interval { members: 6, senders: 3, we_sent, average_bytes: 1000.0, ..two() };
            assert_eq!(talk.deterministic(), Duration::from_secs(15));
        }
    }

    #[test]
    fn an_interval_is_finite_without_bandwidth_and_before_the_first_sender_counts() {
        // As if RTCP had a byte a second.
        let poor = Interval { bandwidth: 0, ..two() };
        assert_eq!(poor.deterministic(), Duration::from_secs(200));
        // The only sender, of which nobody knows yet, has a quarter of 400 bytes a second.
        let unknown = Interval { members: 8, senders: 0, average_bytes: 1000.0, ..two() };
        assert_eq!(unknown.deterministic(), Duration::from_secs(10));
    }

    #[test]
    fn the_average_moves_by_a_sixteenth() {
        assert!((average(100.0, 260) - 110.0).abs() < 1e-9);
    }
}
