//! Congestion marks of our own against a receiver that hides them (RFC 4340 section 12.3).

mod common;

use core::num::NonZeroU32;

use common::Net;
use common::pair::{CLIENT, Pair, SERVER};
use udccp_base::{Duration, Ecn};
use udccp_proto::ConnectionConfig;

/// Connects with a probe mark on one data packet in twenty.
fn connect(ccid: u8) -> Pair {
    let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
    let ecn_probe = NonZeroU32::new(20);
    let client = ConnectionConfig { tx_ccids, rx_ccids, ecn_probe, ..ConnectionConfig::default() };
    let server = ConnectionConfig { ecn_probe: None, ..client.clone() };
    let mut pair = Pair::starting(Net::new(u64::from(ccid)), client, server);
    pair.pass(Duration::from_millis(200));
    pair
}

fn stream(pair: &mut Pair, seconds: u64) -> usize {
    let (mut got, end) = (0, pair.now + Duration::from_secs(seconds));
    while pair.now < end {
        while pair.stats(CLIENT).send_queue_packets < 20 && pair.try_send(CLIENT, &[7; 500]) {}
        pair.pass(Duration::from_millis(5));
        got += pair.received(SERVER).len();
    }
    got
}

//= 4340-12.3-1 test
#[test]
fn ecn_probe_does_not_slow_an_honest_receiver() {
    for ccid in [2, 3, 4] {
        let mut pair = connect(ccid);
        stream(&mut pair, 5);
        let stats = pair.stats(CLIENT);
        let (reported, hidden) =
            (stats.counters.ecn_probes_reported, stats.counters.ecn_probes_hidden);
        assert_eq!(hidden, 0, "CCID {ccid}");
        // At most one in three round-trip times of 20 ms; CCID 4 sends a hundred packets a second.
        assert!((20..=84).contains(&reported), "CCID {ccid}: {reported}");
        assert_eq!(stats.congestion_events, 0, "CCID {ccid}");
    }
}

//= 4340-12.3-1 test
//= 4340-12.3-2 test
#[test]
fn concealed_ecn_marks_count_as_marks_and_disable_ecn() {
    for ccid in [2, 3, 4] {
        let mut pair = connect(ccid);
        // The path clears marks. A receiver that does not report them looks the same.
        pair.net.clears_marks = true;
        stream(&mut pair, 5);
        let stats = pair.stats(CLIENT);
        assert_eq!(stats.counters.ecn_probes_reported, 0);
        assert!((3..=16).contains(&stats.counters.ecn_probes_hidden), "CCID {ccid}: {stats:?}");
        assert!(stats.congestion_events >= 1, "CCID {ccid}");
        assert_eq!(pair.net.last[CLIENT].as_ref().map(|d| d.ecn), Some(Ecn::NotEct));
    }
}

/// As in the documentation of `ecn_probe`: three in a row.
#[test]
fn a_reported_mark_clears_earlier_concealed_ones() {
    let mut pair = connect(2);
    let counts = |pair: &Pair| {
        let counters = pair.stats(CLIENT).counters;
        (counters.ecn_probes_reported, counters.ecn_probes_hidden)
    };
    let send_until = |pair: &mut Pair, done: &dyn Fn((u64, u64)) -> bool| {
        for _ in 0..4000 {
            if done(counts(pair)) {
                break;
            }
            pair.try_send(CLIENT, &[7; 500]);
            pair.pass(Duration::from_millis(5));
            pair.received(SERVER);
        }
        assert!(done(counts(pair)), "{:?}", counts(pair));
        pair.net.last[CLIENT].as_ref().is_some_and(|d| d.ecn.is_capable())
    };
    for round in 1..=3 {
        pair.net.clears_marks = true;
        assert!(send_until(&mut pair, &|(_, hidden)| hidden == 2 * round), "round {round}");
        pair.net.clears_marks = false;
        let (reported, _) = counts(&pair);
        send_until(&mut pair, &|(now, _)| now > reported);
    }
    pair.net.clears_marks = true;
    send_until(&mut pair, &|(_, hidden)| hidden == 9);
    pair.send(CLIENT, b"more");
    pair.pass(Duration::from_millis(100));
    assert_eq!(pair.net.last[CLIENT].as_ref().map(|d| d.ecn), Some(Ecn::NotEct));
}
