//! RFC 5596: a server behind a middlebox invites its client.

mod common;
mod spec_support;

use std::cell::RefCell;
use std::rc::Rc;

use common::packet::describe;
use common::pair::PORT;
use common::{CLIENT, Net, Pair, SERVER, connect_options, listen_config, service};
use spec_support::{Harness, parse, plain, reset, types};
use udccp_base::{Datagram, Duration, Machine};
use udccp_proto::{ConnectOptions, InviteOptions, ListenError, ListenerState, PathReport, State};
use udccp_wire::PacketType::{Ack, Data, Listen, Request, Response};
use udccp_wire::{Header, HeaderKind, OptionRef, ResetCode, Seqno, ServiceCode};

const CLIENT_PORT: u16 = 50_000;

fn invite_options() -> InviteOptions {
    InviteOptions {
        local: "10.0.0.2:0".parse().unwrap(),
        local_port: PORT,
        remote: "10.0.0.1:0".parse().unwrap(),
        remote_port: CLIENT_PORT,
        service: service(),
        sends_listen: true,
        config: plain().into(),
    }
}

fn from_known_port() -> ConnectOptions {
    ConnectOptions { local_port: Some(CLIENT_PORT), ..connect_options(plain()) }
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A server that invites, and a client that has not done anything yet.
fn inviting(seed: u64) -> Pair {
    let mut net = Net::new(seed);
    net.trace = Some(Vec::new());
    let now = net.now;
    let listener = net.ends[SERVER].invite(now, invite_options()).unwrap();
    Pair { net, listener, ids: [None, None], events: Default::default() }
}

/// The middleboxes NA and NB of RFC 5596 section 2.3. From outside they pass only packets of a
/// connection that has been used from inside.
fn with_firewalls(pair: &mut Pair) {
    let opened = Rc::new(RefCell::new([false; 2]));
    pair.filter = Some(Box::new(move |from, _| {
        let mut opened = opened.borrow_mut();
        opened[from] = true;
        opened[1 - from]
    }));
}

fn connect(pair: &mut Pair) {
    let now = pair.now;
    pair.ids[CLIENT] = Some(pair.ends[CLIENT].connect(now, from_known_port()).unwrap());
}

fn sent_packets(pair: &mut Pair) -> Vec<String> {
    let trace = pair.take_trace();
    trace
        .lines()
        .map(|l| l[11..].replace("[", "").split(" SC").next().unwrap().to_owned())
        .collect()
}

//= 5596-2.2.1-1 test
//= 5596-2.2.1-2 test
//= 5596-2.2.1-5 test
//= 5596-2.2.1-8 test
//= 5596-2.2.1-9 test
//= 5596-2.2.1-10 test
//= 5596-2.2.1-11 test
//= 5596-4-1 test
#[test]
fn a_listen_packet_is_as_the_rfc_draws_it() {
    let mut pair = inviting(1);
    pair.drain();
    let sent = pair.last[SERVER].clone().unwrap();
    assert_eq!(&sent.header[4..6], &[5, 0], "Data Offset, then CCVal and CsCov");
    let header = parse(&sent).header;
    let kind = HeaderKind::Listen { service: service() };
    let (src_port, dst_port) = (PORT, CLIENT_PORT);
    let seq = Seqno::ZERO;
    assert_eq!(header, Header { src_port, dst_port, ccval: 0, cscov: 0, x: true, seq, kind });
    assert_eq!((sent.src, sent.dst), (invite_options().local, invite_options().remote));
}

//= 5596-2.2.2-1 test
//= 5596-2.2.2-2 test
//= 5596-2.2.2-3 test
#[test]
fn three_listens_leave_200_ms_apart_and_then_the_server_waits_in_silence() {
    let mut pair = inviting(2);
    pair.mute(SERVER);
    let listener = pair.listener;
    let mut seen = Vec::new();
    for n in 0..40 {
        pair.run(millis(20));
        let sent = pair.ends[SERVER].endpoint_stats().listens_sent;
        let state = pair.ends[SERVER].listener_state(listener).unwrap();
        if seen.last().is_none_or(|&(_, s, t)| (s, t) != (sent, state)) {
            seen.push((n * 20, sent, state));
        }
    }
    use ListenerState::{Invited, Listen1};
    assert_eq!(seen, [(0, 1, Invited), (180, 2, Invited), (380, 3, Invited), (580, 3, Listen1)]);
    pair.filter = None;
    connect(&mut pair);
    pair.pass(millis(100));
    assert_eq!(pair.state(SERVER), Some(State::Open));
    let gone = pair.ends[SERVER].listener_state(listener);
    assert_eq!(gone, None, "an invitation is for one connection");
}

//= 5596-2.2.2-1 test
/// Figure 4: the server starts first.
#[test]
fn a_server_that_was_first_is_reached_at_once() {
    let mut pair = inviting(3);
    with_firewalls(&mut pair);
    pair.run(millis(50));
    connect(&mut pair);
    pair.pass(millis(100));
    let packets = sent_packets(&mut pair);
    assert_eq!(
        packets[..3],
        ["S > C Listen  ", "C > S Request ", "S > C Response"].map(String::from)
    );
    assert_eq!((pair.state(CLIENT), pair.state(SERVER)), (Some(State::Open), Some(State::Open)));
}

//= 5596-2.2.3.1-2 test
//= 5596-2.2.3.1-3 test
/// Figure 6: the client starts first, and the first Listen is lost. The second one makes the client
/// repeat the Request at once instead of a second later.
#[test]
fn a_client_that_was_first_asks_again_when_it_is_invited() {
    let mut pair = Pair { net: Net::new(4), ..inviting(4) };
    with_firewalls(&mut pair);
    connect(&mut pair);
    pair.run(millis(50));
    let now = pair.now;
    pair.listener = pair.ends[SERVER].invite(now, invite_options()).unwrap();
    pair.net.trace = Some(Vec::new());
    pair.pass(millis(100));
    assert_eq!((pair.state(CLIENT), pair.state(SERVER)), (Some(State::Open), Some(State::Open)));
    let packets = sent_packets(&mut pair);
    assert_eq!(
        packets[..3],
        ["S > C Listen  ", "C > S Request ", "S > C Response"].map(String::from)
    );
    // The timer backed off as after a timeout: 2 s from the second Request.
    let (mut harness, _) = Harness::requesting(plain());
    harness.deliver(Listen, &[], &[]);
    assert_eq!(types(&harness.wait(millis(1900))), []);
    assert_eq!(types(&harness.wait(millis(200))), [Request]);
}

/// Figure 7: Listen and Request cross.
#[test]
fn crossing_listen_and_request_still_connect() {
    let mut pair = inviting(5);
    connect(&mut pair);
    pair.pass(millis(200));
    assert_eq!((pair.state(CLIENT), pair.state(SERVER)), (Some(State::Open), Some(State::Open)));
    let requests = sent_packets(&mut pair).iter().filter(|l| l.contains("Request")).count();
    assert_eq!(requests, 2, "one of them unnecessary");
    assert_eq!(pair.ends[SERVER].endpoint_stats().listens_sent, 1, "none after the Request");
}

/// Both start at the same time, behind firewalls that at first let nothing pass from outside.
#[test]
fn behind_two_firewalls_a_connection_opens_at_once_whoever_is_first() {
    for lead_ms in [-150_i64, -20, -10, 0, 10, 20, 150] {
        let mut net = Net::new(6);
        net.trace = Some(Vec::new());
        let none = listen_config(plain());
        let listener = net.ends[CLIENT].listen(None, 9, none).unwrap();
        let mut pair = Pair { net, listener, ids: [None, None], events: Default::default() };
        with_firewalls(&mut pair);
        if lead_ms > 0 {
            connect(&mut pair);
            pair.run(millis(lead_ms.unsigned_abs()));
        }
        let now = pair.now;
        pair.listener = pair.ends[SERVER].invite(now, invite_options()).unwrap();
        if lead_ms <= 0 {
            pair.run(millis(lead_ms.unsigned_abs()));
            connect(&mut pair);
        }
        let start = pair.now;
        while pair.state(SERVER) != Some(State::Open) && pair.now - start < millis(1000) {
            pair.pass(millis(5));
        }
        let took = pair.now - start;
        assert!(took <= millis(260), "{lead_ms} ms: {took}");
    }
}

//= 5596-2.2.1-3 test
//= 5596-2.2.1-6 test
//= 5596-2.2.1-7 test
//= 5596-2.2.3.1-4 test
#[test]
fn client_ignores_listen_content_and_sends_one_request() {
    let (mut harness, _) = Harness::requesting(plain());
    let kind = HeaderKind::Listen { service: service() };
    let header = harness.header_at(Seqno::new(0xffff_ffff_0000), kind);
    let mandatory = [OptionRef::Mandatory, OptionRef::Unknown { kind: 99, data: &[1, 2] }];
    let first = harness.deliver_header(&header, &mandatory, b"ignored");
    assert_eq!(types(&first), [Request]);
    assert_eq!(harness.state(), Some(State::Request));
    for n in 0..3 {
        let again = harness.deliver_at(Seqno::new(n), kind);
        assert_eq!(types(&again), [], "one Request for all Listens");
    }
    let response = harness.deliver(Response, &[], &[]);
    assert_eq!(types(&response), [Ack]);
    assert_eq!(harness.read(), [b""; 0], "its data is no message");
}

//= 5596-2.2.3-1 test
//= 5596-2.2.3.1-1 test
//= 5596-2.2.2-5 test
#[test]
fn a_listen_is_ignored_in_every_other_state() {
    let kind = HeaderKind::Listen { service: service() };
    for end in [CLIENT, SERVER] {
        let mut harness = Harness::open(end);
        let before = harness.stats();
        assert_eq!(types(&harness.deliver_at(Seqno::ZERO, kind)), []);
        assert_eq!(types(&harness.deliver_at(harness.seq.next(), kind)), []);
        assert_eq!(harness.stats(), before);
        assert_eq!(types(&harness.wait(millis(500))), []);
    }
    // PARTOPEN, LISTEN, INVITED, and no socket at all.
    let (mut partopen, _) = Harness::requesting(plain());
    partopen.deliver(Response, &[], &[]);
    assert_eq!(types(&partopen.deliver_at(Seqno::ZERO, kind)), []);
    let mut listening = Harness::listening(plain());
    assert_eq!(types(&listening.deliver_at(Seqno::ZERO, kind)), []);
    let listener = listening.pair.listener;
    let now = listening.pair.now;
    listening.pair.ends[SERVER].unlisten(now, listener);
    assert_eq!(types(&listening.deliver_at(Seqno::ZERO, kind)), []);
}

/// The answers in INVITED and LISTEN1 in the pseudocode of figure 3.
#[test]
fn inviting_listener_refuses_other_clients() {
    let mut harness = Harness::listening(plain());
    let (now, listener) = (harness.pair.now, harness.pair.listener);
    let like = harness.datagram(&harness.header(Request), &[], &[]);
    harness.pair.ends[SERVER].unlisten(now, listener);
    let options = InviteOptions { remote_port: parse(&like).header.src_port, ..invite_options() };
    harness.pair.ends[SERVER].invite(now, options.clone()).unwrap();
    harness.drain();
    for ty in [Data, Ack, Response] {
        let code = reset(&harness.deliver(ty, &[], &[])).map(|r| r.0);
        assert_eq!(code, Some(ResetCode::NoConnection), "{ty}");
    }
    assert_eq!(types(&harness.deliver(Listen, &[], &[])), []);
    // Another client, then the right client with another service.
    let stranger = Datagram { src: "10.0.0.3:0".parse().unwrap(), ..like };
    let sent = harness.deliver_datagram(common::packet::finished(
        &stranger,
        &harness.header(Request),
        &[],
        udccp_base::Payload::EMPTY,
    ));
    assert_eq!(reset(&sent).map(|r| r.0), Some(ResetCode::ConnectionRefused));
    let wrong = HeaderKind::Request { service: "SC:else".parse().unwrap() };
    let sent = harness.deliver_at(harness.seq.next(), wrong);
    assert_eq!(reset(&sent).map(|r| r.0), Some(ResetCode::BadServiceCode));
    assert_eq!(types(&harness.deliver(Request, &[], &[])), [Response]);
}

//= 5596-2.2.2-4 test
#[test]
fn icmp_errors_about_a_listen_change_nothing() {
    let mut pair = inviting(7);
    pair.drain();
    let sent = pair.last[SERVER].clone().unwrap();
    let (now, listener) = (pair.now, pair.listener);
    let report = PathReport::Unreachable;
    pair.ends[SERVER].handle_path_report(now, sent.src, sent.dst, &sent.header, report);
    assert_eq!(pair.ends[SERVER].listener_state(listener), Some(ListenerState::Invited));
    connect(&mut pair);
    pair.pass(millis(100));
    assert_eq!(pair.state(SERVER), Some(State::Open));
}

//= 5596-4-2 test
#[test]
fn invitation_can_wait_silently() {
    let mut net = Net::new(8);
    let options = InviteOptions { sends_listen: false, ..invite_options() };
    let now = net.now;
    let listener = net.ends[SERVER].invite(now, options).unwrap();
    assert_eq!(net.ends[SERVER].listener_state(listener), Some(ListenerState::Listen1));
    net.run(millis(1000));
    assert_eq!(net.sent, 0);
    let mut pair = Pair { net, listener, ids: [None, None], events: Default::default() };
    connect(&mut pair);
    pair.pass(millis(100));
    assert_eq!(pair.state(SERVER), Some(State::Open));
}

#[test]
fn an_invitation_stands_beside_a_listener_for_all_and_goes_first() {
    let mut pair = inviting(9);
    let now = pair.now;
    let all = pair.ends[SERVER].listen(None, PORT, listen_config(plain())).unwrap();
    let again = pair.ends[SERVER].invite(now, invite_options());
    assert_eq!(again, Err(ListenError::InUse { port: PORT, service: service() }));
    connect(&mut pair);
    let other = ConnectOptions { local_port: Some(CLIENT_PORT + 1), ..from_known_port() };
    let now = pair.now;
    pair.ends[CLIENT].connect(now, other).unwrap();
    pair.run(millis(100));
    let invited = pair.listener;
    let ports = [invited, all].map(|listener| {
        let id = pair.ends[SERVER].accept(listener).unwrap();
        pair.ends[SERVER].tuple(id).unwrap().remote_port
    });
    assert_eq!(ports, [CLIENT_PORT, CLIENT_PORT + 1]);
    // The ordinary listener still serves the invited client for another service.
    assert_eq!(pair.ends[SERVER].accept(invited), None);
}

#[test]
fn invalid_invitations_are_rejected() {
    let mut net = Net::new(10);
    let end = &mut net.ends;
    let now = udccp_base::Instant::ZERO;
    let bad = |remote: &str| InviteOptions { remote: remote.parse().unwrap(), ..invite_options() };
    for remote in ["0.0.0.0:0", "224.0.0.1:0", "[::1]:0"] {
        assert_eq!(end[0].invite(now, bad(remote)), Err(ListenError::BadAddress));
    }
    let invalid = InviteOptions { service: ServiceCode::INVALID, ..invite_options() };
    assert_eq!(end[0].invite(now, invalid), Err(ListenError::InvalidService));
    assert!(end[0].poll_timeout().is_none());
    // Over UDP, a Listen goes to the client's UDP port, without a DCCP checksum.
    let (local, remote) = ("10.0.0.2:6511".parse().unwrap(), "10.0.0.1:7000".parse().unwrap());
    let udp = InviteOptions { local, remote, ..invite_options() };
    let id = end[0].invite(now, udp).unwrap();
    let sent = end[0].poll_transmit(now).unwrap();
    assert_eq!((sent.src, sent.dst, &sent.header[6..8]), (local, remote, &[0, 0][..]));
    assert!(describe(&sent).starts_with("Listen"));
    end[0].unlisten(now, id);
    assert!(end[0].poll_timeout().is_none());
}
