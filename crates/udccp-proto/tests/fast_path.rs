//! The fast path for usual packets gives the same results as the general path. Two pairs of
//! endpoints process the same input on the same network, one pair with the fast path disabled. They
//! send the same bytes and have the same state. The same holds for packets that arrive together,
//! whether processed as a run or one by one.

mod common;

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;

use bytes::Bytes;
use common::net::Buffers;
use common::scenes::next_packet;
use common::{CLIENT, Impairments, Net, Pair, SERVER, connect_options, listen_config};
use proptest::prelude::*;
use udccp_base::{Datagram, Duration, Ecn, Machine, Message, Payload, Seed};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::{ConnectionConfig, State};
use udccp_wire::PacketType;

/// A network, settings and a source of decisions.
#[derive(Clone, Copy, Debug)]
struct Setting {
    seed: u64,
    ccid: u8,
    ecn: bool,
    short: bool,
    ndp: bool,
    over_udp: bool,
    zeros: bool,
    impairments: Impairments,
}

fn setting() -> impl Strategy<Value = Setting> {
    let ccid = prop_oneof![4 => Just(2_u8), 1 => Just(3), 1 => Just(4), 1 => Just(249)];
    let flags = any::<[bool; 5]>();
    (any::<u64>(), ccid, flags, 0..5_u32).prop_map(|(seed, ccid, flags, rough)| {
        let [ecn, short, ndp, over_udp, zeros] = flags;
        let p = f64::from(rough) * 0.01;
        let impairments = Impairments {
            loss: 2.0 * p,
            duplicate: p,
            reorder: p,
            overtake: p,
            corrupt: if over_udp { 0.0 } else { p / 2.0 },
        };
        let short = short && seed % 3 == 0;
        Setting { seed, ccid, ecn, short, ndp: ndp && seed % 5 == 0, over_udp, zeros, impairments }
    })
}

/// All datagrams sent, with the number of the host.
type Sent = Rc<RefCell<Vec<(usize, Datagram)>>>;

/// How one of the two pairs receives packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Short,
    Long,
    /// In buffers of merged datagrams.
    Merged(Buffers),
}

/// One of the two pairs.
fn pair(s: &Setting, way: Way) -> (Pair, Sent) {
    let (tx_ccids, rx_ccids) = (vec![s.ccid], vec![s.ccid]);
    let mut config = ConnectionConfig { tx_ccids, rx_ccids, ecn: s.ecn, ..Default::default() };
    config.short_seqnos = s.short;
    config.ndp_count = s.ndp;
    config.long_way_only = way == Way::Long;
    let mut net = Net::with_ccids(s.seed, CcidRegistry::with_experiments());
    net.spacing = Duration::from_micros(200);
    if let Way::Merged(buffers) = way {
        (net.spacing, net.buffers) = (Duration::ZERO, Some(buffers));
        config.recv_queue_packets = 20 + (s.seed % 5 * 40) as usize;
        config.ecn_probe = NonZeroU32::new(5).filter(|_| s.seed % 4 == 0);
    }
    let sent = Sent::default();
    let log = Rc::clone(&sent);
    net.filter = Some(Box::new(move |from, d| {
        log.borrow_mut().push((from, d.clone()));
        true
    }));
    let listener =
        net.ends[SERVER].listen(None, common::pair::PORT, listen_config(config.clone())).unwrap();
    let mut options = connect_options(config);
    if s.over_udp {
        options.local.set_port(6511);
        options.remote.set_port(6511);
    }
    let id = net.ends[CLIENT].connect(net.now, options).unwrap();
    let mut pair = Pair { net, listener, ids: [Some(id), None], events: Default::default() };
    pair.pass(Duration::from_millis(100));
    pair.net.impairments = s.impairments;
    (pair, sent)
}

/// The whole state of the endpoints, except for the setting that disables the fast path.
fn known(pair: &Pair) -> String {
    format!("{:?}", pair.net.ends).replace("long_way_only: true", "long_way_only: false")
}

/// One action, the same for both pairs.
fn step(pair: &mut Pair, what: u64, end: usize, size: usize, zeros: bool) {
    let Some(id) = pair.ids[end] else { return pair.pass(Duration::from_millis(50)) };
    let now = pair.now;
    match what {
        0..=4 => {
            for _ in 0..=what * what {
                let payload = match zeros {
                    true => Payload::Zeros(size as u32),
                    false => Payload::Bytes(Bytes::from(vec![size as u8; size])),
                };
                let _ = pair.net.ends[end].send(now, id, Message::new(payload));
            }
        }
        5 => drop(pair.net.ends[end].fill(now, id, Some(1000), 20)),
        6 => drop(pair.net.ends[end].take_received(id)),
        7 => drop(pair.received(end)),
        8 => pair.net.ends[end].set_slow_receiver(now, id, size % 2 == 0),
        9 => drop(pair.net.ends[end].hold_ack(now, id)),
        10 => pair.net.ends[end].release_acks(),
        12 => pair.net.marks_all ^= true,
        _ => {}
    }
    pair.pass(Duration::from_micros(what * what * 300 + 1));
}

/// Runs two pairs with the same input and compares them.
fn compare(s: &Setting, ways: [Way; 2], marks: bool) -> Result<(), TestCaseError> {
    let [(mut one, sent_one), (mut other, sent_other)] = ways.map(|way| pair(s, way));
    let mut rng = Seed(s.seed).stream("decisions");
    for round in 0..120 {
        let (what, end) = (rng.below(if marks { 13 } else { 12 }), rng.below(2) as usize);
        let size = rng.below(1200) as usize;
        step(&mut one, what, end, size, s.zeros);
        step(&mut other, what, end, size, s.zeros);
        prop_assert_eq!(&*sent_one.borrow(), &*sent_other.borrow());
        // Not in every round, because the text is long.
        if round % 8 == 7 {
            prop_assert_eq!(known(&one), known(&other));
        }
        sent_one.borrow_mut().clear();
        sent_other.borrow_mut().clear();
    }
    Ok(())
}

const MERGED: [Way; 2] = [Way::Merged(Buffers::AsTrains), Way::Merged(Buffers::OneByOne)];

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_slow_path_agree(s in setting()) {
        compare(&s, [Way::Short, Way::Long], false)?;
    }

    #[test]
    fn trains_equal_single_packets(s in setting()) {
        // Over UDP nothing detects corrupted packets.
        let impairments = Impairments { corrupt: s.impairments.loss / 4.0, ..s.impairments };
        compare(&Setting { impairments, ..s }, MERGED, true)?;
    }
}

/// Over UDP, without loss.
const CLEAN: Setting = Setting {
    seed: 7,
    ccid: 2,
    ecn: true,
    short: false,
    ndp: false,
    over_udp: true,
    zeros: true,
    impairments: Impairments {
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        overtake: 0.0,
        corrupt: 0.0,
    },
};

/// A stream in one direction over a clean path is the case that both paths exist for.
#[test]
fn long_streams_are_equal_on_both_paths() {
    let run = |way| {
        let (mut pair, sent) = pair(&CLEAN, way);
        for _ in 0..200 {
            step(&mut pair, 5, CLIENT, 0, true);
            step(&mut pair, 6, SERVER, 0, true);
        }
        assert_eq!(pair.state(SERVER), Some(State::Open));
        assert!(pair.stats(SERVER).counters.data_packets_received > 1_000);
        let all = sent.borrow().clone();
        (all, known(&pair), pair.net.taken_at_once.min(pair.net.sent_at_once))
    };
    assert!(run(Way::Short) == run(Way::Long));
    let [at_once, one_by_one] = MERGED.map(run);
    assert!(at_once.2 > 1_000 && at_once.0 == one_by_one.0 && at_once.1 == one_by_one.1);
}

/// The type of a packet, as in its header (RFC 4340 table 2).
const DATA: u8 = 2;

#[test]
fn long_ack_vectors_ask_for_an_acknowledgement_on_both_paths() {
    let run = |way| {
        let (mut pair, sent) = pair(&CLEAN, way);
        let (log, mut count) = (Rc::clone(&sent), 0);
        // Every other data packet is lost, and so is all else that the client sends.
        pair.net.filter = Some(Box::new(move |from, d| {
            log.borrow_mut().push((from, d.clone()));
            count += usize::from(from == CLIENT);
            from == SERVER || count % 2 == 0 && d.header[8] >> 1 & 0xf == DATA
        }));
        for _ in 0..600 {
            step(&mut pair, 5, CLIENT, 0, true);
            pair.pass(Duration::from_secs(1));
            step(&mut pair, 6, SERVER, 0, true);
        }
        assert!(pair.stats(SERVER).counters.syncs_sent > 0);
        let all = sent.borrow().clone();
        (all, known(&pair))
    };
    assert!(run(Way::Short) == run(Way::Long));
}

#[test]
fn held_acknowledgements_are_equal_on_both_paths() {
    let run = |way| {
        let (mut pair, sent) = pair(&CLEAN, way);
        for round in 0..100 {
            step(&mut pair, 5, CLIENT, 0, true);
            if round % 50 == 49 {
                pair.pass(Duration::from_secs(70));
                step(&mut pair, 6, SERVER, 0, true);
            }
        }
        let counters = pair.stats(SERVER).counters;
        assert!(counters.acks_held > 0 && counters.syncs_sent > 0, "{counters:?}");
        let all = sent.borrow().clone();
        (all, known(&pair))
    };
    assert!(run(Way::Short) == run(Way::Long));
}

/// A connection over a clean path that has nothing unusual to do, after data in both directions.
fn at_rest(way: Way) -> Pair {
    let (mut pair, _) = pair(&CLEAN, way);
    for end in [CLIENT, SERVER, CLIENT, SERVER] {
        step(&mut pair, 5, end, 0, true);
        step(&mut pair, 6, 1 - end, 0, true);
    }
    pair.pass(Duration::from_secs(1));
    pair
}

/// The types of the packets that the server sends now. They are lost.
fn leaves(pair: &mut Pair) -> Vec<PacketType> {
    let now = pair.now;
    let next = || pair.net.ends[SERVER].poll_transmit(now);
    std::iter::from_fn(next).filter_map(|d| PacketType::peek(&d.header)).collect()
}

/// The server receives `count` Data packets in order, of which every other one is marked: each
/// takes a cell of its Ack Vector. Returns the types of the packets that it sends meanwhile.
fn take_marked(pair: &mut Pair, count: usize) -> Vec<PacketType> {
    let mut sent = Vec::new();
    for ecn in [Ecn::Ce, Ecn::Ect0].into_iter().cycle().take(count) {
        let data = Datagram { ecn, ..next_packet(pair, SERVER, PacketType::Data) };
        pair.last[CLIENT] = Some(data.clone());
        let now = pair.now;
        pair.ends[SERVER].handle_datagram(now, data);
        sent.extend(leaves(pair));
        let id = pair.id(SERVER);
        // Other ways to read end the fast path until the next packet.
        pair.ends[SERVER].take_received(id);
    }
    sent
}

#[test]
fn an_acknowledgement_that_did_not_fit_beside_data_follows_it_on_both_paths() {
    for way in [Way::Short, Way::Long] {
        let mut pair = at_rest(way);
        // The first mark is acknowledged at once, then every other packet. The last one waits.
        let sent = take_marked(&mut pair, 40);
        assert_eq!(sent, [PacketType::Ack; 20], "{way:?}");
        let (now, id) = (pair.now, pair.id(SERVER));
        assert_eq!(pair.ends[SERVER].fill(now, id, None, 1).0, 1);
        assert_eq!(leaves(&mut pair), [PacketType::Data, PacketType::Ack], "{way:?}");
    }
}

#[test]
fn packets_in_order_that_make_the_ack_vector_long_lead_to_a_sync_on_both_paths() {
    for way in [Way::Short, Way::Long] {
        let mut pair = at_rest(way);
        // Three quarters of 506 cells are 379.5. What came before the marks takes one.
        let sent = take_marked(&mut pair, 378);
        assert_eq!(sent, [PacketType::Ack; 189], "{way:?}");
        let sent = take_marked(&mut pair, 1);
        assert_eq!(sent, [PacketType::Ack, PacketType::Sync], "{way:?}");
    }
}

#[test]
fn connections_take_equal_turns_with_and_without_trains() {
    let run = |way| {
        let (mut pair, sent) = pair(&CLEAN, way);
        let mut options = connect_options(ConnectionConfig::default());
        options.local.set_port(6511);
        options.remote.set_port(6511);
        let now = pair.now;
        let second = pair.net.ends[CLIENT].connect(now, options).unwrap();
        pair.pass(Duration::from_millis(100));
        for _ in 0..60 {
            for id in [pair.id(CLIENT), second] {
                let now = pair.now;
                let _ = pair.net.ends[CLIENT].fill(now, id, Some(1000), 40);
            }
            step(&mut pair, 6, SERVER, 0, true);
        }
        let all = sent.borrow().clone();
        (all, known(&pair), pair.net.sent_at_once)
    };
    let [trains, packets] = MERGED.map(run);
    assert!(trains.2 > 100 && trains.0 == packets.0 && trains.1 == packets.1, "{}", trains.2);
}
