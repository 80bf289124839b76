//! Tells whether the sender sent less than was allowed (RFC 5348 section 8.2.1).

use udccp_base::{Duration, Instant};

/// The last two times at which the sender had sent everything that was allowed.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataLimited {
    not_limited: [Option<Instant>; 2],
    t_new: Instant,
    t_next: Instant,
}

impl DataLimited {
    /// Everything that was allowed has been sent.
    pub(crate) fn on_not_limited(&mut self, now: Instant) {
        if self.not_limited[0].is_none_or(|at| at <= self.t_new) {
            self.not_limited[0] = Some(now);
        } else if self.not_limited[1].is_none_or(|at| at <= self.t_next) {
            self.not_limited[1] = Some(now);
        }
    }

    /// Processes feedback for the round-trip time up to `t_new`, when the acknowledged packet was
    /// sent. Returns whether the sender was data-limited throughout.
    pub(crate) fn on_feedback(&mut self, now: Instant, t_new: Instant, rtt: Duration) -> bool {
        let t_old = t_new - rtt;
        self.t_new = t_new;
        self.t_next = now;
        let covered = |at: Option<Instant>| at.is_some_and(|at| t_old < at && at <= t_new);
        let was_not_limited = self.not_limited.into_iter().any(covered);
        let [first, second] = self.not_limited;
        if first.is_none_or(|at| at <= t_new) && second.is_some_and(|at| at > t_new) {
            self.not_limited[0] = second;
        }
        !was_not_limited
    }
}
