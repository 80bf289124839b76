//! The content of Resets: the same Reset in answer to a Sync, and the reason as text.

mod common;
mod spec_support;

use common::packet::{finished, forge, numbers};
use common::pair::PORT;
use common::{CLIENT, Net, Pair, SERVER, connect_options};
use spec_support::{Harness, reset};
use udccp_base::{Datagram, Duration, Instant, Machine, Payload};
use udccp_proto::{CloseReason, ConnectionConfig, EndpointConfig, ListenConfig, State};
use udccp_wire::{HeaderKind, OptionRef, PacketType, PacketView, ResetCode, Seqno};

//= 4340-7.5.4-14 test
#[test]
fn sync_is_answered_with_the_rejected_reset() {
    // The client resets the connection. The server does not accept the first Reset, whose numbers
    // are outside its windows, and sends a Sync.
    let mut pair = Pair::connected_with(Net::new(7), ConnectionConfig::default());
    pair.send(SERVER, b"hello");
    pair.pass(Duration::from_secs(1));
    let like = pair.last[SERVER].clone().unwrap();
    pair.mute(CLIENT);
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.ends[CLIENT].abort(now, id);
    pair.drain();
    let (_, seq, _) = numbers(&like);
    for released in [false, true] {
        if released {
            let now = pair.now;
            pair.ends[CLIENT].release(now, id);
            pair.drain();
        }
        let sync = forge(&like, HeaderKind::Sync { ack: Seqno::new(77) }, seq.add(9), &[]);
        pair.net.deliver(CLIENT, sync);
        let answer = pair.last[CLIENT].clone().unwrap();
        let view = PacketView::new(&answer.header, answer.transport_len()).unwrap();
        assert_eq!(view.reset_code(), Some(ResetCode::Aborted));
        assert_eq!(numbers(&answer).1, Seqno::new(78), "a number that the peer believes");
    }
    // A further packet belongs to no connection.
    let data = forge(&like, HeaderKind::Data, seq.add(9), &[]);
    pair.net.deliver(CLIENT, data);
    let answer = pair.last[CLIENT].clone().unwrap();
    let view = PacketView::new(&answer.header, answer.transport_len()).unwrap();
    assert_eq!(view.reset_code(), Some(ResetCode::NoConnection));
}

#[test]
fn refusals_are_repeated_after_a_sync() {
    let mut net = Net::new(8);
    let id = net.ends[CLIENT].connect(net.now, connect_options(ConnectionConfig::default()));
    id.unwrap();
    net.drain();
    let request = net.last[CLIENT].clone().unwrap();
    let now = net.now;
    net.ends[SERVER].handle_datagram(now, request.clone());
    while net.ends[SERVER].poll_transmit(now).is_some() {}
    let sync = forge(&request, HeaderKind::Sync { ack: Seqno::new(5) }, Seqno::new(9), &[]);
    net.deliver(SERVER, sync);
    let answer = net.last[SERVER].clone().unwrap();
    let view = PacketView::new(&answer.header, answer.transport_len()).unwrap();
    assert_eq!(view.reset_code(), Some(ResetCode::ConnectionRefused));
}

#[test]
fn reset_text_is_sent_and_kept() {
    let mut harness = Harness::open(SERVER);
    let unknown = OptionRef::Unknown { kind: 99, data: &[1, 2, 3] };
    let packets = harness.deliver(PacketType::Ack, &[OptionRef::Mandatory, unknown], &[]);
    assert_eq!(reset(&packets), Some((ResetCode::MandatoryError, [99, 1, 2])));
    let text = String::from_utf8(packets[0].payload.to_vec()).unwrap();
    assert!(text.contains("Mandatory"), "{text}");

    let mut harness = Harness::open(CLIENT);
    let header = harness.header(PacketType::Reset);
    harness.deliver_header(&header, &[], "müde".as_bytes());
    let id = harness.pair.id(CLIENT);
    assert_eq!(harness.pair.ends[CLIENT].reset_text(id), Some("müde"));
    assert_eq!(harness.state(), Some(State::TimeWait));
}

//= 4340-7.3-1 test
#[test]
fn nothing_is_sent_during_the_quiet_time() {
    let mut net = Net::new(9);
    let until = net.now + Duration::from_secs(120);
    let config = EndpointConfig { quiet_until: Some(until), ..EndpointConfig::new([7; 32]) };
    net.ends[CLIENT] = udccp_proto::Endpoint::new(config);
    net.ends[SERVER]
        .listen(None, PORT, common::listen_config(ConnectionConfig::default()))
        .unwrap();
    let options = connect_options(ConnectionConfig::default());
    let id = net.ends[CLIENT].connect(net.now, options).unwrap();
    net.run(Duration::from_secs(119));
    assert_eq!(net.sent, 0);
    assert_eq!(net.ends[CLIENT].poll_timeout(), Some(until));
    net.run(Duration::from_secs(2));
    assert_eq!(net.ends[CLIENT].state(id), Some(State::Open));
    assert_eq!(net.ends[CLIENT].counters(id).unwrap().requests_retransmitted, 0);
}

/// A driver with a timeout in the past would wake up again and again.
#[test]
fn idle_endpoint_has_no_timer_after_the_quiet_time() {
    let until = Instant::ZERO + Duration::from_secs(120);
    let config = EndpointConfig { quiet_until: Some(until), ..EndpointConfig::new([7; 32]) };
    let mut endpoint = udccp_proto::Endpoint::new(config);
    endpoint.listen(None, PORT, common::listen_config(ConnectionConfig::default())).unwrap();
    endpoint.handle_timeout(until - Duration::from_nanos(1));
    assert_eq!(endpoint.poll_timeout(), Some(until));
    endpoint.handle_timeout(until);
    assert_eq!(endpoint.poll_timeout(), None);
}

#[test]
fn reset_text_is_empty_without_a_reset() {
    let mut pair = Pair::connected(3);
    pair.close(CLIENT);
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.end_reason(SERVER), Some(CloseReason::PeerClose));
    let id = pair.id(SERVER);
    assert_eq!(pair.ends[SERVER].reset_text(id), None);
}

/// A server without listeners, and a client's Request.
fn refusing(seed: u64) -> (Net, Datagram) {
    let mut net = Net::new(seed);
    net.ends[CLIENT].connect(net.now, connect_options(ConnectionConfig::default())).unwrap();
    net.drain();
    let request = net.last[CLIENT].clone().unwrap();
    (net, request)
}

/// The same packet from another host, number `n`.
fn from_host(n: u32, d: &Datagram) -> Datagram {
    let src = std::net::Ipv4Addr::from(0x0a01_0000 + n);
    let header = PacketView::new(&d.header, d.transport_len()).unwrap().header();
    finished(&Datagram { src: (src, 0).into(), ..d.clone() }, &header, &[], Payload::EMPTY)
}

/// The Reset that the server sends at once in answer to this packet, if it does.
fn reset_of(net: &mut Net, d: Datagram) -> Option<ResetCode> {
    let now = net.now;
    net.ends[SERVER].handle_datagram(now, d);
    let answer = net.ends[SERVER].poll_transmit(now)?;
    PacketView::new(&answer.header, answer.transport_len()).unwrap().reset_code()
}

/// Packets of strangers, and other packets of the same peer, do not use up the answers to a refused
/// client.
#[test]
fn refusals_are_kept_while_others_get_no_connection() {
    let (mut net, request) = refusing(10);
    assert_eq!(reset_of(&mut net, request.clone()), Some(ResetCode::ConnectionRefused));
    let stray = forge(&request, HeaderKind::Data, Seqno::new(9), &[]);
    let sync = forge(&request, HeaderKind::Sync { ack: Seqno::new(5) }, Seqno::new(9), &[]);
    let strangers = (0..70).map(|n| from_host(n, &stray));
    for d in strangers.chain([stray.clone()]) {
        assert_eq!(reset_of(&mut net, d), Some(ResetCode::NoConnection));
    }
    assert_eq!(reset_of(&mut net, sync), Some(ResetCode::ConnectionRefused));
}

#[test]
fn of_two_refusals_the_later_is_repeated_and_sixty_four_are_remembered() {
    let (mut net, request) = refusing(11);
    let sync = forge(&request, HeaderKind::Sync { ack: Seqno::new(5) }, Seqno::new(9), &[]);
    assert_eq!(reset_of(&mut net, request.clone()), Some(ResetCode::ConnectionRefused));
    let service = "SC:else".parse().unwrap();
    let listen = ListenConfig::new(service);
    net.ends[SERVER].listen(None, PORT, listen).unwrap();
    assert_eq!(reset_of(&mut net, request.clone()), Some(ResetCode::BadServiceCode));
    assert_eq!(reset_of(&mut net, sync.clone()), Some(ResetCode::BadServiceCode));
    // Forged Requests do not make memory grow.
    for n in 0..63 {
        let forged = from_host(n, &request);
        assert_eq!(reset_of(&mut net, forged), Some(ResetCode::BadServiceCode));
    }
    assert_eq!(reset_of(&mut net, sync.clone()), Some(ResetCode::BadServiceCode));
    assert_eq!(reset_of(&mut net, from_host(0, &sync)), Some(ResetCode::BadServiceCode));
    for n in 63..65 {
        reset_of(&mut net, from_host(n, &request));
    }
    net.now += Duration::from_secs(1);
    assert_eq!(reset_of(&mut net, from_host(64, &sync)), Some(ResetCode::BadServiceCode));
    assert_eq!(reset_of(&mut net, from_host(1, &sync)), Some(ResetCode::NoConnection));
}

/// The Reset of a client that gives up in REQUEST has no valid numbers, so the server sends a Sync.
/// If the rate limit for strangers blocked the client's answer, the server would wait for minutes.
#[test]
fn abandoned_requests_are_cleared_despite_stray_resets() {
    for after in [5, 15] {
        let mut net = Net::new(14);
        let client = EndpointConfig::new([3; 32]);
        let client = EndpointConfig { out_of_the_blue_resets_per_sec: 0, ..client };
        net.ends[CLIENT] = udccp_proto::Endpoint::new(client);
        let config = common::listen_config(ConnectionConfig::default());
        net.ends[SERVER].listen(None, PORT, config).unwrap();
        let options = connect_options(ConnectionConfig::default());
        let connect = |_| net.ends[CLIENT].connect(net.now, options.clone()).unwrap();
        let ids: Vec<_> = (0..40).map(connect).collect();
        net.run(Duration::from_millis(after));
        for id in ids {
            net.ends[CLIENT].abort(net.now, id);
        }
        net.run(Duration::from_secs(1));
        let stats = net.ends[SERVER].endpoint_stats();
        assert_eq!(stats.cookies_sent, 0, "all were kept");
        assert_eq!(stats.connections, 0, "given up after {after} ms");
    }
}

/// A peer that was not notified of the end gets no more than its share of answers.
#[test]
fn ended_connection_answers_twice_beyond_the_rate_limit() {
    let mut net = Net::new(15);
    let client = EndpointConfig::new([3; 32]);
    let client = EndpointConfig { out_of_the_blue_resets_per_sec: 0, ..client };
    net.ends[CLIENT] = udccp_proto::Endpoint::new(client);
    net.ends[SERVER]
        .listen(None, PORT, common::listen_config(ConnectionConfig::default()))
        .unwrap();
    let options = connect_options(ConnectionConfig::default());
    let id = net.ends[CLIENT].connect(net.now, options).unwrap();
    net.run(Duration::from_millis(15));
    let response = net.last[SERVER].clone().unwrap();
    net.mute(SERVER);
    net.ends[CLIENT].abort(net.now, id);
    net.drain();
    let answers = |net: &mut Net, d: &Datagram| {
        net.ends[CLIENT].handle_datagram(net.now, d.clone());
        std::iter::from_fn(|| net.ends[CLIENT].poll_transmit(net.now)).count()
    };
    let got: Vec<_> = (0..4).map(|_| answers(&mut net, &response)).collect();
    assert_eq!(got, [1, 1, 0, 0]);
    let other = Datagram { src: "10.0.0.9:0".parse().unwrap(), ..response };
    assert_eq!(answers(&mut net, &other), 0, "a stranger");
}
