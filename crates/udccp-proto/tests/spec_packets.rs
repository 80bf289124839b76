//! RFC 4340 sections 5 and 15: the content of packets, and fields that are ignored.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Hand, option, parse, plain, reset, types};
use udccp_base::Duration;
use udccp_proto::{CloseReason, ConnectionConfig, State};
use udccp_wire::PacketType::{
    Ack, Close, CloseReq, Data, DataAck, Request, Reset, Response, Sync, SyncAck,
};
use udccp_wire::{FeatureNumber, Header, HeaderKind, OptionRef, ResetCode, Seqno, option_kind};

const SLOW: OptionRef<'_> = OptionRef::SlowReceiver;
/// The option without which a CCID 2 sender does not send.
const SENDS_VECTORS: OptionRef<'_> =
    OptionRef::ChangeL { feature: FeatureNumber::SEND_ACK_VECTOR, value: &[1] };
const UNKNOWN: OptionRef<'_> = OptionRef::Unknown { kind: 100, data: &[1, 2, 3] };

//= 4340-5.1-4 test
#[test]
fn ccval_is_zero_and_not_looked_at() {
    let mut hand = Hand::open(SERVER);
    let header = Header { ccval: 11, ..hand.header(DataAck) };
    let said = hand.give_header(&header, &[], b"data");
    assert_eq!(hand.read(), [b"data"]);
    let said = [said, hand.wait(Duration::from_secs(1)), hand.send(b"answer")].concat();
    assert!(said.len() > 1 && said.iter().all(|p| p.header.ccval == 0));
}

//= 4340-5.3-2 test
#[test]
fn a_response_has_the_service_code_of_its_request() {
    let mut hand = Hand::listening(plain());
    let said = hand.give(Request, &[], &[]);
    assert_eq!(types(&said), [Response]);
    let HeaderKind::Response { service, .. } = said[0].header.kind else { unreachable!() };
    assert_eq!(service, common::service());
}

//= 4340-5.4-2 test
#[test]
fn an_empty_datagram_is_reported_as_one() {
    let mut hand = Hand::open(SERVER);
    hand.give(Data, &[], b"");
    hand.give(DataAck, &[], b"");
    assert_eq!(hand.read(), [b"", b""]);
}

//= 4340-5.4-4 test
//= 4340-5.5-2 test
//= 4340-5.7-4 test
#[test]
fn only_data_packets_carry_data() {
    for ty in [Ack, Sync, SyncAck, CloseReq, Close] {
        let mut hand = Hand::open(CLIENT);
        hand.give(ty, &[], b"padding");
        assert_eq!(hand.read(), [b""; 0], "{ty}");
        assert_eq!(hand.stats().counters.data_bytes_received, 5, "{ty}: only the hello");
    }
}

//= 4340-5.6-2 test
#[test]
fn reset_data_is_zero_unless_the_code_says_otherwise() {
    let mut hand = Hand::open(CLIENT);
    let (now, id) = (hand.pair.now, hand.pair.id(CLIENT));
    hand.pair.ends[CLIENT].abort(now, id);
    assert_eq!(reset(&hand.drain()), Some((ResetCode::Aborted, [0; 3])));
    let mut hand = Hand::open(CLIENT);
    assert_eq!(reset(&hand.give(Close, &[], &[])), Some((ResetCode::Closed, [0; 3])));
    // Unnecessary values from the peer change nothing.
    let mut hand = Hand::open(CLIENT);
    let kind = HeaderKind::Reset { ack: hand.gss, code: ResetCode::Closed, data: [9, 9, 9] };
    hand.give_at(hand.seq.next(), kind);
    assert_eq!(hand.pair.end_reason(CLIENT), Some(CloseReason::PeerClose));
}

//= 4340-5.6-3 test
#[test]
fn resets_say_why() {
    let codes = [
        {
            let mut hand = Hand::open(CLIENT);
            let (now, id) = (hand.pair.now, hand.pair.id(CLIENT));
            hand.pair.ends[CLIENT].abort(now, id);
            reset(&hand.drain())
        },
        reset(&Hand::open(SERVER).give(Close, &[], &[])),
        reset(&Hand::open(SERVER).give(Ack, &[OptionRef::Mandatory, UNKNOWN], &[])),
        reset(&Hand::open(SERVER).give(Ack, &[SLOW, SLOW, SLOW, OptionRef::Mandatory], &[])),
        reset(&Hand::listening(plain()).give(Ack, &[], &[])),
        reset(&Hand::requesting(plain()).0.give(Ack, &[], &[])),
    ];
    let codes = codes.map(|r| r.map(|r| r.0.number()));
    assert_eq!(codes, [2, 1, 6, 5, 3, 4].map(Some));
}

//= 4340-5.7-2 test
#[test]
fn a_sync_acknowledges_nothing() {
    let mut hand = Hand::open(CLIENT);
    let before = hand.stats().counters.data_packets_acked;
    assert_eq!(types(&hand.send(b"data")).len(), 1);
    hand.give(Sync, &[], &[]);
    let stats = hand.stats();
    assert_eq!((stats.counters.data_packets_acked, stats.pipe_packets), (before, Some(1)));
    // An Ack does: it acknowledges the data and the SyncAck after it.
    let cells = OptionRef::AckVector { nonce: false, cells: &[1] };
    hand.give(Ack, &[cells], &[]);
    assert_eq!(hand.stats().counters.data_packets_acked, before + 1);
}

//= 4340-5.7-3 test
#[test]
fn a_sync_ack_acknowledges_a_valid_sync() {
    let mut hand = Hand::open(SERVER);
    let said = hand.give(Sync, &[], &[]);
    assert_eq!(types(&said), [SyncAck]);
    assert_eq!(said[0].header.kind.ack(), Some(hand.seq));
    let never_sent = HeaderKind::Sync { ack: hand.gss.add(5) };
    assert_eq!(types(&hand.give_at(hand.seq.next(), never_sent)), []);
}

//= 4340-5.8-4 test
//= 4340-15-2 test
//= 4340-15-3 test
#[test]
fn unknown_options_are_ignored() {
    let single = OptionRef::Unknown { kind: 17, data: &[] };
    let of_ccid = OptionRef::CcidSpecific { kind: 130, data: &[1] };
    let mut hand = Hand::open(SERVER);
    let change = OptionRef::ChangeR { feature: FeatureNumber::SEND_NDP_COUNT, value: &[1] };
    let options = [single, UNKNOWN, of_ccid, change, UNKNOWN];
    let said = hand.give(DataAck, &options, b"data");
    assert_eq!(hand.read(), [b"data"]);
    let said = [said, hand.wait(Duration::from_secs(1))].concat();
    assert!(option(&said[0], option_kind::CONFIRM_L).is_some(), "the known one between them works");
    assert_eq!(hand.state(), Some(State::Open));
}

//= 4340-5.8-6 test
#[test]
fn several_options_of_one_kind_count_each_for_itself() {
    let mut hand = Hand::open(CLIENT);
    for text in [b"one", b"two"] {
        hand.send(text);
    }
    // In one packet each. An earlier invalid option does not affect a later one.
    let first = OptionRef::AckVector { nonce: false, cells: &[0] };
    let second = OptionRef::AckVector { nonce: false, cells: &[0] };
    let before = hand.stats().counters.data_packets_acked;
    hand.give(Ack, &[first, UNKNOWN, second], &[]);
    assert_eq!(hand.stats().counters.data_packets_acked, before + 2);
    let features = [FeatureNumber(77), FeatureNumber(78)];
    let changes = features.map(|feature| OptionRef::ChangeL { feature, value: &[1] });
    let said = hand.give(Ack, &changes, &[]);
    let said = [said, hand.wait(Duration::from_secs(1))].concat();
    let confirms = said[0].options.iter().filter(|o| o.kind == option_kind::CONFIRM_R);
    assert_eq!(confirms.map(|o| o.data[0]).collect::<Vec<_>>(), [77, 78]);
}

//= 4340-5.8-7 test
//= 4340-5.8-8 test
//= 4340-5.8.2-2 test
//= 4340-11-2 test
//= 4340-11.4-3 test
//= 4340-11.7-6 test
#[test]
fn options_where_they_do_not_belong_are_ignored() {
    let vector = OptionRef::AckVector { nonce: false, cells: &[0] };
    let dropped = OptionRef::DataDropped(&[0xa0]);
    let change = OptionRef::ChangeL { feature: FeatureNumber(99), value: &[1] };
    let mut hand = Hand::open(SERVER);
    hand.send(b"data");
    let before = hand.stats();
    let options = [OptionRef::Mandatory, UNKNOWN, vector, dropped, change, OptionRef::Mandatory];
    hand.give(Data, &options, b"data");
    let after = hand.stats();
    assert_eq!((after.state, hand.read()), (State::Open, vec![b"data".to_vec()]));
    assert_eq!(after.counters.data_packets_acked, before.counters.data_packets_acked);
    assert_eq!(after.pipe_packets, Some(1));
    let said = hand.wait(Duration::from_secs(1));
    assert!(said.iter().all(|p| option(p, option_kind::CONFIRM_R).is_none()));
    // A Request has nothing to acknowledge either.
    let mut hand = Hand::listening(plain());
    let said = hand.give(Request, &[vector, dropped], &[]);
    assert_eq!(types(&said), [Response]);
}

//= 4340-5.8-7 test
//= 4340-11-2 test
//= 4340-5.8.2-1 test
#[test]
fn mandatory_before_what_is_not_understood_resets() {
    let refused = |options: &[OptionRef<'_>]| reset(&Hand::open(SERVER).give(Ack, options, &[]));
    let (mandatory, error) = (OptionRef::Mandatory, ResetCode::MandatoryError);
    assert_eq!(refused(&[mandatory, UNKNOWN]), Some((error, [100, 1, 2])));
    let change = OptionRef::ChangeR { feature: FeatureNumber(99), value: &[7] };
    assert_eq!(refused(&[mandatory, change]), Some((error, [34, 99, 7])));
    // Known, but not permitted on this packet.
    let mut hand = Hand::listening(plain());
    let vector = OptionRef::AckVector { nonce: false, cells: &[3] };
    let said = hand.give(Request, &[mandatory, vector], &[]);
    assert_eq!(reset(&said), Some((error, [38, 3, 0])));
    // Mandatory before a known option has no effect.
    assert_eq!(refused(&[mandatory, OptionRef::Timestamp(5)]), None);
    // Mandatory at the end, or before itself, is a different error.
    assert_eq!(refused(&[mandatory, mandatory]).unwrap().0, ResetCode::OptionError);
    let at_the_end = refused(&[SLOW, SLOW, SLOW, mandatory]);
    assert_eq!(at_the_end, Some((ResetCode::OptionError, [1, 0, 0])));
}

//= 4340-5.8.2-1 test
#[test]
fn mandatory_before_an_option_of_the_ccid_in_use_has_no_effect() {
    let refused = |option| {
        [2, 3, 4].map(|ccid| {
            let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
            let config = ConnectionConfig { tx_ccids, rx_ccids, ..plain() };
            let mut hand = Hand::open_with(SERVER, config);
            reset(&hand.give(Ack, &[OptionRef::Mandatory, option], &[])).is_some()
        })
    };
    assert_eq!(refused(OptionRef::ReceiveRate(5)), [true, false, false]);
    assert_eq!(refused(OptionRef::LossEventRate(5)), [true, false, false]);
    assert_eq!(refused(OptionRef::DroppedPackets(&[0, 0, 1])), [true, true, false]);
}

//= 4340-10-1 test
//= 4340-10.3-2 test
#[test]
fn without_ccid_2_the_change_of_ccid_is_mandatory() {
    for (ccids, is_mandatory) in [(vec![3], true), (vec![3, 2], false)] {
        let config = ConnectionConfig { tx_ccids: ccids.clone(), rx_ccids: ccids, ..plain() };
        let (_, request) = Hand::requesting(config.clone());
        let response = Hand::listening(config).give(Request, &[], &[]).remove(0);
        for packet in [request, response] {
            let ccid = FeatureNumber::CCID.0;
            let changes = |kind| {
                let all = packet.options.iter();
                let at = all.clone().position(|o| spec_support::about(o, kind, ccid)).unwrap();
                at > 0 && packet.options[at - 1].kind == option_kind::MANDATORY
            };
            let said = [option_kind::CHANGE_L, option_kind::CHANGE_R].map(changes);
            assert_eq!(said, [is_mandatory; 2], "{packet:?}");
        }
    }
}

//= 4340-5.6-2 test
#[test]
fn a_reset_about_a_response_acknowledges_it_and_one_about_nothing_is_numbered_zero() {
    let (mut hand, _) = Hand::requesting(plain());
    let said = hand.give(Ack, &[], &[]);
    assert_eq!(reset(&said), Some((ResetCode::PacketError, [3, 0, 0])), "the type of the packet");
    let said = hand.give(Response, &[OptionRef::Mandatory, UNKNOWN], &[]);
    assert_eq!(reset(&said), Some((ResetCode::MandatoryError, [100, 1, 2])));
    assert_eq!(said[0].header.kind.ack(), Some(hand.seq));
}

//= 4340-5.8.2-3 test
#[test]
fn mandatory_padding_is_padding() {
    let mut hand = Hand::open(SERVER);
    let options = [OptionRef::Mandatory, OptionRef::Padding, UNKNOWN];
    assert_eq!(reset(&hand.give(Ack, &options, &[])), None);
    assert_eq!(hand.state(), Some(State::Open));
}

//= 4340-4.3-1 test
//= 4340-8.1.5-1 test
//= 4340-8.1.4-5 test
#[test]
fn a_client_in_partopen_acknowledges_with_every_packet() {
    let (mut hand, _) = Hand::requesting(plain());
    let mut said = hand.give(Response, &[SENDS_VECTORS], &[]);
    assert_eq!(hand.state(), Some(State::PartOpen));
    said.extend(hand.send(b"data"));
    assert!(types(&said).contains(&DataAck));
    said.extend(hand.wait(Duration::from_secs(5)));
    assert!(said.len() > 3);
    assert!(said.iter().all(|p| matches!(p.header.packet_type(), Ack | DataAck)));
    assert!(said.iter().all(|p| p.header.kind.ack() == Some(hand.seq)));
}

//= 4340-3.1-3 test
//= 4340-15-2 test
#[test]
fn reserved_bits_are_no_reason_for_a_reset() {
    let mut hand = Hand::open(SERVER);
    let header = hand.header(Data);
    let mut bytes = hand.datagram(&header, &[], b"data").header.to_vec();
    // The three Res bits, and the eight after the type; the checksum is updated incrementally.
    bytes[8] |= 0b1110_0000;
    bytes[9] |= 0xff;
    let sum = u16::from_be_bytes([bytes[6], bytes[7]]);
    let added = u32::from(!sum) + 0xe0ff;
    let sum = !(((added & 0xffff) + (added >> 16)) as u16);
    bytes[6..8].copy_from_slice(&sum.to_be_bytes());
    let like = hand.datagram(&header, &[], b"data");
    hand.give_datagram(udccp_base::Datagram { header: bytes.into(), ..like });
    assert_eq!(hand.read(), [b"data"]);
}

//= 4340-8.1.4-1 test
//= 4340-8.1.4-2 test
#[test]
fn init_cookies_count_only_on_a_response() {
    let cookie = OptionRef::InitCookie(b"cookie");
    let has_cookie = |p: &udccp_wire::Packet| option(p, option_kind::INIT_COOKIE).is_some();
    let mut server = Hand::listening(plain());
    let mut said = server.give(Request, &[cookie], &[]);
    let mut open = Hand::open(CLIENT);
    said.extend(open.give(Ack, &[cookie], &[]));
    said.extend(open.give(Data, &[cookie], b"data"));
    said.extend(open.send(b"data"));
    said.extend(open.wait(Duration::from_secs(1)));
    assert_eq!(types(&said), [Response, DataAck]);
    assert!(!said.iter().any(has_cookie));
    // Nor has a Request of ours, which follows no Response.
    let (mut client, request) = Hand::requesting(plain());
    let again = client.wait(Duration::from_secs(2));
    assert!(!has_cookie(&request) && !again.iter().any(has_cookie));
}

//= 4340-8.1.4-4 test
//= 4340-8.1.4-6 test
//= 4340-8.1.5-2 test
/// The cookies of the Response that a packet acknowledges, in order.
#[test]
fn init_cookies_are_echoed_in_partopen() {
    let (mut hand, _) = Hand::requesting(plain());
    let (second, first) = (OptionRef::InitCookie(b"second"), OptionRef::InitCookie(b"first"));
    let mut said = hand.give(Response, &[second, first, SENDS_VECTORS], &[]);
    said.extend(hand.send(b"data"));
    said.extend(hand.wait(Duration::from_secs(3)));
    assert!(said.len() > 3);
    for packet in &said {
        let echoed = packet.options.iter().filter(|o| o.kind == option_kind::INIT_COOKIE);
        let echoed: Vec<&[u8]> = echoed.map(|o| &o.data[..]).collect();
        assert_eq!(echoed, [&b"second"[..], b"first"]);
    }
    let said = hand.give(Ack, &[], &[]);
    let said = [said, hand.send(b"data")].concat();
    assert!(!said.is_empty());
    assert!(said.iter().all(|p| option(p, option_kind::INIT_COOKIE).is_none()));
}

//= 4340-8.1.4-6 test
#[test]
fn the_cookies_of_a_later_response_replace_those_before() {
    let (mut hand, _) = Hand::requesting(plain());
    let echoed = |said: &[udccp_wire::Packet]| {
        let last = said.last().unwrap();
        (last.header.kind.ack(), option(last, option_kind::INIT_COOKIE).map(<[u8]>::to_vec))
    };
    let cookie = |text: &'static [u8]| OptionRef::InitCookie(text);
    let seq = hand.seq;
    let at = |n| Some(seq.add(n));
    let said = hand.give(Response, &[cookie(b"first")], &[]);
    assert_eq!(echoed(&said), (at(1), Some(b"first".to_vec())));
    let header = hand.header_at(seq.add(3), hand.kind(Response));
    let said = hand.give_header(&header, &[cookie(b"third")], &[]);
    assert_eq!(echoed(&said), (at(3), Some(b"third".to_vec())));
    // A late one is not the one that is acknowledged.
    let header = hand.header_at(seq.add(2), hand.kind(Response));
    let said = hand.give_header(&header, &[cookie(b"second")], &[]);
    assert_eq!(echoed(&said), (at(3), Some(b"third".to_vec())));
    assert_eq!(echoed(&hand.give(Response, &[], &[])), (at(4), None));
}

#[test]
fn a_reset_in_the_wrong_place_is_no_reset() {
    let mut hand = Hand::open(CLIENT);
    let kind = hand.kind(Reset);
    hand.give_at(Seqno::new(hand.seq.value() ^ (1 << 40)), kind);
    assert_eq!(hand.state(), Some(State::Open));
    let d = hand.datagram(&hand.header(Reset), &[], &[]);
    assert_eq!(parse(&d).header.packet_type(), Reset);
    hand.give_datagram(d);
    assert_eq!(hand.state(), Some(State::TimeWait));
}

//= 4340-5.1-1 test
#[test]
fn source_ports_are_chosen_at_random() {
    let port = |secret| {
        let mut end = udccp_proto::Endpoint::new(udccp_proto::EndpointConfig::new([secret; 32]));
        let options = common::connect_options(ConnectionConfig::default());
        let now = udccp_base::Instant::from_nanos(1);
        let mut next = || {
            let id = end.connect(now, options.clone()).unwrap();
            end.tuple(id).unwrap().local_port
        };
        [next(), next(), next()]
    };
    let ports: std::collections::BTreeSet<u16> = (0..50).flat_map(port).collect();
    assert!(ports.len() > 140, "{ports:?}");
}
