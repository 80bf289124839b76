//! Two hosts whose clocks disagree: one clock runs fast or slow, jumps ahead, or stops while its
//! host sleeps, and the other does not. Both hosts send. Messages keep arriving in both directions,
//! the rate recovers once the clocks run at the same speed, and the connection closes.
//!
//! `UDCCP_TEST_CASES=2000 cargo test --release -p udccp-proto --test clocks` runs more cases,
//! starting at `UDCCP_TEST_SEED`.

mod common;

use std::collections::BTreeMap;

use common::pair::{PORT, lasting};
use common::{CLIENT, SERVER, connect_options, listen_config};
use udccp_base::{Datagram, Duration, Instant, Machine, Message, Payload, Rng, Seed};
use udccp_proto::{
    CloseReason, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, RecvError, State,
};
use udccp_testkit::randomised;

const CASES: u64 = 12;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MILLION: u64 = 1_000_000;
/// As in `outages.rs`: two packets at the lowest rate, plus a margin.
const BOUND: Duration = Duration::from_secs(2 * 64 + 3);

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

/// A clock that has run at a constant rate since `since`.
#[derive(Clone, Copy)]
struct Clock {
    since: Instant,
    showed: Instant,
    /// Microseconds shown per second of real time.
    rate: u64,
}

impl Clock {
    fn shows(&self, at: Instant) -> Instant {
        let past = u128::from((at - self.since).as_nanos()) * u128::from(self.rate);
        self.showed + Duration::from_nanos((past / u128::from(MILLION)) as u64)
    }

    /// The real time at which the clock shows `shown`.
    fn when(&self, shown: Instant) -> Instant {
        let ahead = u128::from(shown.saturating_since(self.showed).as_nanos());
        let past = (ahead * u128::from(MILLION)).div_ceil(u128::from(self.rate));
        self.since + Duration::from_nanos(u64::try_from(past).unwrap_or(u64::MAX))
    }
}

struct Host {
    end: Endpoint,
    clock: Clock,
    wakes: Instant,
    id: Option<ConnectionId>,
    sent: u64,
    received: u64,
}

struct World {
    seed: u64,
    rng: Rng,
    now: Instant,
    hosts: [Host; 2],
    delay: Duration,
    loss: f64,
    /// Length of a message.
    size: usize,
    travelling: BTreeMap<(Instant, u64), (usize, Datagram)>,
    serial: u64,
}

impl World {
    /// Two hosts with one connection.
    fn with(seed: u64, config: &ConnectionConfig, delay: Duration) -> Self {
        let now = Instant::ZERO + SECOND;
        let mut rng = Seed(seed).stream("clocks");
        let hosts = ["client", "server"].map(|name| Host {
            end: Endpoint::new(EndpointConfig::new(Seed(seed).stream(name).bytes32())),
            clock: Clock { since: now, showed: now + SECOND * rng.below(100_000), rate: MILLION },
            wakes: now,
            id: None,
            sent: 0,
            received: 0,
        });
        let (travelling, serial) = (BTreeMap::new(), 0);
        let mut world =
            Self { seed, rng, now, hosts, delay, loss: 0.0, size: 100, travelling, serial };
        let listen = listen_config(config.clone());
        let listener = world.hosts[SERVER].end.listen(None, PORT, listen).unwrap();
        let at = world.shows(CLIENT);
        let id = world.hosts[CLIENT].end.connect(at, connect_options(config.clone())).unwrap();
        world.hosts[CLIENT].id = Some(id);
        world.pass(delay * 10);
        world.hosts[SERVER].id = world.hosts[SERVER].end.accept(listener);
        assert_eq!(world.state(SERVER), Some(State::Open));
        world
    }

    /// The current time on a host's clock.
    fn shows(&self, host: usize) -> Instant {
        self.hosts[host].clock.shows(self.now)
    }

    fn id(&self, host: usize) -> ConnectionId {
        self.hosts[host].id.expect("it is connected")
    }

    fn state(&self, host: usize) -> Option<State> {
        self.hosts[host].end.state(self.hosts[host].id?)
    }

    fn is_awake(&self, host: usize) -> bool {
        self.hosts[host].wakes <= self.now
    }

    /// Changes the rate of a host's clock, after a jump ahead.
    fn set_clock(&mut self, host: usize, jump: Duration, rate: u64) {
        let (since, showed) = (self.now, self.shows(host) + jump);
        self.hosts[host].clock = Clock { since, showed, rate };
    }

    /// A host does nothing for a while. Its clock stops if `stands_still`.
    fn sleep(&mut self, host: usize, span: Duration, stands_still: bool) {
        let Clock { rate, .. } = self.hosts[host].clock;
        self.hosts[host].wakes = self.now + span;
        if stands_still {
            let (since, showed) = (self.now + span, self.shows(host));
            self.hosts[host].clock = Clock { since, showed, rate };
        }
    }

    fn drain(&mut self) {
        for host in [CLIENT, SERVER] {
            if !self.is_awake(host) {
                continue;
            }
            let at = self.shows(host);
            let mut count = 0;
            while let Some(datagram) = self.hosts[host].end.poll_transmit(at) {
                count += 1;
                assert!(count < 100_000, "host {host} never stops sending");
                if !self.rng.chance(self.loss) {
                    self.serial += 1;
                    let arrives = self.now + self.delay;
                    self.travelling.insert((arrives, self.serial), (1 - host, datagram));
                }
            }
            let stalled = self.hosts[host].end.stalled(at);
            assert_eq!(stalled, None, "a message of host {host} waits for nothing");
            while self.hosts[host].end.poll_event().is_some() {}
        }
    }

    /// The time of the next event.
    fn next(&self) -> Option<Instant> {
        let arrival = self.travelling.first_key_value().map(|((at, _), _)| *at);
        let timers = self
            .hosts
            .iter()
            .filter_map(|host| Some(host.clock.when(host.end.poll_timeout()?).max(host.wakes)));
        timers.chain(arrival).min()
    }

    fn pass(&mut self, span: Duration) {
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
                // Datagrams that arrive at a sleeping host are lost.
                if self.is_awake(to) {
                    let at = self.shows(to);
                    self.hosts[to].end.handle_datagram(at, datagram);
                }
            }
            for host in [CLIENT, SERVER] {
                let at = self.shows(host);
                let is_due = self.hosts[host].end.poll_timeout().is_some_and(|due| due <= at);
                if self.is_awake(host) && is_due {
                    self.hosts[host].end.handle_timeout(at);
                }
            }
            self.drain();
        }
        self.now = until;
    }

    /// Offers a message.
    fn send(&mut self, host: usize) {
        if !self.is_awake(host) {
            return;
        }
        let (at, id) = (self.shows(host), self.id(host));
        let mut bytes = vec![host as u8; self.size.max(8)];
        bytes[..8].copy_from_slice(&self.hosts[host].sent.to_le_bytes());
        let message = Message::new(Payload::Bytes(bytes.into()));
        let is_taken = self.hosts[host].end.send(at, id, message).is_ok();
        self.hosts[host].sent += u64::from(is_taken);
    }

    fn read(&mut self, host: usize) {
        let (at, id) = (self.shows(host), self.id(host));
        while let Ok(Some(payload)) = self.hosts[host].end.recv(at, id) {
            let number = u64::from_le_bytes(payload.to_bytes()[..8].try_into().unwrap());
            assert!(number < self.hosts[1 - host].sent, "nobody sent {number}");
            self.hosts[host].received += 1;
        }
    }

    /// The hosts in `senders` send a message at every interval `every` for a while.
    fn exchange(&mut self, senders: [bool; 2], span: Duration, every: Duration) {
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

    fn received(&self) -> [u64; 2] {
        [0, 1].map(|host: usize| self.hosts[host].received)
    }

    fn stats(&self) -> String {
        let of = |host: usize| self.hosts[host].end.stats(self.id(host));
        format!("seed {}: {:#?} {:#?}", self.seed, of(CLIENT), of(SERVER))
    }

    /// A new message of each host arrives in time.
    fn assert_delivery_both_ways(&mut self) {
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

    /// Disturbs a host's clock, or makes the host sleep.
    fn disturb(&mut self) {
        let host = self.rng.below(2) as usize;
        let spans = [MS * 100, SECOND, SECOND * 5, SECOND * 60, SECOND * 600, SECOND * 20_000];
        let span = pick(&mut self.rng, &spans);
        let rate = pick(&mut self.rng, &[MILLION, 1_010_000, 990_000]);
        let senders =
            pick(&mut self.rng, &[[true, true], [true, false], [false, true], [false; 2]]);
        match self.rng.below(4) {
            0 => self.set_clock(host, span, rate),
            1 => self.set_clock(host, Duration::ZERO, rate),
            kind => {
                self.set_clock(host, Duration::ZERO, rate);
                let span = span.min(SECOND * 600);
                self.sleep(host, span, kind == 2);
                self.exchange(senders, span, MS * 100);
            }
        }
    }

    /// Once clocks run evenly and nothing is lost, the rate recovers.
    fn assert_rate_recovers(&mut self) {
        self.loss = 0.0;
        self.exchange([true, true], SECOND * 200, MS * 20);
        let before = self.received();
        self.exchange([true, true], SECOND * 10, MS * 20);
        let received = [0, 1].map(|host: usize| self.received()[host] - before[host]);
        assert!(received.iter().all(|n| *n > 450), "{received:?} of 500 each: {}", self.stats());
    }

    fn end(&mut self) {
        let first = self.rng.below(2) as usize;
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

fn run_case(seed: u64) {
    let mut rng = Seed(seed).stream("life");
    let ccid = pick(&mut rng, &[2, 3, 4]);
    let config = lasting(ccid, pick(&mut rng, &[None, Some(SECOND * 25)]));
    let delay = pick(&mut rng, &[MS / 10, MS * 5, MS * 50, MS * 300]);
    let mut world = World::with(seed, &config, delay);
    // The rate of CCID 3 follows the mean size, including old messages, so all have one size.
    world.size = pick(&mut rng, &[10, 200, 1300]);
    for _ in 0..5 {
        world.loss = pick(&mut rng, &[0.0, 0.0, 0.01]);
        let senders = pick(&mut rng, &[[true, true], [true, false], [false, true]]);
        let every = pick(&mut rng, &[MS, MS * 20]);
        let span = pick(&mut rng, &[SECOND, SECOND * 5]);
        world.exchange(senders, span, every);
        world.disturb();
        world.exchange(senders, span, every);
        world.assert_delivery_both_ways();
        assert_eq!([0, 1].map(|host| world.state(host)), [Some(State::Open); 2]);
    }
    world.assert_rate_recovers();
    world.end();
}

/// A regression: a peer that slept for ten minutes then acknowledged an earlier packet. That delay
/// was the minimum round-trip time of CCID 3 until several packets, a minute apart, were answered.
#[test]
fn a_single_ten_minute_rtt_sample_does_not_set_the_rate() {
    [168, 431].into_iter().for_each(run_case);
}

#[test]
fn clock_errors_stop_no_sender() {
    for seed in randomised::seeds(CASES) {
        run_case(seed);
    }
}
