//! Clients that die without a word at any moment and come back on the same ports, on a network that
//! loses, doubles and reorders: the server lets go of the old connection, and the new one opens.
//!
//! `UDCCP_LIVES=20000 cargo test --release -p udccp-proto --test restarts` lives more lives, from
//! `UDCCP_TEST_SEED` on.

mod common;

use common::{CLIENT, Impairments, Net, Pair, SERVER};
use udccp_base::{Duration, Rng, Seed};
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, InitCookies,
    ListenConfig, State,
};
use udccp_testkit::lives;

const LIVES: u64 = 300;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// The port of every client.
const CLIENT_PORT: u16 = 40_000;

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

fn weather(rng: &mut Rng) -> Impairments {
    Impairments {
        loss: pick(rng, &[0.0, 0.0, 0.2, 0.5]),
        duplicate: pick(rng, &[0.0, 0.1]),
        reorder: pick(rng, &[0.0, 0.3]),
        ..Impairments::default()
    }
}

/// A client that knows nothing of those before.
fn connect(net: &mut Net, config: ConnectionConfig, life: u64) -> ConnectionId {
    let key = Seed(life).stream("another").bytes32();
    net.ends[CLIENT] = Endpoint::new(EndpointConfig::new(key));
    let options = common::connect_options(config);
    let options = ConnectOptions { local_port: Some(CLIENT_PORT), ..options };
    net.ends[CLIENT].connect(net.now, options).unwrap()
}

/// Whether the last client could get through.
fn life(seed: u64) -> bool {
    let mut rng = Seed(seed).stream("restarts");
    let ccids = pick(&mut rng, &[vec![2], vec![3], vec![4]]);
    let config = ConnectionConfig {
        tx_ccids: ccids.clone(),
        rx_ccids: ccids,
        sequence_window: pick(&mut rng, &[32, 100, 10_000]),
        ..ConnectionConfig::default()
    };
    let mut net = Net::new(seed);
    net.delay = pick(&mut rng, &[MS, MS * 10, MS * 200]);
    // A cookie keeps the ports of its connection from others for as long as it lasts.
    let init_cookies = InitCookies::Never;
    let listen = ListenConfig { init_cookies, ..common::listen_config(config.clone()) };
    let listener = net.ends[SERVER].listen(None, common::pair::PORT, listen).unwrap();
    let mut pair = Pair { net, listener, ids: [None; 2], events: Default::default() };
    for round in 0..1 + rng.below(3) {
        pair.impairments = weather(&mut rng);
        let client = connect(&mut pair, config.clone(), seed * 10 + round);
        pair.ids = [Some(client), None];
        for _ in 0..rng.below(8) {
            let span = pick(&mut rng, &[MS, MS * 30, MS * 300, SECOND * 2]);
            pair.pass(span);
            for end in 0..2 {
                let count = if pair.ids[end].is_some() { rng.below(5) } else { 0 };
                let sent = (0..count).map(|_| pair.try_send(end, b"of a life before"));
                sent.for_each(drop);
            }
        }
    }
    pair.impairments = Impairments::default();
    let client = connect(&mut pair, config, seed * 10 + 9);
    pair.ids = [Some(client), None];
    pair.trace = Some(Vec::new());
    for _ in 0..64 {
        pair.pass(SECOND);
        if pair.state(SERVER) != Some(State::Open) {
            // It was of a client before, and over when it was accepted.
            pair.ids[SERVER] = None;
        }
    }
    if pair.ends[SERVER].endpoint_stats().timewaits > 0 {
        // An old connection ended in another way: a client's host said that there is none.
        return false;
    }
    assert_eq!(pair.state(CLIENT), Some(State::Open), "{}", pair.take_trace());
    pair.send(CLIENT, b"of the last life");
    pair.pass(SECOND);
    assert_eq!(pair.received(SERVER), [b"of the last life"], "{}", pair.take_trace());
    assert_eq!(pair.ends[SERVER].live_connections(), 1);
    true
}

/// The server is told of the end of a life before, and of the last life, in one second.
#[test]
fn the_last_life_waits_to_be_accepted_while_one_before_is_held() {
    assert!(life(8385));
}

/// The new program of the client has its port before it connects, and says that it has no such
/// connection: the server does not keep the ports from it.
#[test]
fn a_client_that_had_denied_its_old_connection_gets_through() {
    let config = ConnectionConfig::default;
    for closes in [false, true] {
        let mut net = Net::new(1);
        let listen = common::listen_config(config());
        let listener = net.ends[SERVER].listen(None, common::pair::PORT, listen).unwrap();
        let client = connect(&mut net, config(), 1);
        let mut pair =
            Pair { net, listener, ids: [Some(client), None], events: Default::default() };
        pair.pass(SECOND);
        pair.ends[CLIENT] = Endpoint::new(EndpointConfig::new([9; 32]));
        // CloseReq asks the client to hold TIMEWAIT; a server that wants it itself, says Close.
        if closes {
            pair.close(SERVER);
        } else {
            pair.send(SERVER, b"are you there?");
        }
        pair.pass(SECOND);
        assert_eq!(pair.state(SERVER), Some(State::Closed));
        assert_eq!(pair.ends[SERVER].endpoint_stats().timewaits, 0);
        let client = connect(&mut pair, config(), 2);
        pair.ids = [Some(client), None];
        pair.pass(SECOND);
        assert_eq!(pair.state(CLIENT), Some(State::Open));
        assert_eq!(pair.state(SERVER), Some(State::Open));
    }
}

#[test]
fn a_client_that_came_back_gets_through() {
    let seeds = lives::seeds(LIVES);
    let lives = seeds.end - seeds.start;
    let through = seeds.filter(|seed| life(*seed)).count() as u64;
    assert!(through * 10 > lives * 8, "{through} of {lives}");
}
