//! Opening connections, and failures to open.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::packet::{forge, numbers, reversed};
use common::pair::PORT;
use common::{CLIENT, Net, Pair, SERVER, connect_options, listen_config, service};
use udccp_base::{Datagram, Duration, Instant};
use udccp_proto::{
    CloseReason, ConnectError, ConnectionConfig, EventKind, ListenConfig, ListenError, PathReport,
    State,
};
use udccp_wire::{
    FeatureNumber, HeaderKind, OptionRef, PacketType, PacketView, ResetCode, Seqno, ServiceCode,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn starting(seed: u64) -> Pair {
    let (client, server) = Default::default();
    Pair::starting(Net::new(seed), client, server)
}

fn traced(mut net: Net) -> Net {
    net.trace = Some(Vec::new());
    net
}

#[test]
fn a_connection_opens_carries_data_both_ways_and_closes() {
    let mut pair = starting(1);
    pair.trace = Some(Vec::new());
    pair.pass(ms(100));
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert_eq!(pair.events[CLIENT], [EventKind::Connected]);
    pair.send(CLIENT, b"ping");
    pair.pass(ms(100));
    assert_eq!(pair.received(SERVER), [b"ping"]);
    pair.send(SERVER, b"pong");
    pair.send(SERVER, b"");
    pair.pass(ms(500));
    assert_eq!(pair.received(CLIENT), [b"pong".to_vec(), Vec::new()]);
    pair.close(CLIENT);
    pair.pass(ms(100));
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
    assert_eq!(pair.state(SERVER), Some(State::Closed));
    insta::assert_snapshot!(pair.take_trace());
}

/// An invited client repeats its Request at once. The two Requests may be reordered, and so may the
/// server's answers. A Sync would find the client in REQUEST, and end it.
#[test]
fn reordered_requests_do_not_end_the_handshake() {
    let mut pair = starting(20);
    let held: Rc<RefCell<Vec<Datagram>>> = Rc::default();
    let hold = Rc::clone(&held);
    pair.filter = Some(Box::new(move |_, d| {
        hold.borrow_mut().push(d.clone());
        false
    }));
    pair.pass(ms(3500));
    let requests = held.take();
    assert_eq!(requests.len(), 3);
    for request in requests.into_iter().rev() {
        pair.deliver(SERVER, request);
    }
    let answers = held.take();
    pair.filter = None;
    for answer in answers.into_iter().rev() {
        pair.deliver(CLIENT, answer);
        pair.pass(ms(300));
    }
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert_eq!(pair.state(SERVER), Some(State::Open));
    assert_eq!(pair.stats(SERVER).counters.drops.sequence_invalid, 2);
}

#[test]
fn the_handshake_survives_the_loss_of_each_of_its_packets() {
    for lost in 0..4 {
        let mut pair = starting(2);
        let mut count = 0;
        pair.filter = Some(Box::new(move |_, _| {
            count += 1;
            count - 1 != lost
        }));
        pair.pass(Duration::from_secs(4));
        assert_eq!(pair.state(CLIENT), Some(State::Open), "packet {lost} lost");
        assert_eq!(pair.state(SERVER), Some(State::Open), "packet {lost} lost");
        pair.send(CLIENT, b"hello");
        pair.send(SERVER, b"hello");
        pair.pass(ms(500));
        assert_eq!(pair.received(SERVER), [b"hello"]);
        assert_eq!(pair.received(CLIENT), [b"hello"]);
    }
}

#[test]
fn requests_are_repeated_ever_more_slowly_and_then_given_up_with_a_reset() {
    let mut pair = Pair::starting(traced(Net::new(3)), quiet(), quiet());
    pair.mute(CLIENT);
    pair.pass(Duration::from_secs(200));
    let reason = CloseReason::ConnectTimeout;
    assert_eq!(pair.events[CLIENT], [EventKind::Closed(reason)]);
    assert_eq!(pair.end_reason(CLIENT), Some(reason));
    insta::assert_snapshot!(pair.take_trace(), @r#"
         0.000 C > S Request  SC:test [Change L CCID [2], Change R CCID [2]]   (lost)
      1000.000 C > S Request  SC:test [Change L CCID [2], Change R CCID [2]]   (lost)
      3000.000 C > S Request  SC:test [Change L CCID [2], Change R CCID [2]]   (lost)
      7000.000 C > S Request  SC:test [Change L CCID [2], Change R CCID [2]]   (lost)
     15000.000 C > S Request  SC:test [Change L CCID [2], Change R CCID [2]]   (lost)
     31000.000 C > S Request  SC:test [Change L CCID [2], Change R CCID [2]]   (lost)
     63000.000 C > S Request  SC:test [Change L CCID [2], Change R CCID [2]]   (lost)
    127000.000 C > S Reset    "Aborted" [0, 0, 0]   (lost)
    "#);
    let (_, _, ackno) = numbers(pair.last[CLIENT].as_ref().unwrap());
    assert_eq!(ackno, Some(Seqno::ZERO));
}

fn quiet() -> ConnectionConfig {
    ConnectionConfig { handshake_timestamps: false, ..ConnectionConfig::default() }
}

/// Connects to a server with `listen`, and returns how that ended.
fn refused(listen: Option<ListenConfig>, service: ServiceCode) -> (CloseReason, ResetCode) {
    let mut net = Net::new(4);
    if let Some(listen) = listen {
        net.ends[SERVER].listen(None, PORT, listen).unwrap();
    }
    let now = net.now;
    let options = udccp_proto::ConnectOptions { service, ..connect_options(quiet()) };
    let id = net.ends[CLIENT].connect(now, options).unwrap();
    net.run(ms(100));
    assert_eq!(net.ends[CLIENT].state(id), Some(State::TimeWait));
    let Err(udccp_proto::RecvError::Closed(reason)) = net.ends[CLIENT].recv(net.now, id) else {
        panic!("the connection is not over");
    };
    let d = net.last[SERVER].as_ref().unwrap();
    let code = PacketView::new(&d.header, d.transport_len()).unwrap().reset_code().unwrap();
    (reason, code)
}

#[test]
fn a_refused_request_says_why() {
    let data = [0; 3];
    let (reason, code) = refused(None, service());
    assert_eq!(code, ResetCode::ConnectionRefused);
    assert_eq!(reason, CloseReason::PeerReset { code, data });

    let other: ServiceCode = "SC:else".parse().unwrap();
    let (reason, code) = refused(Some(listen_config(quiet())), other);
    assert_eq!(code, ResetCode::BadServiceCode);
    assert_eq!(reason, CloseReason::PeerReset { code, data });

    let full = ListenConfig { backlog: 0, ..listen_config(quiet()) };
    let (reason, code) = refused(Some(full), service());
    assert_eq!(code, ResetCode::TooBusy);
    assert_eq!(reason, CloseReason::PeerReset { code, data });
}

#[test]
fn the_invalid_service_code_is_refused_on_all_sides() {
    let mut net = Net::new(5);
    let now = net.now;
    let invalid = ServiceCode::INVALID;
    let options = udccp_proto::ConnectOptions { service: invalid, ..connect_options(quiet()) };
    let refused = net.ends[CLIENT].connect(now, options).unwrap_err();
    assert_eq!(refused, ConnectError::InvalidService);
    let listen = ListenConfig { services: vec![invalid], ..listen_config(quiet()) };
    let refused = net.ends[SERVER].listen(None, PORT, listen).unwrap_err();
    assert_eq!(refused, ListenError::InvalidService);
    // A peer that sends it nevertheless gets a Reset, whatever is served.
    let mut pair = starting(5);
    pair.mute(CLIENT);
    pair.drain();
    let request = pair.last[CLIENT].clone().unwrap();
    let kind = HeaderKind::Request { service: invalid };
    pair.deliver(SERVER, forge(&request, kind, Seqno::new(9), &[]));
    let (kind, seq, ackno) = numbers(pair.last[SERVER].as_ref().unwrap());
    assert!(matches!(kind, HeaderKind::Reset { code: ResetCode::BadServiceCode, .. }));
    assert_eq!((seq, ackno), (Seqno::ZERO, Some(Seqno::new(9))));
    assert_eq!(pair.ends[SERVER].endpoint_stats().bad_service, 1);
}

#[test]
fn a_port_serves_several_services_but_each_only_once() {
    let mut net = Net::new(6);
    let server = &mut net.ends[SERVER];
    let with = |names: &[&str]| ListenConfig {
        services: names.iter().map(|n| n.parse().unwrap()).collect(),
        ..listen_config(quiet())
    };
    let first = server.listen(None, PORT, with(&["SC:a", "SC:b"])).unwrap();
    server.listen(None, PORT, with(&["SC:c"])).unwrap();
    server.listen(None, PORT + 1, with(&["SC:a"])).unwrap();
    let taken = server.listen(None, PORT, with(&["SC:d", "SC:b"])).unwrap_err();
    assert_eq!(taken, ListenError::InUse { port: PORT, service: "SC:b".parse().unwrap() });
    assert_eq!(server.listen(None, PORT, with(&[])), Err(ListenError::NoService));
    server.unlisten(Instant::ZERO, first);
    server.listen(None, PORT, with(&["SC:b"])).unwrap();
}

#[test]
fn the_backlog_counts_handshakes_and_connections_not_yet_accepted() {
    let mut net = Net::new(7);
    let init_cookies = udccp_proto::InitCookies::Never;
    let listen = ListenConfig { backlog: 3, init_cookies, ..listen_config(quiet()) };
    let listener = net.ends[SERVER].listen(None, PORT, listen).unwrap();
    let now = net.now;
    let open = |net: &mut Net| net.ends[CLIENT].connect(now, connect_options(quiet())).unwrap();
    let ids: Vec<_> = (0..4).map(|_| open(&mut net)).collect();
    net.run(ms(100));
    let state = |net: &Net, i: usize| net.ends[CLIENT].state(ids[i]).unwrap();
    assert_eq!([0, 1, 2].map(|i| state(&net, i)), [State::Open; 3]);
    assert_eq!(state(&net, 3), State::TimeWait);
    assert!(net.ends[SERVER].accept(listener).is_some());
    let fifth = net.ends[CLIENT].connect(net.now, connect_options(quiet())).unwrap();
    net.run(ms(100));
    assert_eq!(net.ends[CLIENT].state(fifth), Some(State::Open));
    assert_eq!((0..4).filter(|_| net.ends[SERVER].accept(listener).is_some()).count(), 3);
    assert_eq!(net.ends[SERVER].endpoint_stats().too_busy, 1);
}

#[test]
fn only_a_reset_that_acknowledges_a_request_ends_a_connect() {
    let mut pair = starting(8);
    pair.mute(SERVER);
    pair.drain();
    let request = pair.last[CLIENT].clone().unwrap();
    let (_, iss, _) = numbers(&request);
    let like = reversed(&request);
    let (code, data) = (ResetCode::ConnectionRefused, [0; 3]);
    for guess in [Seqno::ZERO, iss.prev(), iss.add(9), iss.add(1 << 40)] {
        let kind = HeaderKind::Reset { ack: guess, code, data };
        pair.deliver(CLIENT, forge(&like, kind, Seqno::new(1), &[]));
        assert_eq!(pair.state(CLIENT), Some(State::Request));
    }
    for (kind, name) in
        [(HeaderKind::Close { ack: iss }, "Close"), (HeaderKind::CloseReq { ack: iss }, "CloseReq")]
    {
        pair.deliver(CLIENT, forge(&like, kind, Seqno::new(1), &[]));
        assert_eq!(pair.state(CLIENT), Some(State::Request), "{name}");
    }
    // Packets that belong to no connection are answered, but only up to the rate limit.
    assert_eq!(pair.ends[CLIENT].endpoint_stats().out_of_the_blue_resets_sent, 4);
    let kind = HeaderKind::Reset { ack: iss, code, data };
    pair.deliver(CLIENT, forge(&like, kind, Seqno::new(1), &[]));
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
}

#[test]
fn a_half_open_connection_is_cleaned_up_by_sync_and_reset() {
    // The example of RFC 4340 section 7.5.6: the client crashed and connects again from the
    // same port; the server still has the old connection.
    let mut pair = Pair::connected(9);
    pair.send(CLIENT, b"x");
    pair.pass(ms(300));
    let old = pair.ends[CLIENT].tuple(pair.id(CLIENT)).unwrap();
    pair.ends[CLIENT] = udccp_proto::Endpoint::new(udccp_proto::EndpointConfig::new([99; 32]));
    pair.trace = Some(Vec::new());
    let options = udccp_proto::ConnectOptions {
        local_port: Some(old.local_port),
        ..connect_options(quiet())
    };
    let now = pair.now;
    let id = pair.ends[CLIENT].connect(now, options).unwrap();
    pair.pass(Duration::from_secs(2));
    let trace = pair.take_trace();
    let kinds: Vec<&str> =
        trace.lines().map(|l| l[11..].split_whitespace().nth(3).unwrap()).collect();
    let cleaned = ["Request", "Sync", "Reset", "Sync", "Reset", "Request", "Response", "Ack"];
    assert_eq!(kinds[..8], cleaned, "{trace}");
    // The server's old connection is gone, so the new one can open.
    assert_eq!(pair.received(SERVER), [b"x"]);
    let (code, data) = (ResetCode::PacketError, [PacketType::Sync.number(), 0, 0]);
    assert_eq!(pair.end_reason(SERVER), Some(CloseReason::PeerReset { code, data }));
    assert_eq!(pair.state(SERVER), Some(State::Closed));
    assert_eq!(pair.ends[CLIENT].state(id), Some(State::Open));
    assert_eq!(pair.ends[SERVER].endpoint_stats().connections, 1);
}

#[test]
fn an_init_cookie_is_echoed_until_the_handshake_is_done() {
    let mut pair = Pair::starting(Net::new(10), quiet(), quiet());
    pair.mute(SERVER);
    pair.drain();
    let request = pair.last[CLIENT].clone().unwrap();
    let (_, iss, _) = numbers(&request);
    let like = reversed(&request);
    let cookies = [OptionRef::InitCookie(b"first"), OptionRef::InitCookie(b"second")];
    let response = HeaderKind::Response { ack: iss, service: service() };
    // The server will send Ack Vectors; without them the client sends no data.
    let vectors = OptionRef::ChangeL { feature: FeatureNumber::SEND_ACK_VECTOR, value: &[1] };
    let options = [cookies[0], cookies[1], vectors];
    pair.deliver(CLIENT, forge(&like, response, Seqno::new(500), &options));
    assert_eq!(pair.state(CLIENT), Some(State::PartOpen));
    let has_cookies = |pair: &Pair| {
        let d = pair.last[CLIENT].as_ref().unwrap();
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        let mut options = view.options().filter_map(Result::ok);
        options.any(|o| o == cookies[0]) && options.any(|o| o == cookies[1])
    };
    assert!(has_cookies(&pair));
    pair.send(CLIENT, b"data");
    pair.drain();
    assert!(has_cookies(&pair));
    let (kind, seq, _) = numbers(pair.last[CLIENT].as_ref().unwrap());
    assert_eq!(kind.packet_type(), PacketType::DataAck);
    pair.deliver(CLIENT, forge(&like, HeaderKind::Ack { ack: seq }, Seqno::new(501), &[]));
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    pair.send(CLIENT, b"data");
    pair.drain();
    assert!(!has_cookies(&pair));
}

#[test]
fn partopen_acks_are_retransmitted_and_handshakes_time_out() {
    let mut pair = starting(11);
    let mut responses = 0;
    pair.filter = Some(Box::new(move |from, _| {
        responses += from;
        from == CLIENT || responses == 1
    }));
    pair.pass(Duration::from_secs(3));
    // 200 ms, 400 ms, 800 ms, 1600 ms apart.
    assert_eq!(pair.state(CLIENT), Some(State::PartOpen));
    assert_eq!(pair.stats(CLIENT).counters.acks_sent, 4);
    pair.pass(Duration::from_secs(480));
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::HandshakeTimeout));

    let mut pair = starting(12);
    pair.mute(SERVER);
    pair.pass(ms(500));
    assert_eq!(pair.ends[SERVER].endpoint_stats().connections, 1);
    pair.pass(Duration::from_secs(500));
    assert_eq!(pair.ends[SERVER].endpoint_stats().connections, 0);
    let (kind, _, _) = numbers(pair.last[SERVER].as_ref().unwrap());
    assert!(matches!(kind, HeaderKind::Reset { code: ResetCode::Aborted, .. }));
}

#[test]
fn an_unreachable_peer_ends_a_handshake_only_and_only_for_a_packet_of_ours() {
    let mut pair = starting(13);
    pair.mute(CLIENT);
    pair.drain();
    let request = pair.last[CLIENT].clone().unwrap();
    let (now, report) = (pair.now, PathReport::Unreachable);
    let (_, iss, _) = numbers(&request);
    let forged = forge(&request, HeaderKind::Data, iss.next(), &[]);
    let (src, dst) = (request.src, request.dst);
    pair.ends[CLIENT].handle_path_report(now, src, dst, &forged.header, report);
    pair.ends[CLIENT].handle_path_report(now, src, dst, &request.header[..12], report);
    assert_eq!(pair.state(CLIENT), Some(State::Request));
    pair.ends[CLIENT].handle_path_report(now, src, dst, &request.header[..16], report);
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::Unreachable));

    let mut pair = Pair::connected(14);
    let last = pair.last[CLIENT].clone().unwrap();
    pair.ends[CLIENT].handle_path_report(now, last.src, last.dst, &last.header, report);
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    let mtu = PathReport::PathMtu(1280);
    pair.ends[CLIENT].handle_path_report(now, last.src, last.dst, &last.header, mtu);
    let id = pair.id(CLIENT);
    assert_eq!(pair.ends[CLIENT].max_message_size(id), Some(1220));
}

#[test]
fn ephemeral_ports_and_sequence_numbers_differ_from_connection_to_connection() {
    let mut net = Net::new(15);
    let now = net.now;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let id = net.ends[CLIENT].connect(now, connect_options(quiet())).unwrap();
        net.drain();
        let (_, iss, _) = numbers(net.last[CLIENT].as_ref().unwrap());
        let port = net.ends[CLIENT].tuple(id).unwrap().local_port;
        assert!(port >= 49_152);
        assert!(seen.insert(u64::from(port)) && seen.insert(iss.value()));
    }
    let id = net.ends[CLIENT].connect(now, connect_options(quiet())).unwrap();
    let local_port = net.ends[CLIENT].tuple(id).map(|t| t.local_port);
    let again = udccp_proto::ConnectOptions { local_port, ..connect_options(quiet()) };
    assert_eq!(net.ends[CLIENT].connect(now, again).unwrap_err(), ConnectError::InUse);
}

#[test]
fn ccids_are_agreed_or_the_connection_fails_with_the_reason() {
    let strange = ConnectionConfig { tx_ccids: vec![200], ..quiet() };
    let mut net = Net::new(16);
    let now = net.now;
    let refused = net.ends[CLIENT].connect(now, connect_options(strange)).unwrap_err();
    assert_eq!(refused, ConnectError::Config(udccp_proto::ConfigError::UnknownCcid(200)));
    let pair = Pair::connected(17);
    assert_eq!(pair.stats(CLIENT).tx_ccid, Some(2));
    assert_eq!(pair.stats(SERVER).rx_ccid, Some(2));
}

#[test]
fn connections_over_udp_carry_no_dccp_checksum_and_need_none() {
    let mut net = Net::new(18);
    let listener = net.ends[SERVER].listen(None, PORT, listen_config(quiet())).unwrap();
    let options = udccp_proto::ConnectOptions {
        local: "[fd00::1]:40000".parse().unwrap(),
        remote: "[fd00::2]:6511".parse().unwrap(),
        ..connect_options(quiet())
    };
    let now = net.now;
    let id = net.ends[CLIENT].connect(now, options).unwrap();
    net.drain();
    let d = net.last[CLIENT].clone().unwrap();
    assert_eq!(PacketView::new(&d.header, d.transport_len()).unwrap().checksum(), 0);
    net.run(ms(100));
    assert!(net.ends[SERVER].accept(listener).is_some());
    assert_eq!(net.ends[CLIENT].max_message_size(id), Some(1412));
}
