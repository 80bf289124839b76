//! Data on the Request.

mod common;

use bytes::Bytes;
use common::pair::PORT;
use common::{CLIENT, Net, Pair, SERVER, connect_options, listen_config};
use udccp_base::{Duration, Payload};
use udccp_proto::{
    ConnectError, ConnectionConfig, DropCode, DropReason, EventKind, InitCookies, ListenConfig,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn starting(seed: u64, listen: ListenConfig) -> Pair {
    let mut net = Net::new(seed);
    let listener = net.ends[SERVER].listen(None, PORT, listen).unwrap();
    let options = connect_options(ConnectionConfig::default());
    let data = Payload::Bytes(Bytes::from_static(b"early"));
    let id = net.ends[CLIENT].connect_with_data(net.now, options, data).unwrap();
    Pair { net, listener, ids: [Some(id), None], events: Default::default() }
}

fn server() -> ListenConfig {
    listen_config(ConnectionConfig::default())
}

//= 4340-8.1.1-2 test
#[test]
fn data_of_the_request_arrives_once_whatever_is_lost_of_the_handshake() {
    for lost in [None, Some(0), Some(1), Some(2)] {
        let mut pair = starting(51, server());
        let mut count = 0;
        pair.filter = Some(Box::new(move |_, _| {
            count += 1;
            Some(count - 1) != lost
        }));
        pair.pass(Duration::from_secs(3));
        assert_eq!(pair.received(SERVER), [b"early"], "{lost:?}");
        assert_eq!(pair.events[CLIENT], [EventKind::Connected], "{lost:?}");
        pair.send(CLIENT, b"later");
        pair.pass(ms(200));
        assert_eq!(pair.received(SERVER), [b"later"]);
    }
}

#[test]
fn a_server_that_drops_request_data_reports_it() {
    let listen = ListenConfig { init_cookies: InitCookies::Always, ..server() };
    let mut pair = starting(52, listen);
    pair.pass(ms(200));
    let dropped = EventKind::PeerDropped { code: DropCode::ProtocolConstraints, packets: 1 };
    assert_eq!(pair.events[CLIENT], [dropped, EventKind::Connected]);
    assert_eq!(pair.stats(CLIENT).counters.peer_drops.protocol_constraints, 1);
    assert!(pair.received(SERVER).is_empty());
}

#[test]
fn a_failed_handshake_drops_the_data_and_reports_it() {
    let mut pair = starting(53, server());
    pair.mute(CLIENT);
    pair.pass(Duration::from_secs(200));
    let (reason, bytes) = (DropReason::ConnectionEnded, 5);
    assert_eq!(pair.events[CLIENT][0], EventKind::MessageDropped { reason, bytes });
}

#[test]
fn data_that_leaves_no_room_for_options_is_refused() {
    let mut net = Net::new(54);
    let options = connect_options(ConnectionConfig::default());
    let with = |net: &mut Net, n| {
        let now = net.now;
        net.ends[CLIENT].connect_with_data(now, options.clone(), Payload::Zeros(n)).err()
    };
    assert_eq!(with(&mut net, 1204), None);
    assert_eq!(with(&mut net, 1205), Some(ConnectError::DataTooLong { len: 1205, max: 1204 }));
}
