//! RFC 4340 sections 7.6, 7.7, 12, 13 and 14: short numbers, NDP Count, ECN, time and sizes.

mod common;
mod spec_support;

use common::{CLIENT, SERVER};
use spec_support::{Harness, about, option, parse, plain, types};
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
fn short_sequence_numbers_require_agreement() {
    let short = |harness: &mut Harness, ty| Header { x: false, ..harness.header(ty) };
    let mut harness = Harness::open(SERVER);
    let header = short(&mut harness, DataAck);
    assert_eq!(harness.deliver_header(&header, &[], b"short"), []);
    assert_eq!(harness.read(), [b""; 0]);
    let packets = harness.send(b"data");
    assert!(packets.iter().all(|p| p.header.x));

    let config = ConnectionConfig { short_seqnos: true, ..plain() };
    let mut harness = Harness::open_with(SERVER, config);
    let header = short(&mut harness, DataAck);
    harness.deliver_header(&header, &[], b"short");
    assert_eq!(harness.read(), [b"short"]);
    let packets = harness.send(b"data");
    assert!(packets.iter().all(|p| !p.header.x));
    let packets = harness.deliver(Close, &[], &[]);
    assert!(packets[0].header.x, "a Reset is never short");
}

//= 4340-5.1-10 test
//= 4340-7.5.5-1 test
//= 4340-7.6.2-1 test
#[test]
fn wide_windows_require_long_sequence_numbers() {
    let config = ConnectionConfig { short_seqnos: true, sequence_window: 5000, ..plain() };
    let mut harness = Harness::open_with(SERVER, config);
    assert!(harness.send(b"data").iter().all(|p| p.header.x));
    // Also where the peer would accept short ones.
    for (window, x) in [([0, 0, 0, 0, 4, 0], false), ([0, 0, 0, 0, 4, 1], true)] {
        let sequence_window = 1024 + u64::from(window[5]);
        let config = ConnectionConfig { short_seqnos: true, sequence_window, ..plain() };
        let (mut harness, _) = Harness::requesting(config);
        let feature = FeatureNumber::ALLOW_SHORT_SEQNOS;
        let yes = OptionRef::ConfirmR { feature, value: &[1, 1] };
        let window =
            OptionRef::ConfirmR { feature: FeatureNumber::SEQUENCE_WINDOW, value: &window };
        let packets = harness.deliver(Response, &[yes, window], &[]);
        assert_eq!((types(&packets), packets[0].header.x), (vec![Ack], x), "{sequence_window}");
    }

    let config = ConnectionConfig { short_seqnos: true, ..plain() };
    let mut harness = Harness::open_with(SERVER, config);
    let feature = FeatureNumber::SEQUENCE_WINDOW;
    let change = OptionRef::ChangeL { feature, value: &[0, 0, 0, 0, 32, 0] };
    let header = Header { x: false, ..harness.header(Ack) };
    let packets =
        [harness.deliver_header(&header, &[change], &[]), harness.wait(millis(500))].concat();
    let short = FeatureNumber::ALLOW_SHORT_SEQNOS.0;
    let options: Vec<_> = packets.iter().flat_map(|p| &p.options).collect();
    let refuses = |o: &&&udccp_wire::OptionValue| about(o, option_kind::CHANGE_R, short);
    assert_eq!(options.iter().find(refuses).map(|o| o.data[1]), Some(0));
}

/// RFC 4340 section 6.6.3: an option is first repeated after about a round-trip time.
#[test]
fn options_are_repeated_in_the_time_that_the_handshake_measured() {
    for end in [CLIENT, SERVER] {
        let config = ConnectionConfig { short_seqnos: true, ..ConnectionConfig::default() };
        let mut harness = Harness::open_with(end, config);
        let feature = FeatureNumber::SEQUENCE_WINDOW;
        let change = OptionRef::ChangeL { feature, value: &[0, 0, 0, 0, 32, 0] };
        let short = FeatureNumber::ALLOW_SHORT_SEQNOS.0;
        let asks = |p: &&Packet| p.options.iter().any(|o| about(o, option_kind::CHANGE_R, short));
        let header = Header { x: false, ..harness.header(Ack) };
        let first =
            [harness.deliver_header(&header, &[change], &[]), harness.wait(millis(30))].concat();
        assert_eq!(first.iter().filter(asks).count(), 1, "a round trip after the Confirm");
        // The round trip takes 20 ms. The first repetition is after 100 ms, the next after 200 ms.
        let again = harness.wait(millis(400));
        assert_eq!(again.iter().filter(asks).count(), 2, "host {end}");
    }
}

//= 4340-7.7-1 test
//= 4340-7.7.2-1 test
#[test]
fn ndp_count_follows_every_run_of_non_data_packets() {
    let mut harness = Harness::open(SERVER);
    let feature = FeatureNumber::SEND_NDP_COUNT;
    harness.deliver(Ack, &[OptionRef::ChangeR { feature, value: &[1] }], &[]);
    let mut packets = harness.wait(millis(500));
    packets.extend(harness.send(b"data"));
    packets.extend(harness.send(b"data"));
    for _ in 0..3 {
        harness.deliver(Data, &[], b"a");
        packets.extend(harness.deliver(Data, &[], b"b"));
    }
    packets.extend(harness.deliver(udccp_wire::PacketType::Sync, &[], &[]));
    packets.extend(harness.send(b"data"));
    packets.extend(harness.send(b"data"));
    let counts: Vec<Option<u8>> =
        packets.iter().map(|p| option(p, option_kind::NDP_COUNT).map(|d| d[d.len() - 1])).collect();
    let mut run = None;
    for (packet, count) in packets.iter().zip(&counts) {
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
        let mut harness = Harness::open(SERVER);
        let mut packets = vec![];
        (0..3)
            .for_each(|_| packets.extend(harness.deliver(udccp_wire::PacketType::Sync, &[], &[])));
        packets.extend(harness.send(b"data"));
        assert!(packets.iter().all(|p| option(p, kind).is_none()), "{feature} is off at first");
        let config = ConnectionConfig { ndp_count: true, data_checksum: true, ..plain() };
        let (_, request) = Harness::requesting(config.clone());
        let asks = |o: &udccp_wire::OptionValue| about(o, option_kind::CHANGE_R, feature.0);
        assert!(request.options.iter().any(asks), "{feature} is asked for");
        let mut harness = Harness::open_with(SERVER, config);
        let mut packets = harness.deliver(udccp_wire::PacketType::Sync, &[], &[]);
        packets.extend(harness.send(b"data"));
        assert!(packets.iter().any(|p| option(p, kind).is_some()), "{feature} is on");
    }
}

//= 4340-12-1 test
//= 4340-12.1-1 test
#[test]
fn packets_are_ecn_capable() {
    let mut harness = Harness::open(SERVER);
    for text in [b"1", b"2"] {
        let d = harness.datagram(&harness.header(Data), &[], text);
        let now = harness.pair.now;
        udccp_base::Machine::handle_datagram(&mut harness.pair.net.ends[SERVER], now, d);
        harness.seq = harness.seq.next();
    }
    let packets = harness.drain_datagrams();
    assert_eq!(
        packets.iter().map(|d| (parse(d).header.packet_type(), d.ecn)).collect::<Vec<_>>(),
        [(Ack, Ecn::Ect0)]
    );
    let first = harness.deliver(Data, &[], b"a");
    assert_eq!(first, []);
    let header = harness.header(Data);
    let d = harness.datagram(&header, &[], b"b");
    harness.seq = harness.seq.next();
    let now = harness.pair.now;
    udccp_base::Machine::handle_datagram(&mut harness.pair.net.ends[SERVER], now, d);
    harness.pair.send(SERVER, b"data");
    let packets = harness.drain_datagrams();
    assert!(!packets.is_empty() && packets.iter().all(|d| d.ecn == Ecn::Ect0));
    assert_eq!(harness.stats().state, State::Open);
}

//= 4340-12.1-4 test
//= 4340-12.2-3 test
#[test]
fn nothing_capable_is_sent_to_an_ecn_incapable_peer() {
    let mut harness = Harness::open(SERVER);
    let feature = FeatureNumber::ECN_INCAPABLE;
    let change = OptionRef::ChangeL { feature, value: &[1] };
    harness.deliver(Ack, &[OptionRef::Mandatory, change], &[]);
    harness.wait(millis(500));
    harness.pair.send(SERVER, b"data");
    let now = harness.pair.now;
    let packets = harness.drain_datagrams();
    assert!(!packets.is_empty() && packets.iter().all(|d| d.ecn == Ecn::NotEct), "at {now}");
}

//= 4340-12.2-3 test
#[test]
fn an_end_without_ecn_echoes_zero_whatever_nonces_arrive() {
    let mut harness = Harness::open_with(SERVER, ConnectionConfig { ecn: false, ..plain() });
    let mut vectors = [0; 2];
    for n in 0..8 {
        harness.ecn = if n % 2 == 0 { Ecn::Ect1 } else { Ecn::Ect0 };
        let packets = harness.deliver(DataAck, &[], b"data");
        let kinds = [option_kind::ACK_VECTOR_0, option_kind::ACK_VECTOR_1];
        for (sum, kind) in vectors.iter_mut().zip(kinds) {
            *sum += packets.iter().filter(|p| option(p, kind).is_some()).count();
        }
    }
    assert_eq!(vectors, [4, 0]);
}

//= 4340-12.1-5 test
//= 4340-12.1-6 test
//= 4340-12.1-7 test
#[test]
fn an_end_without_ecn_announces_it_first_and_waits_for_the_confirm() {
    let config = ConnectionConfig { ecn: false, ..plain() };
    let mut harness = Harness::listening(config);
    let says_so = |p: &Packet| {
        let at = p.options.iter().position(|o| about(o, option_kind::CHANGE_L, ECN_INCAPABLE));
        at.is_some_and(|i| p.options[i].data[1] == 1 && p.options[i - 1].kind == 1)
    };
    let first = harness.deliver(Request, &[], b"too early");
    assert_eq!(types(&first), [Response]);
    assert!(says_so(&first[0]));
    // The client does not confirm: the Change is repeated, and the client's data is dropped.
    let mut packets = Vec::new();
    for _ in 0..5 {
        packets.extend(harness.deliver(DataAck, &[], b"too early"));
        packets.extend(harness.wait(Duration::from_secs(20)));
    }
    assert!(packets.iter().filter(|p| says_so(p)).count() >= 3);
    assert_eq!(harness.read(), [b""; 0]);
    let dropped = packets.iter().rev().find_map(|p| option(p, option_kind::DATA_DROPPED)).unwrap();
    assert!(dropped.iter().all(|b| *b >> 4 == 8), "code 0: {dropped:?}");
    let feature = FeatureNumber::ECN_INCAPABLE;
    harness.deliver(DataAck, &[OptionRef::ConfirmR { feature, value: &[1, 1] }], b"in time");
    assert_eq!(harness.read(), [b"in time"]);
    assert!(!harness.wait(Duration::from_secs(200)).iter().any(says_so));
}

//= 4340-13.1-1 test
//= 4340-13.2-4 test
//= 4340-13.3-1 test
//= 4340-13.3-3 test
#[test]
fn timestamps_are_echoed_with_the_time_that_passed() {
    let mut harness = Harness::open(SERVER);
    harness.deliver(Data, &[OptionRef::Timestamp(1)], b"first");
    harness.wait(millis(20));
    let packets = harness.deliver(Data, &[OptionRef::Timestamp(77)], b"second");
    let echo = option(&packets[0], option_kind::TIMESTAMP_ECHO);
    assert_eq!(echo, Some(&[0, 0, 0, 77][..]), "the newest, which did not wait");
    let mut harness = Harness::open(SERVER);
    let packets = harness.deliver(Data, &[OptionRef::Timestamp(1)], b"first");
    assert_eq!(packets, []);
    harness.wait(millis(30));
    let packets = harness.send(b"data");
    let echo = option(&packets[0], option_kind::TIMESTAMP_ECHO).unwrap();
    // 30 ms are 3000 units of 10 us.
    assert_eq!(echo, [0, 0, 0, 1, 0x0b, 0xb8]);
    let packets = harness.send(b"more");
    assert_eq!(option(&packets[0], option_kind::TIMESTAMP_ECHO), None, "echoed once");
}

//= 4340-14-1 test
//= 4340-14-2 test
//= 4340-14-5 test
//= 4340-14-6 test
//= 4340-14.1-1 test
#[test]
fn the_maximum_packet_size_is_known_and_leaves_room_for_headers() {
    for (path_mtu, mps) in [(1500, 1440), (1280, 1220), (9000, 8940)] {
        let mut harness = Harness::open_with(CLIENT, ConnectionConfig { path_mtu, ..plain() });
        assert_eq!(harness.stats().max_message_size, mps);
        let id = harness.pair.id(CLIENT);
        assert_eq!(harness.pair.ends[CLIENT].max_message_size(id), Some(mps));
        harness.pair.send(CLIENT, &vec![7; mps]);
        let packets = harness.drain_datagrams();
        assert_eq!(parse(&packets[0]).payload.len(), mps);
        assert!(packets.iter().all(|d| d.ip_len() <= usize::from(path_mtu)));
        // One byte more is refused; packets are never fragmented.
        let (now, message) = (harness.pair.now, Message::new(Payload::Zeros(mps as u32 + 1)));
        let refused = harness.pair.ends[CLIENT].send(now, id, message).unwrap_err();
        assert!(matches!(refused, SendError::TooLarge { max: m, .. } if m == mps));
    }
}

//= 4340-14.1-6 test
//= 4340-14.2-7 test
//= 4340-14.2-8 test
#[test]
fn the_path_mtu_falls_only_for_a_packet_that_we_sent() {
    let mut harness = Harness::open(CLIENT);
    let (now, id) = (harness.pair.now, harness.pair.id(CLIENT));
    harness.pair.send(CLIENT, &[1; 1400]);
    let sent = harness.drain_datagrams().remove(0);
    let report = |harness: &mut Harness, quoted: &[u8], mtu| {
        let report = PathReport::PathMtu(mtu);
        harness.pair.ends[CLIENT].handle_path_report(now, sent.src, sent.dst, quoted, report);
        harness.pair.ends[CLIENT].max_message_size(id)
    };
    let mut guessed = sent.header.to_vec();
    guessed[10] ^= 0x40;
    assert_eq!(report(&mut harness, &guessed, 600), Some(1440), "no number of ours");
    assert_eq!(report(&mut harness, &sent.header[..12], 600), Some(1440), "no number at all");
    assert_eq!(report(&mut harness, &sent.header, 2000), Some(1440), "larger than it was");
    // Three more wait in the queue because the window is full.
    while harness.stats().send_queue_packets < 3 {
        harness.pair.send(CLIENT, &[1; 1400]);
        harness.drain();
    }
    assert_eq!(report(&mut harness, &sent.header, 1000), Some(940));
    harness.pair.collect();
    let dropped = |e: &&EventKind| matches!(e, EventKind::MessageDropped { bytes: 1400, .. });
    assert_eq!(harness.pair.events[CLIENT].iter().filter(dropped).count(), 3);
    let cells = OptionRef::AckVector { nonce: false, cells: &[3] };
    harness.deliver(Ack, &[cells], &[]);
    let packets = harness.wait(Duration::from_secs(2));
    assert!(packets.iter().all(|p| p.payload.is_empty()), "{:?}", types(&packets));
    let message = Message::new(Payload::Zeros(941));
    let refused = harness.pair.ends[CLIENT].send(now, id, message).unwrap_err();
    assert!(matches!(refused, SendError::TooLarge { max: 940, .. }));
}

//= 4340-8.2-1 test
//= 4340-7.5.4-6 test
#[test]
fn a_sync_is_answered_at_once_by_a_sync_ack_of_its_number() {
    let mut harness = Harness::open(SERVER);
    for ahead in [1, 1, 20] {
        let seq = harness.seq.add(ahead);
        let packets = harness.deliver_at(seq, harness.kind(udccp_wire::PacketType::Sync));
        assert_eq!((types(&packets), packets[0].header.kind.ack()), (vec![SyncAck], Some(seq)));
    }
    // So are several that arrive together, of which one may be a probe of the path.
    let syncs = [1, 2, 3].map(|n| harness.seq.add(n));
    for seq in syncs {
        let header = harness.header_at(seq, harness.kind(udccp_wire::PacketType::Sync));
        let (now, sync) = (harness.pair.now, harness.datagram(&header, &[], b""));
        harness.pair.ends[SERVER].handle_datagram(now, sync);
    }
    let packets = harness.drain();
    let answered: Vec<_> = packets.iter().filter_map(|p| p.header.kind.ack()).collect();
    assert_eq!((types(&packets), answered), (vec![SyncAck; 3], syncs.to_vec()));
    harness.seq = syncs[2];
    // On a silent connection the number may be far outside the window.
    harness.wait(Duration::from_secs(60));
    let seq = harness.seq.add(100_000);
    let packets = harness.deliver_at(seq, harness.kind(udccp_wire::PacketType::Sync));
    assert_eq!((types(&packets), packets[0].header.kind.ack()), (vec![SyncAck], Some(seq)));
    // GSR has advanced, so the window starts after it.
    let next = harness.deliver(Data, &[], b"data");
    assert!(next.iter().all(|p| p.header.packet_type() == Ack));
    assert_eq!(harness.read(), [b"data"]);
}
