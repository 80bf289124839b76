//! Reduces the amount in flight to the new window during recovery.

use crate::config::WindowReduction;

/// The sending allowance of one recovery, in bytes (RFC 6937 section 3; RFC 6675, which cuts at
/// once, needs no state).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    /// While the pipe exceeds the target, `num / den` of the delivered data is sent.
    ratio: Option<(u64, u64)>,
    /// Whether below the target a segment more than delivered is sent only if that is safe.
    is_careful: bool,
    delivered: u64,
    sent: u64,
    allowance: u64,
    /// Limit of the pipe; it rises with losses that are found after the acknowledgement.
    limit: u64,
}

impl Reduction {
    /// Starts a recovery with a window of `before` bytes and a new one of `target` bytes.
    pub(crate) fn begin(kind: WindowReduction, before: u64, target: u64) -> Self {
        let ratio = match kind {
            WindowReduction::AtOnce => None,
            WindowReduction::Proportional => Some((target, before.max(1))),
            WindowReduction::RateHalving => Some((1, 2)),
        };
        let is_careful = kind == WindowReduction::Proportional;
        Self { ratio, is_careful, delivered: 0, sent: 0, allowance: 0, limit: 0 }
    }

    /// An acknowledgement reported `newly` bytes delivered; `pipe` is the pipe after it. `is_safe`
    /// means that it advanced and showed no further loss.
    pub(crate) fn on_delivered(
        &mut self,
        newly: u64,
        pipe: u64,
        target: u64,
        mss: u64,
        is_safe: bool,
    ) {
        if newly == 0 && self.is_careful {
            return;
        }
        self.delivered += newly;
        let Some((num, den)) = self.ratio else { return };
        self.allowance = if pipe > target {
            let due = (self.delivered * num).div_ceil(den);
            let due = if self.is_careful { due.div_ceil(mss) * mss } else { due };
            due.saturating_sub(self.sent)
        } else {
            // The slow start reduction bound: a segment more than was delivered. The conservative
            // one: as much as was delivered.
            let more = if is_safe || !self.is_careful { mss } else { 0 };
            let bound = self.delivered.saturating_sub(self.sent).max(newly) + more;
            bound.min(target - pipe)
        };
        self.limit = pipe + self.allowance;
    }

    /// Whether `len` more bytes may be sent.
    pub(crate) fn allows(&self, len: u64, pipe: u64, target: u64) -> bool {
        match self.ratio {
            None => pipe + len <= target,
            Some(_) if self.is_careful => pipe + len <= self.limit,
            Some(_) => len <= self.allowance,
        }
    }

    /// `len` bytes were sent.
    pub(crate) fn on_sent(&mut self, len: u64) {
        self.sent += len;
        self.allowance = self.allowance.saturating_sub(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 20 with one loss, halved (the example of RFC 6937 section 4): which of the 16
    /// duplicate acknowledgements after the third send a segment.
    fn sends(kind: WindowReduction) -> String {
        let (flight, target) = (20, 10);
        let mut r = Reduction::begin(kind, flight, target);
        let mut pipe = flight - 4 + 1;
        r.on_sent(1);
        let mut out = String::new();
        for _ in 0..16 {
            pipe -= 1;
            r.on_delivered(1, pipe, target, 1, false);
            let send = r.allows(1, pipe, target);
            if send {
                pipe += 1;
                r.on_sent(1);
            }
            out.push(if send { 'S' } else { '.' });
        }
        assert_eq!(pipe, target);
        out
    }

    #[test]
    fn proportional_reduction_sends_on_every_second_acknowledgement() {
        assert_eq!(sends(WindowReduction::Proportional), "..S.S.S.S..SSSSS");
        assert_eq!(sends(WindowReduction::RateHalving), "..S.S.S.S..SSSSS");
    }

    #[test]
    fn the_cut_at_once_is_silent_and_then_clocked() {
        assert_eq!(sends(WindowReduction::AtOnce), ".......SSSSSSSSS");
    }

    #[test]
    fn below_the_target_it_catches_up_only_where_that_is_safe() {
        let allowed = |kind, is_safe| {
            let mut r = Reduction::begin(kind, 20, 10);
            r.on_sent(1);
            r.on_delivered(1, 3, 10, 1, is_safe);
            (1..5).take_while(|len| r.allows(*len, 3, 10)).count()
        };
        assert_eq!(allowed(WindowReduction::Proportional, false), 1);
        assert_eq!(allowed(WindowReduction::Proportional, true), 2);
        assert_eq!(allowed(WindowReduction::RateHalving, false), 2);
    }

    /// One of 8 segments is lost and retransmitted. Then a timer finds two more losses. As the
    /// window does not change, these are retransmitted at once.
    #[test]
    fn what_is_found_lost_later_makes_room() {
        let room = |kind| {
            let mut r = Reduction::begin(kind, 8, 4);
            r.on_delivered(1, 6, 4, 1, false);
            assert!(r.allows(1, 6, 4));
            r.on_sent(1);
            (1..5).take_while(|len| r.allows(*len, 5, 4)).count()
        };
        assert_eq!(room(WindowReduction::Proportional), 2);
        assert_eq!(room(WindowReduction::RateHalving), 0);
    }

    /// A window of 61 becomes 30: due are 30/61, 60/61 and 90/61 of a segment, rounded up.
    #[test]
    fn proportional_reduction_counts_whole_segments() {
        let mut r = Reduction::begin(WindowReduction::Proportional, 61_000, 30_000);
        let mut sent = Vec::new();
        for _ in 0..4 {
            r.on_delivered(1_000, 58_000, 30_000, 1_000, false);
            let may_send = r.allows(1_000, 58_000, 30_000);
            if may_send {
                r.on_sent(1_000);
            }
            sent.push(may_send);
        }
        assert_eq!(sent, [true, false, true, false]);
    }
}
