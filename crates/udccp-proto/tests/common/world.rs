//! Two hosts with clocks of their own, and the datagrams between them.

use std::collections::{BTreeMap, HashSet, VecDeque};

use udccp_base::{Datagram, Duration, Instant, Machine, Message, Payload, Rng, Seed};
use udccp_proto::{
    CloseReason, ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig,
    ListenConfig, ListenerId, PathReport, RecvError, SharedConfig, State,
};

use super::pair::{CLIENT, PORT, SERVER, connect_options, service};
use super::path::Path;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// When the world begins.
const START: Instant = Instant::from_nanos(1_000_000_000);
pub const MILLION: u64 = 1_000_000;
/// As in `outages.rs`: two packets at the lowest rate, plus a margin.
pub const BOUND: Duration = Duration::from_secs(2 * 64 + 3);

/// A clock that has run at a constant rate since `since`.
#[derive(Clone, Copy)]
pub struct Clock {
    pub since: Instant,
    pub showed: Instant,
    /// Microseconds shown per second of real time.
    pub rate: u64,
}

impl Clock {
    pub fn shows(&self, at: Instant) -> Instant {
        let past = u128::from((at - self.since).as_nanos()) * u128::from(self.rate);
        self.showed + Duration::from_nanos((past / u128::from(MILLION)) as u64)
    }

    /// The real time at which the clock shows `shown`.
    pub fn when(&self, shown: Instant) -> Instant {
        let ahead = u128::from(shown.saturating_since(self.showed).as_nanos());
        let past = (ahead * u128::from(MILLION)).div_ceil(u128::from(self.rate));
        self.since + Duration::from_nanos(u64::try_from(past).unwrap_or(u64::MAX))
    }
}

pub struct Host {
    pub end: Endpoint,
    pub clock: Clock,
    pub wakes: Instant,
    pub id: Option<ConnectionId>,
    pub sent: u64,
    pub received: u64,
    /// The messages received.
    seen: HashSet<u64>,
    /// Datagrams that the kernel of a sleeping or busy host keeps for it.
    mailbox: VecDeque<Datagram>,
    pub mailbox_limit: usize,
    /// How long each turn of the driver takes. It does nothing else in that time.
    pub turn: Duration,
    next_turn: Instant,
    /// The application has made a call that the driver has not seen.
    is_called: bool,
    /// Turns of the driver.
    pub turns: u64,
}

impl Host {
    /// A host with this secret, whose clock shows this time at the start.
    pub fn new(secret: [u8; 32], showed: Instant) -> Self {
        Self::with(EndpointConfig::new(secret), showed)
    }

    /// A host with these settings, whose clock shows this time at the start.
    pub fn with(config: EndpointConfig, showed: Instant) -> Self {
        Self {
            end: Endpoint::new(config),
            clock: Clock { since: START, showed, rate: MILLION },
            wakes: START,
            id: None,
            sent: 0,
            received: 0,
            seen: HashSet::new(),
            mailbox: VecDeque::new(),
            mailbox_limit: 0,
            turn: Duration::ZERO,
            next_turn: START,
            is_called: false,
            turns: 0,
        }
    }

    /// When the driver can next do something.
    fn ready_at(&self) -> Instant {
        self.wakes.max(self.next_turn)
    }

    /// When the driver will next do something.
    fn acts_at(&self) -> Option<Instant> {
        let timer = self.end.poll_timeout().map(|at| self.clock.when(at));
        let work = (self.is_called || !self.mailbox.is_empty()).then_some(START);
        Some(timer.into_iter().chain(work).min()?.max(self.ready_at()))
    }

    /// A datagram reaches the host.
    fn arrive(&mut self, now: Instant, datagram: Datagram) {
        if self.ready_at() <= now && self.mailbox.is_empty() {
            self.end.handle_datagram(self.clock.shows(now), datagram);
            self.is_called = true;
        } else if self.mailbox.len() < self.mailbox_limit {
            self.mailbox.push_back(datagram);
        }
    }

    /// What the driver does before it sends.
    fn take_turn(&mut self, now: Instant) {
        let at = self.clock.shows(now);
        while let Some(datagram) = self.mailbox.pop_front() {
            self.end.handle_datagram(at, datagram);
        }
        if self.end.poll_timeout().is_some_and(|due| due <= at) {
            self.end.handle_timeout(at);
        }
        self.turns += 1;
        self.next_turn = now + self.turn;
        self.is_called = false;
    }
}

pub struct World {
    pub seed: u64,
    pub rng: Rng,
    pub now: Instant,
    pub hosts: [Host; 2],
    pub delay: Duration,
    pub loss: f64,
    /// The path from each host.
    pub paths: [Path; 2],
    /// Length of a message.
    pub size: usize,
    /// Bytes at the beginning of a message that the checksum covers.
    pub covered: usize,
    /// A NAT that has forgotten the client's UDP port and gives it another one: the port inside,
    /// and the one outside.
    pub rebound: Option<(u16, u16)>,
    pub travelling: BTreeMap<(Instant, u64), (usize, Datagram)>,
    pub serial: u64,
}

impl World {
    /// Two hosts with one connection.
    pub fn with(seed: u64, config: &ConnectionConfig, delay: Duration) -> Self {
        let mut rng = Seed(seed).stream("clocks");
        let hosts = ["client", "server"].map(|name| {
            let secret = Seed(seed).stream(name).bytes32();
            Host::new(secret, START + SECOND * rng.below(100_000))
        });
        Self::between(seed, rng, hosts, connect_options(config.clone()), delay)
    }

    /// These hosts, with one connection that the first opens.
    pub fn between(
        seed: u64,
        rng: Rng,
        hosts: [Host; 2],
        options: ConnectOptions,
        delay: Duration,
    ) -> Self {
        let server = options.config.clone();
        Self::connecting(seed, rng, hosts, (options, server), delay)
    }

    /// The same, with settings of its own for the server.
    pub fn connecting(
        seed: u64,
        rng: Rng,
        hosts: [Host; 2],
        (options, server): (ConnectOptions, SharedConfig),
        delay: Duration,
    ) -> Self {
        let listen = ListenConfig { connection: server, ..ListenConfig::new(service()) };
        let (mut world, listener) = Self::starting(seed, rng, hosts, (options, listen), delay);
        world.pass(delay * 10);
        world.hosts[SERVER].id = world.hosts[SERVER].end.accept(listener);
        assert_eq!(world.state(SERVER), Some(State::Open));
        world
    }

    /// The same, before the Request leaves. The server has not accepted anything.
    pub fn starting(
        seed: u64,
        rng: Rng,
        hosts: [Host; 2],
        (options, listen): (ConnectOptions, ListenConfig),
        delay: Duration,
    ) -> (Self, ListenerId) {
        let mut world = Self {
            seed,
            rng,
            now: START,
            hosts,
            delay,
            loss: 0.0,
            paths: Default::default(),
            size: 100,
            covered: usize::MAX,
            rebound: None,
            travelling: BTreeMap::new(),
            serial: 0,
        };
        let listener = world.hosts[SERVER].end.listen(None, PORT, listen).unwrap();
        let at = world.shows(CLIENT);
        let id = world.hosts[CLIENT].end.connect(at, options).unwrap();
        world.hosts[CLIENT].id = Some(id);
        (world, listener)
    }

    /// The current time on a host's clock.
    pub fn shows(&self, host: usize) -> Instant {
        self.hosts[host].clock.shows(self.now)
    }

    pub fn id(&self, host: usize) -> ConnectionId {
        self.hosts[host].id.expect("it is connected")
    }

    pub fn state(&self, host: usize) -> Option<State> {
        self.hosts[host].end.state(self.hosts[host].id?)
    }

    pub fn is_awake(&self, host: usize) -> bool {
        self.hosts[host].wakes <= self.now
    }

    /// The application of a host makes a call.
    pub fn call(&mut self, host: usize, call: impl FnOnce(&mut Endpoint, Instant, ConnectionId)) {
        let (at, id) = (self.shows(host), self.id(host));
        call(&mut self.hosts[host].end, at, id);
        self.hosts[host].is_called = true;
    }

    /// Changes the rate of a host's clock, after a jump ahead.
    pub fn set_clock(&mut self, host: usize, jump: Duration, rate: u64) {
        let (since, showed) = (self.now, self.shows(host) + jump);
        self.hosts[host].clock = Clock { since, showed, rate };
    }

    /// A host does nothing for a while. Its clock stops if `stands_still`.
    pub fn sleep(&mut self, host: usize, span: Duration, stands_still: bool) {
        let Clock { rate, .. } = self.hosts[host].clock;
        self.hosts[host].wakes = self.now + span;
        if stands_still {
            let (since, showed) = (self.now + span, self.shows(host));
            self.hosts[host].clock = Clock { since, showed, rate };
        }
    }

    pub fn drain(&mut self) {
        for host in [CLIENT, SERVER] {
            if self.hosts[host].ready_at() <= self.now {
                self.drain_host(host);
            }
        }
    }

    fn drain_host(&mut self, host: usize) {
        let at = self.shows(host);
        let mut count = 0;
        while let Some(datagram) = self.hosts[host].end.poll_transmit(at) {
            count += 1;
            assert!(count < 100_000, "host {host} never stops sending");
            if !self.rng.chance(self.loss) {
                self.carry(host, datagram);
            }
        }
        let end = &mut self.hosts[host].end;
        assert_eq!(end.stalled(at), None, "a message of host {host} waits for nothing");
        while end.poll_event().is_some() {}
        self.hosts[host].is_called = false;
    }

    /// The path from `host` carries a datagram, or reports that it is too large.
    fn carry(&mut self, host: usize, d: Datagram) {
        let path = &mut self.paths[host];
        if path.reports_mtu && d.ip_len() > path.mtu {
            let report = PathReport::PathMtu(path.mtu as u16);
            let at = self.hosts[host].clock.shows(self.now);
            self.hosts[host].end.handle_path_report(at, d.src, d.dst, &d.header, report);
        }
        let copies = path.carry(self.now, &mut self.rng, &d);
        for took in copies.into_iter().flatten() {
            self.serial += 1;
            let arrives = self.now + self.delay + took;
            let d = self.paths[host].alter(&mut self.rng, d.clone());
            let Some(d) = d.and_then(|d| self.translate(host, d)) else { continue };
            self.travelling.insert((arrives, self.serial), (1 - host, d));
        }
    }

    /// What a NAT in front of the client makes of a datagram of `host`.
    fn translate(&self, host: usize, mut d: Datagram) -> Option<Datagram> {
        let Some((inside, outside)) = self.rebound else { return Some(d) };
        if host == CLIENT {
            d.src.set_port(outside);
            return Some(d);
        }
        let is_known = d.dst.port() == outside;
        d.dst.set_port(inside);
        is_known.then_some(d)
    }

    /// The time of the next event.
    pub fn next(&self) -> Option<Instant> {
        let arrival = self.travelling.first_key_value().map(|((at, _), _)| *at);
        self.hosts.iter().filter_map(Host::acts_at).chain(arrival).min()
    }

    pub fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        self.drain();
        let mut steps = 0_u32;
        while let Some(at) = self.next().filter(|at| *at <= until) {
            steps += 1;
            assert!(steps < 10_000_000, "the network never comes to rest");
            self.now = self.now.max(at);
            while let Some(first) = self.travelling.first_entry().filter(|f| f.key().0 <= self.now)
            {
                let (to, datagram) = first.remove();
                self.hosts[to].arrive(self.now, datagram);
            }
            for host in [CLIENT, SERVER] {
                if self.hosts[host].acts_at().is_some_and(|at| at <= self.now) {
                    self.hosts[host].take_turn(self.now);
                    self.drain_host(host);
                }
            }
        }
        self.now = until;
    }

    /// Offers a message.
    pub fn send(&mut self, host: usize) {
        self.offer(host);
    }

    /// Offers a message. Returns whether it was taken.
    pub fn offer(&mut self, host: usize) -> bool {
        if !self.is_awake(host) {
            return false;
        }
        let (at, id) = (self.shows(host), self.id(host));
        let most = self.hosts[host].end.max_message_size(id).unwrap_or(8);
        let mut bytes = vec![host as u8; self.size.min(most).max(8)];
        bytes[..8].copy_from_slice(&self.hosts[host].sent.to_le_bytes());
        let message = Message::new(Payload::Bytes(bytes.into()));
        let is_taken = self.hosts[host].end.send(at, id, message).is_ok();
        self.hosts[host].sent += u64::from(is_taken);
        self.hosts[host].is_called = true;
        is_taken
    }

    /// Reads what waits. Each message was sent, and arrives once and unaltered, except where no
    /// checksum covers it.
    pub fn read(&mut self, host: usize) {
        self.read_some(host, usize::MAX);
    }

    /// Reads at most this many messages.
    pub fn read_some(&mut self, host: usize, most: usize) {
        let (at, id) = (self.shows(host), self.id(host));
        for _ in 0..most {
            let Ok(Some(payload)) = self.hosts[host].end.recv(at, id) else { break };
            let bytes = payload.to_bytes();
            let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert!(number < self.hosts[1 - host].sent, "nobody sent {number}");
            let covered = bytes.len().min(self.covered);
            let whole = bytes.iter().take(covered).skip(8).all(|b| *b == 1 - host as u8);
            assert!(whole, "{number} is broken");
            assert!(self.hosts[host].seen.insert(number), "{number} came twice");
            self.hosts[host].received += 1;
            self.hosts[host].is_called = true;
        }
    }

    /// The hosts in `senders` send a message at every interval `every` for a while.
    pub fn exchange(&mut self, senders: [bool; 2], span: Duration, every: Duration) {
        let until = self.now + span;
        while self.now < until {
            for host in [CLIENT, SERVER] {
                if senders[host] {
                    self.send(host);
                }
            }
            self.pass(every);
            for host in [CLIENT, SERVER] {
                if self.is_awake(host) {
                    self.read(host);
                }
            }
        }
    }

    pub fn received(&self) -> [u64; 2] {
        [0, 1].map(|host: usize| self.hosts[host].received)
    }

    pub fn stats(&self) -> String {
        let of = |host: usize| self.hosts[host].end.stats(self.id(host));
        format!("seed {}: {:#?} {:#?}", self.seed, of(CLIENT), of(SERVER))
    }

    /// A new message of each host arrives in time.
    pub fn assert_delivery_both_ways(&mut self) {
        for host in [CLIENT, SERVER] {
            let (start, before) = (self.now, self.hosts[1 - host].received);
            while self.hosts[1 - host].received == before {
                assert!(
                    self.now - start <= BOUND,
                    "host {host} does not get through: {}",
                    self.stats()
                );
                let senders = [host == CLIENT, host == SERVER];
                self.exchange(senders, MS * 50, MS * 50);
            }
        }
    }

    pub fn end(&mut self) {
        let first = self.rng.below(2) as usize;
        self.close(first);
    }

    /// Closes the connection from one end. Nothing is left at either.
    pub fn close(&mut self, first: usize) {
        let (at, id) = (self.shows(first), self.id(first));
        self.hosts[first].end.close(at, id);
        self.pass(SECOND * 5);
        (0..2).for_each(|host| self.read(host));
        for host in [first, 1 - first] {
            let (at, id) = (self.shows(host), self.id(host));
            let end = self.hosts[host].end.recv(at, id);
            let is_orderly = matches!(
                end,
                Err(RecvError::Closed(CloseReason::LocalClose | CloseReason::PeerClose))
            );
            assert!(is_orderly, "host {host}: {end:?}, {}", self.stats());
            self.hosts[host].end.release(at, id);
        }
        self.pass(SECOND * 1000);
        for host in &self.hosts {
            let connections = host.end.endpoint_stats().connections;
            assert_eq!((connections, host.end.poll_timeout()), (0, None));
        }
    }
}
