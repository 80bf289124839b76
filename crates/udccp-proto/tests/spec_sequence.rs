//! RFC 4340 sections 7.5 and 8.3: what `sequence.rs` and `close.rs` leave open.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Hand, plain, types};
use udccp_base::Duration;
use udccp_proto::{ConnectionConfig, State};
use udccp_wire::PacketType::{Ack, CloseReq, Data, DataAck, Reset, Sync};
use udccp_wire::{Header, HeaderKind, OptionRef};

//= 4340-7.5.4-3 test
//= 4340-7.5.4-4 test
#[test]
fn a_challenge_has_a_number_of_its_own_and_leaves_the_window_where_it_was() {
    let mut hand = Hand::open(CLIENT);
    let (gsr, gss) = (hand.seq, hand.gss);
    let said = hand.give_at(gsr.add(50_000), hand.kind(Reset));
    assert_eq!(types(&said), [Sync]);
    assert_eq!(said[0].header.seq, gss.next());
    assert_eq!(said[0].header.kind.ack(), Some(gsr));
    let said = hand.give_at(gsr.add(60_000), hand.kind(Data));
    assert_eq!(said[0].header.seq, gss.next().next());
    assert_eq!(said[0].header.kind.ack(), Some(gsr.add(60_000)));
    hand.give_at(gsr.next(), hand.kind(Data));
    assert_eq!(hand.read().len(), 1, "what was next is still next");
}

//= 4340-7.5.2-3 test
#[test]
fn no_more_than_the_sequence_window_is_in_flight() {
    let config = ConnectionConfig { send_queue_packets: 10_000, ..plain() };
    let mut hand = Hand::open_with(CLIENT, config);
    let (mut most, mut acked) = (0, hand.gss);
    // The peer acknowledges everything after 20 ms, and never confirms a larger window.
    for _ in 0..60 {
        while hand.stats().send_queue_packets < 2000 && hand.pair.try_send(CLIENT, b"data") {}
        hand.wait(Duration::from_millis(20));
        let in_flight = hand.gss.distance_from(acked).max(1) as usize;
        most = most.max(in_flight);
        acked = hand.gss;
        let mut cells = vec![63; in_flight / 64];
        cells.extend((in_flight % 64 != 0).then(|| (in_flight % 64 - 1) as u8));
        hand.give(Ack, &[OptionRef::AckVector { nonce: false, cells: &cells }], &[]);
    }
    assert!(hand.stats().cwnd_packets > Some(20), "{:?}", hand.stats().cwnd_packets);
    assert!((20..=100).contains(&most), "{most} packets in one round-trip time");
}

//= 4340-8.3-5 test
#[test]
fn a_server_questions_a_close_req_and_goes_on() {
    let mut hand = Hand::open(SERVER);
    let said = hand.give(CloseReq, &[], &[]);
    assert_eq!((types(&said), said[0].header.kind.ack()), (vec![Sync], Some(hand.seq)));
    assert_eq!(hand.state(), Some(State::Open));
    hand.give(Data, &[], b"data");
    assert_eq!(hand.read(), [b"data"]);
}

/// Every packet that is not valid leaves no trace but a Sync.
//= 4340-7.5.4-5 test
//= 4340-7.5.4-9 test
//= 4340-7.5.4-10 test
#[test]
fn an_invalid_packet_has_no_effect_but_a_sync() {
    let change = OptionRef::ChangeL { feature: udccp_wire::FeatureNumber(99), value: &[1] };
    let options = [OptionRef::Mandatory, change, OptionRef::Timestamp(5)];
    for ty in [Data, DataAck, Ack] {
        let mut hand = Hand::open(SERVER);
        let (seq, before) = (hand.seq.add(5000), hand.stats());
        let header = hand.header_at(seq, hand.kind(ty));
        let said = hand.give_header(&header, &options, b"data");
        assert_eq!((types(&said), said[0].header.kind.ack()), (vec![Sync], Some(seq)), "{ty}");
        let after = hand.stats();
        assert_eq!((after.state, hand.read()), (State::Open, Vec::<Vec<u8>>::new()));
        assert_eq!(after.counters.packets_received, before.counters.packets_received);
        // The acknowledgement number counts too.
        let kind = HeaderKind::DataAck { ack: hand.gss.add(7) };
        let header = Header { kind, ..hand.header_at(hand.seq.sub(4999), kind) };
        let said = hand.give_header(&header, &options, b"data");
        assert_eq!(types(&said), [Sync], "{ty}");
        assert_eq!(hand.read(), Vec::<Vec<u8>>::new());
    }
}
