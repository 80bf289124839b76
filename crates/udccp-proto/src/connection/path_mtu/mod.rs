//! Tracks the path's MTU: probes it, follows reports from routers, and computes what fits in a
//! packet (RFC 4340 section 14).

mod odd_reports;
mod search;
mod sizes;

use udccp_base::{Duration, Instant, MaybeInstant};
use udccp_wire::Seqno;

use crate::config::{ConnectionConfig, PmtuProbing};
use crate::tuple::FourTuple;
use odd_reports::OddReports;
use search::Search;
use sizes::Sizes;

pub(crate) use sizes::MIN_MTU;

/// Common link MTUs (RFC 1191 section 7.1).
const PLATEAUS: [u16; 10] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296, 128];

/// Longest header of a Sync without options.
const SYNC_HEADER: usize = 24;

/// Least time between two searches that an application requests.
const REDISCOVERY_INTERVAL: Duration = Duration::from_secs(2);

/// The largest common link MTU below `mtu`.
fn plateau_below(mtu: u16) -> u16 {
    PLATEAUS.into_iter().find(|&plateau| plateau < mtu).unwrap_or(mtu)
}

/// The known state of one path's MTU.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    sizes: Sizes,
    /// The search waits for a message that needs it.
    awaits_message: bool,
    /// Allocated at first use.
    rare: Option<Box<Rare>>,
}

/// Fields that few paths need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// The search, if the settings enable probing.
    search: Option<Search>,
    /// ICMP messages that quote no packet of ours.
    odd_reports: Option<Box<OddReports>>,
    /// When the application last requested a new search.
    rediscovered: MaybeInstant,
}

/// State of the connection when a router reports that a packet was too big.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// Best known round-trip time.
    pub(super) rtt: Duration,
    /// Greatest number sent.
    pub(super) gss: Seqno,
    /// Data packets lost so far.
    pub(super) lost: u64,
}

/// What the connection has to do after an event of its path's MTU.
#[must_use]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MtuChange {
    /// The largest payload before and now in bytes, if it changed.
    pub(super) max_message_size: Option<(usize, usize)>,
    /// What the search needs next, while there is one.
    pub(super) search: Option<NextProbe>,
    /// The peer is silent: a Sync should check that it is still alive.
    pub(super) asks_for_life: bool,
}

/// The next step of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextProbe {
    /// Size of the probe to send now, in bytes with the IP header.
    pub(super) size: Option<u16>,
    /// When to call [`PathMtu::on_timer`].
    pub(super) timer: Option<Instant>,
}

impl PathMtu {
    /// The state of a path that starts with the MTU of the settings. The network cannot lower it
    /// below the floor of the settings, or else the usual least value.
    pub(super) fn new(tuple: &FourTuple, c: &ConnectionConfig) -> Self {
        let sizes = Sizes::new(tuple, c.path_mtu, c.pmtu_floor);
        let awaits_message = c.pmtu_probing.is_some_and(|probing| probing.when_needed);
        Self { sizes, awaits_message, rare: None }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn search(&mut self) -> Option<&mut Search> {
        self.rare.as_mut()?.search.as_mut()
    }

    /// A message of `size` bytes was queued. Returns whether the search has to begin for it.
    #[inline]
    pub(super) fn on_message(&mut self, size: usize, is_open: bool) -> bool {
        if !self.awaits_message || !self.sizes.may_exceed_floor(size) {
            return false;
        }
        self.awaits_message = false;
        is_open
    }

    /// Largest payload of a message, in bytes.
    #[inline]
    pub(super) fn max_message_size(&self) -> usize {
        self.sizes.max_message_size()
    }

    /// Longest DCCP packet in bytes.
    #[inline]
    pub(super) fn max_transport_len(&self) -> usize {
        self.sizes.max_transport_len()
    }

    /// Whether DCCP is encapsulated in UDP (RFC 6773), whose checksum then protects the packet.
    #[inline]
    pub(super) fn is_encapsulated(&self) -> bool {
        self.sizes.is_encapsulated
    }

    /// The MTU in use, in bytes with the IP header.
    pub(super) fn mtu(&self) -> u16 {
        self.sizes.mtu()
    }

    /// Sets the MTU, and restarts the search.
    pub(super) fn set(
        &mut self,
        now: Instant,
        mtu: u16,
        probing: Option<PmtuProbing>,
    ) -> MtuChange {
        let MtuChange { max_message_size, .. } = self.use_mtu(mtu);
        if self.search().is_none() {
            return MtuChange { max_message_size, ..MtuChange::default() };
        }
        MtuChange { max_message_size, ..self.start_search(now, probing) }
    }

    /// The connection is open: starts a search if the settings enable it.
    pub(super) fn start_search(&mut self, now: Instant, probing: Option<PmtuProbing>) -> MtuChange {
        let probing = probing.filter(|_| !self.awaits_message);
        let Some(config) = probing else { return MtuChange::default() };
        let search = Search::new(config, self.sizes.mtu(), self.sizes.floor(), now);
        self.rare().search = Some(search);
        self.follow_search()
    }

    /// Whether the application may start a new search now: at most once in two seconds.
    pub(super) fn may_rediscover(&mut self, now: Instant) -> bool {
        //= 4340-14.1-3
        let rediscovered = &mut self.rare().rediscovered;
        let ready = rediscovered.get().is_none_or(|at| now - at >= REDISCOVERY_INTERVAL);
        if ready {
            *rediscovered = MaybeInstant::some(now);
        }
        ready
    }

    /// A router reports that a packet was too big. `quoted` is its number if it is one of ours. An
    /// `mtu` of 0 comes from a router that does not report what fits.
    pub(super) fn on_too_big(
        &mut self,
        now: Instant,
        mtu: u16,
        quoted: Option<Seqno>,
        known: Situation,
    ) -> MtuChange {
        let named = if mtu == 0 { plateau_below(self.sizes.mtu()) } else { mtu };
        let mtu = self.sizes.credible(named);
        if mtu >= self.sizes.mtu() {
            // A search may have sent a probe that is larger than the MTU in use.
            if let Some(quoted) = quoted.filter(|_| self.search().is_some()) {
                return self.shrink(now, mtu, quoted);
            }
        } else if let Some(quoted) = quoted {
            return self.shrink(now, mtu, quoted);
        } else if self.is_confused_router(now, mtu, known) {
            self.rare().odd_reports = None;
            return self.shrink(now, mtu, known.gss);
        }
        MtuChange::default()
    }

    //= 4340-14.1-7
    /// Whether to follow messages that quote no packet of ours: only if by now larger packets are
    /// lost, and none arrives. If an attacker guesses, some arrive.
    fn is_confused_router(&mut self, now: Instant, mtu: u16, known: Situation) -> bool {
        let Situation { rtt, gss, lost } = known;
        let odd_reports = &mut self.rare().odd_reports;
        if odd_reports.as_ref().is_none_or(|odd| !odd.goes_with(now, mtu)) {
            *odd_reports = Some(Box::new(OddReports::new(now, rtt, mtu, gss)));
        }
        odd_reports.as_mut().is_some_and(|odd| odd.add(lost))
    }

    /// The path takes at most `mtu`: less than what is in use, unless a search is running.
    fn shrink(&mut self, now: Instant, mtu: u16, quoted: Seqno) -> MtuChange {
        if let Some(search) = self.search() {
            search.on_too_big(now, mtu, quoted);
            return self.follow_search();
        }
        self.use_mtu(mtu)
    }

    fn use_mtu(&mut self, mtu: u16) -> MtuChange {
        let before = self.sizes.max_message_size();
        self.sizes.set_mtu(mtu);
        let after = self.sizes.max_message_size();
        MtuChange {
            max_message_size: (after != before).then_some((before, after)),
            ..MtuChange::default()
        }
    }

    /// Applies the results of the search: the size in use, its timer, its next probe.
    fn follow_search(&mut self) -> MtuChange {
        let Some(search) = self.search() else { return MtuChange::default() };
        let mtu = search.plpmtu();
        let next = NextProbe { size: search.wants(), timer: search.timer() };
        MtuChange { search: Some(next), ..self.use_mtu(mtu) }
    }

    /// Whether ICMP messages that quote no packet of ours have to be compared with packets.
    pub(super) fn has_odd_reports(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.odd_reports.is_some())
    }

    /// A data packet `seq` of `size` bytes was sent.
    #[inline]
    pub(super) fn on_data_sent(&mut self, seq: Seqno, size: usize) {
        let Some(rare) = &mut self.rare else { return };
        if let Some(odd) = &mut rare.odd_reports {
            odd.on_sent(seq, self.sizes.ip_len_of(size));
        }
    }

    /// An acknowledgement arrived, and `lost` data packets are lost in total. If it shows that a
    /// packet larger than odd ICMP messages allow arrived, these are false.
    #[inline]
    pub(super) fn on_ack(&mut self, ackno: Seqno, cells: Option<&[u8]>, lost: u64) {
        let Some(rare) = &mut self.rare else { return };
        rare.odd_reports.take_if(|odd| !odd.survives(ackno, cells, lost));
    }

    /// Bytes of padding that make a Sync a probe of `size` bytes with the IP header.
    pub(super) fn probe_padding(&self, size: u16) -> usize {
        self.sizes.transport_len_of(size).saturating_sub(SYNC_HEADER)
    }

    /// A probe was sent as packet `seq`.
    pub(super) fn on_probe_sent(&mut self, now: Instant, seq: Seqno, rtt: Duration) -> MtuChange {
        if let Some(search) = self.search() {
            search.on_sent(now, seq, rtt);
        }
        self.follow_search()
    }

    /// A SyncAck answered our packet `seq`.
    pub(super) fn on_probe_answer(&mut self, now: Instant, seq: Seqno) -> MtuChange {
        if let Some(search) = self.search() {
            search.on_answer(now, seq);
        }
        self.follow_search()
    }

    /// Data was lost, perhaps because it was too large.
    #[inline]
    pub(super) fn on_loss(&mut self, now: Instant) -> MtuChange {
        if let Some(search) = self.search() {
            search.on_doubt(now);
        }
        self.follow_search()
    }

    /// The search's timer has fired. The last packet of the peer arrived at `heard`.
    pub(super) fn on_timer(&mut self, now: Instant, heard: Instant) -> MtuChange {
        let asks_for_life = self.search().is_some_and(|search| search.on_timer(now, heard));
        MtuChange { asks_for_life, ..self.follow_search() }
    }
}
