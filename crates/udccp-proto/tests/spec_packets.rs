//! RFC 4340 sections 5 and 15: the content of packets, and fields that are ignored.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Harness, option, parse, plain, reset, types};
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
fn ccval_is_sent_as_zero_and_ignored() {
    let mut harness = Harness::open(SERVER);
    let header = Header { ccval: 11, ..harness.header(DataAck) };
    let sent = harness.deliver_header(&header, &[], b"data");
    assert_eq!(harness.read(), [b"data"]);
    let sent = [sent, harness.wait(Duration::from_secs(1)), harness.send(b"answer")].concat();
    assert!(sent.len() > 1 && sent.iter().all(|p| p.header.ccval == 0));
}

//= 4340-5.3-2 test
#[test]
fn a_response_has_the_service_code_of_its_request() {
    let mut harness = Harness::listening(plain());
    let sent = harness.deliver(Request, &[], &[]);
    assert_eq!(types(&sent), [Response]);
    let HeaderKind::Response { service, .. } = sent[0].header.kind else { unreachable!() };
    assert_eq!(service, common::service());
}

//= 4340-5.4-2 test
#[test]
fn an_empty_datagram_is_reported_as_one() {
    let mut harness = Harness::open(SERVER);
    harness.deliver(Data, &[], b"");
    harness.deliver(DataAck, &[], b"");
    assert_eq!(harness.read(), [b"", b""]);
}

//= 4340-5.4-4 test
//= 4340-5.5-2 test
//= 4340-5.7-4 test
#[test]
fn only_data_packets_carry_data() {
    for ty in [Ack, Sync, SyncAck, CloseReq, Close] {
        let mut harness = Harness::open(CLIENT);
        harness.deliver(ty, &[], b"padding");
        assert_eq!(harness.read(), [b""; 0], "{ty}");
        assert_eq!(harness.stats().counters.data_bytes_received, 5, "{ty}: only the hello");
    }
}

//= 4340-5.6-2 test
#[test]
fn reset_data_is_zero_unless_the_code_says_otherwise() {
    let mut harness = Harness::open(CLIENT);
    let (now, id) = (harness.pair.now, harness.pair.id(CLIENT));
    harness.pair.ends[CLIENT].abort(now, id);
    assert_eq!(reset(&harness.drain()), Some((ResetCode::Aborted, [0; 3])));
    let mut harness = Harness::open(CLIENT);
    assert_eq!(reset(&harness.deliver(Close, &[], &[])), Some((ResetCode::Closed, [0; 3])));
    // Unnecessary values from the peer change nothing.
    let mut harness = Harness::open(CLIENT);
    let kind = HeaderKind::Reset { ack: harness.gss, code: ResetCode::Closed, data: [9, 9, 9] };
    harness.deliver_at(harness.seq.next(), kind);
    assert_eq!(harness.pair.end_reason(CLIENT), Some(CloseReason::PeerClose));
}

//= 4340-5.6-3 test
#[test]
fn resets_carry_their_reason() {
    let codes = [
        {
            let mut harness = Harness::open(CLIENT);
            let (now, id) = (harness.pair.now, harness.pair.id(CLIENT));
            harness.pair.ends[CLIENT].abort(now, id);
            reset(&harness.drain())
        },
        reset(&Harness::open(SERVER).deliver(Close, &[], &[])),
        reset(&Harness::open(SERVER).deliver(Ack, &[OptionRef::Mandatory, UNKNOWN], &[])),
        reset(&Harness::open(SERVER).deliver(Ack, &[SLOW, SLOW, SLOW, OptionRef::Mandatory], &[])),
        reset(&Harness::listening(plain()).deliver(Ack, &[], &[])),
        reset(&Harness::requesting(plain()).0.deliver(Ack, &[], &[])),
    ];
    let codes = codes.map(|r| r.map(|r| r.0.number()));
    assert_eq!(codes, [2, 1, 6, 5, 3, 4].map(Some));
}

//= 4340-5.7-2 test
#[test]
fn a_sync_acknowledges_nothing() {
    let mut harness = Harness::open(CLIENT);
    let before = harness.stats().counters.data_packets_acked;
    assert_eq!(types(&harness.send(b"data")).len(), 1);
    harness.deliver(Sync, &[], &[]);
    let stats = harness.stats();
    assert_eq!((stats.counters.data_packets_acked, stats.pipe_packets), (before, Some(1)));
    // An Ack does: it acknowledges the data and the SyncAck after it.
    let cells = OptionRef::AckVector { nonce: false, cells: &[1] };
    harness.deliver(Ack, &[cells], &[]);
    assert_eq!(harness.stats().counters.data_packets_acked, before + 1);
}

//= 4340-5.7-3 test
#[test]
fn a_sync_ack_acknowledges_a_valid_sync() {
    let mut harness = Harness::open(SERVER);
    let sent = harness.deliver(Sync, &[], &[]);
    assert_eq!(types(&sent), [SyncAck]);
    assert_eq!(sent[0].header.kind.ack(), Some(harness.seq));
    let never_sent = HeaderKind::Sync { ack: harness.gss.add(5) };
    assert_eq!(types(&harness.deliver_at(harness.seq.next(), never_sent)), []);
}

//= 4340-5.8-4 test
//= 4340-15-2 test
//= 4340-15-3 test
#[test]
fn unknown_options_are_ignored() {
    let single = OptionRef::Unknown { kind: 17, data: &[] };
    let of_ccid = OptionRef::CcidSpecific { kind: 130, data: &[1] };
    let mut harness = Harness::open(SERVER);
    let change = OptionRef::ChangeR { feature: FeatureNumber::SEND_NDP_COUNT, value: &[1] };
    let options = [single, UNKNOWN, of_ccid, change, UNKNOWN];
    let sent = harness.deliver(DataAck, &options, b"data");
    assert_eq!(harness.read(), [b"data"]);
    let sent = [sent, harness.wait(Duration::from_secs(1))].concat();
    assert!(option(&sent[0], option_kind::CONFIRM_L).is_some(), "the known one between them works");
    assert_eq!(harness.state(), Some(State::Open));
}

//= 4340-5.8-6 test
#[test]
fn several_options_of_one_kind_count_each_for_itself() {
    let mut harness = Harness::open(CLIENT);
    for text in [b"one", b"two"] {
        harness.send(text);
    }
    // In one packet each. An earlier invalid option does not affect a later one.
    let first = OptionRef::AckVector { nonce: false, cells: &[0] };
    let second = OptionRef::AckVector { nonce: false, cells: &[0] };
    let before = harness.stats().counters.data_packets_acked;
    harness.deliver(Ack, &[first, UNKNOWN, second], &[]);
    assert_eq!(harness.stats().counters.data_packets_acked, before + 2);
    let features = [FeatureNumber(77), FeatureNumber(78)];
    let changes = features.map(|feature| OptionRef::ChangeL { feature, value: &[1] });
    let sent = harness.deliver(Ack, &changes, &[]);
    let sent = [sent, harness.wait(Duration::from_secs(1))].concat();
    let confirms = sent[0].options.iter().filter(|o| o.kind == option_kind::CONFIRM_R);
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
    let mut harness = Harness::open(SERVER);
    harness.send(b"data");
    let before = harness.stats();
    let options = [OptionRef::Mandatory, UNKNOWN, vector, dropped, change, OptionRef::Mandatory];
    harness.deliver(Data, &options, b"data");
    let after = harness.stats();
    assert_eq!((after.state, harness.read()), (State::Open, vec![b"data".to_vec()]));
    assert_eq!(after.counters.data_packets_acked, before.counters.data_packets_acked);
    assert_eq!(after.pipe_packets, Some(1));
    let sent = harness.wait(Duration::from_secs(1));
    assert!(sent.iter().all(|p| option(p, option_kind::CONFIRM_R).is_none()));
    // A Request has nothing to acknowledge either.
    let mut harness = Harness::listening(plain());
    let sent = harness.deliver(Request, &[vector, dropped], &[]);
    assert_eq!(types(&sent), [Response]);
}

//= 4340-5.8-7 test
//= 4340-11-2 test
//= 4340-5.8.2-1 test
#[test]
fn mandatory_before_what_is_not_understood_resets() {
    let refused =
        |options: &[OptionRef<'_>]| reset(&Harness::open(SERVER).deliver(Ack, options, &[]));
    let (mandatory, error) = (OptionRef::Mandatory, ResetCode::MandatoryError);
    assert_eq!(refused(&[mandatory, UNKNOWN]), Some((error, [100, 1, 2])));
    let change = OptionRef::ChangeR { feature: FeatureNumber(99), value: &[7] };
    assert_eq!(refused(&[mandatory, change]), Some((error, [34, 99, 7])));
    // Known, but not permitted on this packet.
    let mut harness = Harness::listening(plain());
    let vector = OptionRef::AckVector { nonce: false, cells: &[3] };
    let sent = harness.deliver(Request, &[mandatory, vector], &[]);
    assert_eq!(reset(&sent), Some((error, [38, 3, 0])));
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
            let mut harness = Harness::open_with(SERVER, config);
            reset(&harness.deliver(Ack, &[OptionRef::Mandatory, option], &[])).is_some()
        })
    };
    assert_eq!(refused(OptionRef::ReceiveRate(5)), [true, false, false]);
    assert_eq!(refused(OptionRef::LossEventRate(5)), [true, false, false]);
    assert_eq!(refused(OptionRef::DroppedPackets(&[0, 0, 1])), [true, true, false]);
}

//= 4340-5.7-2 test
/// Such a Sync is how a receiver with a long Ack Vector gets it acknowledged.
#[test]
fn an_ack_vector_on_a_sync_proves_receipt_and_its_number_alone_does_not() {
    let vector = OptionRef::AckVector { nonce: false, cells: &[0] };
    for (options, received) in [(&[][..], 0), (&[vector][..], 1)] {
        let mut harness = Harness::open(SERVER);
        let before = harness.stats().counters.data_packets_acked;
        harness.send(b"data");
        let sent = harness.deliver(Sync, options, &[]);
        assert_eq!(types(&sent), [SyncAck]);
        let after = harness.stats();
        assert_eq!(after.counters.data_packets_acked - before, received);
        assert_eq!(after.pipe_packets, Some(1 - received as u32));
    }
}

//= 4340-10-1 test
//= 4340-10.3-2 test
#[test]
fn without_ccid_2_the_change_of_ccid_is_mandatory() {
    for (ccids, is_mandatory) in [(vec![3], true), (vec![3, 2], false)] {
        let config = ConnectionConfig { tx_ccids: ccids.clone(), rx_ccids: ccids, ..plain() };
        let (_, request) = Harness::requesting(config.clone());
        let response = Harness::listening(config).deliver(Request, &[], &[]).remove(0);
        for packet in [request, response] {
            let ccid = FeatureNumber::CCID.0;
            let changes = |kind| {
                let all = packet.options.iter();
                let at = all.clone().position(|o| spec_support::about(o, kind, ccid)).unwrap();
                at > 0 && packet.options[at - 1].kind == option_kind::MANDATORY
            };
            let sent = [option_kind::CHANGE_L, option_kind::CHANGE_R].map(changes);
            assert_eq!(sent, [is_mandatory; 2], "{packet:?}");
        }
    }
}

//= 4340-5.6-2 test
#[test]
fn a_reset_about_a_response_acknowledges_it_and_one_about_nothing_is_numbered_zero() {
    let (mut harness, _) = Harness::requesting(plain());
    let sent = harness.deliver(Ack, &[], &[]);
    assert_eq!(reset(&sent), Some((ResetCode::PacketError, [3, 0, 0])), "the type of the packet");
    let sent = harness.deliver(Response, &[OptionRef::Mandatory, UNKNOWN], &[]);
    assert_eq!(reset(&sent), Some((ResetCode::MandatoryError, [100, 1, 2])));
    assert_eq!(sent[0].header.kind.ack(), Some(harness.seq));
}

//= 4340-5.8.2-3 test
#[test]
fn mandatory_padding_is_padding() {
    let mut harness = Harness::open(SERVER);
    let options = [OptionRef::Mandatory, OptionRef::Padding, UNKNOWN];
    assert_eq!(reset(&harness.deliver(Ack, &options, &[])), None);
    assert_eq!(harness.state(), Some(State::Open));
}

//= 4340-4.3-1 test
//= 4340-8.1.5-1 test
//= 4340-8.1.4-5 test
#[test]
fn a_client_in_partopen_acknowledges_with_every_packet() {
    let (mut harness, _) = Harness::requesting(plain());
    let mut sent = harness.deliver(Response, &[SENDS_VECTORS], &[]);
    assert_eq!(harness.state(), Some(State::PartOpen));
    sent.extend(harness.send(b"data"));
    assert!(types(&sent).contains(&DataAck));
    sent.extend(harness.wait(Duration::from_secs(5)));
    assert!(sent.len() > 3);
    assert!(sent.iter().all(|p| matches!(p.header.packet_type(), Ack | DataAck)));
    assert!(sent.iter().all(|p| p.header.kind.ack() == Some(harness.seq)));
}

//= 4340-3.1-3 test
//= 4340-15-2 test
#[test]
fn reserved_bits_are_no_reason_for_a_reset() {
    let mut harness = Harness::open(SERVER);
    let header = harness.header(Data);
    let mut bytes = harness.datagram(&header, &[], b"data").header.to_vec();
    // The three Res bits, and the eight after the type; the checksum is updated incrementally.
    bytes[8] |= 0b1110_0000;
    bytes[9] |= 0xff;
    let sum = u16::from_be_bytes([bytes[6], bytes[7]]);
    let added = u32::from(!sum) + 0xe0ff;
    let sum = !(((added & 0xffff) + (added >> 16)) as u16);
    bytes[6..8].copy_from_slice(&sum.to_be_bytes());
    let like = harness.datagram(&header, &[], b"data");
    harness.deliver_datagram(udccp_base::Datagram { header: bytes.into(), ..like });
    assert_eq!(harness.read(), [b"data"]);
}

//= 4340-8.1.4-1 test
//= 4340-8.1.4-2 test
#[test]
fn init_cookies_count_only_on_a_response() {
    let cookie = OptionRef::InitCookie(b"cookie");
    let has_cookie = |p: &udccp_wire::Packet| option(p, option_kind::INIT_COOKIE).is_some();
    let mut server = Harness::listening(plain());
    let mut sent = server.deliver(Request, &[cookie], &[]);
    let mut open = Harness::open(CLIENT);
    sent.extend(open.deliver(Ack, &[cookie], &[]));
    sent.extend(open.deliver(Data, &[cookie], b"data"));
    sent.extend(open.send(b"data"));
    sent.extend(open.wait(Duration::from_secs(1)));
    assert_eq!(types(&sent), [Response, DataAck]);
    assert!(!sent.iter().any(has_cookie));
    // Nor has a Request of ours, which follows no Response.
    let (mut client, request) = Harness::requesting(plain());
    let again = client.wait(Duration::from_secs(2));
    assert!(!has_cookie(&request) && !again.iter().any(has_cookie));
}

//= 4340-8.1.4-4 test
//= 4340-8.1.4-6 test
//= 4340-8.1.5-2 test
/// The cookies of the Response that a packet acknowledges, in order.
#[test]
fn init_cookies_are_echoed_in_partopen() {
    let (mut harness, _) = Harness::requesting(plain());
    let (second, first) = (OptionRef::InitCookie(b"second"), OptionRef::InitCookie(b"first"));
    let mut sent = harness.deliver(Response, &[second, first, SENDS_VECTORS], &[]);
    sent.extend(harness.send(b"data"));
    sent.extend(harness.wait(Duration::from_secs(3)));
    assert!(sent.len() > 3);
    for packet in &sent {
        let echoed = packet.options.iter().filter(|o| o.kind == option_kind::INIT_COOKIE);
        let echoed: Vec<&[u8]> = echoed.map(|o| &o.data[..]).collect();
        assert_eq!(echoed, [&b"second"[..], b"first"]);
    }
    let sent = harness.deliver(Ack, &[], &[]);
    let sent = [sent, harness.send(b"data")].concat();
    assert!(!sent.is_empty());
    assert!(sent.iter().all(|p| option(p, option_kind::INIT_COOKIE).is_none()));
}

//= 4340-8.1.4-6 test
#[test]
fn the_cookies_of_a_later_response_replace_those_before() {
    let (mut harness, _) = Harness::requesting(plain());
    let echoed = |sent: &[udccp_wire::Packet]| {
        let last = sent.last().unwrap();
        (last.header.kind.ack(), option(last, option_kind::INIT_COOKIE).map(<[u8]>::to_vec))
    };
    let cookie = |text: &'static [u8]| OptionRef::InitCookie(text);
    let seq = harness.seq;
    let at = |n| Some(seq.add(n));
    let sent = harness.deliver(Response, &[cookie(b"first")], &[]);
    assert_eq!(echoed(&sent), (at(1), Some(b"first".to_vec())));
    let header = harness.header_at(seq.add(3), harness.kind(Response));
    let sent = harness.deliver_header(&header, &[cookie(b"third")], &[]);
    assert_eq!(echoed(&sent), (at(3), Some(b"third".to_vec())));
    // A late one is not the one that is acknowledged.
    let header = harness.header_at(seq.add(2), harness.kind(Response));
    let sent = harness.deliver_header(&header, &[cookie(b"second")], &[]);
    assert_eq!(echoed(&sent), (at(3), Some(b"third".to_vec())));
    assert_eq!(echoed(&harness.deliver(Response, &[], &[])), (at(4), None));
}

#[test]
fn a_reset_with_an_invalid_number_is_ignored() {
    let mut harness = Harness::open(CLIENT);
    let kind = harness.kind(Reset);
    harness.deliver_at(Seqno::new(harness.seq.value() ^ (1 << 40)), kind);
    assert_eq!(harness.state(), Some(State::Open));
    let d = harness.datagram(&harness.header(Reset), &[], &[]);
    assert_eq!(parse(&d).header.packet_type(), Reset);
    harness.deliver_datagram(d);
    assert_eq!(harness.state(), Some(State::TimeWait));
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
