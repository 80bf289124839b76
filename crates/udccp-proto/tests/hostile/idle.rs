//! Peers that vanish silently, and peers that have nothing to send.

use udccp_base::{Duration, Machine};
use udccp_proto::{CloseReason, ConfigError, ConnectError, ConnectionConfig, EventKind, State};

use crate::common::{CLIENT, Net, Pair, SERVER, connect_options};

const KEEP_ALIVE: Duration = Duration::from_secs(25);
const IDLE_LIMIT: Duration = Duration::from_secs(120);

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// As the sockets set it.
fn watching() -> ConnectionConfig {
    ConnectionConfig {
        keep_alive: Some(KEEP_ALIVE),
        idle_limit: Some(IDLE_LIMIT),
        ..ConnectionConfig::default()
    }
}

fn cut(pair: &mut Pair) {
    pair.filter = Some(Box::new(|_, _| false));
}

#[test]
fn connection_of_a_vanished_peer_is_freed_with_a_reason() {
    for (keep_alive, data) in [(true, false), (true, true), (false, false)] {
        let keep_alive = keep_alive.then_some(KEEP_ALIVE);
        let config = ConnectionConfig { keep_alive, ..watching() };
        let mut pair = Pair::connected_with(Net::new(9), config);
        pair.send(CLIENT, b"the last that is heard");
        pair.pass(secs(2));
        cut(&mut pair);
        if data {
            // Sending does not prolong it.
            pair.send(SERVER, b"into the void");
        }
        pair.pass(secs(116));
        assert_eq!(pair.state(SERVER), Some(State::Open));
        pair.pass(secs(4));
        assert!(pair.events[SERVER].contains(&EventKind::Closed(CloseReason::PeerSilent)));
        assert_eq!(pair.received(SERVER), [b"the last that is heard"]);
        assert_eq!(pair.end_reason(SERVER), Some(CloseReason::PeerSilent));
        let (now, id) = (pair.now, pair.id(SERVER));
        pair.ends[SERVER].release(now, id);
        pair.drain();
        assert_eq!(pair.ends[SERVER].endpoint_stats().connections, 0);
        assert_eq!(pair.ends[SERVER].stats(id), None, "nothing is left of it");
        assert_eq!(pair.ends[SERVER].poll_timeout(), None);
    }
}

#[test]
fn an_idle_peer_that_answers_probes_is_kept_for_hours() {
    // Only one side sends probes.
    let mut pair = Pair::starting(Net::new(10), ConnectionConfig::default(), watching());
    pair.pass(secs(1));
    pair.pass(secs(4 * 3600));
    for end in [CLIENT, SERVER] {
        assert_eq!(pair.state(end), Some(State::Open));
    }
    let probes = pair.stats(SERVER).counters.keep_alives_sent;
    assert!((570..=580).contains(&probes), "{probes}");
    pair.send(SERVER, b"still there");
    pair.pass(secs(1));
    assert_eq!(pair.received(CLIENT), [b"still there"]);
}

#[test]
fn an_outage_shorter_than_the_limit_is_survived_and_noticed_within_a_keep_alive_time() {
    let mut pair = Pair::connected_with(Net::new(11), watching());
    cut(&mut pair);
    pair.pass(secs(110));
    let during = pair.stats(SERVER).counters;
    assert!((6..=12).contains(&during.keep_alives_sent), "{}", during.keep_alives_sent);
    pair.filter = None;
    pair.pass(secs(9));
    pair.pass(secs(200));
    assert_eq!((pair.state(CLIENT), pair.state(SERVER)), (Some(State::Open), Some(State::Open)));
}

/// Regression: a machine that was suspended for longer than the limit lost its connections, though
/// nobody had asked the peer anything.
#[test]
fn a_host_that_did_not_run_asks_before_it_gives_a_peer_up() {
    for (keep_alive, data) in [(true, false), (true, true), (false, false)] {
        let keep_alive = keep_alive.then_some(KEEP_ALIVE);
        let config = ConnectionConfig { keep_alive, silence_timeout: secs(90), ..watching() };
        let mut pair = Pair::connected_with(Net::new(14), config);
        // Both sleep, as two processes of one machine do, shortly and for long.
        for slept in [secs(119), secs(3600)] {
            pair.pass(secs(30));
            if data {
                cut(&mut pair);
                pair.send(SERVER, b"into the void");
                pair.pass(secs(1));
                pair.filter = None;
            }
            pair.now += slept;
            if keep_alive.is_none() {
                pair.send(CLIENT, b"good morning");
            }
            pair.pass(secs(2));
            assert_eq!(pair.state(CLIENT), Some(State::Open), "{keep_alive:?} {data} {slept}");
            assert_eq!(pair.state(SERVER), Some(State::Open), "{keep_alive:?} {data} {slept}");
            // As an acknowledgement, for the side that has no other.
            pair.send(SERVER, b"awake");
        }
        cut(&mut pair);
        pair.now += secs(60);
        pair.pass(secs(121));
        assert!(pair.events[SERVER].contains(&EventKind::Closed(CloseReason::PeerSilent)));
    }
}

#[test]
fn idle_limit_alone_ends_only_silent_connections() {
    let config = ConnectionConfig { idle_limit: Some(secs(60)), ..ConnectionConfig::default() };
    let mut pair = Pair::starting(Net::new(12), ConnectionConfig::default(), config);
    pair.pass(secs(1));
    for _ in 0..5 {
        pair.pass(secs(50));
        pair.send(CLIENT, b"here I am");
    }
    pair.pass(secs(55));
    assert_eq!(pair.state(SERVER), Some(State::Open));
    pair.pass(secs(10));
    assert_eq!(pair.received(SERVER).len(), 5);
    assert_eq!(pair.end_reason(SERVER), Some(CloseReason::PeerSilent));
    assert_eq!(pair.stats(SERVER).counters.keep_alives_sent, 0);
}

#[test]
fn a_keep_alive_that_would_come_too_late_is_refused_with_the_fix() {
    let config = ConnectionConfig { keep_alive: Some(IDLE_LIMIT), ..watching() };
    let mut net = Net::new(13);
    let now = net.now;
    let refused = net.ends[CLIENT].connect(now, connect_options(config)).unwrap_err();
    let idle = ConfigError::IdleLimit { keep_alive: IDLE_LIMIT, idle_limit: IDLE_LIMIT };
    assert_eq!(refused, ConnectError::Config(idle));
    assert!(refused.to_string().contains("set idle_limit above keep_alive"), "{refused}");
}

/// Regression: with a keep-alive of no time, the driver never came out of its timers.
#[test]
fn times_of_zero_are_refused() {
    for (keep_alive, idle_limit) in [(Some(secs(0)), None), (None, Some(secs(0)))] {
        let config = ConnectionConfig { keep_alive, idle_limit, ..watching() };
        let mut net = Net::new(14);
        let now = net.now;
        let refused = net.ends[CLIENT].connect(now, connect_options(config)).unwrap_err();
        assert_eq!(refused, ConnectError::Config(ConfigError::NoTime));
    }
}
