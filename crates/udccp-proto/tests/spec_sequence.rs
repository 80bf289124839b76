//! RFC 4340 sections 7.5 and 8.3: rules that `sequence.rs` and `close.rs` do not test.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Hand, plain, types};
use udccp_base::Duration;
use udccp_cc::InitialWindow;
use udccp_proto::ccid::ccid2::SlowStartGrowth;
use udccp_proto::{ConnectionConfig, State};
use udccp_wire::PacketType::{
    Ack, CloseReq, Data, DataAck, Request, Reset, Response, Sync, SyncAck,
};
use udccp_wire::{Header, HeaderKind, LossInterval, OptionRef, Packet};

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

/// The feedback of a peer with CCID 2 or 3 that received the last `packets` packets and all before.
/// Returns the packets sent in answer.
fn acknowledge(hand: &mut Hand, ccid: u8, packets: usize) -> Vec<Packet> {
    let mut cells = vec![63; packets / 64];
    cells.extend((packets % 64 != 0).then(|| (packets % 64 - 1) as u8));
    let vector = OptionRef::AckVector { nonce: false, cells: &cells };
    let (lossless_length, loss_length, data_length) = (packets as u32, 0, 0);
    let whole = LossInterval { lossless_length, nonce_echo: false, loss_length, data_length };
    let intervals = &whole.to_bytes();
    let intervals = OptionRef::LossIntervals { skip_length: 0, intervals };
    let options: &[_] =
        if ccid == 2 { &[vector] } else { &[OptionRef::ReceiveRate(100_000_000), intervals] };
    hand.give(Ack, options, &[])
}

//= 4340-7.5.2-3 test
#[test]
fn no_more_data_is_in_flight_than_three_quarters_of_the_sequence_window() {
    for ccid in [2, 3] {
        let mut config = ConnectionConfig { send_queue_packets: 10_000, ..plain() };
        (config.tx_ccids, config.rx_ccids) = (vec![ccid], vec![ccid]);
        // Start with fewer packets than a Sequence Window of 100 allows, and grow fast.
        config.ccid2.initial_window = InitialWindow::Packets(10);
        config.ccid2.slow_start = SlowStartGrowth::EveryPacket;
        let mut hand = Hand::open_with(CLIENT, config);
        let (mut most, mut in_flight) = (0, Vec::new());
        // The peer acknowledges everything after 20 ms, and never confirms a larger window.
        for _ in 0..40 {
            while hand.stats().send_queue_packets < 2000 && hand.pair.try_send(CLIENT, b"data") {}
            in_flight.extend(hand.wait(Duration::from_millis(20)));
            let data = types(&in_flight).iter().filter(|ty| matches!(ty, Data | DataAck)).count();
            most = most.max(data);
            in_flight = acknowledge(&mut hand, ccid, in_flight.len());
        }
        assert_eq!(most, 75, "CCID {ccid}: data packets in one round-trip time");
    }
}

//= 4340-8.5-1 test
#[test]
fn requests_and_responses_from_before_open_are_no_surprise_and_later_ones_are() {
    let (mut client, _) = Hand::requesting(plain());
    let mut server = Hand::listening(plain());
    for (hand, greeting) in [(&mut client, Response), (&mut server, Request)] {
        hand.give(greeting, &[], &[]);
        let first = hand.seq;
        hand.give(Ack, &[], &[]);
        assert_eq!(hand.state(), Some(State::Open));
        hand.wait(Duration::from_secs(1));
        let late = hand.give_at(first, hand.kind(greeting));
        assert!(!types(&late).contains(&Sync), "{greeting}: {late:?}");
        assert_eq!(types(&hand.give(greeting, &[], &[])), [Sync]);
        assert_eq!(hand.state(), Some(State::Open));
    }
}

//= 4340-7.5.3-1 test
#[test]
fn a_connection_is_active_for_three_round_trip_times() {
    // The handshake takes 20 ms.
    for (millis, is_believed) in [(55, false), (65, true)] {
        let mut hand = Hand::open_with(CLIENT, ConnectionConfig::default());
        hand.give(Data, &[], b"data");
        hand.wait(Duration::from_millis(millis));
        let said = hand.give_at(hand.seq.add(5000), hand.kind(Sync));
        assert_eq!(types(&said).contains(&SyncAck), is_believed, "{millis} ms");
    }
}

//= 4340-8.5-1 test
/// The packets that end a connection must not acknowledge less than GAR.
#[test]
fn a_sync_does_not_raise_the_greatest_acknowledgement_number() {
    for (ty, answers) in [(Sync, vec![Reset]), (Ack, vec![Sync])] {
        let mut hand = Hand::open(SERVER);
        let before = hand.gss;
        hand.send(b"data");
        hand.give(ty, &[], &[]);
        let close = hand.give_at(hand.seq.next(), HeaderKind::Close { ack: before });
        assert_eq!(types(&close), answers, "after {ty}");
    }
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

//= 4340-7.5.4-5 test
//= 4340-7.5.4-9 test
//= 4340-7.5.4-10 test
/// An invalid packet has no effect other than a Sync.
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
        // The acknowledgement number is checked too.
        let kind = HeaderKind::DataAck { ack: hand.gss.add(7) };
        let header = Header { kind, ..hand.header_at(hand.seq.sub(4999), kind) };
        let said = hand.give_header(&header, &options, b"data");
        assert_eq!(types(&said), [Sync], "{ty}");
        assert_eq!(hand.read(), Vec::<Vec<u8>>::new());
    }
}

//= 4340-7.5.4-9 test
/// An acknowledgement with the usual options and the next number also needs a valid acknowledgement
/// number, on the fast and the general path.
#[test]
fn the_next_packet_in_order_is_invalid_with_a_wrong_acknowledgement_number() {
    let vector = [OptionRef::AckVector { nonce: false, cells: &[0] }];
    for (long_way_only, ty) in [(false, Ack), (false, DataAck), (true, Ack), (true, DataAck)] {
        let mut hand = Hand::open_with(SERVER, ConnectionConfig { long_way_only, ..plain() });
        let before = hand.stats().counters.packets_received;
        for ack in [hand.gss.add(7), hand.gss.sub(5000)] {
            let kind = HeaderKind::of(ty, ack, common::service());
            let header = hand.header_at(hand.seq.next(), kind);
            let said = hand.give_header(&header, &vector, b"data");
            hand.seq = header.seq.prev();
            let what = (long_way_only, ty, ack);
            assert_eq!(types(&said), [Sync], "{what:?}");
            assert_eq!(hand.stats().counters.packets_received, before, "{what:?}");
            hand.wait(Duration::from_secs(1));
        }
        hand.give(ty, &vector, b"data");
        assert_eq!(hand.stats().counters.packets_received, before + 1);
        assert_eq!(hand.read().len(), usize::from(ty == DataAck));
    }
}
