//! Paths that change during a connection.

mod common;

use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::Duration;
use udccp_proto::{ConnectionConfig, PathReport};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn config(ccid: u8) -> ConnectionConfig {
    ConnectionConfig { tx_ccids: vec![ccid], rx_ccids: vec![ccid], ..Default::default() }
}

fn flow(pair: &mut Pair, packets: u32) -> usize {
    let mut received = 0;
    for _ in 0..packets {
        pair.try_send(CLIENT, &[1; 1000]);
        pair.pass(ms(2));
        received += pair.received(SERVER).len();
    }
    pair.pass(ms(500));
    received + pair.received(SERVER).len()
}

//= 4340-10.5-1 test
#[test]
fn congestion_control_begins_anew_on_a_new_path() {
    for ccid in [2, 3] {
        let mut pair = Pair::connected_with(Net::new(105), config(ccid));
        flow(&mut pair, 300);
        let before = pair.stats(CLIENT);
        let first = Pair::connected_with(Net::new(105), config(ccid)).stats(CLIENT);
        // Packets are in flight when the path changes.
        for _ in 0..5 {
            pair.try_send(CLIENT, &[2; 1000]);
        }
        pair.drain();
        for end in [CLIENT, SERVER] {
            let (now, id) = (pair.now, pair.id(end));
            pair.ends[end].path_changed(now, id);
        }
        let after = pair.stats(CLIENT);
        assert_eq!(after.cwnd_packets, first.cwnd_packets, "CCID {ccid}");
        assert_eq!((after.srtt, after.pipe_packets.unwrap_or(0)), (None, 0));
        assert!(before.srtt.is_some());
        let c = after.counters;
        assert_eq!(c.data_packets_acked + c.data_packets_lost, c.data_packets_sent);
        // The connection continues.
        pair.pass(Duration::from_secs(1));
        pair.received(SERVER);
        let received = flow(&mut pair, 200);
        assert!(received > 150, "CCID {ccid}: {received}");
        assert!(pair.stats(CLIENT).srtt.is_some());
        assert_eq!(pair.stats(SERVER).counters.drops.bad_options, 0);
    }
}

/// Only one end is told of the new path.
#[test]
fn path_change_at_one_end_stops_no_sender() {
    for ccid in [2, 3, 4] {
        for end in [CLIENT, SERVER] {
            let mut pair = Pair::connected_with(Net::new(105), config(ccid));
            pair.impairments.loss = 0.02;
            flow(&mut pair, 300);
            pair.impairments.loss = 0.0;
            let before = flow(&mut pair, 300);
            // Nothing is in flight.
            pair.pass(Duration::from_secs(10));
            let (now, id) = (pair.now, pair.id(end));
            pair.ends[end].path_changed(now, id);
            let after = flow(&mut pair, 300);
            assert!(after * 2 > before, "CCID {ccid}, end {end}: {after} instead of {before}");
            assert_eq!(pair.stats(CLIENT).counters.drops.bad_options, 0);
        }
    }
}

//= 4340-14.1-3 test
#[test]
fn path_mtu_search_restarts_on_request_at_a_limited_rate() {
    let mut pair = Pair::connected(141);
    pair.send(CLIENT, b"one");
    pair.drain();
    let quoted = pair.last[CLIENT].clone().unwrap();
    let shrink = |pair: &mut Pair| {
        let (now, report) = (pair.now, PathReport::PathMtu(1000));
        let header = quoted.header.to_vec();
        pair.ends[CLIENT].handle_path_report(now, quoted.src, quoted.dst, &header, report);
        assert_eq!(pair.stats(CLIENT).max_message_size, 940);
    };
    let ask = |pair: &mut Pair| {
        let (now, id) = (pair.now, pair.id(CLIENT));
        let done = pair.ends[CLIENT].rediscover_path_mtu(now, id);
        assert_eq!(pair.stats(CLIENT).max_message_size, if done { 1440 } else { 940 });
        done
    };
    shrink(&mut pair);
    assert!(ask(&mut pair));
    shrink(&mut pair);
    pair.pass(ms(1900));
    assert!(!ask(&mut pair));
    pair.pass(ms(100));
    assert!(ask(&mut pair));
}

/// The first acknowledgements of the new receiver half still acknowledge earlier packets.
#[test]
fn what_arrived_before_the_change_has_its_elapsed_time() {
    for ccid in [2, 3, 4] {
        let mut pair = Pair::connected_with(Net::new(105), config(ccid));
        flow(&mut pair, 100);
        pair.pass(Duration::from_secs(2));
        pair.received(SERVER);
        let srtt = |pair: &Pair| pair.stats(CLIENT).srtt.unwrap();
        let before = srtt(&pair);
        // One packet is late, and the server's acknowledgement of the next is lost.
        let delay = pair.delay;
        pair.filter = Some(Box::new(|from, _| from != CLIENT));
        pair.send(CLIENT, b"late");
        pair.drain();
        let late = pair.last[CLIENT].clone().unwrap();
        pair.filter = Some(Box::new(|from, _| from != SERVER));
        pair.send(CLIENT, b"in time");
        pair.pass(delay + ms(150));
        assert_eq!(pair.received(SERVER).len(), 1, "CCID {ccid}");
        let (now, id) = (pair.now, pair.id(SERVER));
        pair.ends[SERVER].path_changed(now, id);
        pair.filter = None;
        pair.deliver(SERVER, late);
        pair.send(SERVER, b"an answer");
        pair.pass(delay * 2);
        assert_eq!(pair.received(CLIENT).len(), 1, "CCID {ccid}");
        let after = srtt(&pair);
        assert!(after < before * 6 / 5, "CCID {ccid}: {after:?} instead of {before:?}");
    }
}
