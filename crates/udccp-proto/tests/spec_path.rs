//! RFC 4340 sections 7.6, 7.7, 12, 13 and 14: short numbers, NDP Count, ECN, time and sizes.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Hand, about, option, parse, plain, types};
use udccp_base::{Duration, Ecn, Machine, Message, Payload};
use udccp_proto::{ConnectionConfig, EventKind, PathReport, SendError, State};
use udccp_wire::PacketType::{Ack, Close, Data, DataAck, Request, Response, SyncAck};
use udccp_wire::{FeatureNumber, Header, OptionRef, Packet, option_kind};

const ECN_INCAPABLE: u8 = FeatureNumber::ECN_INCAPABLE.0;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

//= 4340-5.4-1 test
//= 4340-7.6.1-1 test
#[test]
fn short_numbers_are_for_those_who_agreed() {
    let short = |hand: &mut Hand, ty| Header { x: false, ..hand.header(ty) };
    let mut hand = Hand::open(SERVER);
    let header = short(&mut hand, DataAck);
    assert_eq!(hand.give_header(&header, &[], b"short"), []);
    assert_eq!(hand.read(), [b""; 0]);
    let said = hand.send(b"data");
    assert!(said.iter().all(|p| p.header.x));

    let config = ConnectionConfig { short_seqnos: true, ..plain() };
    let mut hand = Hand::open_with(SERVER, config);
    let header = short(&mut hand, DataAck);
    hand.give_header(&header, &[], b"short");
    assert_eq!(hand.read(), [b"short"]);
    let said = hand.send(b"data");
    assert!(said.iter().all(|p| !p.header.x));
    let said = hand.give(Close, &[], &[]);
    assert!(said[0].header.x, "a Reset is never short");
}

//= 4340-5.1-10 test
//= 4340-7.5.5-1 test
//= 4340-7.6.2-1 test
#[test]
fn wide_windows_go_with_long_numbers() {
    let config = ConnectionConfig { short_seqnos: true, sequence_window: 5000, ..plain() };
    let mut hand = Hand::open_with(SERVER, config);
    assert!(hand.send(b"data").iter().all(|p| p.header.x));
    // Also where the peer would accept short ones.
    for (window, x) in [([0, 0, 0, 0, 4, 0], false), ([0, 0, 0, 0, 4, 1], true)] {
        let sequence_window = 1024 + u64::from(window[5]);
        let config = ConnectionConfig { short_seqnos: true, sequence_window, ..plain() };
        let (mut hand, _) = Hand::requesting(config);
        let feature = FeatureNumber::ALLOW_SHORT_SEQNOS;
        let yes = OptionRef::ConfirmR { feature, value: &[1, 1] };
        let window =
            OptionRef::ConfirmR { feature: FeatureNumber::SEQUENCE_WINDOW, value: &window };
        let said = hand.give(Response, &[yes, window], &[]);
        assert_eq!((types(&said), said[0].header.x), (vec![Ack], x), "{sequence_window}");
    }

    let config = ConnectionConfig { short_seqnos: true, ..plain() };
    let mut hand = Hand::open_with(SERVER, config);
    let feature = FeatureNumber::SEQUENCE_WINDOW;
    let change = OptionRef::ChangeL { feature, value: &[0, 0, 0, 0, 32, 0] };
    let header = Header { x: false, ..hand.header(Ack) };
    let said = [hand.give_header(&header, &[change], &[]), hand.wait(millis(500))].concat();
    let short = FeatureNumber::ALLOW_SHORT_SEQNOS.0;
    let options: Vec<_> = said.iter().flat_map(|p| &p.options).collect();
    let refuses = |o: &&&udccp_wire::OptionValue| about(o, option_kind::CHANGE_R, short);
    assert_eq!(options.iter().find(refuses).map(|o| o.data[1]), Some(0));
}

/// RFC 4340 section 6.6.3: an option is first repeated after about a round-trip time.
#[test]
fn options_are_repeated_in_the_time_that_the_handshake_measured() {
    for end in [CLIENT, SERVER] {
        let config = ConnectionConfig { short_seqnos: true, ..ConnectionConfig::default() };
        let mut hand = Hand::open_with(end, config);
        let feature = FeatureNumber::SEQUENCE_WINDOW;
        let change = OptionRef::ChangeL { feature, value: &[0, 0, 0, 0, 32, 0] };
        let short = FeatureNumber::ALLOW_SHORT_SEQNOS.0;
        let asks = |p: &&Packet| p.options.iter().any(|o| about(o, option_kind::CHANGE_R, short));
        let header = Header { x: false, ..hand.header(Ack) };
        let first = [hand.give_header(&header, &[change], &[]), hand.wait(millis(30))].concat();
        assert_eq!(first.iter().filter(asks).count(), 1, "a round trip after the Confirm");
        // The round trip takes 20 ms. The first repetition is after 100 ms, the next after 200 ms.
        let again = hand.wait(millis(400));
        assert_eq!(again.iter().filter(asks).count(), 2, "host {end}");
    }
}

//= 4340-7.7-1 test
//= 4340-7.7.2-1 test
#[test]
fn ndp_count_follows_every_run_of_non_data_packets() {
    let mut hand = Hand::open(SERVER);
    let feature = FeatureNumber::SEND_NDP_COUNT;
    hand.give(Ack, &[OptionRef::ChangeR { feature, value: &[1] }], &[]);
    let mut said = hand.wait(millis(500));
    said.extend(hand.send(b"data"));
    said.extend(hand.send(b"data"));
    for _ in 0..3 {
        hand.give(Data, &[], b"a");
        said.extend(hand.give(Data, &[], b"b"));
    }
    said.extend(hand.give(udccp_wire::PacketType::Sync, &[], &[]));
    said.extend(hand.send(b"data"));
    said.extend(hand.send(b"data"));
    let counts: Vec<Option<u8>> =
        said.iter().map(|p| option(p, option_kind::NDP_COUNT).map(|d| d[d.len() - 1])).collect();
    let mut run = None;
    for (packet, count) in said.iter().zip(&counts) {
        // The packet before the first is unknown here.
        if let Some(run) = run.replace(0) {
            assert_eq!(*count, (run > 0).then_some(run), "{counts:?}");
            let is_data = packet.header.packet_type().is_data_packet();
            let next = if is_data { 0 } else { run + 1 };
            assert!(count.is_none_or(|c| c == run));
            assert!(next <= 9);
        }
        let is_data = packet.header.packet_type().is_data_packet();
        run = Some(if is_data { 0 } else { count.unwrap_or(0) + 1 });
    }
    assert!(counts.contains(&Some(4)), "three Acks and a SyncAck before the data: {counts:?}");
}

//= 4340-15-7 test
//= 4340-15-8 test
//= 4340-15-9 test
#[test]
fn extensions_are_off_until_a_feature_turns_them_on() {
    let extras = [
        (FeatureNumber::SEND_NDP_COUNT, option_kind::NDP_COUNT),
        (FeatureNumber::CHECK_DATA_CHECKSUM, option_kind::DATA_CHECKSUM),
    ];
    for (feature, kind) in extras {
        let mut hand = Hand::open(SERVER);
        let mut said = vec![];
        (0..3).for_each(|_| said.extend(hand.give(udccp_wire::PacketType::Sync, &[], &[])));
        said.extend(hand.send(b"data"));
        assert!(said.iter().all(|p| option(p, kind).is_none()), "{feature} is off at first");
        let config = ConnectionConfig { ndp_count: true, data_checksum: true, ..plain() };
        let (_, request) = Hand::requesting(config.clone());
        let asks = |o: &udccp_wire::OptionValue| about(o, option_kind::CHANGE_R, feature.0);
        assert!(request.options.iter().any(asks), "{feature} is asked for");
        let mut hand = Hand::open_with(SERVER, config);
        let mut said = hand.give(udccp_wire::PacketType::Sync, &[], &[]);
        said.extend(hand.send(b"data"));
        assert!(said.iter().any(|p| option(p, kind).is_some()), "{feature} is on");
    }
}

//= 4340-12-1 test
//= 4340-12.1-1 test
#[test]
fn packets_are_ecn_capable() {
    let mut hand = Hand::open(SERVER);
    for text in [b"1", b"2"] {
        let d = hand.datagram(&hand.header(Data), &[], text);
        let now = hand.pair.now;
        udccp_base::Machine::handle_datagram(&mut hand.pair.net.ends[SERVER], now, d);
        hand.seq = hand.seq.next();
    }
    let said = hand.drain_datagrams();
    assert_eq!(
        said.iter().map(|d| (parse(d).header.packet_type(), d.ecn)).collect::<Vec<_>>(),
        [(Ack, Ecn::Ect0)]
    );
    let first = hand.give(Data, &[], b"a");
    assert_eq!(first, []);
    let header = hand.header(Data);
    let d = hand.datagram(&header, &[], b"b");
    hand.seq = hand.seq.next();
    let now = hand.pair.now;
    udccp_base::Machine::handle_datagram(&mut hand.pair.net.ends[SERVER], now, d);
    hand.pair.send(SERVER, b"data");
    let said = hand.drain_datagrams();
    assert!(!said.is_empty() && said.iter().all(|d| d.ecn == Ecn::Ect0));
    assert_eq!(hand.stats().state, State::Open);
}

//= 4340-12.1-4 test
//= 4340-12.2-3 test
#[test]
fn nothing_capable_is_sent_to_an_ecn_incapable_peer() {
    let mut hand = Hand::open(SERVER);
    let feature = FeatureNumber::ECN_INCAPABLE;
    let change = OptionRef::ChangeL { feature, value: &[1] };
    hand.give(Ack, &[OptionRef::Mandatory, change], &[]);
    hand.wait(millis(500));
    hand.pair.send(SERVER, b"data");
    let now = hand.pair.now;
    let said = hand.drain_datagrams();
    assert!(!said.is_empty() && said.iter().all(|d| d.ecn == Ecn::NotEct), "at {now}");
}

//= 4340-12.2-3 test
#[test]
fn an_end_without_ecn_echoes_zero_whatever_nonces_arrive() {
    let mut hand = Hand::open_with(SERVER, ConnectionConfig { ecn: false, ..plain() });
    let mut vectors = [0; 2];
    for n in 0..8 {
        hand.ecn = if n % 2 == 0 { Ecn::Ect1 } else { Ecn::Ect0 };
        let said = hand.give(DataAck, &[], b"data");
        let kinds = [option_kind::ACK_VECTOR_0, option_kind::ACK_VECTOR_1];
        for (sum, kind) in vectors.iter_mut().zip(kinds) {
            *sum += said.iter().filter(|p| option(p, kind).is_some()).count();
        }
    }
    assert_eq!(vectors, [4, 0]);
}

//= 4340-12.1-5 test
//= 4340-12.1-6 test
//= 4340-12.1-7 test
#[test]
fn an_end_without_ecn_says_so_first_and_waits_for_the_confirm() {
    let config = ConnectionConfig { ecn: false, ..plain() };
    let mut hand = Hand::listening(config);
    let says_so = |p: &Packet| {
        let at = p.options.iter().position(|o| about(o, option_kind::CHANGE_L, ECN_INCAPABLE));
        at.is_some_and(|i| p.options[i].data[1] == 1 && p.options[i - 1].kind == 1)
    };
    let first = hand.give(Request, &[], b"too early");
    assert_eq!(types(&first), [Response]);
    assert!(says_so(&first[0]));
    // The client does not confirm: the Change is repeated, and the client's data is dropped.
    let mut said = Vec::new();
    for _ in 0..5 {
        said.extend(hand.give(DataAck, &[], b"too early"));
        said.extend(hand.wait(Duration::from_secs(20)));
    }
    assert!(said.iter().filter(|p| says_so(p)).count() >= 3);
    assert_eq!(hand.read(), [b""; 0]);
    let dropped = said.iter().rev().find_map(|p| option(p, option_kind::DATA_DROPPED)).unwrap();
    assert!(dropped.iter().all(|b| *b >> 4 == 8), "code 0: {dropped:?}");
    let feature = FeatureNumber::ECN_INCAPABLE;
    hand.give(DataAck, &[OptionRef::ConfirmR { feature, value: &[1, 1] }], b"in time");
    assert_eq!(hand.read(), [b"in time"]);
    assert!(!hand.wait(Duration::from_secs(200)).iter().any(says_so));
}

//= 4340-13.1-1 test
//= 4340-13.2-4 test
//= 4340-13.3-1 test
//= 4340-13.3-3 test
#[test]
fn timestamps_are_echoed_with_the_time_that_passed() {
    let mut hand = Hand::open(SERVER);
    hand.give(Data, &[OptionRef::Timestamp(1)], b"first");
    hand.wait(millis(20));
    let said = hand.give(Data, &[OptionRef::Timestamp(77)], b"second");
    let echo = option(&said[0], option_kind::TIMESTAMP_ECHO);
    assert_eq!(echo, Some(&[0, 0, 0, 77][..]), "the newest, which did not wait");
    let mut hand = Hand::open(SERVER);
    let said = hand.give(Data, &[OptionRef::Timestamp(1)], b"first");
    assert_eq!(said, []);
    hand.wait(millis(30));
    let said = hand.send(b"data");
    let echo = option(&said[0], option_kind::TIMESTAMP_ECHO).unwrap();
    // 30 ms are 3000 units of 10 us.
    assert_eq!(echo, [0, 0, 0, 1, 0x0b, 0xb8]);
    let said = hand.send(b"more");
    assert_eq!(option(&said[0], option_kind::TIMESTAMP_ECHO), None, "echoed once");
}

//= 4340-14-1 test
//= 4340-14-2 test
//= 4340-14-5 test
//= 4340-14-6 test
//= 4340-14.1-1 test
#[test]
fn the_maximum_packet_size_is_known_and_leaves_room_for_headers() {
    for (path_mtu, mps) in [(1500, 1440), (1280, 1220), (9000, 8940)] {
        let mut hand = Hand::open_with(CLIENT, ConnectionConfig { path_mtu, ..plain() });
        assert_eq!(hand.stats().max_message_size, mps);
        let id = hand.pair.id(CLIENT);
        assert_eq!(hand.pair.ends[CLIENT].max_message_size(id), Some(mps));
        hand.pair.send(CLIENT, &vec![7; mps]);
        let said = hand.drain_datagrams();
        assert_eq!(parse(&said[0]).payload.len(), mps);
        assert!(said.iter().all(|d| d.ip_len() <= usize::from(path_mtu)));
        // One byte more is refused; packets are never fragmented.
        let (now, message) = (hand.pair.now, Message::new(Payload::Zeros(mps as u32 + 1)));
        let refused = hand.pair.ends[CLIENT].send(now, id, message).unwrap_err();
        assert!(matches!(refused, SendError::TooLarge { max: m, .. } if m == mps));
    }
}

//= 4340-14.1-6 test
//= 4340-14.2-7 test
//= 4340-14.2-8 test
#[test]
fn the_path_mtu_falls_only_for_a_packet_that_we_sent() {
    let mut hand = Hand::open(CLIENT);
    let (now, id) = (hand.pair.now, hand.pair.id(CLIENT));
    hand.pair.send(CLIENT, &[1; 1400]);
    let sent = hand.drain_datagrams().remove(0);
    let report = |hand: &mut Hand, quoted: &[u8], mtu| {
        let report = PathReport::PathMtu(mtu);
        hand.pair.ends[CLIENT].handle_path_report(now, sent.src, sent.dst, quoted, report);
        hand.pair.ends[CLIENT].max_message_size(id)
    };
    let mut guessed = sent.header.to_vec();
    guessed[10] ^= 0x40;
    assert_eq!(report(&mut hand, &guessed, 600), Some(1440), "no number of ours");
    assert_eq!(report(&mut hand, &sent.header[..12], 600), Some(1440), "no number at all");
    assert_eq!(report(&mut hand, &sent.header, 2000), Some(1440), "larger than it was");
    // Three more wait in the queue because the window is full.
    while hand.stats().send_queue_packets < 3 {
        hand.pair.send(CLIENT, &[1; 1400]);
        hand.drain();
    }
    assert_eq!(report(&mut hand, &sent.header, 1000), Some(940));
    hand.pair.collect();
    let dropped = |e: &&EventKind| matches!(e, EventKind::MessageDropped { bytes: 1400, .. });
    assert_eq!(hand.pair.events[CLIENT].iter().filter(dropped).count(), 3);
    let cells = OptionRef::AckVector { nonce: false, cells: &[3] };
    hand.give(Ack, &[cells], &[]);
    let said = hand.wait(Duration::from_secs(2));
    assert!(said.iter().all(|p| p.payload.is_empty()), "{:?}", types(&said));
    let message = Message::new(Payload::Zeros(941));
    let refused = hand.pair.ends[CLIENT].send(now, id, message).unwrap_err();
    assert!(matches!(refused, SendError::TooLarge { max: 940, .. }));
}

//= 4340-8.2-1 test
//= 4340-7.5.4-6 test
#[test]
fn a_sync_is_answered_at_once_by_a_sync_ack_of_its_number() {
    let mut hand = Hand::open(SERVER);
    for ahead in [1, 1, 20] {
        let seq = hand.seq.add(ahead);
        let said = hand.give_at(seq, hand.kind(udccp_wire::PacketType::Sync));
        assert_eq!((types(&said), said[0].header.kind.ack()), (vec![SyncAck], Some(seq)));
    }
    // So are several that arrive together, of which one may be a probe of the path.
    let syncs = [1, 2, 3].map(|n| hand.seq.add(n));
    for seq in syncs {
        let header = hand.header_at(seq, hand.kind(udccp_wire::PacketType::Sync));
        let (now, sync) = (hand.pair.now, hand.datagram(&header, &[], b""));
        hand.pair.ends[SERVER].handle_datagram(now, sync);
    }
    let said = hand.drain();
    let answered: Vec<_> = said.iter().filter_map(|p| p.header.kind.ack()).collect();
    assert_eq!((types(&said), answered), (vec![SyncAck; 3], syncs.to_vec()));
    hand.seq = syncs[2];
    // On a silent connection the number may be far outside the window.
    hand.wait(Duration::from_secs(60));
    let seq = hand.seq.add(100_000);
    let said = hand.give_at(seq, hand.kind(udccp_wire::PacketType::Sync));
    assert_eq!((types(&said), said[0].header.kind.ack()), (vec![SyncAck], Some(seq)));
    // GSR has advanced, so the window starts after it.
    let next = hand.give(Data, &[], b"data");
    assert!(next.iter().all(|p| p.header.packet_type() == Ack));
    assert_eq!(hand.read(), [b"data"]);
}
