//! Both ends send, in turn and at the same time, with every CCID. An end that was silent is not
//! blocked when it sends again.

mod common;

use common::pair::{CLIENT, Pair, SERVER};
use common::{Impairments, Net};
use udccp_base::Duration;
use udccp_proto::ConnectionConfig;
use udccp_proto::ccid::CcidRegistry;

/// All CCIDs.
const CCIDS: [u8; 5] = [2, 3, 4, 249, 250];

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn pair(ccid: u8, impairments: Impairments) -> Pair {
    let mut net = Net::with_ccids(u64::from(ccid), CcidRegistry::with_experiments());
    net.impairments = impairments;
    let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
    let config = ConnectionConfig { tx_ccids, rx_ccids, ..ConnectionConfig::default() };
    let mut pair = Pair::starting(net, config.clone(), config);
    pair.pass(Duration::from_secs(10));
    assert!(pair.ids[SERVER].is_some(), "CCID {ccid} did not connect");
    pair
}

/// One end sends a message of `size` bytes every 10 ms until `count` packets have been sent.
fn send_many(pair: &mut Pair, from: usize, size: usize, count: usize) {
    for _ in 0..count {
        pair.try_send(from, &vec![7; size]);
        pair.pass(ms(10));
        pair.received(1 - from);
    }
}

#[test]
fn a_receiver_that_only_acks_never_blocks_its_own_sender() {
    for ccid in CCIDS {
        for size in [3, 1000] {
            for silence in [50, 100, 400, 3000] {
                let mut pair = pair(ccid, Impairments::default());
                pair.send(CLIENT, b"first");
                pair.pass(ms(200));
                assert_eq!(pair.received(SERVER), [b"first"]);
                send_many(&mut pair, SERVER, size, silence);
                pair.send(CLIENT, b"second");
                send_many(&mut pair, SERVER, size, 100);
                let sent = pair.stats(CLIENT).counters.data_packets_sent;
                assert_eq!(sent, 2, "CCID {ccid}, {size} B, {silence} messages in between");
            }
        }
    }
}

#[test]
fn ends_that_send_in_turn_never_block_each_other() {
    for ccid in CCIDS {
        let mut pair = pair(ccid, Impairments::default());
        let mut heard = [0; 2];
        for round in 0..12 {
            let (from, size) = (round % 2, [3, 500, 1200][round % 3]);
            for _ in 0..150 {
                pair.try_send(from, &vec![7; size]);
                pair.pass(ms(20));
                heard[from] += pair.received(1 - from).len();
            }
            // Silences longer than any timer based on the round-trip time.
            pair.pass(ms(700 * round as u64));
            heard[from] += pair.received(1 - from).len();
        }
        assert_eq!(heard, [900; 2], "CCID {ccid}");
    }
}

#[test]
fn ends_that_send_in_turn_never_block_on_bad_networks() {
    let impairments = Impairments {
        loss: 0.05,
        duplicate: 0.05,
        reorder: 0.1,
        corrupt: 0.01,
        ..Impairments::default()
    };
    for ccid in CCIDS {
        let mut pair = pair(ccid, impairments);
        for round in 0..20 {
            let from = round % 2;
            let before = pair.stats(from).counters.data_packets_sent;
            for _ in 0..120 {
                pair.try_send(from, &[7; 100]);
                pair.pass(ms(20));
                pair.received(1 - from);
            }
            let sent = pair.stats(from).counters.data_packets_sent - before;
            assert!(sent > 0, "CCID {ccid}: end {from} sent nothing in round {round}");
        }
        // Everything that still waits is finally sent.
        pair.impairments = Impairments::default();
        pair.pass(Duration::from_secs(300));
        for end in 0..2 {
            assert_eq!(pair.stats(end).send_queue_packets, 0, "CCID {ccid}, end {end}");
        }
    }
}

/// Most data packets that the client sent within half a millisecond, in 20 s with a full queue.
fn largest_burst(ccid: u8, impairments: Impairments, size: usize) -> u64 {
    let mut pair = pair(ccid, impairments);
    let (mut most, mut arrived) = (0, 0);
    for _ in 0..40_000 {
        while pair.stats(CLIENT).send_queue_packets < 100 && pair.try_send(CLIENT, &vec![7; size]) {
        }
        let before = pair.stats(CLIENT).counters.data_packets_sent;
        pair.pass(Duration::from_micros(500));
        most = most.max(pair.stats(CLIENT).counters.data_packets_sent - before);
        arrived += pair.received(SERVER).len();
    }
    assert!(arrived > 1000, "CCID {ccid}: {arrived} arrived");
    most
}

#[test]
fn reordering_and_copies_cause_no_bursts_of_rate_based_senders() {
    // Losses keep the rate at some ten packets per round-trip time of 20 ms.
    let lossy = Impairments { loss: 0.01, ..Impairments::default() };
    let rough = Impairments { overtake: 0.03, duplicate: 0.03, ..lossy };
    for (ccid, size) in [(3, 300), (4, 300)] {
        let (calm, most) = (largest_burst(ccid, lossy, size), largest_burst(ccid, rough, size));
        assert!(most <= 12, "CCID {ccid}: {most} packets at once, {calm} without");
    }
}

#[test]
fn oversized_feedback_on_a_narrow_path_stops_no_sender() {
    for (ccid, path_mtu) in [(3, 128), (3, 140), (4, 128), (4, 160)] {
        let net = Net::with_ccids(u64::from(ccid), CcidRegistry::with_experiments());
        let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
        let config =
            ConnectionConfig { tx_ccids, rx_ccids, path_mtu, ..ConnectionConfig::default() };
        let mut pair = Pair::connected_with(net, config);
        pair.impairments.loss = 0.1;
        let mut heard = 0;
        for _ in 0..2000 {
            pair.try_send(CLIENT, b"data");
            pair.try_send(SERVER, b"data");
            pair.pass(ms(20));
            heard += pair.received(SERVER).len();
        }
        assert!(heard > 100, "CCID {ccid}, {path_mtu} B: {heard}");
    }
}

#[test]
fn oversized_ack_vector_on_a_narrow_path_stops_no_sender() {
    let net = Net::new(2);
    let config = ConnectionConfig { path_mtu: 128, pmtu_floor: Some(128), ..Default::default() };
    let mut pair = Pair::connected_with(net, config);
    // Every second packet is lost, so the vector has a cell for each.
    let mut count = 0;
    pair.filter = Some(Box::new(move |from, _| {
        count += usize::from(from == CLIENT);
        from == SERVER || count % 2 == 0
    }));
    send_many(&mut pair, CLIENT, 8, 40_000);
    pair.filter = None;
    pair.pass(Duration::from_secs(200));
    let mut heard = 0;
    for _ in 0..50 {
        pair.try_send(CLIENT, b"data");
        pair.pass(ms(500));
        heard += pair.received(SERVER).len();
    }
    assert!(heard >= 50, "{heard} arrived");
}

#[test]
fn messages_that_become_small_do_not_stop_a_sender_that_lost_some() {
    for ccid in [3, 4] {
        let mut pair = pair(ccid, Impairments { loss: 0.01, ..Impairments::default() });
        send_many(&mut pair, CLIENT, 1200, 1000);
        pair.impairments.loss = 0.0;
        let mut heard = [0; 5];
        for second in &mut heard {
            for _ in 0..100 {
                while pair.stats(CLIENT).send_queue_packets < 10 && pair.try_send(CLIENT, &[7; 50])
                {
                }
                pair.pass(ms(10));
                *second += pair.received(SERVER).len();
            }
        }
        assert!(heard[4] >= 50, "CCID {ccid}: {heard:?} messages a second");
    }
}

#[test]
fn a_first_message_that_is_lost_does_not_stop_those_that_come_later() {
    for ccid in CCIDS {
        let mut pair = pair(ccid, Impairments::default());
        pair.impairments.loss = 1.0;
        pair.send(CLIENT, b"lost");
        pair.pass(Duration::from_secs(60));
        pair.impairments.loss = 0.0;
        // Acknowledgements of these reveal the loss.
        send_many(&mut pair, SERVER, 100, 20);
        pair.pass(Duration::from_secs(60));
        let mut heard = 0;
        for _ in 0..10 {
            pair.try_send(CLIENT, &[7; 100]);
            pair.pass(ms(500));
            heard += pair.received(SERVER).len();
        }
        assert!(heard >= 9, "CCID {ccid}: {heard} of 10");
    }
}
