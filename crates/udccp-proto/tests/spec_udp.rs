//! RFC 6773: DCCP inside UDP, as far as the endpoint is concerned.

mod common;
mod spec_support;

use std::net::SocketAddr;

use common::packet::in_one_piece;
use common::pair::PORT;
use common::{CLIENT, Net, Pair, SERVER, connect_options, listen_config, service};
use spec_support::{parse, plain};
use udccp_base::{Datagram, Duration, Ecn, Machine, Message, Payload};
use udccp_proto::{
    ConnectOptions, ConnectionConfig, Endpoint, EndpointConfig, EndpointStats, PathReport, State,
};
use udccp_wire::{HeaderKind, ResetCode};

const UDP_SERVER: &str = "10.0.0.2:6511";

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A connection between these two UDP ports.
fn over(client: &str, local_port: u16) -> ConnectOptions {
    ConnectOptions {
        local: at(client),
        remote: at(UDP_SERVER),
        local_port: Some(local_port),
        ..connect_options(plain())
    }
}

fn connected(options: ConnectOptions) -> Pair {
    let mut net = Net::new(6773);
    let listener = net.ends[SERVER].listen(None, PORT, listen_config(plain())).unwrap();
    let now = net.now;
    let id = net.ends[CLIENT].connect(now, options).unwrap();
    let mut pair = Pair { net, listener, ids: [Some(id), None], events: Default::default() };
    pair.pass(Duration::from_millis(200));
    assert_eq!(pair.state(SERVER), Some(State::Open));
    pair
}

fn server_stats(pair: &Pair) -> EndpointStats {
    pair.net.ends[SERVER].endpoint_stats()
}

//= 6773-3.3-1 test
//= 6773-3.3-2 test
#[test]
fn the_dccp_checksum_is_sent_as_zero_and_ignored() {
    let mut pair = connected(over("10.0.0.1:40000", 50_000));
    pair.send(CLIENT, b"one");
    pair.drain();
    let sent = pair.last[CLIENT].clone().unwrap();
    assert_eq!(&sent.header[6..8], &[0, 0]);
    let now = pair.now;
    let message = Message::new(Payload::Bytes(bytes::Bytes::from_static(b"two")));
    let id = pair.id(CLIENT);
    pair.filter = Some(Box::new(|_, _| false));
    pair.ends[CLIENT].send(now, id, message).unwrap();
    pair.drain();
    let mut bytes = in_one_piece(pair.last[CLIENT].as_ref().unwrap()).header.to_vec();
    bytes[6..8].copy_from_slice(&[0xde, 0xad]);
    pair.deliver(SERVER, Datagram { header: bytes.into(), payload: Payload::EMPTY, ..sent });
    assert_eq!(server_stats(&pair).bad_checksum, 0);
    pair.filter = None;
    pair.pass(Duration::from_millis(100));
    assert_eq!(pair.received(SERVER), [b"two", b"one"]);
    // Packets with any options have none either.
    pair.filter = Some(Box::new(|_, d| d.header[6..8] == [0, 0]));
    pair.close(CLIENT);
    pair.pass(Duration::from_millis(100));
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
}

//= 6773-3.3-5 test
//= 6773-3.3-7 test
#[test]
fn datagrams_too_short_for_their_dccp_header_are_dropped() {
    let mut pair = connected(over("10.0.0.1:40000", 50_000));
    pair.send(CLIENT, b"data");
    pair.filter = Some(Box::new(|_, _| false));
    pair.drain();
    let whole = in_one_piece(pair.last[CLIENT].as_ref().unwrap());
    let before = server_stats(&pair).malformed;
    let header_len = usize::from(whole.header[4]) * 4;
    for len in 1..header_len {
        pair.deliver(
            SERVER,
            Datagram { header: whole.header[..len].to_vec().into(), ..whole.clone() },
        );
    }
    assert_eq!(server_stats(&pair).malformed - before, header_len as u64 - 1);
    assert_eq!(pair.received(SERVER), Vec::<Vec<u8>>::new());
}

//= 6773-3.5-1 test
#[test]
fn ecn_marks_are_copied_from_and_to_the_outer_header() {
    let mut pair = connected(over("10.0.0.1:40000", 50_000));
    pair.send(CLIENT, b"data");
    pair.filter = Some(Box::new(|_, _| false));
    pair.drain();
    let sent = in_one_piece(pair.last[CLIENT].as_ref().unwrap());
    assert!(sent.ecn.is_capable());
    pair.deliver(SERVER, Datagram { ecn: Ecn::Ce, ..sent });
    assert_eq!(pair.stats(SERVER).counters.ecn_ce_received, 1);
}

//= 6773-3.6-1 test
//= 6773-3.7-1 test
#[test]
fn icmp_reaches_the_connection_and_encapsulation_costs_8_bytes() {
    let native = ConnectOptions { local_port: Some(50_000), ..connect_options(plain()) };
    let mps = |pair: &Pair| pair.stats(CLIENT).max_message_size;
    let inside = connected(over("10.0.0.1:40000", 50_000));
    assert_eq!(mps(&connected(native)) - mps(&inside), 8);
    let mut pair = inside;
    let before = mps(&pair);
    pair.send(CLIENT, b"data");
    pair.drain();
    let sent = pair.last[CLIENT].clone().unwrap();
    let now = pair.now;
    let report = PathReport::PathMtu(1400);
    pair.ends[CLIENT].handle_path_report(now, sent.src, sent.dst, &sent.header, report);
    assert_eq!(before - mps(&pair), 100);
}

//= 6773-3.8-4 test
//= 6773-3.8-5 test
//= 6773-3.8-6 test
//= 6773-3.8-7 test
//= 6773-3.8-11 test
//= 6773-5.2-3 test
#[test]
fn connections_are_told_apart_by_six_values() {
    // Same address and DCCP ports behind two UDP ports (two clients behind one NAPT), and two
    // DCCP ports over one pair of UDP ports (RTP and RTCP).
    let mut net = Net::new(1);
    let listener = net.ends[SERVER].listen(None, PORT, listen_config(plain())).unwrap();
    let starts =
        [("10.0.0.1:40000", 50_000), ("10.0.0.1:40001", 50_000), ("10.0.0.1:40000", 50_001)];
    let now = net.now;
    let mut clients = Vec::new();
    for (from, port) in starts {
        clients.push(net.ends[CLIENT].connect(now, over(from, port)).unwrap());
    }
    net.run(Duration::from_millis(200));
    for (n, &id) in clients.iter().enumerate() {
        let message = Message::new(Payload::Zeros(100 + n as u32));
        let now = net.now;
        net.ends[CLIENT].send(now, id, message).unwrap();
    }
    net.run(Duration::from_millis(200));
    let mut served = Vec::new();
    while let Some(id) = net.ends[SERVER].accept(listener) {
        let now = net.now;
        let tuple = net.ends[SERVER].tuple(id).unwrap();
        let len = net.ends[SERVER].recv(now, id).unwrap().unwrap().len();
        served.push((tuple.remote.port(), tuple.remote_port, len));
    }
    assert_eq!(served, [(40_000, 50_000, 100), (40_001, 50_000, 101), (40_000, 50_001, 102)]);
}

//= 6773-3.8-11 test
/// If a NAT maps a connection to another UDP port, the connection ends for both sides: the 6-tuple
/// identifies it. The packets are answered with a Reset, and reach no other connection.
#[test]
fn packets_from_another_udp_port_belong_to_no_connection() {
    let mut pair = connected(over("10.0.0.1:40000", 50_000));
    pair.send(CLIENT, b"data");
    pair.filter = Some(Box::new(|_, _| false));
    pair.drain();
    let sent = in_one_piece(pair.last[CLIENT].as_ref().unwrap());
    let moved = Datagram { src: at("10.0.0.1:40009"), ..sent };
    let now = pair.now;
    pair.net.ends[SERVER].handle_datagram(now, moved);
    let answer = pair.net.ends[SERVER].poll_transmit(now).unwrap();
    assert_eq!(answer.dst, at("10.0.0.1:40009"));
    let HeaderKind::Reset { code, .. } = parse(&answer).header.kind else { panic!("no Reset") };
    assert_eq!(code, ResetCode::NoConnection);
    assert_eq!(pair.received(SERVER), Vec::<Vec<u8>>::new());
    assert_eq!(pair.state(SERVER), Some(State::Open));
}

//= 6773-3.8-12 test
#[test]
fn without_room_for_another_connection_its_packets_are_dropped() {
    let mut net = Net::new(2);
    let one = EndpointConfig { max_connections: 1, ..EndpointConfig::new([7; 32]) };
    net.ends[SERVER] = Endpoint::new(one);
    net.ends[SERVER].listen(None, PORT, listen_config(plain())).unwrap();
    let now = net.now;
    let first = net.ends[CLIENT].connect(now, over("10.0.0.1:40000", 50_000)).unwrap();
    net.run(Duration::from_millis(100));
    let now = net.now;
    let second = net.ends[CLIENT].connect(now, over("10.0.0.1:40000", 50_001)).unwrap();
    net.run(Duration::from_millis(100));
    assert_eq!(net.ends[CLIENT].state(first), Some(State::Open));
    assert!(net.ends[CLIENT].state(second).unwrap().is_over());
    let stats = net.ends[SERVER].endpoint_stats();
    assert_eq!((stats.connections, stats.too_busy), (1, 1));
}

//= 6773-4-1 test
/// Native and encapsulated clients of one listener look the same to the application.
#[test]
fn one_listener_serves_both_encapsulations_alike() {
    let config = ConnectionConfig { min_cscov: 1, send_cscov: 1, ..plain() };
    for local in ["10.0.0.1:0", "10.0.0.1:40000"] {
        let remote = if local.ends_with(":0") { "10.0.0.2:0" } else { UDP_SERVER };
        let options = ConnectOptions {
            local: at(local),
            remote: at(remote),
            config: config.clone().into(),
            ..connect_options(plain())
        };
        let mut pair = connected(options);
        pair.send(CLIENT, b"the same bytes");
        pair.drain();
        let sent = pair.last[CLIENT].clone().unwrap();
        assert_eq!(sent.payload.to_bytes(), b"the same bytes"[..]);
        assert_eq!(parse(&sent).header.cscov, 0, "the server asked for everything");
        pair.pass(Duration::from_millis(100));
        assert_eq!(pair.received(SERVER), [b"the same bytes"]);
        let id = pair.id(SERVER);
        assert_eq!(pair.ends[SERVER].service(id), Some(service()));
    }
}
