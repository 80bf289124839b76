//! RFC 4340 sections 7.4 and 11: acknowledgements, and reports of dropped data.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Hand, option, plain, types, vector};
use udccp_base::{Duration, Ecn};
use udccp_proto::{ConnectionConfig, EventKind, State};
use udccp_wire::PacketType::{Ack, Data, DataAck, Request, Response, Sync, SyncAck};
use udccp_wire::{FeatureNumber, Header, OptionRef, Packet, option_kind};

/// The endpoint's last acknowledgement: its number and its vector.
fn acknowledged(said: &[Packet]) -> (u64, Vec<u8>) {
    let last = said.iter().rev().find(|p| p.header.packet_type() == Ack).unwrap();
    (last.header.kind.ack().unwrap().value(), vector(last).unwrap().to_vec())
}

/// Sends the endpoint two data packets, so that it owes an acknowledgement. Returns its packets.
fn poke(hand: &mut Hand) -> Vec<Packet> {
    let first = hand.give(Data, &[], b"a");
    let second = hand.give(Data, &[], b"b");
    [first, second, hand.wait(Duration::from_secs(1))].concat()
}

fn dropped(said: &[Packet]) -> Option<&[u8]> {
    said.iter().rev().find_map(|p| option(p, option_kind::DATA_DROPPED))
}

//= 4340-7.4-1 test
//= 4340-11.4-7 test
#[test]
fn the_acknowledgement_number_is_the_greatest_received() {
    let mut hand = Hand::open(SERVER);
    let first = hand.seq;
    let data = |hand: &mut Hand, ahead| {
        let header = hand.header_at(first.add(ahead), hand.kind(Data));
        hand.give_header(&header, &[], b"data")
    };
    data(&mut hand, 1);
    let after_gap = data(&mut hand, 4);
    assert_eq!(acknowledged(&after_gap).0, first.add(4).value());
    let late = [data(&mut hand, 2), hand.wait(Duration::from_secs(1))].concat();
    let (ackno, cells) = acknowledged(&late);
    assert_eq!((ackno, &cells[..2]), (first.add(4).value(), &[0, 0xc0][..]));
    assert!((1..64).contains(&cells[2]));
    // The Acknowledgement Number is never that of a packet that the vector reports as missing.
    assert_eq!(cells[0] >> 6, 0);
    let said = hand.send(b"own data");
    assert_eq!(said.iter().filter_map(|p| p.header.kind.ack()).max_by_key(|a| a.value()), None);
    // A SyncAck acknowledges its Sync, however old.
    let old = hand.header_at(first.add(3), hand.kind(Sync));
    let said = hand.give_header(&old, &[], &[]);
    assert_eq!((types(&said), said[0].header.kind.ack()), (vec![SyncAck], Some(first.add(3))));
}

//= 4340-11-1 test
//= 4340-11.4-1 test
//= 4340-11.4-2 test
//= 4340-12.1-3 test
#[test]
fn marks_are_read_and_reported() {
    let mut hand = Hand::open(SERVER);
    hand.give(Data, &[], b"unmarked");
    hand.ecn = Ecn::Ce;
    let said = hand.give(Data, &[], b"marked");
    let (_, cells) = acknowledged(&said);
    assert_eq!(cells[0], 0x40);
    assert_eq!(cells[1] >> 6, 0);
    assert_eq!(hand.stats().counters.ecn_ce_received, 1);
}

//= 4340-11.4-5 test
//= 4340-11.4-6 test
//= 4340-11.7-5 test
//= 4340-7.5.4-10 test
//= 4340-9.1-1 test
//= 4340-9.1-2 test
#[test]
fn what_is_not_processed_is_not_acknowledged() {
    let mut hand = Hand::open(SERVER);
    let change = OptionRef::ChangeL { feature: FeatureNumber(99), value: &[1] };
    // Far outside the window, and with a wrong checksum.
    let far = hand.header_at(hand.seq.add(50_000), hand.kind(DataAck));
    let d = hand.datagram(&far, &[change], b"data");
    let mut said = hand.give_datagram(d);
    assert_eq!(types(&said), [Sync]);
    let header = hand.header(DataAck);
    let mut d = hand.datagram(&header, &[change], b"data");
    let mut bytes = d.header.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    d.header = bytes.into();
    said = hand.give_datagram(d);
    assert_eq!(types(&said), []);
    hand.seq = hand.seq.next();
    said = poke(&mut hand);
    let (ackno, cells) = acknowledged(&said);
    assert_eq!((ackno, &cells[..2]), (hand.seq.value(), &[1, 0xc0][..]), "it is missing");
    assert!(said.iter().all(|p| option(p, option_kind::CONFIRM_R).is_none()));
    assert_eq!(hand.read(), [b"a", b"b"]);
}

//= 4340-11.4-8 test
//= 4340-11.7-3 test
#[test]
fn data_without_room_is_received_and_dropped() {
    let config = ConnectionConfig { recv_queue_packets: 4, hold_acks_when_full: false, ..plain() };
    let mut hand = Hand::open_with(SERVER, config);
    (0..4).for_each(|_| drop(hand.give(Data, &[], b"data")));
    let said = poke(&mut hand);
    let (_, cells) = acknowledged(&said);
    // The last two did not fit. All count as received, the later ones as marked: our queue is the
    // last one of the path, and it was long when they arrived.
    assert!(cells.iter().all(|c| c >> 6 < 2), "{cells:?}");
    assert_eq!(dropped(&said), Some(&[0xa1][..]));
    assert_eq!(hand.read().len(), 4);
    assert_eq!(hand.stats().counters.drops.receive_queue_full, 2);
}

//= 4340-11.4-9 test
//= 4340-11.4-10 test
#[test]
fn a_vector_from_before_the_beginning_is_ignored() {
    let mut hand = Hand::open(CLIENT);
    hand.send(b"data");
    let before = hand.stats().counters;
    let cells = OptionRef::AckVector { nonce: false, cells: &[63; 20] };
    hand.give(Ack, &[cells], &[]);
    let after = hand.stats().counters;
    assert_eq!(after.data_packets_acked, before.data_packets_acked);
    assert_eq!(after.drops.bad_options, before.drops.bad_options + 1);
    assert_eq!(hand.state(), Some(State::Open));
}

//= 4340-11.5-1 test
//= 4341-6-1 test
//= 4341-6-2 test
//= 4340-A-1 test
#[test]
fn every_acknowledgement_carries_the_whole_vector() {
    let mut hand = Hand::open(SERVER);
    let mut said = poke(&mut hand);
    // From here on, every second packet is lost.
    for _ in 0..20 {
        hand.seq = hand.seq.next();
        said.extend(hand.give(Data, &[], b"data"));
    }
    said.extend(hand.send(b"own data"));
    said.extend(hand.wait(Duration::from_secs(1)));
    let with_ack = said.iter().filter(|p| matches!(p.header.packet_type(), Ack | DataAck));
    assert!(with_ack.clone().count() > 10);
    assert!(with_ack.clone().all(|p| vector(p).is_some()));
    // Nothing has been acknowledged yet, so everything is reported again.
    let (_, cells) = acknowledged(&said);
    assert_eq!(cells[..40], [0, 0xc0].repeat(20));
    assert!(cells[40] >= 1, "and what came before");
}

//= 4340-11.2-1 test
//= 4340-11.3-1 test
#[test]
fn acknowledgements_ride_on_data() {
    let mut hand = Hand::open(SERVER);
    hand.give(Data, &[], b"data");
    let said = hand.send(b"answer");
    assert_eq!((types(&said), said[0].header.kind.ack()), (vec![DataAck], Some(hand.seq)));
    assert!(hand.wait(Duration::from_secs(1)).is_empty(), "nothing is owed any more");
}

//= 4340-11.2-2 test
#[test]
fn an_acknowledgement_that_does_not_fit_leaves_alone() {
    let mut hand = Hand::open(SERVER);
    for _ in 0..40 {
        hand.seq = hand.seq.next();
        hand.give(Data, &[], b"data");
    }
    hand.give(Data, &[], b"data");
    let message = vec![0; hand.stats().max_message_size];
    let said = hand.send(&message);
    assert_eq!(types(&said), [Data, Ack]);
    assert_eq!(said[0].payload.len(), message.len());
}

//= 4340-11.6-2 test
#[test]
fn slow_receiver_is_said_for_as_long_as_it_is_true() {
    let config = ConnectionConfig { recv_queue_packets: 40, hold_acks_when_full: false, ..plain() };
    let mut hand = Hand::open_with(SERVER, config);
    let is_slow = |said: &[Packet]| {
        said.iter()
            .rev()
            .find(|p| p.header.packet_type() == Ack)
            .map(|p| option(p, option_kind::SLOW_RECEIVER).is_some())
    };
    assert_eq!(is_slow(&poke(&mut hand)), Some(false));
    (0..5).for_each(|_| drop(poke(&mut hand)));
    for _ in 0..3 {
        assert_eq!(is_slow(&poke(&mut hand)), Some(true));
    }
    hand.read();
    assert_eq!(is_slow(&poke(&mut hand)), Some(false));
}

//= 4340-11.6-1 test
#[test]
fn slow_receiver_counts_on_packets_that_acknowledge_nothing() {
    let grows = |options: &[OptionRef<'_>]| {
        let mut hand = Hand::open(CLIENT);
        let (first, before) = (hand.gss, hand.stats().cwnd_packets);
        while hand.stats().send_queue_packets == 0 {
            hand.send(b"data");
        }
        hand.give(Data, options, b"news");
        let is_told = hand.pair.events[CLIENT].contains(&EventKind::PeerSlow);
        assert_eq!(is_told, !options.is_empty());
        let cells = [hand.gss.distance_from(first) as u8 - 1];
        hand.give(Ack, &[OptionRef::AckVector { nonce: false, cells: &cells }], &[]);
        hand.stats().cwnd_packets > before
    };
    assert!(grows(&[]));
    assert!(!grows(&[OptionRef::SlowReceiver]));
}

/// RFC 4340 section 11.6: the receive queue is the last queue of the path, and marks like a router.
#[test]
fn a_long_receive_queue_marks_data_alone_and_counts_no_mark_of_the_networks() {
    let config = ConnectionConfig { recv_queue_packets: 40, hold_acks_when_full: false, ..plain() };
    let mut hand = Hand::open_with(SERVER, config);
    while hand.stats().counters.local_congestion_marks < 2 {
        poke(&mut hand);
    }
    let marks = hand.stats().counters.local_congestion_marks;
    // An acknowledgement takes no space.
    hand.give(Ack, &[], &[]);
    assert_eq!(hand.stats().counters.local_congestion_marks, marks);
    let (_, cells) = acknowledged(&poke(&mut hand));
    assert_eq!(cells[..2], [0x41, 0], "two marked, and the acknowledgement is not");
    assert_eq!(hand.stats().counters.local_congestion_marks, marks + 2);
    // A mark of the network is not counted as one of ours.
    hand.ecn = Ecn::Ce;
    hand.give(Data, &[], b"marked");
    let counters = hand.stats().counters;
    assert_eq!((counters.local_congestion_marks, counters.ecn_ce_received), (marks + 2, 1));
}

//= 4340-11.7-12 test
//= 4341-6-3 test
#[test]
fn dropped_data_is_reported_until_the_peer_knows() {
    let config = ConnectionConfig { min_cscov: 2, ..plain() };
    let mut hand = Hand::open_with(SERVER, config);
    let header = Header { cscov: 1, ..hand.header(Data) };
    hand.give_header(&header, &[], b"covered too little");
    let said = poke(&mut hand);
    assert_eq!(dropped(&said), Some(&[1, 0x80][..]));
    let said = poke(&mut hand);
    assert_eq!(dropped(&said), Some(&[3, 0x80][..]), "said again");
    hand.give(Ack, &[], &[]);
    let said = poke(&mut hand);
    assert_eq!(dropped(&said), None, "the peer has heard it");
}

//= 4340-9.2.1-1 test
//= 4340-9.2.1-2 test
#[test]
fn data_with_too_little_coverage_is_refused_with_code_0() {
    for (min_cscov, cscov, accepted) in [(0, 0, true), (0, 1, false), (3, 2, false), (3, 3, true)] {
        let mut hand = Hand::open_with(SERVER, ConnectionConfig { min_cscov, ..plain() });
        let asks = OptionRef::ChangeR { feature: FeatureNumber::MIN_CSCOV, value: &[3, 0] };
        hand.give(Ack, &[asks], &[]);
        hand.wait(Duration::from_secs(1));
        let header = Header { cscov, ..hand.header(Data) };
        hand.give_header(&header, &[], b"twelve bytes");
        let said = poke(&mut hand);
        assert_eq!(dropped(&said), (!accepted).then_some(&[1, 0x80][..]), "{min_cscov} {cscov}");
        assert_eq!(hand.read().len(), if accepted { 3 } else { 2 });
    }
}

//= 4340-9.2.1-1 test
#[test]
fn no_data_has_less_coverage_than_the_peer_accepts() {
    for (min_cscov, cscov) in [(1, 1), (2, 0)] {
        // With Data Checksums no packet takes the shortest way.
        let (send_cscov, data_checksum) = (1, true);
        let config = ConnectionConfig { send_cscov, min_cscov, data_checksum, ..plain() };
        let mut hand = Hand::open_with(CLIENT, config);
        let said = hand.send(b"partly covered, where that is accepted");
        assert_eq!(said[0].header.cscov, cscov);
        let was_told = |e: &EventKind| matches!(e, EventKind::PeerDropped { .. });
        assert!(!hand.pair.events[CLIENT].iter().any(was_told), "nor had the first");
    }
}

//= 4340-11.7-9 test
//= 4340-11.7-10 test
#[test]
fn data_dropped_that_cannot_be_is_ignored() {
    // The middle one of three packets is missing, so the application cannot have dropped it. The
    // second report covers packets before the first one, which were never sent.
    for blocks in [&[0, 0x90][..], &[0x90, 127, 127]] {
        let mut hand = Hand::open(CLIENT);
        (0..3).for_each(|_| drop(hand.send(b"data")));
        let cells = OptionRef::AckVector { nonce: false, cells: &[0, 0xc0, 0] };
        hand.give(Ack, &[cells, OptionRef::DataDropped(blocks)], &[]);
        assert!(!hand.pair.events[CLIENT].contains(&EventKind::PeerShutdownRead));
        assert_eq!(hand.stats().counters.drops.bad_options, 1);
        assert_eq!(hand.state(), Some(State::Open));
    }
}

//= 4340-9.3-1 test
//= 4340-9.3-4 test
//= 4340-9.3.1-1 test
#[test]
fn corrupt_data_is_dropped_with_code_3() {
    let mut hand = Hand::open(SERVER);
    let sum = udccp_wire::crc32c::crc32c(b"intact");
    hand.give(Data, &[OptionRef::DataChecksum(sum)], b"intact");
    hand.give(Data, &[OptionRef::DataChecksum(sum)], b"Intact");
    let said = poke(&mut hand);
    assert_eq!(dropped(&said), Some(&[1, 0xb0][..]));
    assert_eq!(hand.read(), [&b"intact"[..], b"a", b"b"]);
    assert_eq!(acknowledged(&said).1[0] >> 6, 0, "it was received all the same");
}

//= 4340-9.3-4 test
#[test]
fn corrupt_data_is_reported_so_even_where_it_is_wanted_and_finds_no_room() {
    let config = ConnectionConfig { recv_queue_packets: 4, hold_acks_when_full: false, ..plain() };
    let mut hand = Hand::open_with(SERVER, ConnectionConfig { deliver_corrupt: true, ..config });
    (0..4).for_each(|_| drop(hand.give(Data, &[], b"data")));
    hand.give(Data, &[OptionRef::DataChecksum(1)], b"corrupt");
    assert_eq!(dropped(&poke(&mut hand)), Some(&[0xa0, 0xa0, 0xb0][..]));
}

//= 4340-9.3-5 test
//= 4340-9.3-6 test
#[test]
fn data_checksums_count_on_packets_without_data_too() {
    for ty in [Ack, Sync, SyncAck] {
        let mut hand = Hand::open(SERVER);
        hand.give(ty, &[OptionRef::DataChecksum(1)], b"padding");
        let said = poke(&mut hand);
        assert_eq!(dropped(&said), Some(&[1, 0xb0][..]), "{ty}");
        assert_eq!(hand.read(), [b"a", b"b"], "{ty}");
    }
}

//= 4340-11.7.2-3 test
//= 4340-11.7.2-4 test
#[test]
fn nobody_listens_from_here_on() {
    let mut hand = Hand::open(SERVER);
    let (now, id) = (hand.pair.now, hand.pair.id(SERVER));
    hand.pair.ends[SERVER].shutdown_read(now, id);
    let said = poke(&mut hand);
    assert_eq!(dropped(&said), Some(&[0x91][..]));
    let sum = OptionRef::DataChecksum(1);
    hand.give(Data, &[], b"more");
    hand.give(Data, &[sum], b"and corrupt at that");
    let said = poke(&mut hand);
    // Six packets by now, all with code 1.
    let blocks = dropped(&said).unwrap();
    assert!(blocks.iter().all(|b| b >> 4 == 9), "{blocks:?}");
    assert_eq!(blocks.iter().map(|b| (b & 15) + 1).sum::<u8>(), 6);
}

//= 4340-11.7.2-5 test
#[test]
fn a_sender_that_nobody_listens_to_stops() {
    let mut hand = Hand::open(CLIENT);
    hand.send(b"data");
    let cells = OptionRef::AckVector { nonce: false, cells: &[0] };
    hand.give(Ack, &[cells, OptionRef::DataDropped(&[0x90])], &[]);
    assert!(hand.pair.events[CLIENT].contains(&EventKind::PeerShutdownRead));
    assert!(!hand.pair.try_send(CLIENT, b"more"));
    assert!(!types(&hand.wait(Duration::from_secs(5))).contains(&Data));
}

//= 4340-11.7.2-2 test
#[test]
fn a_sender_told_of_a_constraint_mends_its_ways() {
    let config = ConnectionConfig { send_cscov: 1, min_cscov: 1, ..plain() };
    let mut hand = Hand::open_with(CLIENT, config);
    let coverage = |said: Vec<Packet>| said[0].header.cscov;
    assert_eq!(coverage(hand.send(b"partly covered")), 1);
    let cells = OptionRef::AckVector { nonce: false, cells: &[0] };
    hand.give(Ack, &[cells, OptionRef::DataDropped(&[0x80])], &[]);
    assert_eq!(coverage(hand.send(b"wholly covered")), 0);
}

//= 4340-8.1.3-6 test
//= 4340-8.5-2 test
#[test]
fn the_data_of_one_request_is_taken() {
    let mut hand = Hand::listening(plain());
    hand.give(Request, &[], b"first");
    let said = hand.give(Request, &[], b"second");
    assert_eq!(types(&said), [Response]);
    hand.give(Ack, &[], &[]);
    assert_eq!(hand.read(), [b"first"]);
    assert_eq!(hand.stats().counters.drops.protocol_constraints, 1);
}

//= 4340-11.4-4 test
#[test]
fn feedback_of_ccid_3_knows_only_packets_that_were_processed() {
    let config = ConnectionConfig { tx_ccids: vec![3], rx_ccids: vec![3], ..plain() };
    let mut hand = Hand::open_with(SERVER, config);
    let seq = hand.seq;
    // Far out of sequence: not processed, so neither acknowledged nor a sign of losses.
    let far = hand.header_at(seq.add(5000), hand.kind(Data));
    hand.give_header(&far, &[], b"far");
    hand.seq = seq;
    // Processed, but its data is dropped.
    let (now, id) = (hand.pair.now, hand.pair.id(SERVER));
    hand.pair.ends[SERVER].shutdown_read(now, id);
    let mut said = Vec::new();
    for _ in 0..8 {
        said.extend(hand.give(Data, &[], b"near"));
        said.extend(hand.wait(Duration::from_millis(300)));
    }
    let feedback: Vec<_> =
        said.iter().filter(|p| option(p, option_kind::LOSS_EVENT_RATE).is_some()).collect();
    assert!(!feedback.is_empty());
    for packet in feedback {
        let acked = packet.header.kind.ack().unwrap();
        assert!(acked.is_after(seq) && acked.at_most(hand.seq));
        assert_eq!(option(packet, option_kind::LOSS_EVENT_RATE), Some(&[0xff; 4][..]), "no loss");
    }
}
