//! Tells whether the sender sent less than was allowed (RFC 5348 section 8.2.1).

use udccp_base::{Duration, Instant, MaybeInstant};

/// The last two times at which the sender had sent everything that was allowed.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataLimited {
    not_limited: [MaybeInstant; 2],
    t_new: Instant,
    t_next: Instant,
}

impl DataLimited {
    /// Everything that was allowed has been sent.
    pub(crate) fn on_not_limited(&mut self, now: Instant) {
        let [first, second] = self.not_limited.map(MaybeInstant::get);
        if first.is_none_or(|at| at <= self.t_new) {
            self.not_limited[0] = MaybeInstant::some(now);
        } else if second.is_none_or(|at| at <= self.t_next) {
            self.not_limited[1] = MaybeInstant::some(now);
        }
    }

    /// Processes feedback for the round-trip time up to `t_new`, when the acknowledged packet was
    /// sent. Returns whether the sender was data-limited throughout.
    pub(crate) fn on_feedback(&mut self, now: Instant, t_new: Instant, rtt: Duration) -> bool {
        let t_old = t_new - rtt;
        self.t_new = t_new;
        self.t_next = now;
        let covered = |at: Option<Instant>| at.is_some_and(|at| t_old < at && at <= t_new);
        let [first, second] = self.not_limited.map(MaybeInstant::get);
        let was_not_limited = covered(first) || covered(second);
        if first.is_none_or(|at| at <= t_new) && second.is_some_and(|at| at > t_new) {
            self.not_limited[0] = second.into();
        }
        !was_not_limited
    }
}
