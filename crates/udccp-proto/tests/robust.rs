//! Random bytes, truncation, mutation, many connections: nothing panics, and everything is counted.

mod common;

use bytes::{Bytes, BytesMut};
use common::packet::{forge_with, in_one_piece, numbers};
use common::{CLIENT, Net, Pair, SERVER, connect_options, listen_config};
use udccp_base::{Datagram, Duration, Ecn, HeaderBytes, Machine, Message, Payload, Rng, Seed};
use udccp_proto::{ConnectionConfig, EventKind, State};
use udccp_wire::{HeaderKind, OptionRef, PseudoHeader, ResetCode, Seqno};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn open_pair(seed: u64) -> Pair {
    let mut pair = Pair::connected(seed);
    pair.send(CLIENT, b"up");
    pair.send(SERVER, b"down");
    pair.pass(Duration::from_secs(1));
    pair
}

/// Corrects the checksum of a packet's bytes.
fn fix_checksum(bytes: &mut [u8], d: &Datagram) {
    if bytes.len() < 8 {
        return;
    }
    bytes[6..8].fill(0);
    let mut sum = PseudoHeader::new(d.src.ip(), d.dst.ip()).sum(33, bytes.len());
    sum.add(bytes);
    bytes[6..8].copy_from_slice(&sum.checksum().to_be_bytes());
}

fn with_bytes(like: &Datagram, bytes: Vec<u8>) -> Datagram {
    Datagram { header: bytes.into(), payload: Payload::EMPTY, ..like.clone() }
}

#[test]
fn random_bytes_are_counted_and_ignored() {
    let mut pair = open_pair(1);
    let like = pair.last[SERVER].clone().unwrap();
    let mut rng = Seed(1).stream("garbage");
    for _ in 0..20_000 {
        let len = rng.below(100) as usize;
        let bytes = (0..len).map(|_| rng.next_u64() as u8).collect();
        pair.deliver(CLIENT, with_bytes(&like, bytes));
    }
    let stats = pair.ends[CLIENT].endpoint_stats();
    assert!(stats.malformed + stats.bad_checksum > 19_990, "{stats:?}");
    assert_eq!(pair.state(CLIENT), Some(State::Open));
}

#[test]
fn every_truncation_of_a_packet_is_ignored() {
    let mut pair = open_pair(2);
    pair.send(SERVER, &[5; 40]);
    pair.mute(SERVER);
    pair.drain();
    let whole = in_one_piece(pair.last[SERVER].as_ref().unwrap());
    for len in 0..whole.header.len() {
        pair.deliver(CLIENT, with_bytes(&whole, whole.header[..len].to_vec()));
    }
    let stats = pair.ends[CLIENT].endpoint_stats();
    assert_eq!(stats.malformed + stats.bad_checksum, whole.header.len() as u64);
    pair.received(CLIENT);
    pair.deliver(CLIENT, whole);
    assert_eq!(pair.received(CLIENT), [vec![5; 40]]);
}

/// Changes one to four random bytes, and corrects the checksum.
fn mutated(d: &Datagram, rng: &mut Rng) -> Datagram {
    let mut bytes = in_one_piece(d).header.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] = rng.next_u64() as u8;
    }
    if rng.chance(0.1) {
        bytes.truncate(rng.below(bytes.len() as u64) as usize);
    }
    fix_checksum(&mut bytes, d);
    with_bytes(d, bytes)
}

#[test]
fn mutated_packets_with_right_checksums_never_panic_in_any_state() {
    for seed in 0..60 {
        let mut rng = Seed(seed).stream("mutation");
        let config = ConnectionConfig {
            ndp_count: seed % 2 == 0,
            data_checksum: seed % 3 == 0,
            short_seqnos: seed % 5 == 0,
            ..ConnectionConfig::default()
        };
        let mut pair = Pair::starting(Net::new(seed), config.clone(), config);
        for round in 0..120 {
            for end in [CLIENT, SERVER] {
                if let Some(d) = pair.last[end].clone() {
                    for _ in 0..10 {
                        let d = mutated(&d, &mut rng);
                        pair.deliver(1 - end, d);
                    }
                }
            }
            if round % 3 == 0 {
                let end = (rng.next_u64() % 2) as usize;
                if pair.ids[end].is_some() {
                    pair.try_send(end, &[1; 100]);
                }
            }
            if round == 100 {
                pair.close(CLIENT);
            }
            pair.pass(ms(30));
        }
    }
}

#[test]
fn random_valid_packets_with_random_options_never_panic() {
    for seed in 0..40 {
        let mut rng = Seed(seed).stream("options");
        let mut pair = open_pair(seed);
        for _ in 0..300 {
            let like = pair.last[SERVER].clone().unwrap();
            let (_, seq, _) = numbers(&like);
            let ack = numbers(pair.last[CLIENT].as_ref().unwrap()).1.sub(rng.below(3));
            let kind = match rng.below(6) {
                0 => HeaderKind::Data,
                1 => HeaderKind::DataAck { ack },
                2 => HeaderKind::Sync { ack },
                3 => HeaderKind::SyncAck { ack },
                _ => HeaderKind::Ack { ack },
            };
            let data: Vec<Vec<u8>> = (0..3).map(|_| random_bytes(&mut rng, 12)).collect();
            let options: Vec<OptionRef<'_>> = data
                .iter()
                .map(|d| OptionRef::Unknown { kind: 32 + (rng.below(20) as u8), data: d })
                .collect();
            let d = forge_with(&like, kind, seq.next(), &options, Payload::Zeros(3));
            pair.last[SERVER] = Some(d.clone());
            pair.deliver(CLIENT, d);
            pair.received(CLIENT);
            if pair.state(CLIENT) != Some(State::Open) {
                break;
            }
        }
    }
}

fn random_bytes(rng: &mut Rng, most: u64) -> Vec<u8> {
    (0..rng.below(most)).map(|_| rng.next_u64() as u8).collect()
}

#[test]
fn out_of_the_blue_answers_are_rate_limited() {
    let mut net = Net::new(3);
    let like = Datagram {
        src: "10.9.9.9:0".parse().unwrap(),
        dst: "10.0.0.2:0".parse().unwrap(),
        protocol: Datagram::DCCP,
        ecn: Ecn::NotEct,
        header: HeaderBytes::EMPTY,
        payload: Payload::EMPTY,
    };
    let mut buf = BytesMut::new();
    let header = udccp_wire::Header {
        src_port: 1,
        dst_port: 2,
        ccval: 0,
        cscov: 0,
        x: true,
        seq: Seqno::new(1000),
        kind: HeaderKind::DataAck { ack: Seqno::new(77) },
    };
    let emitter = udccp_wire::Emitter::new(&mut buf, &header);
    emitter.finish(&PseudoHeader::new(like.src.ip(), like.dst.ip()), &[], 0);
    let stray = Datagram { header: buf.freeze().into(), ..like };
    for _ in 0..1000 {
        net.deliver(SERVER, stray.clone());
    }
    let stats = net.ends[SERVER].endpoint_stats();
    assert_eq!(
        (stats.out_of_the_blue_resets_sent, stats.out_of_the_blue_resets_limited),
        (100, 900)
    );
    // The numbers are taken from the packet.
    let (kind, seq, ack) = numbers(net.last[SERVER].as_ref().unwrap());
    assert!(matches!(kind, HeaderKind::Reset { code: ResetCode::NoConnection, .. }));
    assert_eq!((seq, ack), (Seqno::new(78), Some(Seqno::new(1000))));
    net.now += Duration::from_secs(1);
    net.deliver(SERVER, stray);
    assert_eq!(net.ends[SERVER].endpoint_stats().out_of_the_blue_resets_sent, 101);
}

#[test]
fn foreign_protocols_are_ignored() {
    let mut pair = open_pair(4);
    let d = pair.last[SERVER].clone().unwrap();
    pair.deliver(CLIENT, Datagram { protocol: Datagram::TCP, ..d });
    assert_eq!(pair.ends[CLIENT].endpoint_stats().malformed, 1);
}

#[test]
fn a_thousand_connections_share_two_endpoints() {
    let mut net = Net::new(5);
    let config = ConnectionConfig::default();
    let listen = udccp_proto::ListenConfig { backlog: 2000, ..listen_config(config.clone()) };
    let listener = net.ends[SERVER].listen(None, common::pair::PORT, listen).unwrap();
    let now = net.now;
    let clients: Vec<_> = (0..1000)
        .map(|_| net.ends[CLIENT].connect(now, connect_options(config.clone())).unwrap())
        .collect();
    for (n, id) in clients.iter().enumerate() {
        let text = Payload::Bytes(Bytes::from(format!("message of {n}")));
        net.ends[CLIENT].send(now, *id, Message::new(text)).unwrap();
    }
    net.run(Duration::from_secs(2));
    let servers: Vec<_> = std::iter::from_fn(|| net.ends[SERVER].accept(listener)).collect();
    assert_eq!(servers.len(), 1000);
    let now = net.now;
    let mut texts: Vec<String> = servers
        .iter()
        .map(|id| net.ends[SERVER].recv(now, *id).unwrap().unwrap().to_bytes())
        .map(|b| String::from_utf8(b.to_vec()).unwrap())
        .collect();
    texts.sort_by_key(|t| t[11..].parse::<u32>().unwrap());
    for (n, text) in texts.iter().enumerate() {
        assert_eq!(*text, format!("message of {n}"));
    }
    for id in clients {
        net.ends[CLIENT].release(now, id);
    }
    net.run(Duration::from_secs(2));
    assert_eq!(net.ends[CLIENT].endpoint_stats().connections, 0);
    for id in servers {
        net.ends[SERVER].release(net.now, id);
    }
    net.run(Duration::from_secs(1));
    assert_eq!(net.ends[SERVER].endpoint_stats().connections, 0);
}

#[test]
fn connections_take_turns() {
    let mut net = Net::new(6);
    let config = ConnectionConfig {
        ccid2: udccp_proto::ccid::Ccid2Config {
            initial_window: udccp_cc::InitialWindow::Packets(100),
            ..Default::default()
        },
        ..ConnectionConfig::default()
    };
    net.ends[SERVER].listen(None, common::pair::PORT, listen_config(config.clone())).unwrap();
    let now = net.now;
    let ids =
        [(); 3].map(|()| net.ends[CLIENT].connect(now, connect_options(config.clone())).unwrap());
    net.run(ms(200));
    let now = net.now;
    for id in ids {
        for _ in 0..60 {
            net.ends[CLIENT].send(now, id, Message::new(Payload::Zeros(10))).unwrap();
        }
    }
    let mut ports = Vec::new();
    while let Some(d) = net.ends[CLIENT].poll_transmit(now) {
        ports.push(u16::from_be_bytes([d.header[0], d.header[1]]));
    }
    assert_eq!(ports.len(), 180);
    let first_48: std::collections::BTreeSet<u16> = ports[..48].iter().copied().collect();
    assert_eq!(first_48.len(), 3, "sixteen of each in turn");
}

#[test]
fn stale_connection_ids_are_not_found() {
    let mut pair = open_pair(7);
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.ends[CLIENT].release(now, id);
    pair.pass(Duration::from_secs(300));
    let next = pair.net.ends[CLIENT].connect(now, connect_options(Default::default())).unwrap();
    assert_ne!(id, next);
    assert_eq!(pair.ends[CLIENT].state(id), None);
    assert!(pair.net.ends[CLIENT].recv(now, id).is_err());
    assert!(pair.net.ends[CLIENT].stats(id).is_none());
    assert!(!pair.ends[CLIENT].is_writable(id));
}

#[test]
fn events_come_in_order_and_once() {
    let mut pair = Pair::starting(Net::new(8), Default::default(), Default::default());
    pair.send(CLIENT, b"1");
    pair.send(CLIENT, b"2");
    pair.pass(ms(500));
    pair.close(CLIENT);
    pair.pass(ms(500));
    use udccp_proto::CloseReason::LocalClose;
    assert_eq!(pair.events[CLIENT], [EventKind::Connected, EventKind::Closed(LocalClose)]);
}
