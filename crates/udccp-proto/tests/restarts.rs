//! Clients that die silently at any time and return on the same ports, on a network that loses,
//! duplicates and reorders. The server gives up the old connection, and the new one opens.
//!
//! `UDCCP_TEST_CASES=20000 cargo test --release -p udccp-proto --test restarts` runs more cases,
//! starting at `UDCCP_TEST_SEED`.

mod common;

use common::{CLIENT, Impairments, Net, Pair, SERVER};
use udccp_base::{Duration, Rng, Seed};
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, InitCookies,
    ListenConfig, State,
};
use udccp_testkit::randomised;

const CASES: u64 = 300;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// The port of every client.
const CLIENT_PORT: u16 = 40_000;

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

fn random_impairments(rng: &mut Rng) -> Impairments {
    Impairments {
        loss: pick(rng, &[0.0, 0.0, 0.2, 0.5]),
        duplicate: pick(rng, &[0.0, 0.1]),
        reorder: pick(rng, &[0.0, 0.3]),
        ..Impairments::default()
    }
}

/// Connects a client that knows nothing of earlier ones.
fn connect(net: &mut Net, config: ConnectionConfig, client_number: u64) -> ConnectionId {
    let key = Seed(client_number).stream("another").bytes32();
    net.ends[CLIENT] = Endpoint::new(EndpointConfig::new(key));
    let options = common::connect_options(config);
    let options = ConnectOptions { local_port: Some(CLIENT_PORT), ..options };
    net.ends[CLIENT].connect(net.now, options).unwrap()
}

/// Runs one case. Returns whether the last client could get through.
fn run_case(seed: u64) -> bool {
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
    // A cookie reserves the ports of its connection for its lifetime.
    let init_cookies = InitCookies::Never;
    let listen = ListenConfig { init_cookies, ..common::listen_config(config.clone()) };
    let listener = net.ends[SERVER].listen(None, common::pair::PORT, listen).unwrap();
    let mut pair = Pair { net, listener, ids: [None; 2], events: Default::default() };
    for round in 0..1 + rng.below(3) {
        pair.impairments = random_impairments(&mut rng);
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
            // The accepted connection was that of an earlier client, and is over.
            pair.ids[SERVER] = None;
        }
    }
    if pair.ends[SERVER].endpoint_stats().timewaits > 0 {
        // An old connection ended in another way: a client's host answered that it does not exist.
        return false;
    }
    assert_eq!(pair.state(CLIENT), Some(State::Open), "{}", pair.take_trace());
    pair.send(CLIENT, b"of the last life");
    pair.pass(SECOND);
    assert_eq!(pair.received(SERVER), [b"of the last life"], "{}", pair.take_trace());
    assert_eq!(pair.ends[SERVER].live_connections(), 1);
    true
}

/// The server is told of the end of an earlier connection, and of the last one, in the same second.
#[test]
fn newest_connection_is_accepted_while_an_older_one_is_held() {
    assert!(run_case(8385));
}

/// The client's new program has its port before it connects, and answers that the old connection
/// does not exist. The server does not block the ports for it.
#[test]
fn restarted_client_connects_after_denying_its_old_connection() {
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
        // CloseReq asks the client to hold TIMEWAIT. A server that holds it itself sends Close.
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
fn restarted_client_connects() {
    let seeds = randomised::seeds(CASES);
    let lives = seeds.end - seeds.start;
    let through = seeds.filter(|seed| run_case(*seed)).count() as u64;
    assert!(through * 10 > lives * 8, "{through} of {lives}");
}
