//! RFC 4340 section 8.1: opening a connection, from either side.

mod common;
mod spec_support;

use common::{CLIENT, SERVER, connect_options, service};
use spec_support::{Harness, about, option, plain, reset, types};
use udccp_base::{Duration, Machine};
use udccp_proto::{
    CloseReason, ConnectError, ConnectOptions, EndpointConfig, ListenConfig, ListenError, State,
};
use udccp_wire::PacketType::{Ack, Close, Data, DataAck, Request, Reset, Response, Sync};
use udccp_wire::{
    FeatureNumber, HeaderKind, OptionRef, OptionValue, Packet, ResetCode, Seqno, ServiceCode,
    option_kind,
};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn service_of(packet: &Packet) -> Option<ServiceCode> {
    match packet.header.kind {
        HeaderKind::Request { service } | HeaderKind::Response { service, .. } => Some(service),
        _ => None,
    }
}

//= 4340-8.1.1-1 test
//= 4340-8.1.1-2 test
//= 4340-8.1.1-3 test
//= 4340-8.1.1-4 test
//= 4340-8.1.1-5 test
#[test]
fn requests_are_repeated_with_back_off_and_then_given_up() {
    let (mut harness, first) = Harness::requesting(plain());
    let start = harness.pair.now;
    let mut times = Vec::new();
    let mut sent = vec![first];
    for _ in 0..200 {
        let new = harness.wait(secs(1));
        times.extend(
            new.iter().map(|_| harness.pair.now.saturating_since(start).as_millis() / 1000),
        );
        sent.extend(new);
    }
    assert_eq!(times, [1, 3, 7, 15, 31, 63, 127]);
    let (last, requests) = sent.split_last().unwrap();
    for pair in requests.windows(2) {
        assert_eq!(pair[1].header.seq, pair[0].header.seq.next());
        assert_eq!(service_of(&pair[1]), service_of(&pair[0]));
        assert_eq!(pair[1].payload, pair[0].payload);
    }
    assert_eq!(reset(&sent), Some((ResetCode::Aborted, [0; 3])));
    assert_eq!(last.header.kind.ack(), Some(Seqno::ZERO));
    assert_eq!(harness.pair.end_reason(CLIENT), Some(CloseReason::ConnectTimeout));
}

//= 4340-8.1.2-1 test
//= 4340-8.1.2-2 test
//= 4340-8.1.2-3 test
#[test]
fn every_socket_has_a_service_code_and_a_listener_may_have_several() {
    let (harness, request) = Harness::requesting(plain());
    assert_eq!(service_of(&request), Some(service()));
    assert_eq!(harness.pair.ends[CLIENT].service(harness.pair.id(CLIENT)), Some(service()));
    let mut end = udccp_proto::Endpoint::new(EndpointConfig::new([1; 32]));
    let none = ListenConfig { services: vec![], ..ListenConfig::new(service()) };
    assert_eq!(end.listen(None, 9, none), Err(ListenError::NoService));
    let two = vec![service(), "SC:more".parse().unwrap()];
    let several = ListenConfig { services: two, ..ListenConfig::new(service()) };
    assert!(end.listen(None, 9, several).is_ok());
    let invalid = ConnectOptions { service: ServiceCode::INVALID, ..connect_options(plain()) };
    let now = udccp_base::Instant::from_nanos(1);
    assert_eq!(end.connect(now, invalid).unwrap_err(), ConnectError::InvalidService);
}

//= 4340-8.1.2-4 test
//= 4340-8.1.2-8 test
//= 4340-8.1.3-1 test
#[test]
fn a_service_that_is_not_offered_is_refused() {
    for service in ["SC:else".parse().unwrap(), ServiceCode::INVALID, ServiceCode(0)] {
        let mut harness = Harness::listening(plain());
        let kind = HeaderKind::Request { service };
        let sent = harness.deliver_at(harness.seq.next(), kind);
        assert_eq!(reset(&sent).map(|r| r.0), Some(ResetCode::BadServiceCode), "{service}");
    }
}

//= 4340-8.1.3-2 test
#[test]
fn resets_that_refuse_are_limited_in_rate() {
    let config =
        EndpointConfig { out_of_the_blue_resets_per_sec: 10, ..EndpointConfig::new([1; 32]) };
    let mut harness = Harness::listening(plain());
    harness.pair.ends[SERVER] = udccp_proto::Endpoint::new(config);
    let mut resets = 0;
    for n in 0..1000 {
        resets += harness.deliver_at(Seqno::new(n), harness.kind(Request)).len();
        harness.wait(Duration::from_millis(1));
    }
    assert!((10..=20).contains(&resets), "{resets} in a second");
    let stats = harness.pair.ends[SERVER].endpoint_stats();
    assert_eq!(stats.out_of_the_blue_resets_limited, 1000 - resets as u64);
}

//= 4340-8.1.3-3 test
//= 4340-8.1.3-4 test
//= 4340-8.1.3-5 test
//= 4340-5.3-2 test
#[test]
fn each_request_gets_one_response_and_nothing_is_repeated() {
    let mut harness = Harness::listening(plain());
    let first = harness.deliver(Request, &[], &[]);
    assert_eq!(types(&first), [Response]);
    assert_eq!(types(&harness.wait(secs(60))), []);
    let second = harness.deliver(Request, &[], &[]);
    assert_eq!(types(&second), [Response]);
    assert_eq!(second[0].header.seq, first[0].header.seq.next());
    assert_eq!(second[0].header.kind.ack(), Some(harness.seq));
    assert_eq!((&first[0].payload, &second[0].payload), (&vec![], &vec![]));
    assert_eq!(service_of(&second[0]), Some(service()));
    // An exact duplicate is not a second Request: it is not newer than the first.
    let again = harness.deliver_at(harness.seq, harness.kind(Request));
    assert_eq!(types(&again), [Response], "valid by its number, and answered all the same");
}

//= 4340-8.1.3-7 test
//= 4340-8.1.3-8 test
#[test]
fn a_response_to_repeated_data_says_that_it_was_dropped() {
    let mut harness = Harness::listening(plain());
    let first = harness.deliver(Request, &[], b"data");
    assert_eq!(option(&first[0], option_kind::DATA_DROPPED), None);
    let second = harness.deliver(Request, &[], b"data");
    // The repeated Request is in a drop block with code 0. The accepted first one is in the implied
    // normal block.
    assert_eq!(option(&second[0], option_kind::DATA_DROPPED), Some(&[0x80][..]));
    harness.deliver(Ack, &[], &[]);
    assert_eq!(harness.read(), [b"data"]);
}

//= 4340-8.1.3-9 test
#[test]
fn a_server_leaves_respond_after_eight_minutes() {
    let mut harness = Harness::listening(plain());
    // With options, as every client sends them. After a bare Request, Response plus Reset would
    // exceed the limit for an unproven address.
    let (ccid, value) = (FeatureNumber::CCID, &[2][..]);
    let change_l = OptionRef::ChangeL { feature: ccid, value };
    let change_r = OptionRef::ChangeR { feature: ccid, value };
    harness.deliver(Request, &[change_l, change_r], &[]);
    assert_eq!(types(&harness.wait(secs(479))), []);
    assert_eq!(harness.pair.ends[SERVER].endpoint_stats().connections, 1);
    assert_eq!(reset(&harness.wait(secs(2))), Some((ResetCode::Aborted, [0; 3])));
    assert_eq!(harness.pair.ends[SERVER].endpoint_stats().connections, 0);
}

//= 4340-8.1.5-3 test
//= 4340-8.1.5-4 test
#[test]
fn a_client_in_partopen_tries_again_and_gives_up_after_eight_minutes() {
    let (mut harness, _) = Harness::requesting(plain());
    harness.deliver(Response, &[], &[]);
    let mut times = Vec::new();
    for n in 1..40 {
        if types(&harness.wait(Duration::from_millis(200))).contains(&Ack) {
            times.push(n * 200);
        }
    }
    // 200 ms after the last packet, then doubling. Features that the Response left open cause
    // further Acks, which restart the timer.
    assert_eq!(times[..2], [200, 600]);
    assert!((5..10).contains(&times.len()), "{times:?}");
    assert_eq!(harness.state(), Some(State::PartOpen));
    let sent = harness.wait(secs(480));
    assert_eq!(reset(&sent), Some((ResetCode::Aborted, [0; 3])));
    assert_eq!(harness.pair.end_reason(CLIENT), Some(CloseReason::HandshakeTimeout));
}

//= 4340-7.5.4-7 test
//= 4340-8.5-1 test
#[test]
fn a_client_in_request_believes_only_what_acknowledges_it() {
    let (mut harness, _) = Harness::requesting(plain());
    for ty in [Sync, Data, DataAck, Close] {
        let sent = harness.deliver(ty, &[], &[]);
        let code = ResetCode::PacketError;
        assert_eq!(reset(&sent), Some((code, [ty.number(), 0, 0])), "{ty}");
        assert_eq!(harness.state(), Some(State::Request));
    }
    let stranger = HeaderKind::Response { ack: harness.gss.add(100), service: service() };
    harness.deliver_at(Seqno::new(5), stranger);
    assert_eq!(harness.state(), Some(State::Request));
    harness.deliver(Response, &[], &[]);
    assert_eq!(harness.state(), Some(State::PartOpen));
}

//= 4340-8.5-1 test
#[test]
fn a_reset_to_a_request_ends_the_attempt() {
    let (mut harness, _) = Harness::requesting(plain());
    harness.deliver(Reset, &[], &[]);
    assert_eq!(harness.state(), Some(State::TimeWait));
    let now = harness.pair.now;
    assert!(harness.pair.ends[CLIENT].poll_transmit(now).is_none());
}

//= 4341-4-1 test
//= 4341-4-2 test
#[test]
fn no_data_leaves_before_ack_vectors_are_agreed_on() {
    let mut harness = Harness::listening(plain());
    let sent = harness.deliver(Request, &[], &[]);
    let feature = FeatureNumber::SEND_ACK_VECTOR;
    let asks = |o: &OptionValue| about(o, option_kind::CHANGE_R, feature.0) && o.data[1] == 1;
    assert!(sent[0].options.iter().any(asks));
    // The client answers, but does not acknowledge that.
    harness.deliver(Ack, &[], &[]);
    assert_eq!(harness.state(), Some(State::Open));
    let sent = [harness.send(b"data"), harness.wait(secs(5))].concat();
    assert!(sent.iter().all(|p| p.payload.is_empty()), "{:?}", types(&sent));
    assert!(sent.iter().flat_map(|p| &p.options).any(asks), "it is asked again");
    let sent = harness.deliver(Ack, &[OptionRef::ConfirmL { feature, value: &[1, 1] }], &[]);
    assert_eq!(sent.iter().filter(|p| p.payload == b"data").count(), 1);
}
