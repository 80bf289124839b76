//! Long lives of connections, each with every CCID, over UDP and raw IP, and with sequence numbers
//! that wrap around at 24 and at 48 bits: both ends are busy, silent for minutes, and then only one
//! is busy; a host is suspended, or its clock jumps; the path changes and loses packets; messages
//! wait when an end closes; the peer is gone.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::pair::lasting;
use common::world::{Host, MILLION, World};
use common::wrap::{Numbers, secret_and_clock, seq};
use common::{CLIENT, SERVER, connect_options};
use udccp_base::{Duration, Seed};
use udccp_proto::{CloseReason, ConnectOptions, ConnectionConfig, RecvError, State};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// Between two messages of a busy end.
const EVERY: Duration = Duration::from_millis(20);
/// From one host to the other.
const DELAY: Duration = Duration::from_millis(30);
const IDLE_LIMIT: Duration = Duration::from_secs(1000);
const BOTH: [bool; 2] = [true, true];
const FROM_CLIENT: [bool; 2] = [true, false];
const FROM_SERVER: [bool; 2] = [false, true];

/// A part of a connection's life, with its length in seconds.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// These ends are busy. Without loss, the last messages arrive as often as they are sent.
    Busy([bool; 2], u64),
    Silent(u64),
    /// A host sleeps while the other is busy. Its clock stands still, or goes on.
    Suspended(usize, u64, bool),
    /// A host's clock jumps ahead.
    Jumps(usize, u64),
    /// From now on, this share of packets is lost.
    Loses(f64),
    PathChanges(usize),
    /// An end queues more than the window takes.
    Queues(usize),
    /// All packets are lost from now on. Both ends learn that.
    PeerGone,
    /// An end closes. Without loss, its queue still arrives.
    Closes(usize),
}
use Part::*;

const STORIES: [(&str, &[Part]); 8] = [
    (
        "busy, silent, busy one way",
        &[
            Busy(BOTH, 30),
            Silent(300),
            Busy(FROM_CLIENT, 30),
            Silent(600),
            Busy(FROM_SERVER, 30),
            Closes(CLIENT),
        ],
    ),
    (
        "suspended with a clock that stands still",
        &[
            Busy(BOTH, 10),
            Suspended(CLIENT, 400, true),
            Busy(FROM_CLIENT, 200),
            Suspended(SERVER, 400, true),
            Busy(FROM_CLIENT, 200),
            Busy(BOTH, 200),
            Closes(SERVER),
        ],
    ),
    (
        "suspended with a clock that goes on",
        &[
            Busy(BOTH, 10),
            Suspended(SERVER, 400, false),
            Busy(FROM_SERVER, 200),
            Suspended(CLIENT, 400, false),
            Busy(BOTH, 200),
            Closes(CLIENT),
        ],
    ),
    (
        "jumping clocks",
        &[
            Busy(BOTH, 10),
            Jumps(CLIENT, 60),
            Busy(BOTH, 200),
            Jumps(SERVER, 500),
            Busy(FROM_CLIENT, 200),
            Jumps(CLIENT, 900),
            Busy(FROM_SERVER, 200),
            Closes(SERVER),
        ],
    ),
    (
        "a path that changes and loses",
        &[
            Busy(BOTH, 10),
            Loses(0.05),
            PathChanges(CLIENT),
            Busy(BOTH, 60),
            PathChanges(SERVER),
            Busy(FROM_SERVER, 60),
            Silent(300),
            Loses(0.0),
            Busy(BOTH, 300),
            Closes(CLIENT),
        ],
    ),
    ("messages wait at the end that closes", &[Busy(BOTH, 10), Queues(CLIENT), Closes(CLIENT)]),
    (
        "messages wait at both ends",
        &[Busy(FROM_SERVER, 10), Queues(CLIENT), Queues(SERVER), Loses(0.02), Closes(SERVER)],
    ),
    ("a peer that is gone", &[Busy(BOTH, 30), Silent(300), Queues(SERVER), PeerGone]),
];

fn options(ccid: u8, over_udp: bool, numbers: Numbers) -> ConnectOptions {
    let config = ConnectionConfig {
        short_seqnos: numbers == Numbers::Wrap24,
        idle_limit: Some(IDLE_LIMIT),
        ..lasting(ccid, Some(SECOND * 25))
    };
    let mut options = ConnectOptions { local_port: Some(40_000), ..connect_options(config) };
    if over_udp {
        options.local.set_port(6511);
        options.remote.set_port(6511);
    }
    options
}

fn assert_near_wrap(world: &mut World, numbers: Numbers, before: u64) {
    let wraps_at = match numbers {
        Numbers::Anywhere => return,
        Numbers::Wrap24 => 1_u64 << 24,
        Numbers::Wrap48 => 1 << 48,
    };
    for host in [CLIENT, SERVER] {
        world.send(host);
        world.pass(MS);
        let (_, newest) = world.travelling.values().rfind(|(to, _)| *to != host).unwrap();
        let left = wraps_at - seq(newest) % wraps_at;
        assert!((2..=before).contains(&left), "{left} numbers left at {host}");
    }
}

fn tell(world: &mut World, part: Part) {
    match part {
        Busy(who, seconds) => {
            world.exchange(who, SECOND * (seconds - 10), EVERY);
            let before = world.received();
            world.exchange(who, SECOND * 10, EVERY);
            let least = if world.loss > 0.0 { 1 } else { 450 };
            for from in (0..2).filter(|&from| who[from]) {
                let arrived = world.received()[1 - from] - before[1 - from];
                assert!(arrived >= least, "{arrived} of 500 from {from}: {}", world.stats());
            }
        }
        Silent(seconds) => world.pass(SECOND * seconds),
        Suspended(host, seconds, stands_still) => {
            world.sleep(host, SECOND * seconds, stands_still);
            world.exchange([host != CLIENT, host != SERVER], SECOND * seconds, MS * 200);
        }
        Jumps(host, seconds) => world.set_clock(host, SECOND * seconds, MILLION),
        Loses(share) => world.loss = share,
        PathChanges(host) => {
            let (at, id) = (world.shows(host), world.id(host));
            world.hosts[host].end.path_changed(at, id);
        }
        Queues(host) => (0..100).for_each(|_| world.send(host)),
        PeerGone => lose_the_peer(world),
        Closes(host) => {
            let waiting = world.hosts[host].end.stats(world.id(host)).unwrap().send_queue_packets;
            let before = world.hosts[1 - host].received;
            world.close(host);
            let arrived = world.hosts[1 - host].received - before;
            assert!(world.loss > 0.0 || arrived >= waiting as u64, "{arrived} of {waiting}");
        }
    }
    if !matches!(part, PeerGone | Closes(_)) {
        assert_eq!([0, 1].map(|host| world.state(host)), [Some(State::Open); 2], "{part:?}");
    }
}

fn lose_the_peer(world: &mut World) {
    world.loss = 1.0;
    world.pass(IDLE_LIMIT + SECOND);
    for host in [CLIENT, SERVER] {
        world.read(host);
        let (at, id) = (world.shows(host), world.id(host));
        let end = world.hosts[host].end.recv(at, id);
        assert_eq!(end, Err(RecvError::Closed(CloseReason::PeerSilent)));
    }
}

#[test]
fn every_story_is_told_with_every_ccid_network_and_wrap() {
    let mut failed = Vec::new();
    for (seed, (name, parts)) in STORIES.iter().enumerate() {
        for ccid in [2, 3, 4] {
            for (over_udp, numbers, before) in [
                (true, Numbers::Anywhere, 0),
                (true, Numbers::Wrap24, 2000),
                (false, Numbers::Wrap48, 700),
            ] {
                let seed = seed as u64;
                let what = format!("{name}: CCID {ccid}, UDP {over_udp}, {numbers:?}, seed {seed}");
                let told = catch_unwind(AssertUnwindSafe(|| {
                    let options = options(ccid, over_udp, numbers);
                    let hosts = [CLIENT, SERVER].map(|end| {
                        let early = if end == CLIENT { Duration::ZERO } else { DELAY };
                        let (secret, at) = secret_and_clock(end, seed, numbers, before, &options);
                        // The Request takes a while to the server.
                        Host::new(secret, at - early)
                    });
                    let rng = Seed(seed).stream("network");
                    let mut world = World::between(seed, rng, hosts, options, DELAY);
                    assert_near_wrap(&mut world, numbers, before);
                    parts.iter().for_each(|part| tell(&mut world, *part));
                }));
                if told.is_err() {
                    failed.push(what);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
