//! Data Dropped with each of its codes, and Slow Receiver, between two applications.

mod common;

use bytes::{Bytes, BytesMut};
use common::{CLIENT, Net, Pair, SERVER, packet};
use udccp_base::{Datagram, Duration, Machine, Payload};
use udccp_proto::{ConnectionConfig, DropCode, EventKind, RecvError};
use udccp_wire::{PacketType, PacketView};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn pair_with(config: ConnectionConfig) -> Pair {
    Pair::connected_with(Net::new(117), config)
}

fn type_of(d: &Datagram) -> PacketType {
    PacketView::new(&d.header, d.transport_len()).unwrap().packet_type()
}

/// Sends a message whose data is damaged on the way, outside the coverage of the checksum.
fn send_damaged(pair: &mut Pair, from: usize, text: &[u8]) {
    pair.send(from, text);
    pair.filter = Some(Box::new(|_, d| !type_of(d).is_data_packet()));
    pair.drain();
    pair.filter = None;
    let whole = pair.last[from].clone().unwrap();
    let mut data = BytesMut::from(&whole.payload.to_bytes()[..]);
    *data.last_mut().unwrap() ^= 1;
    let damaged = Datagram { payload: Payload::Bytes(data.freeze()), ..whole };
    let now = pair.now;
    pair.ends[1 - from].handle_datagram(now, damaged);
    pair.pass(ms(500));
}

/// Settings with which damaged data passes the header checksum but not the Data Checksum.
fn partial() -> ConnectionConfig {
    ConnectionConfig { send_cscov: 1, min_cscov: 1, data_checksum: true, ..Default::default() }
}

fn drops(pair: &Pair, end: usize) -> Vec<(DropCode, u64)> {
    let of = |e: &EventKind| match *e {
        EventKind::PeerDropped { code, packets } => Some((code, packets)),
        _ => None,
    };
    pair.events[end].iter().filter_map(of).collect()
}

#[test]
fn drop_code_1_stops_the_sender() {
    for sender in [CLIENT, SERVER] {
        let mut pair = pair_with(ConnectionConfig::default());
        let reader = 1 - sender;
        let (now, id) = (pair.now, pair.id(reader));
        pair.ends[reader].shutdown_read(now, id);
        assert_eq!(pair.ends[reader].recv(now, id), Err(RecvError::ReadShutdown));
        pair.send(sender, b"one");
        pair.pass(ms(500));
        assert_eq!(drops(&pair, sender), [(DropCode::ApplicationNotListening, 1)]);
        assert!(pair.events[sender].contains(&EventKind::PeerShutdownRead));
        assert!(!pair.try_send(sender, b"two"));
        // The other direction continues.
        pair.send(reader, b"still here");
        pair.pass(ms(500));
        assert_eq!(pair.received(sender), [b"still here"]);
        assert_eq!(pair.stats(sender).counters.peer_drops.not_listening, 1);
    }
}

//= 4340-11.7-12 test
//= 4342-6.3-1 test
#[test]
fn drops_are_reported_until_acknowledged() {
    for ccid in [2, 3, 4] {
        let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
        let mut pair = pair_with(ConnectionConfig {
            tx_ccids,
            rx_ccids,
            recv_queue_packets: 4,
            hold_acks_when_full: false,
            ..Default::default()
        });
        let says_dropped = |pair: &Pair| {
            let last = pair.last[SERVER].as_ref().unwrap();
            packet::describe(last).contains("Data Dropped")
        };
        // The application does not read. Then acknowledgements of acknowledgements are lost.
        for _ in 0..40 {
            pair.try_send(CLIENT, b"data");
            pair.pass(ms(20));
        }
        assert!(says_dropped(&pair) && !drops(&pair, CLIENT).is_empty(), "CCID {ccid}");
        pair.received(SERVER);
        pair.filter = Some(Box::new(|from, d| from == SERVER || type_of(d) == PacketType::Data));
        for reported in [true, false] {
            for _ in 0..30 {
                pair.try_send(CLIENT, b"data");
                pair.pass(ms(40));
                pair.received(SERVER);
            }
            assert_eq!(says_dropped(&pair), reported, "CCID {ccid}");
            pair.filter = None;
        }
    }
}

#[test]
fn drop_code_2_lowers_the_rate_by_a_packet_per_round_trip() {
    for sender in [CLIENT, SERVER] {
        let full = ConnectionConfig {
            // One message is below the level at which the queue marks; two do not fit.
            recv_queue_bytes: 1000,
            hold_acks_when_full: false,
            ..Default::default()
        };
        let mut pair = pair_with(full);
        for n in 0..9_u8 {
            pair.send(sender, &[n; 700]);
            pair.pass(ms(40));
        }
        pair.pass(Duration::from_secs(3));
        let stats = pair.stats(sender);
        let dropped = pair.stats(1 - sender).counters.drops.receive_queue_full;
        assert_eq!(dropped, 8);
        assert_eq!(pair.received(1 - sender).len() as u64 + dropped, 9);
        assert_eq!(stats.counters.peer_drops.receive_buffer, dropped);
        assert!(drops(&pair, sender).iter().all(|(code, _)| *code == DropCode::ReceiveBuffer));
        assert_eq!(stats.congestion_events, 0, "it is no congestion of the network");
        assert!(stats.cwnd_packets == Some(1), "{:?}", stats.cwnd_packets);
    }
}

//= 4340-9.3-2 test
//= 4340-9.3-3 test
#[test]
fn drop_codes_3_and_7_report_corrupt_data() {
    for sender in [CLIENT, SERVER] {
        for deliver_corrupt in [false, true] {
            let mut pair = pair_with(ConnectionConfig { deliver_corrupt, ..partial() });
            let reader = 1 - sender;
            pair.send(sender, b"whole");
            pair.pass(ms(500));
            send_damaged(&mut pair, sender, b"damagee");
            pair.send(sender, b"whole again");
            pair.pass(ms(500));
            let (now, id) = (pair.now, pair.id(reader));
            let mut read = Vec::new();
            while let Ok(Some(message)) = pair.ends[reader].recv_with_meta(now, id) {
                read.push((message.payload.to_bytes(), message.is_corrupt));
            }
            let mut expected = vec![(&b"whole"[..], false), (b"damaged", true)];
            expected.push((b"whole again", false));
            expected.retain(|(_, is_corrupt)| deliver_corrupt || !is_corrupt);
            let read: Vec<(&[u8], bool)> = read.iter().map(|(b, c)| (&b[..], *c)).collect();
            assert_eq!(read, expected);
            let code = if deliver_corrupt { DropCode::DeliveredCorrupt } else { DropCode::Corrupt };
            assert_eq!(drops(&pair, sender), [(code, 1)]);
            assert_eq!(pair.stats(sender).congestion_events, 1, "as if marked");
            let counters = pair.stats(reader).counters;
            assert_eq!(counters.corrupt_delivered, u64::from(deliver_corrupt));
            assert_eq!(counters.drops.corrupt_payload, u64::from(!deliver_corrupt));
        }
    }
}

#[test]
fn drop_code_0_is_reported_and_keeps_the_window() {
    let mut pair = pair_with(ConnectionConfig { data_checksum: true, ..partial() });
    let before = pair.stats(CLIENT).cwnd_packets;
    let (now, id) = (pair.now, pair.id(CLIENT));
    let late = Bytes::from_static(b"partly covered");
    pair.ends[CLIENT].send(now, id, udccp_base::Message::new(Payload::Bytes(late))).unwrap();
    pair.filter = Some(Box::new(|_, d| !type_of(d).is_data_packet()));
    pair.drain();
    pair.filter = None;
    let sent = pair.last[CLIENT].clone().unwrap();
    let view = PacketView::new(&sent.header, sent.transport_len()).unwrap();
    assert_eq!(view.cscov(), 1);
    let seq = view.header().seq;
    // The receiver reports Drop Code 0.
    let now = pair.now;
    pair.ends[SERVER].handle_datagram(now, sent.clone());
    pair.drain();
    let like = pair.last[SERVER].clone().unwrap();
    let header = PacketView::new(&like.header, like.transport_len()).unwrap().header();
    let kind = udccp_wire::HeaderKind::Ack { ack: seq };
    let options = [
        udccp_wire::OptionRef::AckVector { nonce: false, cells: &[0] },
        udccp_wire::OptionRef::DataDropped(&[0x80]),
    ];
    let seq = header.seq.next();
    let ack = common::packet::forge(&like, kind, seq, &options);
    pair.ends[CLIENT].handle_datagram(now, ack);
    pair.collect();
    assert_eq!(drops(&pair, CLIENT), [(DropCode::ProtocolConstraints, 1)]);
    let stats = pair.stats(CLIENT);
    assert_eq!((stats.congestion_events, stats.cwnd_packets), (0, before));
    // The next data has full coverage.
    pair.send(CLIENT, b"covered");
    pair.drain();
    let sent = pair.last[CLIENT].clone().unwrap();
    assert_eq!(PacketView::new(&sent.header, sent.transport_len()).unwrap().cscov(), 0);
}

//= 4340-11.6-1 test
//= 4340-11.6-2 test
#[test]
fn a_slow_receiver_stops_growth_for_a_round_trip_time_at_a_time() {
    for sender in [CLIENT, SERVER] {
        let mut pair = pair_with(ConnectionConfig::default());
        let reader = 1 - sender;
        let burst = |pair: &mut Pair| {
            for n in 0..30_u8 {
                pair.send(sender, &[n; 1000]);
            }
            pair.pass(ms(200));
            assert_eq!(pair.received(reader).len(), 30);
            pair.stats(sender).cwnd_packets.unwrap()
        };
        let first = burst(&mut pair);
        let (now, id) = (pair.now, pair.id(reader));
        pair.ends[reader].set_slow_receiver(now, id, true);
        let slow = (0..3).map(|_| burst(&mut pair)).last().unwrap();
        assert_eq!(slow, first);
        let told = pair.events[sender].iter().filter(|e| **e == EventKind::PeerSlow).count();
        assert!((1..=6).contains(&told), "told {told} times, not for every packet");
        let now = pair.now;
        pair.ends[reader].set_slow_receiver(now, id, false);
        let after = (0..3).map(|_| burst(&mut pair)).last().unwrap();
        assert!(after > first, "{first} packets before, {after} after");
    }
}
