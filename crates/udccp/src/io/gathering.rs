//! Lets data in bulk gather before it is read.

use std::ops::RangeInclusive;

use udccp_base::Duration;

/// A thread that takes the processor for longer than this computes; it does not send.
const LONG: Duration = Duration::from_millis(1);
/// Reads without a wait after a wait that did not pay off. The number doubles each time.
const SKIPS: RangeInclusive<u32> = 16..=1024;

/// Decides whether a read of bulk data first lets other threads run. The first packet of many wakes
/// the reader, which takes the processor from the thread that delivers them: a sender on this host,
/// or the kernel's thread for arriving packets. If that thread finishes first, all packets together
/// need only one wake-up, one read and one acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    is_bulk: bool,
    /// How long the reader waited before the next read.
    waited: Option<Duration>,
    /// Reads that do not wait, before one does again.
    skips: u32,
    /// The value of `skips` after the last wait that did not pay off; halved by each that does.
    last_skips: u32,
}

impl Gathering {
    /// Whether to wait before the next read.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.is_bulk && self.skips == 0;
        self.skips = self.skips.saturating_sub(1);
        is_due
    }

    /// The reader waited this long.
    pub(super) fn waited(&mut self, time: Duration) {
        self.waited = Some(time);
    }

    /// A read has filled this many buffers. `is_bulk`: they hold much, and no more is there.
    pub(super) fn note(&mut self, filled: usize, is_bulk: bool) {
        self.is_bulk = is_bulk;
        match self.waited.take() {
            None => {}
            Some(time) if time <= LONG && filled > 1 => self.last_skips /= 2,
            Some(_) => {
                self.last_skips = (self.last_skips * 2).clamp(*SKIPS.start(), *SKIPS.end());
                self.skips = self.last_skips;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(100);

    /// Waits so long, and reads so many buffers; how many reads then do not wait.
    fn skips(gathering: &mut Gathering, time: Duration, filled: usize) -> u32 {
        while !gathering.is_due() {
            gathering.note(1, true);
        }
        gathering.waited(time);
        gathering.note(filled, true);
        gathering.skips
    }

    #[test]
    fn useful_waits_are_repeated_and_useless_ones_become_rare() {
        let mut gathering = Gathering::default();
        assert_eq!(skips(&mut gathering, SHORT, 2), 0);
        assert_eq!(skips(&mut gathering, SHORT, 1), 16, "it brought one");
        assert_eq!(skips(&mut gathering, LONG * 2, 2), 32, "somebody computes");
        let more = [(); 7].map(|()| skips(&mut gathering, LONG * 2, 2));
        assert_eq!(more, [64, 128, 256, 512, 1024, 1024, 1024]);
        assert_eq!([(); 7].map(|()| skips(&mut gathering, SHORT, 2)), [0; 7]);
        assert_eq!(skips(&mut gathering, LONG * 2, 2), 16, "an exception");
    }

    #[test]
    fn single_datagrams_are_read_without_waiting() {
        let mut gathering = Gathering::default();
        assert!(!gathering.is_due());
        for is_bulk in [true, false, true] {
            gathering.note(1, is_bulk);
            assert_eq!(gathering.is_due(), is_bulk);
        }
    }
}
