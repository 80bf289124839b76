//! Opening connections, and failing to.

mod common;

use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::Duration;
use udccp_proto::{ConnectionConfig, EventKind, State};

#[test]
fn a_connection_opens_carries_data_both_ways_and_closes() {
    let mut net = Net::new(1);
    net.trace = Some(Vec::new());
    let mut pair = Pair::starting(net, ConnectionConfig::default(), ConnectionConfig::default());
    pair.pass(Duration::from_millis(100));
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert_eq!(pair.events[CLIENT], [EventKind::Connected]);
    pair.send(CLIENT, b"ping");
    pair.pass(Duration::from_millis(100));
    assert_eq!(pair.received(SERVER), [b"ping"]);
    pair.send(SERVER, b"pong");
    pair.send(SERVER, b"");
    pair.pass(Duration::from_millis(500));
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert_eq!(pair.received(CLIENT), [b"pong".to_vec(), Vec::new()]);
    pair.close(CLIENT);
    pair.pass(Duration::from_millis(100));
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
    assert_eq!(pair.state(SERVER), Some(State::Closed));
    println!("{}", pair.take_trace());
}
