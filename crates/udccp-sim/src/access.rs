//! Access links with a rate and a delay and nothing else: of many flows, nearly all links.

use udccp_base::{DataRate, Duration, Instant, Ring};
use udccp_link::{SmallSerializer, TransmissionTimes};

use crate::network::{LinkSpec, Node};
use crate::packet::PacketHandle;

/// One direction of an access link without queue limit, loss and the like, of which nobody reads a
/// counter. What such links have in common is in [`Access`].
#[derive(Debug)]
pub(crate) struct AccessLink {
    serializer: SmallSerializer,
    /// The first in line: most links hold no other.
    first: Option<PacketHandle>,
    /// When the first in line is delivered; [`Instant::MAX`] if there is none.
    next: Instant,
    /// Those behind it, and when they are delivered, if it ever held so many.
    others: Option<Box<Ring<Option<Held>>>>,
    way: Way,
    /// Number of the router or host at the far end.
    to: u32,
    /// Number of its kind.
    kind: u16,
}

/// A packet, and when it is delivered.
type Held = (Instant, PacketHandle);

#[derive(Clone, Copy, Debug)]
enum Way {
    /// From a host to a router.
    Up,
    /// From a router to a host.
    Down,
}

/// What access links have in common: there are few kinds.
#[derive(Debug)]
pub(crate) struct Access {
    /// The transmission times and the delay of each kind. An index of an array is masked instead of
    /// checked.
    times: Vec<TransmissionTimes>,
    delays: Box<[Duration; KINDS]>,
}

/// Most kinds, a power of two.
const KINDS: usize = 1024;

/// Among so many of the last kinds a link finds its own. Flows one after the other mostly have the
/// same ones.
const RECENT: usize = 64;

impl Default for Access {
    fn default() -> Self {
        Self { times: Vec::new(), delays: Box::new([Duration::ZERO; KINDS]) }
    }
}

impl Access {
    /// The link of this description; `None` if it has more than a rate and a delay, is not an
    /// access link, or if there are too many kinds.
    pub(crate) fn link(&mut self, spec: &LinkSpec) -> Option<AccessLink> {
        let (way, to) = match (spec.from, spec.to) {
            (Node::Host(_), Node::Router(router)) => (Way::Up, router),
            (Node::Router(_), Node::Host(host)) => (Way::Down, host),
            _ => return None,
        };
        if !spec.config.has_only_rate_and_delay() {
            return None;
        }
        let kind = self.kind(spec.config.rate, spec.config.delay)?;
        let (serializer, next) = (SmallSerializer::default(), Instant::MAX);
        Some(AccessLink { serializer, first: None, next, others: None, way, to, kind })
    }

    /// The number of a kind, which is added if it is new.
    fn kind(&mut self, rate: Option<DataRate>, delay: Duration) -> Option<u16> {
        let new = self.times.len();
        let is_it = |at: &usize| self.delays[*at] == delay && self.times[*at].are_of(rate);
        let known = (new.saturating_sub(RECENT)..new).find(is_it);
        if known.is_none() {
            *self.delays.get_mut(new)? = delay;
            self.times.push(TransmissionTimes::new(rate));
        }
        u16::try_from(known.unwrap_or(new)).ok()
    }
}

impl AccessLink {
    /// The far end.
    #[inline(always)]
    pub(crate) const fn to(&self) -> Node {
        match self.way {
            Way::Up => Node::Router(self.to),
            Way::Down => Node::Host(self.to),
        }
    }

    /// Accepts a packet of `len` bytes that arrives at `now`, and returns when it is delivered. The
    /// caller then either calls [`Self::hold`], or delivers it at that time itself.
    #[inline(always)]
    pub(crate) fn accept(&mut self, now: Instant, len: u32, all: &mut Access) -> Instant {
        let kind = usize::from(self.kind);
        self.serializer.transmit(now, len, &mut all.times, kind) + all.delays[kind % KINDS]
    }

    /// Adds an accepted packet to the line.
    #[inline(always)]
    pub(crate) fn hold(&mut self, deliver: Instant, packet: PacketHandle) {
        if self.next == Instant::MAX {
            self.first = Some(packet);
            self.next = deliver;
        } else {
            self.others.get_or_insert_default().push(Some((deliver, packet)));
        }
    }

    /// The next packet that has reached the far end by `now`.
    #[inline(always)]
    pub(crate) fn depart(&mut self, now: Instant) -> Option<PacketHandle> {
        if self.next > now {
            return None;
        }
        match self.others.as_mut().and_then(|others| others.pop().flatten()) {
            Some((deliver, packet)) => {
                self.next = deliver;
                self.first.replace(packet)
            }
            None => {
                self.next = Instant::MAX;
                self.first.take()
            }
        }
    }

    /// Frees what memory it can, for a link that is no longer needed.
    pub(crate) fn shrink(&mut self) {
        self.others.take_if(|others| others.is_empty());
    }

    /// When the first in line reaches the far end; [`Instant::MAX`] if there is none.
    #[inline(always)]
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// When the packets now in line will have left the transmitter, if no others arrive; `now` if
    /// there are none.
    #[inline(always)]
    pub(crate) fn empties_at(&self, now: Instant) -> Instant {
        now.max(self.serializer.free_at())
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Ecn, Rng, Seed};
    use udccp_link::{LinkConfig, RateDelay};

    use super::*;

    fn spec(rate: u64, delay_us: u64, (from, to): (Node, Node)) -> LinkSpec {
        let config = LinkConfig {
            rate: Some(DataRate::from_bits_per_sec(rate)),
            delay: Duration::from_micros(delay_us),
            ..LinkConfig::default()
        };
        LinkSpec { from, to, config: config.into() }
    }

    const UP: (Node, Node) = (Node::Host(4), Node::Router(1));
    const DOWN: (Node, Node) = (Node::Router(1), Node::Host(4));

    /// Moves what has reached the far end of a link by `now` from both forms of it.
    fn depart(now: Instant, link: &mut AccessLink, general: &mut RateDelay<PacketHandle>) {
        while general.next() <= now {
            assert_eq!(link.next(), general.next());
            assert_eq!(link.depart(now), general.depart(now));
        }
        assert_eq!((link.depart(now), link.next()), (None, general.next()));
    }

    #[test]
    fn it_delivers_like_the_general_link() {
        let mut all = Access::default();
        let specs = [spec(3_000_000, 700, UP), spec(3_000_000, 0, DOWN), spec(1 << 40, 5, UP)];
        let mut links: Vec<AccessLink> = specs.iter().map(|s| all.link(s).unwrap()).collect();
        let mut general: Vec<RateDelay<PacketHandle>> =
            specs.iter().map(|spec| spec.config.plain(Seed(1), "").without_records()).collect();
        let mut rng: Rng = Seed(9).stream("packets");
        let mut now = Instant::ZERO;
        let mut most = 0;
        for slot in 0..4_000 {
            now += Duration::from_micros(rng.below(1_900));
            let (at, len) = (rng.below(3) as usize, 40 + rng.below(3) as u32 * 730);
            for (link, general) in links.iter_mut().zip(&mut general) {
                depart(now, link, general);
            }
            let packet = PacketHandle::new(slot, 0, 0, len, Ecn::NotEct);
            let times = general[at].accept(now, len).unwrap();
            let deliver = links[at].accept(now, len, &mut all);
            assert_eq!(deliver, times.deliver);
            general[at].hold(times, packet);
            links[at].hold(deliver, packet);
            most = most.max(links[at].others.as_ref().map_or(0, |others| others.len()));
        }
        assert!(most > 10, "{most}");
        for (link, general) in links.iter_mut().zip(&mut general) {
            depart(now + Duration::from_secs(9), link, general);
            link.shrink();
            assert!(link.others.is_none());
        }
    }

    #[test]
    fn links_share_kinds_as_long_as_these_are_few() {
        let mut all = Access::default();
        let mut kind = |rate, delay, ends| Some(all.link(&spec(rate, delay, ends))?.kind);
        for _ in 0..2 {
            let found = [kind(1_000, 7, UP), kind(1_000, 7, DOWN), kind(1_000, 8, UP)];
            assert_eq!(found, [Some(0), Some(0), Some(1)]);
        }
        let most = (0..2_000).filter(|delay| kind(2_000, 10 + delay, UP).is_some()).count();
        assert_eq!(most, KINDS - 2);
    }

    #[test]
    fn only_access_links_with_a_rate_and_a_delay_are_such() {
        let mut all = Access::default();
        assert_eq!(all.link(&spec(1_000, 8, DOWN)).map(|link| link.to()), Some(DOWN.1));
        assert_eq!(all.link(&spec(1_000, 8, UP)).map(|link| link.to()), Some(UP.1));
        assert!(all.link(&spec(1_000, 8, (Node::Router(0), Node::Router(1)))).is_none());
        let mut short = spec(1_000, 8, UP);
        let config = LinkConfig { mtu: Some(1_500), ..LinkConfig::clone(&short.config) };
        short.config = config.into();
        assert!(all.link(&short).is_none());
    }
}
