//! RFC 4340 sections 7.5 and 8.3: rules that `sequence.rs` and `close.rs` do not test.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Harness, plain, types};
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
    let mut harness = Harness::open(CLIENT);
    let (gsr, gss) = (harness.seq, harness.gss);
    let sent = harness.deliver_at(gsr.add(50_000), harness.kind(Reset));
    assert_eq!(types(&sent), [Sync]);
    assert_eq!(sent[0].header.seq, gss.next());
    assert_eq!(sent[0].header.kind.ack(), Some(gsr));
    let sent = harness.deliver_at(gsr.add(60_000), harness.kind(Data));
    assert_eq!(sent[0].header.seq, gss.next().next());
    assert_eq!(sent[0].header.kind.ack(), Some(gsr.add(60_000)));
    harness.deliver_at(gsr.next(), harness.kind(Data));
    assert_eq!(harness.read().len(), 1, "what was next is still next");
}

/// The feedback of a peer with CCID 2 or 3 that received the last `packets` packets and all before.
/// Returns the packets sent in answer.
fn acknowledge(harness: &mut Harness, ccid: u8, packets: usize) -> Vec<Packet> {
    let mut cells = vec![63; packets / 64];
    cells.extend((packets % 64 != 0).then(|| (packets % 64 - 1) as u8));
    let vector = OptionRef::AckVector { nonce: false, cells: &cells };
    let (lossless_length, loss_length, data_length) = (packets as u32, 0, 0);
    let whole = LossInterval { lossless_length, nonce_echo: false, loss_length, data_length };
    let intervals = &whole.to_bytes();
    let intervals = OptionRef::LossIntervals { skip_length: 0, intervals };
    let options: &[_] =
        if ccid == 2 { &[vector] } else { &[OptionRef::ReceiveRate(100_000_000), intervals] };
    harness.deliver(Ack, options, &[])
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
        let mut harness = Harness::open_with(CLIENT, config);
        let (mut most, mut in_flight) = (0, Vec::new());
        // The peer acknowledges everything after 20 ms, and never confirms a larger window.
        for _ in 0..40 {
            while harness.stats().send_queue_packets < 2000
                && harness.pair.try_send(CLIENT, b"data")
            {}
            in_flight.extend(harness.wait(Duration::from_millis(20)));
            let data = types(&in_flight).iter().filter(|ty| matches!(ty, Data | DataAck)).count();
            most = most.max(data);
            in_flight = acknowledge(&mut harness, ccid, in_flight.len());
        }
        assert_eq!(most, 75, "CCID {ccid}: data packets in one round-trip time");
    }
}

//= 4340-8.5-1 test
#[test]
fn only_new_requests_and_responses_in_open_cause_a_sync() {
    let (mut client, _) = Harness::requesting(plain());
    let mut server = Harness::listening(plain());
    for (harness, greeting) in [(&mut client, Response), (&mut server, Request)] {
        harness.deliver(greeting, &[], &[]);
        let first = harness.seq;
        harness.deliver(Ack, &[], &[]);
        assert_eq!(harness.state(), Some(State::Open));
        harness.wait(Duration::from_secs(1));
        let late = harness.deliver_at(first, harness.kind(greeting));
        assert!(!types(&late).contains(&Sync), "{greeting}: {late:?}");
        assert_eq!(types(&harness.deliver(greeting, &[], &[])), [Sync]);
        assert_eq!(harness.state(), Some(State::Open));
    }
}

//= 4340-7.5.3-1 test
#[test]
fn a_connection_is_active_for_three_round_trip_times() {
    // The handshake takes 20 ms.
    for (millis, is_believed) in [(55, false), (65, true)] {
        let mut harness = Harness::open_with(CLIENT, ConnectionConfig::default());
        harness.deliver(Data, &[], b"data");
        harness.wait(Duration::from_millis(millis));
        let sent = harness.deliver_at(harness.seq.add(5000), harness.kind(Sync));
        assert_eq!(types(&sent).contains(&SyncAck), is_believed, "{millis} ms");
    }
}

//= 4340-8.5-1 test
/// The packets that end a connection must not acknowledge less than GAR.
#[test]
fn a_sync_does_not_raise_the_greatest_acknowledgement_number() {
    for (ty, answers) in [(Sync, vec![Reset]), (Ack, vec![Sync])] {
        let mut harness = Harness::open(SERVER);
        let before = harness.gss;
        harness.send(b"data");
        harness.deliver(ty, &[], &[]);
        let close = harness.deliver_at(harness.seq.next(), HeaderKind::Close { ack: before });
        assert_eq!(types(&close), answers, "after {ty}");
    }
}

//= 4340-8.3-5 test
#[test]
fn a_server_answers_a_close_req_with_a_sync_and_stays_open() {
    let mut harness = Harness::open(SERVER);
    let sent = harness.deliver(CloseReq, &[], &[]);
    assert_eq!((types(&sent), sent[0].header.kind.ack()), (vec![Sync], Some(harness.seq)));
    assert_eq!(harness.state(), Some(State::Open));
    harness.deliver(Data, &[], b"data");
    assert_eq!(harness.read(), [b"data"]);
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
        let mut harness = Harness::open(SERVER);
        let (seq, before) = (harness.seq.add(5000), harness.stats());
        let header = harness.header_at(seq, harness.kind(ty));
        let sent = harness.deliver_header(&header, &options, b"data");
        assert_eq!((types(&sent), sent[0].header.kind.ack()), (vec![Sync], Some(seq)), "{ty}");
        let after = harness.stats();
        assert_eq!((after.state, harness.read()), (State::Open, Vec::<Vec<u8>>::new()));
        assert_eq!(after.counters.packets_received, before.counters.packets_received);
        // The acknowledgement number is checked too.
        let kind = HeaderKind::DataAck { ack: harness.gss.add(7) };
        let header = Header { kind, ..harness.header_at(harness.seq.sub(4999), kind) };
        let sent = harness.deliver_header(&header, &options, b"data");
        assert_eq!(types(&sent), [Sync], "{ty}");
        assert_eq!(harness.read(), Vec::<Vec<u8>>::new());
    }
}

//= 4340-7.5.4-9 test
/// An acknowledgement with the usual options and the next number also needs a valid acknowledgement
/// number, on the fast and the general path.
#[test]
fn the_next_packet_in_order_is_invalid_with_a_wrong_acknowledgement_number() {
    let vector = [OptionRef::AckVector { nonce: false, cells: &[0] }];
    for (long_way_only, ty) in [(false, Ack), (false, DataAck), (true, Ack), (true, DataAck)] {
        let mut harness = Harness::open_with(SERVER, ConnectionConfig { long_way_only, ..plain() });
        let before = harness.stats().counters.packets_received;
        for ack in [harness.gss.add(7), harness.gss.sub(5000)] {
            let kind = HeaderKind::of(ty, ack, common::service());
            let header = harness.header_at(harness.seq.next(), kind);
            let sent = harness.deliver_header(&header, &vector, b"data");
            harness.seq = header.seq.prev();
            let what = (long_way_only, ty, ack);
            assert_eq!(types(&sent), [Sync], "{what:?}");
            assert_eq!(harness.stats().counters.packets_received, before, "{what:?}");
            harness.wait(Duration::from_secs(1));
        }
        harness.deliver(ty, &vector, b"data");
        assert_eq!(harness.stats().counters.packets_received, before + 1);
        assert_eq!(harness.read().len(), usize::from(ty == DataAck));
    }
}
