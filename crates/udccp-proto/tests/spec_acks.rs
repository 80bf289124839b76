//! RFC 4340 sections 7.4 and 11: acknowledgements, and reports of dropped data.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Harness, option, plain, types, vector};
use udccp_base::{Duration, Ecn};
use udccp_proto::{ConnectionConfig, EventKind, State};
use udccp_wire::PacketType::{Ack, Data, DataAck, Request, Response, Sync, SyncAck};
use udccp_wire::{FeatureNumber, Header, OptionRef, Packet, option_kind};

/// The endpoint's last acknowledgement: its number and its vector.
fn acknowledged(sent: &[Packet]) -> (u64, Vec<u8>) {
    let last = sent.iter().rev().find(|p| p.header.packet_type() == Ack).unwrap();
    (last.header.kind.ack().unwrap().value(), vector(last).unwrap().to_vec())
}

/// Sends the endpoint two data packets, so that it owes an acknowledgement. Returns its packets.
fn send_two_and_wait(harness: &mut Harness) -> Vec<Packet> {
    let first = harness.deliver(Data, &[], b"a");
    let second = harness.deliver(Data, &[], b"b");
    [first, second, harness.wait(Duration::from_secs(1))].concat()
}

fn dropped(sent: &[Packet]) -> Option<&[u8]> {
    sent.iter().rev().find_map(|p| option(p, option_kind::DATA_DROPPED))
}

//= 4340-7.4-1 test
//= 4340-11.4-7 test
#[test]
fn the_acknowledgement_number_is_the_greatest_received() {
    let mut harness = Harness::open(SERVER);
    let first = harness.seq;
    let data = |harness: &mut Harness, ahead| {
        let header = harness.header_at(first.add(ahead), harness.kind(Data));
        harness.deliver_header(&header, &[], b"data")
    };
    data(&mut harness, 1);
    let after_gap = data(&mut harness, 4);
    assert_eq!(acknowledged(&after_gap).0, first.add(4).value());
    let late = [data(&mut harness, 2), harness.wait(Duration::from_secs(1))].concat();
    let (ackno, cells) = acknowledged(&late);
    assert_eq!((ackno, &cells[..2]), (first.add(4).value(), &[0, 0xc0][..]));
    assert!((1..64).contains(&cells[2]));
    // The Acknowledgement Number is never that of a packet that the vector reports as missing.
    assert_eq!(cells[0] >> 6, 0);
    let sent = harness.send(b"own data");
    assert_eq!(sent.iter().filter_map(|p| p.header.kind.ack()).max_by_key(|a| a.value()), None);
    // A SyncAck acknowledges its Sync, however old.
    let old = harness.header_at(first.add(3), harness.kind(Sync));
    let sent = harness.deliver_header(&old, &[], &[]);
    assert_eq!((types(&sent), sent[0].header.kind.ack()), (vec![SyncAck], Some(first.add(3))));
}

//= 4340-11-1 test
//= 4340-11.4-1 test
//= 4340-11.4-2 test
//= 4340-12.1-3 test
#[test]
fn marks_are_read_and_reported() {
    let mut harness = Harness::open(SERVER);
    harness.deliver(Data, &[], b"unmarked");
    harness.ecn = Ecn::Ce;
    let sent = harness.deliver(Data, &[], b"marked");
    let (_, cells) = acknowledged(&sent);
    assert_eq!(cells[0], 0x40);
    assert_eq!(cells[1] >> 6, 0);
    assert_eq!(harness.stats().counters.ecn_ce_received, 1);
}

//= 4340-11.4-5 test
//= 4340-11.4-6 test
//= 4340-11.7-5 test
//= 4340-7.5.4-10 test
//= 4340-9.1-1 test
//= 4340-9.1-2 test
#[test]
fn what_is_not_processed_is_not_acknowledged() {
    let mut harness = Harness::open(SERVER);
    let change = OptionRef::ChangeL { feature: FeatureNumber(99), value: &[1] };
    // Far outside the window, and with a wrong checksum.
    let far = harness.header_at(harness.seq.add(50_000), harness.kind(DataAck));
    let d = harness.datagram(&far, &[change], b"data");
    let mut sent = harness.deliver_datagram(d);
    assert_eq!(types(&sent), [Sync]);
    let header = harness.header(DataAck);
    let mut d = harness.datagram(&header, &[change], b"data");
    let mut bytes = d.header.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    d.header = bytes.into();
    sent = harness.deliver_datagram(d);
    assert_eq!(types(&sent), []);
    harness.seq = harness.seq.next();
    sent = send_two_and_wait(&mut harness);
    let (ackno, cells) = acknowledged(&sent);
    assert_eq!((ackno, &cells[..2]), (harness.seq.value(), &[1, 0xc0][..]), "it is missing");
    assert!(sent.iter().all(|p| option(p, option_kind::CONFIRM_R).is_none()));
    assert_eq!(harness.read(), [b"a", b"b"]);
}

//= 4340-11.4-8 test
//= 4340-11.7-3 test
#[test]
fn data_without_room_is_received_and_dropped() {
    let config = ConnectionConfig { recv_queue_packets: 4, hold_acks_when_full: false, ..plain() };
    let mut harness = Harness::open_with(SERVER, config);
    (0..4).for_each(|_| drop(harness.deliver(Data, &[], b"data")));
    let sent = send_two_and_wait(&mut harness);
    let (_, cells) = acknowledged(&sent);
    // The last two did not fit. All count as received, the later ones as marked: our queue is the
    // last one of the path, and it was long when they arrived.
    assert!(cells.iter().all(|c| c >> 6 < 2), "{cells:?}");
    assert_eq!(dropped(&sent), Some(&[0xa1][..]));
    assert_eq!(harness.read().len(), 4);
    assert_eq!(harness.stats().counters.drops.receive_queue_full, 2);
}

//= 4340-11.4-9 test
//= 4340-11.4-10 test
#[test]
fn a_vector_from_before_the_beginning_is_ignored() {
    let mut harness = Harness::open(CLIENT);
    harness.send(b"data");
    let before = harness.stats().counters;
    let cells = OptionRef::AckVector { nonce: false, cells: &[63; 20] };
    harness.deliver(Ack, &[cells], &[]);
    let after = harness.stats().counters;
    assert_eq!(after.data_packets_acked, before.data_packets_acked);
    assert_eq!(after.drops.bad_options, before.drops.bad_options + 1);
    assert_eq!(harness.state(), Some(State::Open));
}

//= 4340-11.5-1 test
//= 4341-6-1 test
//= 4341-6-2 test
//= 4340-A-1 test
#[test]
fn every_acknowledgement_carries_the_whole_vector() {
    let mut harness = Harness::open(SERVER);
    let mut sent = send_two_and_wait(&mut harness);
    // From here on, every second packet is lost.
    for _ in 0..20 {
        harness.seq = harness.seq.next();
        sent.extend(harness.deliver(Data, &[], b"data"));
    }
    sent.extend(harness.send(b"own data"));
    sent.extend(harness.wait(Duration::from_secs(1)));
    let with_ack = sent.iter().filter(|p| matches!(p.header.packet_type(), Ack | DataAck));
    assert!(with_ack.clone().count() > 10);
    assert!(with_ack.clone().all(|p| vector(p).is_some()));
    // Nothing has been acknowledged yet, so everything is reported again.
    let (_, cells) = acknowledged(&sent);
    assert_eq!(cells[..40], [0, 0xc0].repeat(20));
    assert!(cells[40] >= 1, "and what came before");
}

//= 4340-11.2-1 test
//= 4340-11.3-1 test
#[test]
fn acknowledgements_are_piggybacked_on_data() {
    let mut harness = Harness::open(SERVER);
    harness.deliver(Data, &[], b"data");
    let sent = harness.send(b"answer");
    assert_eq!((types(&sent), sent[0].header.kind.ack()), (vec![DataAck], Some(harness.seq)));
    assert!(harness.wait(Duration::from_secs(1)).is_empty(), "nothing is owed any more");
}

//= 4340-11.2-2 test
#[test]
fn an_acknowledgement_that_does_not_fit_is_sent_alone() {
    let mut harness = Harness::open(SERVER);
    for _ in 0..40 {
        harness.seq = harness.seq.next();
        harness.deliver(Data, &[], b"data");
    }
    harness.deliver(Data, &[], b"data");
    let message = vec![0; harness.stats().max_message_size];
    let sent = harness.send(&message);
    assert_eq!(types(&sent), [Data, Ack]);
    assert_eq!(sent[0].payload.len(), message.len());
}

//= 4340-11.6-2 test
#[test]
fn slow_receiver_is_sent_as_long_as_the_receiver_is_slow() {
    let config = ConnectionConfig { recv_queue_packets: 40, hold_acks_when_full: false, ..plain() };
    let mut harness = Harness::open_with(SERVER, config);
    let is_slow = |sent: &[Packet]| {
        sent.iter()
            .rev()
            .find(|p| p.header.packet_type() == Ack)
            .map(|p| option(p, option_kind::SLOW_RECEIVER).is_some())
    };
    assert_eq!(is_slow(&send_two_and_wait(&mut harness)), Some(false));
    (0..5).for_each(|_| drop(send_two_and_wait(&mut harness)));
    for _ in 0..3 {
        assert_eq!(is_slow(&send_two_and_wait(&mut harness)), Some(true));
    }
    harness.read();
    assert_eq!(is_slow(&send_two_and_wait(&mut harness)), Some(false));
}

//= 4340-11.6-1 test
#[test]
fn slow_receiver_counts_on_packets_that_acknowledge_nothing() {
    let grows = |options: &[OptionRef<'_>]| {
        let mut harness = Harness::open(CLIENT);
        let (first, before) = (harness.gss, harness.stats().cwnd_packets);
        while harness.stats().send_queue_packets == 0 {
            harness.send(b"data");
        }
        harness.deliver(Data, options, b"news");
        let is_told = harness.pair.events[CLIENT].contains(&EventKind::PeerSlow);
        assert_eq!(is_told, !options.is_empty());
        let cells = [harness.gss.distance_from(first) as u8 - 1];
        harness.deliver(Ack, &[OptionRef::AckVector { nonce: false, cells: &cells }], &[]);
        harness.stats().cwnd_packets > before
    };
    assert!(grows(&[]));
    assert!(!grows(&[OptionRef::SlowReceiver]));
}

/// RFC 4340 section 11.6: the receive queue is the last queue of the path, and marks like a router.
#[test]
fn a_long_receive_queue_marks_data_alone_and_counts_no_mark_of_the_networks() {
    let config = ConnectionConfig { recv_queue_packets: 40, hold_acks_when_full: false, ..plain() };
    let mut harness = Harness::open_with(SERVER, config);
    while harness.stats().counters.local_congestion_marks < 2 {
        send_two_and_wait(&mut harness);
    }
    let marks = harness.stats().counters.local_congestion_marks;
    // An acknowledgement takes no space.
    harness.deliver(Ack, &[], &[]);
    assert_eq!(harness.stats().counters.local_congestion_marks, marks);
    let (_, cells) = acknowledged(&send_two_and_wait(&mut harness));
    assert_eq!(cells[..2], [0x41, 0], "two marked, and the acknowledgement is not");
    assert_eq!(harness.stats().counters.local_congestion_marks, marks + 2);
    // A mark of the network is not counted as one of ours.
    harness.ecn = Ecn::Ce;
    harness.deliver(Data, &[], b"marked");
    let counters = harness.stats().counters;
    assert_eq!((counters.local_congestion_marks, counters.ecn_ce_received), (marks + 2, 1));
}

//= 4340-11.7-12 test
//= 4341-6-3 test
#[test]
fn dropped_data_is_reported_until_the_peer_knows() {
    let config = ConnectionConfig { min_cscov: 2, ..plain() };
    let mut harness = Harness::open_with(SERVER, config);
    let header = Header { cscov: 1, ..harness.header(Data) };
    harness.deliver_header(&header, &[], b"covered too little");
    let sent = send_two_and_wait(&mut harness);
    assert_eq!(dropped(&sent), Some(&[1, 0x80][..]));
    let sent = send_two_and_wait(&mut harness);
    assert_eq!(dropped(&sent), Some(&[3, 0x80][..]), "said again");
    harness.deliver(Ack, &[], &[]);
    let sent = send_two_and_wait(&mut harness);
    assert_eq!(dropped(&sent), None, "the peer has heard it");
}

//= 4340-9.2.1-1 test
//= 4340-9.2.1-2 test
#[test]
fn data_with_too_little_coverage_is_refused_with_code_0() {
    for (min_cscov, cscov, accepted) in [(0, 0, true), (0, 1, false), (3, 2, false), (3, 3, true)] {
        let mut harness = Harness::open_with(SERVER, ConnectionConfig { min_cscov, ..plain() });
        let asks = OptionRef::ChangeR { feature: FeatureNumber::MIN_CSCOV, value: &[3, 0] };
        harness.deliver(Ack, &[asks], &[]);
        harness.wait(Duration::from_secs(1));
        let header = Header { cscov, ..harness.header(Data) };
        harness.deliver_header(&header, &[], b"twelve bytes");
        let sent = send_two_and_wait(&mut harness);
        assert_eq!(dropped(&sent), (!accepted).then_some(&[1, 0x80][..]), "{min_cscov} {cscov}");
        assert_eq!(harness.read().len(), if accepted { 3 } else { 2 });
    }
}

//= 4340-9.2.1-1 test
#[test]
fn no_data_has_less_coverage_than_the_peer_accepts() {
    for (min_cscov, cscov) in [(1, 1), (2, 0)] {
        // With Data Checksums no packet takes the shortest way.
        let (send_cscov, data_checksum) = (1, true);
        let config = ConnectionConfig { send_cscov, min_cscov, data_checksum, ..plain() };
        let mut harness = Harness::open_with(CLIENT, config);
        let sent = harness.send(b"partly covered, where that is accepted");
        assert_eq!(sent[0].header.cscov, cscov);
        let was_told = |e: &EventKind| matches!(e, EventKind::PeerDropped { .. });
        assert!(!harness.pair.events[CLIENT].iter().any(was_told), "nor had the first");
    }
}

//= 4340-11.7-9 test
//= 4340-11.7-10 test
#[test]
fn data_dropped_that_cannot_be_is_ignored() {
    // The middle one of three packets is missing, so the application cannot have dropped it. The
    // second report covers packets before the first one, which were never sent.
    for blocks in [&[0, 0x90][..], &[0x90, 127, 127]] {
        let mut harness = Harness::open(CLIENT);
        (0..3).for_each(|_| drop(harness.send(b"data")));
        let cells = OptionRef::AckVector { nonce: false, cells: &[0, 0xc0, 0] };
        harness.deliver(Ack, &[cells, OptionRef::DataDropped(blocks)], &[]);
        assert!(!harness.pair.events[CLIENT].contains(&EventKind::PeerShutdownRead));
        assert_eq!(harness.stats().counters.drops.bad_options, 1);
        assert_eq!(harness.state(), Some(State::Open));
    }
}

//= 4340-9.3-1 test
//= 4340-9.3-4 test
//= 4340-9.3.1-1 test
#[test]
fn corrupt_data_is_dropped_with_code_3() {
    let mut harness = Harness::open(SERVER);
    let sum = udccp_wire::crc32c::crc32c(b"intact");
    harness.deliver(Data, &[OptionRef::DataChecksum(sum)], b"intact");
    harness.deliver(Data, &[OptionRef::DataChecksum(sum)], b"Intact");
    let sent = send_two_and_wait(&mut harness);
    assert_eq!(dropped(&sent), Some(&[1, 0xb0][..]));
    assert_eq!(harness.read(), [&b"intact"[..], b"a", b"b"]);
    assert_eq!(acknowledged(&sent).1[0] >> 6, 0, "it was received all the same");
}

//= 4340-9.3-4 test
#[test]
fn corrupt_data_is_reported_so_even_where_it_is_wanted_and_finds_no_room() {
    let config = ConnectionConfig { recv_queue_packets: 4, hold_acks_when_full: false, ..plain() };
    let mut harness =
        Harness::open_with(SERVER, ConnectionConfig { deliver_corrupt: true, ..config });
    (0..4).for_each(|_| drop(harness.deliver(Data, &[], b"data")));
    harness.deliver(Data, &[OptionRef::DataChecksum(1)], b"corrupt");
    assert_eq!(dropped(&send_two_and_wait(&mut harness)), Some(&[0xa0, 0xa0, 0xb0][..]));
}

//= 4340-9.3-5 test
//= 4340-9.3-6 test
#[test]
fn data_checksums_count_on_packets_without_data_too() {
    for ty in [Ack, Sync, SyncAck] {
        let mut harness = Harness::open(SERVER);
        harness.deliver(ty, &[OptionRef::DataChecksum(1)], b"padding");
        let sent = send_two_and_wait(&mut harness);
        assert_eq!(dropped(&sent), Some(&[1, 0xb0][..]), "{ty}");
        assert_eq!(harness.read(), [b"a", b"b"], "{ty}");
    }
}

//= 4340-11.7.2-3 test
//= 4340-11.7.2-4 test
#[test]
fn data_after_shutdown_read_is_dropped_with_code_1() {
    let mut harness = Harness::open(SERVER);
    let (now, id) = (harness.pair.now, harness.pair.id(SERVER));
    harness.pair.ends[SERVER].shutdown_read(now, id);
    let sent = send_two_and_wait(&mut harness);
    assert_eq!(dropped(&sent), Some(&[0x91][..]));
    let sum = OptionRef::DataChecksum(1);
    harness.deliver(Data, &[], b"more");
    harness.deliver(Data, &[sum], b"and corrupt at that");
    let sent = send_two_and_wait(&mut harness);
    // Six packets by now, all with code 1.
    let blocks = dropped(&sent).unwrap();
    assert!(blocks.iter().all(|b| b >> 4 == 9), "{blocks:?}");
    assert_eq!(blocks.iter().map(|b| (b & 15) + 1).sum::<u8>(), 6);
}

//= 4340-11.7.2-5 test
#[test]
fn a_sender_stops_on_drop_code_1() {
    let mut harness = Harness::open(CLIENT);
    harness.send(b"data");
    let cells = OptionRef::AckVector { nonce: false, cells: &[0] };
    harness.deliver(Ack, &[cells, OptionRef::DataDropped(&[0x90])], &[]);
    assert!(harness.pair.events[CLIENT].contains(&EventKind::PeerShutdownRead));
    assert!(!harness.pair.try_send(CLIENT, b"more"));
    assert!(!types(&harness.wait(Duration::from_secs(5))).contains(&Data));
}

//= 4340-11.7.2-2 test
#[test]
fn a_protocol_constraint_ends_partial_checksum_coverage() {
    let config = ConnectionConfig { send_cscov: 1, min_cscov: 1, ..plain() };
    let mut harness = Harness::open_with(CLIENT, config);
    let coverage = |sent: Vec<Packet>| sent[0].header.cscov;
    assert_eq!(coverage(harness.send(b"partly covered")), 1);
    let cells = OptionRef::AckVector { nonce: false, cells: &[0] };
    harness.deliver(Ack, &[cells, OptionRef::DataDropped(&[0x80])], &[]);
    assert_eq!(coverage(harness.send(b"wholly covered")), 0);
}

//= 4340-8.1.3-6 test
//= 4340-8.5-2 test
#[test]
fn the_data_of_one_request_is_taken() {
    let mut harness = Harness::listening(plain());
    harness.deliver(Request, &[], b"first");
    let sent = harness.deliver(Request, &[], b"second");
    assert_eq!(types(&sent), [Response]);
    harness.deliver(Ack, &[], &[]);
    assert_eq!(harness.read(), [b"first"]);
    assert_eq!(harness.stats().counters.drops.protocol_constraints, 1);
}

//= 4340-11.4-4 test
#[test]
fn feedback_of_ccid_3_knows_only_packets_that_were_processed() {
    let config = ConnectionConfig { tx_ccids: vec![3], rx_ccids: vec![3], ..plain() };
    let mut harness = Harness::open_with(SERVER, config);
    let seq = harness.seq;
    // Far out of sequence: not processed, so neither acknowledged nor a sign of losses.
    let far = harness.header_at(seq.add(5000), harness.kind(Data));
    harness.deliver_header(&far, &[], b"far");
    harness.seq = seq;
    // Processed, but its data is dropped.
    let (now, id) = (harness.pair.now, harness.pair.id(SERVER));
    harness.pair.ends[SERVER].shutdown_read(now, id);
    let mut sent = Vec::new();
    for _ in 0..8 {
        sent.extend(harness.deliver(Data, &[], b"near"));
        sent.extend(harness.wait(Duration::from_millis(300)));
    }
    let feedback: Vec<_> =
        sent.iter().filter(|p| option(p, option_kind::LOSS_EVENT_RATE).is_some()).collect();
    assert!(!feedback.is_empty());
    for packet in feedback {
        let acked = packet.header.kind.ack().unwrap();
        assert!(acked.is_after(seq) && acked.at_most(harness.seq));
        assert_eq!(option(packet, option_kind::LOSS_EVENT_RATE), Some(&[0xff; 4][..]), "no loss");
    }
}
