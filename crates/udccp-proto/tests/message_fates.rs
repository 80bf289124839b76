//! The fate of messages with a token: exactly one for each, and true as far as it can be known.

mod common;

use std::collections::BTreeMap;

use bytes::Bytes;
use common::{CLIENT, Impairments, Net, Pair, SERVER, connect_options};
use udccp_base::{Duration, Message, Payload};
use udccp_proto::{
    CloseReason, ConnectOptions, ConnectionConfig, DropCode, DropReason, Endpoint, EndpointConfig,
    EventKind, MessageFate, QueuePolicy,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn of(ccid: u8) -> ConnectionConfig {
    let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
    ConnectionConfig { tx_ccids, rx_ccids, ..ConnectionConfig::default() }
}

/// A message that contains its token.
fn with_token(token: u64) -> Message {
    let mut data = vec![0; 500];
    data[..8].copy_from_slice(&token.to_be_bytes());
    Message { token: Some(token), ..Message::new(Payload::Bytes(Bytes::from(data))) }
}

/// The fates reported so far, by token.
fn fates(pair: &Pair, end: usize) -> BTreeMap<u64, MessageFate> {
    let mut fates = BTreeMap::new();
    for event in &pair.events[end] {
        if let EventKind::MessageFate { token, fate } = event {
            assert_eq!(fates.insert(*token, *fate), None, "a second fate of {token}");
        }
    }
    fates
}

/// Sends `count` messages from one end as its queue accepts them, and reads at the other. Returns
/// the tokens that arrived.
fn exchange(pair: &mut Pair, from: usize, count: u64) -> Vec<u64> {
    let (mut next, mut arrived) = (0, Vec::new());
    for _ in 0..20_000 {
        let (now, id) = (pair.now, pair.id(from));
        while next < count && pair.ends[from].is_writable(id) {
            pair.ends[from].send(now, id, with_token(next)).unwrap();
            next += 1;
        }
        pair.pass(ms(10));
        let (now, id) = (pair.now, pair.id(1 - from));
        while let Ok(Some(data)) = pair.ends[1 - from].recv(now, id) {
            arrived.push(u64::from_be_bytes(data.to_bytes()[..8].try_into().unwrap()));
        }
        if next == count && fates(pair, from).len() as u64 == count {
            return arrived;
        }
    }
    panic!("{} of {count} fates after {next} messages", fates(pair, from).len());
}

#[test]
fn each_message_has_one_fate_and_acknowledged_ones_arrived() {
    for (ccid, ecn) in [(2, true), (2, false), (3, true), (3, false), (4, false)] {
        for from in [CLIENT, SERVER] {
            let mut net = Net::new(u64::from(ccid));
            net.delay = ms(2);
            let mut pair = Pair::connected_with(net, ConnectionConfig { ecn, ..of(ccid) });
            pair.net.impairments = Impairments { loss: 0.03, ..Impairments::default() };
            let arrived = exchange(&mut pair, from, 600);
            let fates = fates(&pair, from);
            let count = |fate| fates.values().filter(|f| **f == fate).count();
            let timeouts = pair.stats(from).timeouts;
            for (token, fate) in &fates {
                let has_arrived = arrived.contains(token);
                match fate {
                    MessageFate::Acknowledged => assert!(has_arrived, "CCID {ccid}: {token}"),
                    MessageFate::Lost => {
                        assert!(!has_arrived || timeouts > 0, "CCID {ccid}: {token}")
                    }
                    MessageFate::Unknown => assert_ne!(ccid, 2, "{token}"),
                    other => panic!("CCID {ccid}: {token} was {other:?}"),
                }
            }
            assert!(count(MessageFate::Acknowledged) > 480, "CCID {ccid}, ECN {ecn}: {fates:?}");
            let is_told = ccid == 2 || !ecn;
            assert!(!is_told || count(MessageFate::Lost) > 3, "CCID {ccid}: {fates:?}");
        }
    }
}

/// CCID 3 reports lost and marked packets alike. But packets to a peer that reads no marks are not
/// ECN-capable, so no router marks them, and reported ones are lost.
#[test]
fn losses_towards_a_peer_without_ecn_have_a_known_fate() {
    let mut net = Net::new(31);
    net.delay = ms(2);
    let mut pair = Pair::starting(net, of(3), ConnectionConfig { ecn: false, ..of(3) });
    pair.pass(ms(200));
    pair.net.impairments = Impairments { loss: 0.03, ..Impairments::default() };
    exchange(&mut pair, CLIENT, 600);
    let fates = fates(&pair, CLIENT);
    let count = |fate| fates.values().filter(|f| **f == fate).count();
    assert!(count(MessageFate::Lost) > 3, "{fates:?}");
    assert_eq!(count(MessageFate::Unknown), 0, "{fates:?}");
}

/// A server's CloseReq acknowledges the last packet that arrived, even if its data was dropped.
#[test]
fn a_drop_that_the_peer_reports_after_it_began_to_close_is_no_acknowledgement() {
    let config = ConnectionConfig { recv_queue_packets: 1, ..of(2) };
    let mut pair = Pair::connected_with(Net::new(6), config);
    let (now, id) = (pair.now, pair.id(CLIENT));
    (1..=2).for_each(|token| pair.ends[CLIENT].send(now, id, with_token(token)).unwrap());
    // Both arrive at the same time, the application does not read, and no acknowledgement leaves.
    let arrival = now + pair.delay;
    while pair.now < arrival {
        pair.step(arrival);
    }
    pair.close(SERVER);
    pair.pass(ms(100));
    let dropped = MessageFate::PeerDropped(DropCode::ReceiveBuffer);
    let told = BTreeMap::from([(1, MessageFate::Acknowledged), (2, dropped)]);
    assert_eq!(fates(&pair, CLIENT), told);
}

//= 4340-5.7-2 test
/// A host that has lost the connection, or starts another one, acknowledges in its Reset the packet
/// that it refuses: no application there will receive it.
#[test]
fn messages_reset_by_an_unknowing_host_are_not_acknowledged() {
    for ccid in [2, 3, 4] {
        for comes_back in [false, true] {
            let mut pair = Pair::connected_with(Net::new(5), of(ccid));
            // The server's next packet has an acknowledgement number, like its answer.
            pair.send(CLIENT, b"before");
            pair.pass(ms(10));
            let local_port = Some(pair.ends[CLIENT].tuple(pair.id(CLIENT)).unwrap().local_port);
            pair.ends[CLIENT] = Endpoint::new(EndpointConfig::new([9; 32]));
            if comes_back {
                // From the same port, with a Request that does not arrive.
                let now = pair.now;
                pair.mute(CLIENT);
                let again = ConnectOptions { local_port, ..connect_options(of(ccid)) };
                pair.ends[CLIENT].connect(now, again).unwrap();
                pair.drain();
                pair.filter = None;
            }
            let (now, id) = (pair.now, pair.id(SERVER));
            pair.ends[SERVER].send(now, id, with_token(7)).unwrap();
            pair.pass(ms(100));
            assert_eq!(pair.received(SERVER), [b"before"]);
            assert!(matches!(pair.end_reason(SERVER), Some(CloseReason::PeerReset { .. })));
            let (of_message, which) = (fates(&pair, SERVER), (ccid, comes_back));
            assert_eq!(of_message, BTreeMap::from([(7, MessageFate::Unknown)]), "{which:?}");
            assert_eq!(pair.stats(SERVER).counters.data_packets_acked, 0);
        }
    }
}

#[test]
fn data_that_the_peers_application_did_not_have_is_not_acknowledged() {
    let config = ConnectionConfig { recv_queue_packets: 4, ..of(2) };
    let mut pair = Pair::connected_with(Net::new(3), config);
    let (now, id) = (pair.now, pair.id(SERVER));
    pair.ends[SERVER].shutdown_read(now, id);
    let id = pair.id(CLIENT);
    pair.ends[CLIENT].send(now, id, with_token(7)).unwrap();
    pair.pass(ms(500));
    let fate = MessageFate::PeerDropped(DropCode::ApplicationNotListening);
    assert_eq!(fates(&pair, CLIENT), BTreeMap::from([(7, fate)]));
}

#[test]
fn unsent_messages_report_their_drop_reason() {
    let config =
        ConnectionConfig { send_queue_packets: 4, queue_policy: QueuePolicy::DropLowest, ..of(2) };
    let mut pair = Pair::connected_with(Net::new(4), config);
    // The window is full, and no acknowledgement arrives.
    pair.net.filter = Some(Box::new(|_, _| false));
    let (now, id) = (pair.now, pair.id(CLIENT));
    let mut token = 0;
    while pair.stats(CLIENT).send_queue_packets < 2 {
        pair.ends[CLIENT].send(now, id, with_token(token)).unwrap();
        token += 1;
        pair.pass(Duration::from_micros(1));
    }
    let (now, in_flight) = (pair.now, token - 2);
    let mut send = |n: u64, change: fn(&mut Message)| {
        let mut message = with_token(n);
        message.deadline = (n == 100).then_some(now + ms(1));
        change(&mut message);
        pair.ends[CLIENT].send(now, id, message).unwrap();
    };
    send(100, |m| m.priority = 2);
    send(101, |_| {});
    // The queue is full: the newest message with the lowest priority is dropped.
    send(102, |m| m.priority = 1);
    pair.pass(ms(5));
    let now = pair.now;
    pair.ends[CLIENT].abort(now, id);
    pair.collect();
    let fates = fates(&pair, CLIENT);
    let dropped = |token: u64| fates.get(&token).copied();
    assert_eq!(dropped(100), Some(MessageFate::Dropped(DropReason::Expired)));
    assert_eq!(dropped(101), Some(MessageFate::Dropped(DropReason::Displaced)));
    assert_eq!(dropped(102), Some(MessageFate::Dropped(DropReason::ConnectionEnded)));
    assert_eq!(dropped(token - 1), Some(MessageFate::Dropped(DropReason::ConnectionEnded)));
    for token in 0..in_flight {
        assert_eq!(dropped(token), Some(MessageFate::Unknown), "{token} was on its way");
    }
    assert_eq!(fates.len() as u64, token + 3);
    let closed = pair.events[CLIENT].iter().position(|e| matches!(e, EventKind::Closed(_)));
    assert_eq!(closed, Some(pair.events[CLIENT].len() - 1), "fates come before the end");
}

#[test]
fn timeout_settles_messages_in_flight() {
    for ccid in [2, 3, 4] {
        let mut pair = Pair::connected_with(Net::new(5), of(ccid));
        exchange(&mut pair, CLIENT, 20);
        pair.events[CLIENT].clear();
        pair.net.filter = Some(Box::new(|from, _| from != CLIENT));
        let (now, id) = (pair.now, pair.id(CLIENT));
        pair.ends[CLIENT].send(now, id, with_token(99)).unwrap();
        pair.pass(Duration::from_secs(10));
        let expected = BTreeMap::from([(99, MessageFate::Lost)]);
        assert_eq!(fates(&pair, CLIENT), expected, "CCID {ccid}");
    }
}

#[test]
fn orderly_close_settles_messages_in_flight() {
    for (ccid, fate) in [(2, MessageFate::Acknowledged), (3, MessageFate::Unknown)] {
        let mut pair = Pair::connected_with(Net::new(6), of(ccid));
        let (now, id) = (pair.now, pair.id(CLIENT));
        pair.ends[CLIENT].send(now, id, with_token(1)).unwrap();
        pair.ends[CLIENT].close(now, id);
        pair.pass(Duration::from_secs(1));
        assert_eq!(fates(&pair, CLIENT), BTreeMap::from([(1, fate)]), "CCID {ccid}");
    }
}

#[test]
fn path_change_makes_fates_in_flight_unknown() {
    let mut pair = Pair::connected_with(Net::new(7), of(2));
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.ends[CLIENT].send(now, id, with_token(1)).unwrap();
    pair.pass(ms(1));
    let now = pair.now;
    pair.ends[CLIENT].path_changed(now, id);
    pair.pass(Duration::from_secs(1));
    assert_eq!(fates(&pair, CLIENT), BTreeMap::from([(1, MessageFate::Unknown)]));
}
