//! Claims DCCP ports among the programs of one host that use DCCP over raw IP.
//!
//! A kernel's transport protocol has one table of ports. Raw sockets have none: each receives every
//! DCCP packet of the host. So an endpoint claims each of its ports by taking a name derived from
//! the number, which only one program of a host can have at a time.
//!
//! Packets to a port of another program are ignored. A packet to an unclaimed port is answered with
//! one Reset, by the endpoint that holds another name, that of the host.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use udccp_base::{Duration, Instant};

use super::filter::Wanted;
use super::port_names::{Asker, Name, kernel_has_dccp};
use crate::{AnswerForHost, Error};

/// How long a port is assumed to belong to another program, and the interval of tries for the
/// host's name.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// Most ports of other programs that are stored.
const MAX_REMEMBERED: usize = 1024;
/// Most lookups of a port's owner per second. Few suffice, because answers to stray packets are
/// limited too.
const MAX_QUESTIONS: u32 = 200;
/// Ports tried at random before all are tried in order.
const RANDOM_TRIES: usize = 64;

/// Names of ports, which are the same in all versions of this library.
const PORTS: &str = "udccp/dccp-port";

/// The ports of one endpoint.
#[derive(Debug)]
pub(crate) struct Claims {
    prefix: String,
    held: BTreeMap<u16, Name>,
    /// The ports in `held` that were picked for outgoing connections.
    outgoing: Vec<u16>,
    listens: bool,
    answers: AnswerForHost,
    host: Option<Name>,
    next_bid: Instant,
    /// Ports of other programs, and until when this is assumed.
    others: BTreeMap<u16, Instant>,
    asker: Option<Asker>,
    questions: (Instant, u32),
}

impl Claims {
    /// No ports yet. IPv4 and IPv6 are separate: each has all ports.
    pub(crate) fn new(is_ipv4: bool, answers: AnswerForHost) -> Self {
        Self::below(format!("{PORTS}/{}", if is_ipv4 { 4 } else { 6 }), answers)
    }

    fn below(prefix: String, answers: AnswerForHost) -> Self {
        Self {
            prefix,
            held: BTreeMap::new(),
            outgoing: Vec::new(),
            listens: false,
            answers,
            host: None,
            next_bid: Instant::ZERO,
            others: BTreeMap::new(),
            asker: None,
            questions: (Instant::ZERO, 0),
        }
    }

    /// Claims a port, until the endpoint ends.
    pub(crate) fn claim(&mut self, port: u16) -> Result<(), Error> {
        if self.held.contains_key(&port) {
            return Ok(());
        }
        let name = self.bind(&port.to_string()).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => Error::DccpPortInUse { port },
            _ => Error::Io { what: "cannot claim a DCCP port", source: e },
        })?;
        self.held.insert(port, name);
        Ok(())
    }

    /// A port for an outgoing connection: a suitable one that is ours already, or a new one.
    pub(crate) fn claim_any(
        &mut self,
        range: RangeInclusive<u16>,
        fits: impl Fn(u16) -> bool,
    ) -> Result<u16, Error> {
        let mut ours = self.outgoing.iter().filter(|port| range.contains(port));
        if let Some(&port) = ours.find(|port| fits(**port)) {
            return Ok(port);
        }
        let port = self.claim_new(range)?;
        self.outgoing.push(port);
        Ok(port)
    }

    /// Claims a port that nobody had.
    pub(crate) fn claim_new(&mut self, range: RangeInclusive<u16>) -> Result<u16, Error> {
        let (first, last) = range.clone().into_inner();
        let count = u32::from(last.saturating_sub(first)) + 1;
        let mut random = [0_u8; 4 * RANDOM_TRIES];
        // Without random numbers, ports are picked in order, which only makes them easier to guess.
        let _ = getrandom::fill(&mut random);
        let number = |n: &[u8]| n.iter().fold(0, |all, &byte| all << 8 | u32::from(byte));
        let picked = random.chunks_exact(4).map(|n| first + (number(n) % count) as u16);
        for port in picked.chain(range) {
            if self.held.contains_key(&port) {
                continue;
            }
            match self.claim(port) {
                Ok(()) => return Ok(port),
                Err(Error::DccpPortInUse { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Err(Error::Connect(udccp_proto::ConnectError::NoFreePort))
    }

    /// From here on the endpoint may have listeners.
    pub(crate) fn listens(&mut self) {
        self.listens = true;
    }

    /// Releases all ports, so that others can have them at once, even if the driver takes long to
    /// end.
    pub(crate) fn release_all(&mut self) {
        self.held.clear();
        self.outgoing.clear();
        (self.host, self.listens, self.answers) = (None, false, AnswerForHost::Never);
    }

    /// Calls `tell` with the packets that this endpoint has to see.
    pub(super) fn with_wanted<R>(&self, tell: impl FnOnce(Wanted<'_>) -> R) -> R {
        let answers_idle = matches!(self.answers, AnswerForHost::Always | AnswerForHost::WhileOpen);
        if self.listens || answers_idle {
            return tell(Wanted::Everything);
        }
        let ports: Vec<u16> = self.held.keys().copied().collect();
        tell(Wanted::Ports(&ports))
    }

    /// Whether a packet to this port is for us: the port is ours, or nobody's and we answer for the
    /// host.
    #[inline]
    pub(crate) fn is_ours(&mut self, now: Instant, port: u16) -> bool {
        self.held.contains_key(&port) || self.may_answer(now, port)
    }

    #[cold]
    fn may_answer(&mut self, now: Instant, port: u16) -> bool {
        let answers = match self.answers {
            AnswerForHost::Never => false,
            AnswerForHost::Always => true,
            AnswerForHost::IfAlone => self.listens && self.holds_host_socket(now),
            AnswerForHost::WhileOpen => self.holds_host_socket(now),
        };
        answers && self.is_unclaimed(now, port)
    }

    fn holds_host_socket(&mut self, now: Instant) -> bool {
        if self.host.is_none() && now >= self.next_bid {
            self.next_bid = now + BELIEVED_FOR;
            if !kernel_has_dccp() {
                self.host = self.bind("host").ok();
            }
        }
        self.host.is_some()
    }

    fn is_unclaimed(&mut self, now: Instant, port: u16) -> bool {
        if self.others.get(&port).is_some_and(|until| now < *until) {
            return false;
        }
        if now >= self.questions.0 + Duration::from_secs(1) {
            self.questions = (now, 0);
        }
        self.questions.1 += 1;
        if self.questions.1 > MAX_QUESTIONS {
            return false;
        }
        match self.is_bound(port) {
            Ok(false) => true,
            Ok(true) => {
                if self.others.len() >= MAX_REMEMBERED {
                    self.others.clear();
                }
                self.others.insert(port, now + BELIEVED_FOR);
                false
            }
            // Ignoring the packet is harmless. A Reset to a connection of another program would not
            // be.
            Err(_) => false,
        }
    }

    /// Whether any program has this port.
    fn is_bound(&mut self, port: u16) -> io::Result<bool> {
        let name = self.name(&port.to_string());
        let asker = match &self.asker {
            Some(asker) => asker,
            None => self.asker.insert(Asker::new()?),
        };
        asker.is_taken(&name)
    }

    fn bind(&self, what: &str) -> io::Result<Name> {
        Name::take(&self.name(what))
    }

    fn name(&self, what: &str) -> String {
        format!("{}/{what}", self.prefix)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Two programs of a host without other programs.
    fn two(test: &str, answers: AnswerForHost) -> (Claims, Claims) {
        let prefix = || format!("udccp-test-{}/{test}", std::process::id());
        (Claims::below(prefix(), answers), Claims::below(prefix(), answers))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_port_has_one_program() {
        let (mut a, mut b) = two("one", AnswerForHost::IfAlone);
        a.claim(5004).unwrap();
        a.claim(5004).unwrap();
        let e = b.claim(5004).unwrap_err();
        assert!(matches!(e, Error::DccpPortInUse { port: 5004 }), "{e}");
        drop(a);
        b.claim(5004).unwrap();
    }

    #[test]
    fn outgoing_connections_share_no_port_between_programs() {
        let (mut a, mut b) = two("outgoing", AnswerForHost::IfAlone);
        let mut ports: Vec<u16> = Vec::new();
        for _ in 0..10 {
            let taken = ports.clone();
            ports.push(a.claim_any(100..=119, |port| !taken.contains(&port)).unwrap());
            let taken = ports.clone();
            ports.push(b.claim_any(100..=119, |port| !taken.contains(&port)).unwrap());
        }
        ports.sort_unstable();
        assert_eq!(ports, (100..=119).collect::<Vec<u16>>());
        assert!(b.claim_any(100..=119, |port| !ports.contains(&port)).is_err());
        // A port that is ours can serve again, to another peer.
        let again = b.claim_any(100..=119, |_| true).unwrap();
        assert!(b.held.contains_key(&again));
        assert_eq!(b.held.len(), 10);
    }

    #[test]
    fn one_listening_endpoint_answers_for_unclaimed_ports() {
        let (mut a, mut b) = two("host", AnswerForHost::IfAlone);
        if kernel_has_dccp() {
            return;
        }
        assert!(!a.is_ours(at(0), 7), "it only connects");
        a.listens();
        b.listens();
        assert!(a.is_ours(at(0), 7));
        assert!(!b.is_ours(at(0), 7));
        b.claim(8).unwrap();
        assert!(b.is_ours(at(0), 8));
        assert!(!a.is_ours(at(0), 8), "the other program has it");
        drop(a);
        assert!(!b.is_ours(at(999), 7), "not asked again so soon");
        assert!(b.is_ours(at(1000), 7), "the next one takes over");
    }

    #[test]
    fn while_open_policy_needs_no_listener_and_is_exclusive() {
        let (mut a, mut b) = two("open", AnswerForHost::WhileOpen);
        if kernel_has_dccp() {
            return;
        }
        assert!(a.is_ours(at(0), 7) && !b.is_ours(at(0), 7));
        assert!(b.with_wanted(|wanted| matches!(wanted, Wanted::Everything)));
        drop(a);
        assert!(b.is_ours(at(1000), 7));
    }

    #[test]
    fn released_port_is_unclaimed_after_one_second() {
        let (mut a, mut b) = two("given-up", AnswerForHost::Always);
        a.claim(9).unwrap();
        assert!(!b.is_ours(at(0), 9));
        drop(a);
        assert!(!b.is_ours(at(999), 9));
        assert!(b.is_ours(at(1000), 9));
    }

    #[test]
    fn released_claims_answer_no_more_packets() {
        let (mut a, mut b) = two("gives-up", AnswerForHost::WhileOpen);
        a.claim(10).unwrap();
        assert!(a.is_ours(at(0), 10));
        a.release_all();
        b.claim(10).unwrap();
        assert!(!a.is_ours(at(0), 10) && !a.is_ours(at(0), 7));
    }

    #[test]
    fn flood_of_stray_packets_is_not_looked_up_one_by_one() {
        let (mut a, _) = two("flood", AnswerForHost::Always);
        let answered = (0..1000).filter(|&port| a.is_ours(at(5), port)).count();
        assert_eq!(answered, MAX_QUESTIONS as usize);
        assert!(a.is_ours(at(1005), 1), "another second");
    }

    #[test]
    fn memory_for_foreign_ports_is_bounded() {
        let (mut a, mut b) = two("many", AnswerForHost::Always);
        a.claim(9).unwrap();
        b.others.extend((0..MAX_REMEMBERED as u16).map(|n| (1000 + n, at(500))));
        assert!(!b.is_ours(at(0), 9));
        assert!(b.others.len() <= MAX_REMEMBERED);
    }

    #[test]
    fn endpoints_that_never_answer_stay_silent() {
        let (mut a, _) = two("never", AnswerForHost::Never);
        a.listens();
        assert!(!a.is_ours(at(0), 7));
    }
}
