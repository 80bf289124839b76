//! Searches for the path's MTU with padded packets (RFC 8899, RFC 4340 section 14.1).
//!
//! At first, the size in use is the interface's, as RFC 4340 says, and the BASE state confirms it.
//! If the path drops that size silently, it is a black hole, and the base size follows. From there
//! the search tries the ceiling at once, which most paths support, and halves the range if that
//! fails.

use udccp_base::{Duration, Instant};
use udccp_wire::Seqno;

use crate::config::PmtuProbing;

/// Maximum number of probes of one size (RFC 8899 section 5.1.2).
const MAX_PROBES: u32 = 3;
/// A search ends when its result is at most this many bytes too small.
const CLOSE_ENOUGH: u16 = 16;
/// Least time to wait for the answer to a probe (RFC 8899 section 5.1.1).
const LEAST_PROBE_TIME: Duration = Duration::from_secs(1);

/// The states of RFC 8899 section 5.2, except DISABLED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The size in use has yet to be confirmed.
    Base,
    /// Larger sizes are being tried.
    Searching,
    /// The size is found; the next search starts when the timer fires.
    Complete,
    /// Not even the base size gets through: the least size and the base size are tried in turn.
    Error,
}

/// State of the search for one path.
#[derive(Clone, Debug)]
pub(super) struct Search {
    config: PmtuProbing,
    phase: Phase,
    /// Size in use, PLPMTU. Like all sizes here, in bytes with the IP header.
    plpmtu: u16,
    /// Largest size worth a probe, MAX_PLPMTU.
    ceiling: u16,
    /// Smallest size, MIN_PLPMTU.
    least: u16,
    /// Smallest size that failed in this search.
    failed: Option<u16>,
    /// Size under test, PROBED_SIZE.
    size: u16,
    /// How often it has been sent, PROBE_COUNT.
    count: u32,
    /// The unanswered probe, and when it was sent.
    out: Option<(Seqno, Instant)>,
    /// When the size in use was last confirmed or put in doubt.
    checked: Instant,
    /// When to stop waiting for an answer, search again, or try again.
    timer: Option<Instant>,
}

impl Search {
    /// A search on a path whose MTU is `mtu` at first, for sizes of `floor` and more.
    pub(super) fn new(config: PmtuProbing, mtu: u16, floor: u16, now: Instant) -> Self {
        let least = floor.min(mtu);
        Self {
            config,
            phase: Phase::Base,
            plpmtu: mtu,
            ceiling: mtu,
            least,
            failed: None,
            size: mtu,
            count: 0,
            out: None,
            checked: now,
            timer: None,
        }
    }

    /// The state.
    #[cfg(test)]
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Size in use.
    pub(super) fn plpmtu(&self) -> u16 {
        self.plpmtu
    }

    /// Base size, which every path is expected to support.
    fn base(&self) -> u16 {
        self.config.base.clamp(self.least, self.ceiling)
    }

    /// When to call `on_timer`.
    pub(super) fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// Size of the probe to send now.
    pub(super) fn wants(&self) -> Option<u16> {
        (self.out.is_none() && self.timer.is_none()).then_some(self.size)
    }

    /// The probe was sent as packet `seq`.
    pub(super) fn on_sent(&mut self, now: Instant, seq: Seqno, rtt: Duration) {
        self.out = Some((seq, now));
        self.count += 1;
        self.timer = Some(now + LEAST_PROBE_TIME.max(rtt * 3));
    }

    /// A SyncAck answered packet `seq`.
    pub(super) fn on_answer(&mut self, now: Instant, seq: Seqno) {
        if self.out.is_none_or(|(probe, _)| probe != seq) {
            return;
        }
        self.checked = now;
        self.plpmtu = self.plpmtu.max(self.size);
        if self.phase == Phase::Error && self.size == self.base() {
            self.failed = None;
        }
        self.phase = Phase::Searching;
        self.choose(now);
    }

    /// A router reports that our packet `quoted` was too big.
    pub(super) fn on_too_big(&mut self, now: Instant, mtu: u16, quoted: Seqno) {
        let mtu = mtu.max(self.least);
        let of_probe = self.out.is_some_and(|(probe, _)| probe == quoted);
        if mtu < self.plpmtu {
            self.plpmtu = mtu;
            self.failed = Some(mtu + 1);
            self.restart(Phase::Base, self.plpmtu);
        } else if of_probe && mtu < self.size {
            self.failed = Some(mtu + 1);
            self.choose(now);
            if self.plpmtu < mtu {
                // A router knows the size: no need to halve the range.
                self.restart(Phase::Searching, mtu);
            }
        }
    }

    /// Packets were lost: perhaps the size in use no longer gets through.
    pub(super) fn on_doubt(&mut self, now: Instant) {
        if self.phase == Phase::Complete
            && now.saturating_since(self.checked) >= self.config.confirmation
        {
            self.checked = now;
            self.restart(Phase::Base, self.plpmtu);
        }
    }

    /// The timer has fired. The last packet of the peer arrived at `heard`: while it sends nothing
    /// at all, a lost probe says nothing about sizes. Returns whether a Sync should check that the
    /// peer is still alive.
    pub(super) fn on_timer(&mut self, now: Instant, heard: Instant) -> bool {
        self.timer = None;
        let Some((_, sent)) = self.out.take() else {
            if self.phase == Phase::Complete {
                self.failed = None;
                self.phase = Phase::Searching;
                self.choose(now);
            }
            return false;
        };
        if heard <= sent {
            self.count -= 1;
            return true;
        }
        if self.count >= MAX_PROBES {
            self.on_failure(now);
        }
        false
    }

    /// All probes of `size` failed.
    fn on_failure(&mut self, now: Instant) {
        if self.phase == Phase::Error && self.size < self.base() {
            let base = self.base();
            self.restart(Phase::Error, base);
            self.timer = Some(now + self.config.confirmation);
        } else if self.phase == Phase::Error {
            self.restart(Phase::Error, self.least);
        } else if self.size > self.plpmtu {
            self.failed = Some(self.size);
            self.choose(now);
        } else if self.size > self.base() {
            // The path is a black hole for this size.
            self.failed = Some(self.size);
            self.plpmtu = self.base();
            self.restart(Phase::Base, self.plpmtu);
        } else {
            self.plpmtu = self.least;
            self.failed = Some(self.base());
            self.restart(Phase::Error, self.least);
        }
    }

    fn restart(&mut self, phase: Phase, size: u16) {
        (self.phase, self.size, self.count, self.out, self.timer) = (phase, size, 0, None, None);
    }

    /// Chooses the next size to try, or ends the search.
    fn choose(&mut self, now: Instant) {
        (self.count, self.out, self.timer) = (0, None, None);
        let above = self.failed.unwrap_or(self.ceiling.saturating_add(1));
        if self.failed.is_none() && self.plpmtu < self.ceiling {
            self.size = self.ceiling;
        } else if above.saturating_sub(self.plpmtu) > CLOSE_ENOUGH {
            self.size = self.plpmtu + (above - self.plpmtu) / 2;
        } else {
            self.phase = Phase::Complete;
            // If no larger size is possible, there is nothing to search again for.
            let raise = self.plpmtu < self.ceiling;
            self.timer = Some(if raise { now + self.config.raise } else { Instant::MAX });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search on a path that takes `mtu`. Returns the sizes probed.
    fn explore(search: &mut Search, now: &mut Instant, mtu: u16) -> Vec<u16> {
        let mut probed = Vec::new();
        for n in 0..200 {
            if let Some(size) = search.wants() {
                probed.push(size);
                search.on_sent(*now, Seqno::new(n), Duration::from_millis(50));
                *now += Duration::from_millis(50);
                if size <= mtu {
                    search.on_answer(*now, Seqno::new(n));
                }
                continue;
            }
            if search.phase() == Phase::Complete {
                break;
            }
            *now = search.timer().unwrap();
            // The peer is alive.
            search.on_timer(*now, *now);
        }
        probed
    }

    fn search(mtu: u16) -> (Search, Instant) {
        let now = Instant::from_nanos(1_000_000_000);
        (Search::new(PmtuProbing::default(), mtu, 576, now), now)
    }

    #[test]
    fn a_path_that_takes_the_interface_s_packets_costs_one_probe() {
        let (mut s, mut now) = search(1500);
        assert_eq!(explore(&mut s, &mut now, 1500), [1500]);
        assert_eq!((s.phase(), s.plpmtu()), (Phase::Complete, 1500));
        assert_eq!(s.timer(), Some(Instant::MAX), "there is nothing to raise");
    }

    #[test]
    fn a_black_hole_is_found_and_what_fits_is_found_by_halves() {
        let (mut s, mut now) = search(1500);
        let probed = explore(&mut s, &mut now, 1420);
        assert_eq!(probed[..4], [1500, 1500, 1500, 1280]);
        assert!(s.plpmtu() <= 1420 && s.plpmtu() > 1420 - CLOSE_ENOUGH, "{}", s.plpmtu());
        assert!(probed.len() < 20, "{probed:?}");
    }

    #[test]
    fn a_path_below_the_base_size_is_an_error_that_a_wider_path_ends() {
        let (mut s, mut now) = search(1500);
        for n in 0..40 {
            if s.wants().is_some() {
                s.on_sent(now, Seqno::new(n), Duration::ZERO);
            }
            now = s.timer().unwrap();
            s.on_timer(now, now);
        }
        assert_eq!((s.phase(), s.plpmtu()), (Phase::Error, 576));
        // The path first takes 700 bytes, later all sizes.
        explore(&mut s, &mut now, 700);
        assert!((684..=700).contains(&s.plpmtu()), "{}", s.plpmtu());
        now = s.timer().unwrap();
        s.on_timer(now, now);
        explore(&mut s, &mut now, 1500);
        assert_eq!((s.phase(), s.plpmtu()), (Phase::Complete, 1500));
    }

    #[test]
    fn a_search_is_repeated_when_the_raise_timer_fires() {
        let (mut s, mut now) = search(1500);
        explore(&mut s, &mut now, 1300);
        let wait = s.timer().unwrap() - now;
        assert!(wait <= Duration::from_secs(600) && wait > Duration::from_secs(590), "{wait:?}");
        now = s.timer().unwrap();
        s.on_timer(now, now);
        explore(&mut s, &mut now, 1500);
        assert_eq!(s.plpmtu(), 1500);
    }

    #[test]
    fn a_silent_peer_is_no_black_hole() {
        let (mut s, mut now) = search(1500);
        let heard = now;
        for n in 0..20 {
            assert_eq!(s.wants(), Some(1500));
            s.on_sent(now, Seqno::new(n), Duration::ZERO);
            now = s.timer().unwrap();
            assert!(s.on_timer(now, heard), "asks for a sign of life");
        }
        assert_eq!(s.plpmtu(), 1500);
    }

    #[test]
    fn a_router_that_says_what_fits_is_believed_about_the_probe() {
        let (mut s, mut now) = search(1500);
        explore(&mut s, &mut now, 1300);
        now = s.timer().unwrap();
        s.on_timer(now, now);
        assert_eq!(s.wants(), Some(1500));
        s.on_sent(now, Seqno::new(77), Duration::ZERO);
        s.on_too_big(now, 1400, Seqno::new(76));
        assert_eq!(s.wants(), None, "not about the probe");
        s.on_too_big(now, 1400, Seqno::new(77));
        assert_eq!(s.wants(), Some(1400));
        // It also follows reports about the size in use,
        s.on_too_big(now, 1000, Seqno::new(5));
        assert_eq!((s.plpmtu(), s.wants()), (1000, Some(1000)));
        // but never goes below the least size.
        s.on_too_big(now, 68, Seqno::new(6));
        assert_eq!((s.plpmtu(), s.wants()), (576, Some(576)));
        s.on_too_big(now, 68, Seqno::new(7));
        assert_eq!((s.plpmtu(), s.phase()), (576, Phase::Base));
    }
}
