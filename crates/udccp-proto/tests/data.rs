//! Data: queues, backpressure, deadlines, priorities, impaired networks, slow readers.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use common::{CLIENT, Impairments, Net, Pair, SERVER};
use udccp_base::{Duration, Machine, Message, Payload};
use udccp_cc::InitialWindow;
use udccp_proto::{ConnectionConfig, ConnectionId, DropReason, EventKind, QueuePolicy, SendError};
use udccp_wire::PacketType;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn numbered(n: u32) -> Message {
    let mut data = vec![0; 1000];
    data[..4].copy_from_slice(&n.to_be_bytes());
    Message::new(Payload::Bytes(Bytes::from(data)))
}

fn number_of(message: &[u8]) -> u32 {
    u32::from_be_bytes(message[..4].try_into().unwrap())
}

/// Sends as many messages as are accepted.
fn pump(pair: &mut Pair, end: usize, next: &mut u32, last: u32) {
    let (now, id) = (pair.now, pair.id(end));
    while *next < last && pair.ends[end].is_writable(id) {
        pair.ends[end].send(now, id, numbered(*next)).unwrap();
        *next += 1;
    }
}

#[test]
fn trains_acknowledge_the_peers_acknowledgements_after_the_data() {
    for (max_train, on_data) in [(1, true), (43, false)] {
        let mut net = Net::new(3);
        net.delay = ms(1);
        let sent = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&sent);
        net.filter = Some(Box::new(move |from, d| {
            log.borrow_mut().extend(PacketType::peek(&d.header).filter(|_| from == CLIENT));
            true
        }));
        let mut config = ConnectionConfig::default();
        config.ccid2.initial_window = InitialWindow::Packets(400);
        (config.ccid2.max_train, config.send_queue_packets) = (max_train, 1000);
        let mut pair = Pair::connected_with(net, config);
        let (mut next, id) = (0, pair.id(SERVER));
        for _ in 0..200 {
            pump(&mut pair, CLIENT, &mut next, 10_000);
            pair.pass(ms(1));
            let now = pair.now;
            while let Ok(Some(_)) = pair.ends[SERVER].recv(now, id) {}
        }
        let sent = sent.borrow();
        let late = &sent[sent.len() / 2..];
        assert_eq!(next, 10_000);
        assert_eq!(late.contains(&PacketType::DataAck), on_data);
        assert_eq!(late.contains(&PacketType::Ack), !on_data);
        let without = late.split(|ty| *ty != PacketType::Data).map(<[_]>::len).max();
        assert!(without < Some(2 * 512), "{without:?} without an Ack Number");
    }
}

#[test]
fn nothing_is_lost_while_the_reader_is_slow() {
    let mut net = Net::new(2);
    net.delay = Duration::from_micros(50);
    net.spacing = Duration::from_micros(10);
    let mut pair = Pair::connected_with(net, ConnectionConfig::default());
    let (mut next, mut got) = (0, 0_u32);
    let total = 20_000;
    let mut rounds = 0;
    while got < total {
        pump(&mut pair, CLIENT, &mut next, total);
        pair.pass(ms(1));
        rounds += 1;
        assert!(rounds < 100_000, "stuck at {got}: {:?} {:?}", pair.stats(0), pair.stats(1));
        // The reader stalls for half a second now and then. At other times it reads a few messages.
        if rounds % 2000 < 500 {
            continue;
        }
        let (now, id) = (pair.now, pair.id(SERVER));
        for _ in 0..20 {
            let Ok(Some(p)) = pair.ends[SERVER].recv(now, id) else { break };
            assert_eq!(number_of(&p.to_bytes()), got, "in order and complete");
            got += 1;
        }
    }
    let (c, s) = (pair.stats(CLIENT).counters, pair.stats(SERVER).counters);
    assert_eq!((s.drops.receive_queue_full, c.data_packets_lost), (0, 0));
    assert!(s.acks_held > 0, "the reader was never too slow");
}

#[test]
fn held_acks_leave_when_the_reader_empties_the_queue() {
    let takes: [fn(&mut Pair, ConnectionId); 2] = [
        |pair, id| assert!(pair.ends[SERVER].take_received(id) > 0),
        |pair, _| assert!(!pair.received(SERVER).is_empty()),
    ];
    for take in takes {
        let mut pair = Pair::connected_with(Net::new(2), ConnectionConfig::default());
        let mut next = 0;
        while pair.stats(SERVER).counters.acks_held == 0 {
            pump(&mut pair, CLIENT, &mut next, 1_000_000);
            pair.pass(ms(10));
        }
        pair.pass(ms(500));
        let acks = |pair: &Pair| pair.stats(SERVER).counters.acks_sent;
        let (before, id) = (acks(&pair), pair.id(SERVER));
        take(&mut pair, id);
        pair.drain();
        assert_eq!(acks(&pair) - before, 1);
    }
}

/// While acknowledgements wait, one leaves with data, so that none is owed when the reader has
/// read. From then on they wait no more: the next message has its acknowledgement in time.
#[test]
fn acknowledgements_do_not_wait_once_the_reader_has_caught_up() {
    let reads: [fn(&mut Pair); 2] = [
        |pair| assert!(!pair.received(SERVER).is_empty()),
        |pair| {
            let (now, id) = (pair.now, pair.id(SERVER));
            pair.ends[SERVER].shutdown_read(now, id);
        },
    ];
    for read in reads {
        let config = ConnectionConfig { recv_queue_packets: 16, ..ConnectionConfig::default() };
        let mut pair = Pair::connected_with(Net::new(2), config);
        while pair.stats(SERVER).counters.acks_held == 0 {
            pair.send(CLIENT, b"waits to be read");
            pair.pass(ms(100));
        }
        let is_all_acked = |pair: &Pair| {
            let c = pair.stats(CLIENT).counters;
            c.data_packets_acked == c.data_packets_sent
        };
        while !is_all_acked(&pair) {
            pair.send(SERVER, b"may carry one");
            pair.pass(ms(100));
        }
        let before = pair.stats(CLIENT);
        read(&mut pair);
        pair.pass(ms(1000));
        pair.send(CLIENT, b"one message");
        pair.pass(ms(1000));
        let after = pair.stats(CLIENT);
        assert_eq!(after.counters.data_packets_acked, before.counters.data_packets_acked + 1);
        assert_eq!(after.timeouts, before.timeouts);
    }
}

/// Regression: each message of one end took the acknowledgement along with which the other end went
/// on sending, and all were dropped.
#[test]
fn nothing_is_lost_while_both_ends_send_and_neither_reads() {
    let mut net = Net::new(2);
    net.delay = Duration::from_micros(50);
    net.spacing = Duration::from_micros(10);
    let mut pair = Pair::connected_with(net, ConnectionConfig::default());
    let mut next = [0; 2];
    for round in 0..10_000 {
        pump(&mut pair, CLIENT, &mut next[CLIENT], u32::MAX);
        if round > 100 {
            pump(&mut pair, SERVER, &mut next[SERVER], u32::MAX);
        }
        pair.pass(ms(1));
    }
    for end in [CLIENT, SERVER] {
        let c = pair.stats(end).counters;
        assert!(c.acks_held > 0, "{c:?}");
        assert!(c.drops.receive_queue_full <= 1, "{c:?}");
    }
    // Once they read, all goes on.
    for end in [CLIENT, SERVER] {
        assert!(!pair.received(end).is_empty());
    }
    let before = pair.stats(CLIENT).counters.data_packets_received;
    pair.pass(ms(1000));
    assert!(pair.stats(CLIENT).counters.data_packets_received > before);
}

#[test]
fn stalled_reader_keeps_data_and_connection_for_an_hour() {
    let mut net = Net::new(3);
    net.delay = ms(1);
    net.spacing = Duration::from_micros(10);
    let mut pair = Pair::connected_with(net, ConnectionConfig::default());
    let mut next = 0;
    for _ in 0..3600 {
        pump(&mut pair, CLIENT, &mut next, 1_000_000);
        pair.pass(Duration::from_secs(1));
    }
    let queued = pair.received(SERVER);
    assert_eq!(queued.len() as u64, pair.stats(CLIENT).counters.data_packets_sent);
    for (n, message) in queued.iter().enumerate() {
        assert_eq!(number_of(message), n as u32);
    }
    let before = pair.stats(CLIENT).counters.data_packets_sent;
    for _ in 0..200 {
        pump(&mut pair, CLIENT, &mut next, 1_000_000);
        pair.pass(ms(500));
        pair.received(SERVER);
    }
    let after = pair.stats(CLIENT).counters.data_packets_sent;
    assert!(after > before + 1000, "it never got going again: {before} {after}");
}

#[test]
fn without_held_acks_an_overflow_is_reported_and_the_peer_slows_down() {
    let mut net = Net::new(4);
    net.delay = ms(5);
    net.spacing = Duration::from_micros(50);
    let config = ConnectionConfig {
        hold_acks_when_full: false,
        recv_queue_packets: 20,
        ..ConnectionConfig::default()
    };
    let mut pair = Pair::connected_with(net, config);
    let mut next = 0;
    let mut got = 0;
    for _ in 0..4000 {
        pump(&mut pair, CLIENT, &mut next, 1_000_000);
        pair.pass(ms(1));
        let (now, id) = (pair.now, pair.id(SERVER));
        got += u64::from(matches!(pair.ends[SERVER].recv(now, id), Ok(Some(_))));
    }
    let (c, s) = (pair.stats(CLIENT), pair.stats(SERVER));
    let full = s.counters.drops.receive_queue_full;
    let arrived = s.counters.data_packets_received;
    assert_eq!(got + full + s.recv_queue_packets as u64, arrived);
    // One message is read per millisecond; the window settles near what that allows.
    assert!(full * 5 < arrived, "{full} of {arrived} dropped");
    assert!(c.cwnd_packets.unwrap() < 60, "{c:?}");
}

#[test]
fn full_queue_refuses_messages_and_reports_new_space() {
    let config = ConnectionConfig { send_queue_packets: 6, ..ConnectionConfig::default() };
    let mut pair = Pair::connected_with(Net::new(5), config);
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.events = Default::default();
    for n in 0..6 {
        assert_eq!(pair.ends[CLIENT].send_queue_free(id), 6 - n);
        pair.net.ends[CLIENT].send(now, id, numbered(n as u32)).unwrap();
    }
    assert!(!pair.ends[CLIENT].is_writable(id));
    let refused = pair.net.ends[CLIENT].send(now, id, numbered(99)).unwrap_err();
    assert!(matches!(&refused, SendError::Full(_)));
    assert_eq!(refused.into_message(), numbered(99));
    // The first window carries three, so half of the queue is free at once.
    pair.drain();
    pair.collect();
    assert_eq!(pair.events[CLIENT], [EventKind::Writable]);
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.received(SERVER).len(), 6);
    assert_eq!(pair.events[CLIENT], [EventKind::Writable], "said once");
}

#[test]
fn a_message_too_large_for_a_packet_comes_back() {
    let mut pair = Pair::connected(6);
    let (now, id) = (pair.now, pair.id(CLIENT));
    let large = Message::new(Payload::Zeros(1441));
    let refused = pair.net.ends[CLIENT].send(now, id, large.clone()).unwrap_err();
    assert_eq!(refused, SendError::TooLarge { max: 1440, message: large });
    let most = Message::new(Payload::Zeros(1440));
    for _ in 0..20 {
        pair.net.ends[CLIENT].send(now, id, most.clone()).unwrap();
        pair.net.ends[CLIENT].set_path_mtu(now, id, 1500);
    }
    let largest = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = largest.clone();
    pair.filter = Some(Box::new(move |_, d| {
        seen.set(seen.get().max(d.ip_len()));
        true
    }));
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.received(SERVER).len(), 20);
    assert!((1476..=1500).contains(&largest.get()), "{}", largest.get());
}

#[test]
fn queued_messages_that_a_smaller_path_cannot_take_are_dropped_and_reported() {
    let mut pair = Pair::connected(7);
    pair.mute(SERVER);
    for size in [1400, 500, 1400, 1400, 500, 1400, 500] {
        pair.send(CLIENT, &vec![0; size]);
    }
    pair.drain();
    let waiting = pair.stats(CLIENT).send_queue_packets;
    pair.events = Default::default();
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.ends[CLIENT].set_path_mtu(now, id, 576);
    pair.collect();
    let dropped = EventKind::MessageDropped { reason: DropReason::TooLarge, bytes: 1400 };
    assert_eq!(pair.events[CLIENT].remove(0), EventKind::MaxMessageSize { bytes: 516 });
    assert!(!pair.events[CLIENT].is_empty());
    assert!(pair.events[CLIENT].iter().all(|kind| *kind == dropped));
    let gone = pair.events[CLIENT].len();
    assert_eq!(pair.stats(CLIENT).send_queue_packets, waiting - gone);
    assert_eq!(pair.stats(CLIENT).counters.drops.send_too_large, gone as u64);
}

/// Sends with a priority and optionally a deadline.
fn send(pair: &mut Pair, id: ConnectionId, text: &'static [u8], priority: u32, until: Option<u64>) {
    let now = pair.now;
    let deadline = until.map(|n| now + ms(n));
    let payload = Payload::Bytes(Bytes::from_static(text));
    pair.net.ends[CLIENT]
        .send(now, id, Message { deadline, priority, ..Message::new(payload) })
        .unwrap();
}

#[test]
fn priorities_and_deadlines_decide_what_leaves() {
    let mut pair = Pair::connected(8);
    let id = pair.id(CLIENT);
    pair.mute(SERVER);
    // Fill the window, so that the other messages wait for a second.
    for _ in 0..3 {
        send(&mut pair, id, b"first", 0, None);
    }
    pair.drain();
    pair.events = Default::default();
    send(&mut pair, id, b"low", 0, None);
    send(&mut pair, id, b"old", 9, Some(50));
    send(&mut pair, id, b"high", 9, Some(60_000));
    send(&mut pair, id, b"low too", 0, Some(60_000));
    pair.pass(ms(49));
    assert_eq!(pair.events[CLIENT], []);
    pair.pass(ms(2));
    let dropped = EventKind::MessageDropped { reason: DropReason::Expired, bytes: 3 };
    assert_eq!(pair.events[CLIENT], [dropped], "as soon as it is too old");
    pair.filter = None;
    pair.pass(Duration::from_secs(5));
    let got = pair.received(SERVER);
    assert_eq!(got[3..], [b"high".to_vec(), b"low".to_vec(), b"low too".to_vec()]);
    assert_eq!(pair.stats(CLIENT).counters.drops.send_expired, 1);
}

/// Messages ahead of it may have a later deadline or none.
#[test]
fn expired_messages_are_reported_as_dropped_at_once() {
    for first in [None, Some(60_000)] {
        let mut pair = Pair::connected(8);
        let id = pair.id(CLIENT);
        pair.mute(SERVER);
        for _ in 0..3 {
            send(&mut pair, id, b"window", 0, None);
        }
        pair.drain();
        pair.events = Default::default();
        send(&mut pair, id, b"first", 0, first);
        send(&mut pair, id, b"old", 0, Some(50));
        send(&mut pair, id, b"older", 0, Some(20));
        for (wait, expected) in [(19, None), (2, Some(5)), (28, None), (2, Some(3))] {
            pair.pass(ms(wait));
            let dropped = |bytes| EventKind::MessageDropped { reason: DropReason::Expired, bytes };
            let expected: Vec<_> = expected.map(dropped).into_iter().collect();
            assert_eq!(std::mem::take(&mut pair.events[CLIENT]), expected, "{first:?} {wait}");
        }
    }
}

#[test]
fn queue_can_drop_the_lowest_priority() {
    let config = ConnectionConfig {
        send_queue_packets: 2,
        queue_policy: QueuePolicy::DropLowest,
        ..ConnectionConfig::default()
    };
    let mut pair = Pair::starting(Net::new(9), config.clone(), config);
    let id = pair.id(CLIENT);
    send(&mut pair, id, b"a", 1, None);
    send(&mut pair, id, b"bb", 1, None);
    send(&mut pair, id, b"ccc", 2, None);
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.received(SERVER), [b"ccc".to_vec(), b"a".to_vec()]);
    let dropped = EventKind::MessageDropped { reason: DropReason::Displaced, bytes: 2 };
    assert!(pair.events[CLIENT].contains(&dropped));
}

#[test]
fn nothing_is_sent_to_a_peer_that_stopped_reading() {
    let mut pair = Pair::connected(10);
    let (now, server) = (pair.now, pair.id(SERVER));
    pair.ends[SERVER].shutdown_read(now, server);
    let mut next = 0;
    pump(&mut pair, CLIENT, &mut next, 50);
    pair.pass(Duration::from_secs(1));
    assert!(pair.events[CLIENT].contains(&EventKind::PeerShutdownRead));
    assert!(!pair.try_send(CLIENT, b"more"));
    let sent = pair.stats(CLIENT).counters.data_packets_sent;
    assert!(sent < 20, "{sent}");
    assert_eq!(pair.stats(SERVER).counters.drops.not_listening, sent);
    // The other direction continues.
    pair.send(SERVER, b"still here");
    pair.pass(ms(500));
    assert_eq!(pair.received(CLIENT), [b"still here"]);
}

/// Sends `count` messages each way through a network with these impairments.
fn exchange(seed: u64, impairments: Impairments, count: u32) -> Pair {
    let mut net = Net::new(seed);
    net.spacing = Duration::from_micros(100);
    let mut pair = Pair::connected_with(net, ConnectionConfig::default());
    pair.impairments = impairments;
    let mut next = [0; 2];
    let mut seen = [Vec::new(), Vec::new()];
    for _ in 0..4000 {
        for end in [CLIENT, SERVER] {
            pump(&mut pair, end, &mut next[end], count);
        }
        pair.pass(ms(20));
        for end in [CLIENT, SERVER] {
            seen[end].extend(pair.received(end).iter().map(|m| number_of(m)));
        }
        let waiting = (0..2).any(|end| pair.stats(end).send_queue_packets > 0);
        if next == [count; 2] && !waiting {
            break;
        }
    }
    pair.pass(Duration::from_secs(1));
    for end in [CLIENT, SERVER] {
        seen[end].extend(pair.received(end).iter().map(|m| number_of(m)));
        let mut sorted = seen[end].clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), seen[end].len(), "something came twice");
        // Strong reordering moves a few packets out of the window of valid numbers.
        let least = match impairments {
            Impairments { loss: 0.0, corrupt: 0.0, reorder: 0.0, .. } => 1.0,
            Impairments { loss: 0.0, corrupt: 0.0, .. } => 0.9,
            _ => 0.7,
        };
        assert!(sorted.len() as f64 >= least * f64::from(count), "{} came", sorted.len());
    }
    pair
}

#[test]
fn a_perfect_network_delivers_everything_in_order() {
    let pair = exchange(20, Impairments::default(), 500);
    for end in 0..2 {
        let c = pair.stats(end).counters;
        assert_eq!((c.data_packets_acked, c.data_packets_lost), (500, 0));
    }
}

#[test]
fn bad_networks_never_duplicate_or_corrupt_messages() {
    let kinds = [
        Impairments { loss: 0.05, ..Impairments::default() },
        Impairments { duplicate: 0.2, ..Impairments::default() },
        Impairments { reorder: 0.1, ..Impairments::default() },
        Impairments { corrupt: 0.05, ..Impairments::default() },
        Impairments {
            loss: 0.03,
            duplicate: 0.05,
            reorder: 0.05,
            corrupt: 0.03,
            ..Impairments::default()
        },
    ];
    for (n, impairments) in kinds.into_iter().enumerate() {
        for seed in 0..3 {
            let pair = exchange(100 * n as u64 + seed, impairments, 300);
            let (c, s) = (pair.stats(CLIENT).counters, pair.stats(SERVER).counters);
            if impairments.duplicate > 0.0 {
                assert!(s.drops.duplicates > 0);
            }
            if impairments.loss > 0.0 {
                assert!(c.data_packets_lost > 0);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let impairments = Impairments {
        loss: 0.03,
        duplicate: 0.05,
        reorder: 0.05,
        corrupt: 0.03,
        ..Impairments::default()
    };
    let run = |seed| {
        let mut pair = Pair::connected(seed);
        pair.impairments = impairments;
        pair.trace = Some(Vec::new());
        let mut next = 0;
        for _ in 0..20 {
            pump(&mut pair, CLIENT, &mut next, 1000);
            pair.pass(ms(50));
        }
        pair.take_trace()
    };
    assert_eq!(run(30), run(30));
    assert_ne!(run(30), run(31));
}

#[test]
fn ack_vectors_stay_short_when_data_flows_both_ways() {
    let mut net = Net::new(40);
    net.spacing = Duration::from_micros(100);
    // 400 packets are in flight each way: six cells of 64 and a partial one.
    let ccid2 = udccp_proto::ccid::Ccid2Config { max_window: 400, ..Default::default() };
    let config = ConnectionConfig { ccid2, ..ConnectionConfig::default() };
    let mut pair = Pair::connected_with(net, config);
    let largest = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = largest.clone();
    pair.filter = Some(Box::new(move |_, d| {
        seen.set(seen.get().max(d.header.len()));
        true
    }));
    let mut next = [0; 2];
    for _ in 0..500 {
        for end in [CLIENT, SERVER] {
            pump(&mut pair, end, &mut next[end], 100_000);
        }
        pair.pass(ms(10));
        pair.received(CLIENT);
        pair.received(SERVER);
    }
    assert!(next[0] > 10_000 && next[1] > 10_000, "{next:?}");
    assert!(largest.get() < 64, "a header of {} bytes", largest.get());
}

#[test]
fn one_batch_of_packets_is_acknowledged_once() {
    let mut pair = Pair::connected(50);
    let mut next = 0;
    pump(&mut pair, CLIENT, &mut next, 4);
    let now = pair.now;
    let batch: Vec<_> = std::iter::from_fn(|| pair.net.ends[CLIENT].poll_transmit(now)).collect();
    assert_eq!(batch.len(), 3);
    for d in batch {
        pair.net.ends[SERVER].handle_datagram(now, d);
    }
    let acks = std::iter::from_fn(|| pair.net.ends[SERVER].poll_transmit(now)).count();
    assert_eq!(acks, 1);
}
