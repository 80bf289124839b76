//! Tells a story to two endpoints, and checks them throughout.

use std::sync::Arc;

use udccp_base::{Duration, Instant, Machine, Seed};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::{
    CloseReason, ConnectOptions, ConnectionConfig, EndpointConfig, RecvError, State,
};

use super::common::path::Loses;
use super::common::world::{Host, MILLION, World};
use super::common::wrap::secret_and_clock;
use super::common::{CLIENT, SERVER, connect_options};
use super::story::{End, Part, Reads, Sends, Story};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// Packets until sequence numbers wrap around.
const BEFORE_WRAP: u64 = 700;
/// Time in which the rate recovers from the heaviest losses, and the round-trip times that it takes
/// in addition: a rate-based sender gains a fraction of a packet in each.
const RECOVERY: Duration = Duration::from_secs(200);
const RECOVERY_RTTS: u64 = 200;
const MEASURED_SECONDS: u64 = 30;
const UDP_PORT: u16 = 6511;

/// The state of a story that is being told.
pub(crate) struct Teller {
    pub(crate) world: World,
    story: Arc<Story>,
    /// Messages that each end owes its peer (`Sends::Answers`).
    owes: [u64; 2],
}

impl Teller {
    /// The connection opens.
    pub(crate) fn new(story: &Arc<Story>) -> Self {
        let (hosts, options, server) = hosts(story);
        let rng = Seed(story.seed).stream("network");
        let settings = (options, server.into());
        let mut world = World::connecting(story.seed, rng, hosts, settings, story.delay);
        set_up(&mut world, story);
        Self { world, story: Arc::clone(story), owes: [0; 2] }
    }

    pub(crate) fn tell(&mut self, part: &Part) {
        let before = (self.world.now, self.world.hosts[0].turns + self.world.hosts[1].turns);
        match *part {
            Part::Run(sends, reads, span) => self.run(sends, reads, span),
            Part::Silence(span) => self.world.pass(span),
            Part::Stopped { host, span, stands_still, keeps, others } => {
                let limit = std::mem::replace(&mut self.world.hosts[host].mailbox_limit, keeps);
                self.world.sleep(host, span, stands_still);
                self.run([others; 2], [Reads::All; 2], span);
                self.world.pass(MS);
                self.world.hosts[host].mailbox_limit = limit;
            }
            Part::Cut { from, span, sends } => {
                let whole = self.world.paths.clone();
                for (path, _) in self.world.paths.iter_mut().zip(from).filter(|(_, cut)| *cut) {
                    (path.loss, path.loses) = (1.0, Loses::Any);
                }
                self.run(sends, [Reads::All; 2], span);
                self.world.paths = whole;
            }
            Part::Mtus { host, mtus, are_reported } => {
                for mtu in mtus {
                    let path = &mut self.world.paths[host];
                    (path.mtu, path.reports_mtu) = (mtu, are_reported);
                    self.run([Sends::Bulk; 2], [Reads::All; 2], SECOND * 5);
                }
            }
            Part::Faults(host, ref path) => self.world.paths[host] = path.clone(),
            Part::Slow(host, turn) => self.world.hosts[host].turn = turn,
            Part::ClockJumps(host, jump) => self.world.set_clock(host, jump, MILLION),
            Part::PathChanges(host) => {
                self.world.call(host, |end, at, id| end.path_changed(at, id))
            }
            Part::SlowReceiver(host, is_slow) => {
                self.world.call(host, |end, at, id| end.set_slow_receiver(at, id, is_slow));
            }
            Part::Size(size) => self.world.size = size,
        }
        self.assert_few_turns(before.0, before.1);
        let states = [0, 1].map(|host| self.world.state(host));
        assert_eq!(states, [Some(State::Open); 2], "after {part:?}: {}", self.world.stats());
    }

    /// Drivers do not wake up more often than packets and timers need.
    fn assert_few_turns(&self, since: Instant, turns: u64) {
        let turns = self.world.hosts[0].turns + self.world.hosts[1].turns - turns;
        let millis = (self.world.now - since).as_millis();
        assert!(turns <= 5000 + 2 * millis, "{turns} turns in {millis} ms");
    }

    /// The applications send and read for a while.
    pub(crate) fn run(&mut self, sends: [Sends; 2], reads: [Reads; 2], span: Duration) {
        let world = &mut self.world;
        let until = world.now + span;
        let mut next = [world.now; 2];
        while world.now < until {
            for host in [CLIENT, SERVER] {
                let tick = match sends[host] {
                    Sends::Nothing => SECOND,
                    Sends::Every(every) => every,
                    Sends::Bulk | Sends::Answers => MS * 20,
                };
                if next[host] <= world.now {
                    next[host] = world.now + tick;
                    send(world, host, sends[host], &mut self.owes[host]);
                }
                if world.is_awake(host) {
                    let before = world.received()[host];
                    world.read_some(
                        host,
                        match reads[host] {
                            Reads::All => usize::MAX,
                            Reads::Nothing => 0,
                            Reads::Slowly => 1,
                        },
                    );
                    self.owes[host] += world.received()[host] - before;
                }
            }
            let next = next.into_iter().min().unwrap_or(until).min(until);
            world.pass(next.saturating_since(world.now));
        }
    }

    /// Everything works again.
    pub(crate) fn heal(&mut self) {
        let world = &mut self.world;
        world.paths = world.paths.clone().map(|_| self.story.path.clone());
        for host in [CLIENT, SERVER] {
            world.set_clock(host, Duration::ZERO, MILLION);
            world.hosts[host].turn = Duration::ZERO;
            world.call(host, |end, at, id| end.set_slow_receiver(at, id, false));
        }
        world.size = self.story.size;
        self.owes = [0; 2];
    }

    /// The bytes that each end receives per second once the rate has had time to grow.
    pub(crate) fn final_rate(&mut self) -> [u64; 2] {
        let rtt = (self.story.delay + self.story.path.queue) * 2;
        let rest = RECOVERY + rtt * RECOVERY_RTTS;
        self.run(self.story.finally, [Reads::All; 2], rest);
        let before = self.world.received();
        self.run(self.story.finally, [Reads::All; 2], SECOND * MEASURED_SECONDS);
        let size = self.world.size as u64;
        [0, 1]
            .map(|end: usize| (self.world.received()[end] - before[end]) * size / MEASURED_SECONDS)
    }

    /// How often each end was told that its receiver is slow. The window then does not grow (RFC
    /// 4340 section 11.6): short receive queues are half full now and then.
    pub(crate) fn slowed(&self) -> [u64; 2] {
        let stats = |host: usize| self.world.hosts[host].end.stats(self.world.id(host));
        [0, 1].map(|host| stats(host).map_or(0, |s| s.counters.slow_receiver_received))
    }

    /// Whether those who send use at least one part in `parts` of their path.
    pub(crate) fn is_path_full(&self, received: [u64; 2], parts: u64) -> bool {
        let rate = self.story.path.rate.unwrap_or(u64::MAX / parts);
        (0..2).all(|end| {
            self.story.finally[1 - end] == Sends::Nothing || received[end] * parts >= rate
        })
    }

    /// An end that does not read still sends, although its peer sends too.
    fn stops_reading(&mut self, host: usize) {
        self.world.call(host, |end, at, id| end.shutdown_read(at, id));
        let before = self.world.received()[1 - host];
        self.run([Sends::Bulk; 2], [Reads::All; 2], SECOND * 20);
        let received = self.world.received()[1 - host] - before;
        assert!(received > 0, "{}", self.world.stats());
    }

    /// One end closes, or both do, at any time. What closes is over in time. Its peer is over once
    /// a message shows that.
    pub(crate) fn end_abruptly(mut self, end: End) {
        let closing = match end {
            End::Closes(host) | End::StopsReading(host) | End::Released(host) => host..host + 1,
            End::BothClose | End::PeerGone | End::Rebinds => 0..2,
        };
        let world = &mut self.world;
        closing.clone().for_each(|host| world.call(host, |end, at, id| end.close(at, id)));
        world.pass(SECOND * 1000);
        let is_over = |world: &World, host| world.state(host).is_none_or(State::is_over);
        let are_over = closing.clone().all(|host| is_over(world, host));
        assert!(are_over, "{}", world.stats());
        world.paths = world.paths.clone().map(|_| self.story.path.clone());
        (0..2).for_each(|host| world.send(host));
        world.pass(self.story.config.silence_timeout + SECOND * 1000);
        for host in [CLIENT, SERVER] {
            assert!(is_over(world, host), "host {host}: {}", world.stats());
            world.read(host);
            world.call(host, |end, at, id| end.release(at, id));
        }
        assert_nothing_is_left(world);
    }

    /// The connection ends, and leaves nothing behind.
    pub(crate) fn end(mut self, end: End) {
        if let End::StopsReading(host) = end {
            self.stops_reading(host);
        }
        let world = &mut self.world;
        match end {
            End::Closes(host) | End::StopsReading(host) => {
                world.call(host, |end, at, id| end.close(at, id));
            }
            End::BothClose => {
                for host in [CLIENT, SERVER] {
                    world.call(host, |end, at, id| end.close(at, id));
                }
            }
            End::Released(host) => {
                world.call(host, |end, at, id| end.release(at, id));
                world.pass(SECOND * 1000);
                assert_over(world, 1 - host, false);
                world.call(1 - host, |end, at, id| end.release(at, id));
                return assert_nothing_is_left(world);
            }
            End::PeerGone | End::Rebinds => {
                match end {
                    End::Rebinds => world.rebound = Some((UDP_PORT, UDP_PORT + 1)),
                    _ => world.loss = 1.0,
                }
                (0..2).for_each(|host| world.send(host));
                world.pass(self.story.config.silence_timeout + SECOND * 1000);
            }
        }
        world.pass(SECOND * 1000);
        for host in [CLIENT, SERVER] {
            let is_silent = end == End::PeerGone || end == End::Rebinds;
            assert_over(world, host, is_silent);
            world.call(host, |end, at, id| end.release(at, id));
        }
        assert_nothing_is_left(world);
    }
}

/// The hosts of a story, and the settings of client and server.
pub(crate) fn hosts(story: &Story) -> ([Host; 2], ConnectOptions, ConnectionConfig) {
    let options = options(story);
    let short_seqnos = options.config.short_seqnos;
    let known = ConnectionConfig { short_seqnos, ..ConnectionConfig::default() };
    let like = ConnectOptions { config: known.into(), ..options.clone() };
    let hosts = [CLIENT, SERVER].map(|host| {
        let (secret, at) = secret_and_clock(host, story.seed, story.numbers, BEFORE_WRAP, &like);
        let ccids = CcidRegistry::with_experiments();
        Host::with(EndpointConfig { ccids, ..EndpointConfig::new(secret) }, at)
    });
    let mut server = story.config.clone();
    std::mem::swap(&mut server.tx_ccids, &mut server.rx_ccids);
    (hosts, options, server)
}

pub(crate) fn set_up(world: &mut World, story: &Story) {
    world.paths = [0, 1].map(|_| story.path.clone());
    world.size = story.size;
    world.covered = covered(&story.config);
    world.hosts.iter_mut().for_each(|host| host.mailbox_limit = 200);
}

/// Bytes at the beginning of a message that a checksum covers. Partial coverage is only used if the
/// peer accepts it.
fn covered(config: &ConnectionConfig) -> usize {
    match config.send_cscov {
        0 => usize::MAX,
        _ if config.min_cscov == 0 || config.data_checksum => usize::MAX,
        words => (usize::from(words) - 1) * 4,
    }
}

fn options(story: &Story) -> ConnectOptions {
    let mut options =
        ConnectOptions { local_port: Some(40_000), ..connect_options(story.config.clone()) };
    if story.over_udp {
        options.local.set_port(UDP_PORT);
        options.remote.set_port(UDP_PORT);
    }
    options
}

fn send(world: &mut World, host: usize, sends: Sends, owes: &mut u64) {
    match sends {
        Sends::Nothing => {}
        Sends::Every(_) => world.send(host),
        Sends::Bulk => while world.offer(host) {},
        Sends::Answers => {
            while *owes > 0 && world.offer(host) {
                *owes -= 1;
            }
        }
    }
}

fn assert_over(world: &mut World, host: usize, is_silent: bool) {
    world.read(host);
    let (at, id) = (world.shows(host), world.id(host));
    let why = world.hosts[host].end.recv(at, id);
    let is_right = match why {
        Err(RecvError::Closed(CloseReason::PeerSilent)) => is_silent,
        Err(RecvError::Closed(CloseReason::LocalClose | CloseReason::PeerClose)) => !is_silent,
        // The server does not know a connection from the new port.
        Err(RecvError::Closed(CloseReason::PeerReset { .. })) => world.rebound.is_some(),
        Err(RecvError::ReadShutdown) => world.state(host).is_none_or(State::is_over),
        _ => false,
    };
    let now = world.now;
    assert!(is_right, "host {host} at {now:?}: {why:?}: {}", world.stats());
}

pub(crate) fn assert_nothing_is_left(world: &mut World) {
    world.pass(SECOND * 1000);
    for host in &world.hosts {
        let connections = host.end.endpoint_stats().connections;
        assert_eq!((connections, host.end.poll_timeout()), (0, None));
    }
}
