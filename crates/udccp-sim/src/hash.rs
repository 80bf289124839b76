//! A hash over all events of a run.

use udccp_base::Instant;

/// The kinds of events in the log that is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A timer of the host or its application expired.
    Wake = 1,
    /// A host put a packet on its link.
    Sent = 2,
    /// A packet reached the far end of a link.
    Departed = 3,
    /// A link dropped a packet.
    Dropped = 4,
}

/// A fast 64-bit hash over the log of events (time, component, kind, length): the same on every
/// machine and in every build, and not cryptographic.
#[derive(Clone, Debug)]
pub(crate) struct EventHash {
    state: u64,
    /// [`what`] a departure from the first link is.
    first_departure: u64,
}

const COMPONENT_SHIFT: u32 = 40;

/// Component and kind, as they are hashed.
#[inline(always)]
const fn what(component: usize, kind: Kind) -> u64 {
    (component as u64) << COMPONENT_SHIFT | (kind as u64) << 32
}

impl EventHash {
    /// The hash of no event. The links are the components from `first_link` on.
    pub(crate) const fn new(first_link: usize) -> Self {
        let first_departure = what(first_link, Kind::Departed);
        Self { state: 0x9e37_79b9_7f4a_7c15, first_departure }
    }

    #[inline(always)]
    pub(crate) const fn log(&mut self, now: Instant, component: usize, kind: Kind, len: u32) {
        self.add(now, what(component, kind) | len as u64);
    }

    /// A packet reached the far end of a link.
    #[inline(always)]
    pub(crate) const fn log_departure(&mut self, now: Instant, link: usize, len: u32) {
        self.add(now, (self.first_departure + ((link as u64) << COMPONENT_SHIFT)) | len as u64);
    }

    #[inline(always)]
    const fn add(&mut self, now: Instant, what: u64) {
        let word = now.as_nanos().wrapping_mul(0xd6e8_feb8_6659_fd93) ^ what;
        self.state = (self.state.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
    }

    pub(crate) const fn finish(&self) -> u64 {
        let mut h = self.state;
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        h ^ (h >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(events: &[(u64, usize, Kind, u32)]) -> u64 {
        let mut h = EventHash::new(0);
        for &(ns, component, kind, len) in events {
            h.log(Instant::from_nanos(ns), component, kind, len);
        }
        h.finish()
    }

    #[test]
    fn every_field_and_the_order_matter() {
        let base = (7, 3, Kind::Sent, 1500);
        let other = (8, 3, Kind::Sent, 1500);
        let variants = [
            of(&[base, other]),
            of(&[other, base]),
            of(&[base, (8, 4, Kind::Sent, 1500)]),
            of(&[base, (8, 3, Kind::Departed, 1500)]),
            of(&[base, (8, 3, Kind::Sent, 1499)]),
            of(&[base]),
            of(&[]),
        ];
        for (i, a) in variants.iter().enumerate() {
            assert!(variants[..i].iter().all(|b| a != b), "{i}");
        }
    }

    #[test]
    fn a_departure_is_one_of_the_component_of_its_link() {
        let (mut log, mut departure) = (EventHash::new(5), EventHash::new(5));
        for link in [0, 3] {
            log.log(Instant::from_nanos(7), 5 + link, Kind::Departed, 1500);
            departure.log_departure(Instant::from_nanos(7), link, 1500);
        }
        assert_eq!(log.finish(), departure.finish());
    }

    #[test]
    fn the_value_never_changes() {
        assert_eq!(of(&[(1, 2, Kind::Wake, 0), (3, 4, Kind::Dropped, 40)]), PINNED);
    }

    const PINNED: u64 = 1_979_281_790_913_149_206;
}
