//! The path MTU: probes, black holes, routers that send reports and routers that are confused.

mod common;

use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Datagram, Duration};
use udccp_proto::{ConnectionConfig, DropReason, EventKind, PathReport, PmtuProbing, State};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn probing() -> ConnectionConfig {
    ConnectionConfig { pmtu_probing: Some(PmtuProbing::default()), ..Default::default() }
}

/// Makes the path lose larger packets silently.
fn narrow(pair: &mut Pair, mtu: usize) {
    pair.filter = Some(Box::new(move |_, d| d.ip_len() <= mtu));
}

fn sizes(pair: &Pair, end: usize) -> Vec<usize> {
    let of = |e: &EventKind| match *e {
        EventKind::MaxMessageSize { bytes } => Some(bytes),
        _ => None,
    };
    pair.events[end].iter().filter_map(of).collect()
}

/// MPS over raw IPv4.
const fn mps(mtu: usize) -> usize {
    mtu - 60
}

#[test]
fn a_wide_path_is_confirmed_by_one_probe_and_the_size_stays() {
    let mut pair = Pair::connected_with(Net::new(14), probing());
    pair.pass(Duration::from_secs(100));
    for end in [CLIENT, SERVER] {
        assert_eq!(pair.stats(end).counters.pmtu_probes_sent, 1);
        assert_eq!(pair.stats(end).max_message_size, mps(1500));
        assert_eq!(sizes(&pair, end), []);
    }
}

#[test]
fn a_search_can_wait_for_a_message_that_needs_it() {
    let probing = PmtuProbing { when_needed: true, ..PmtuProbing::default() };
    let config = ConnectionConfig { pmtu_probing: Some(probing), ..Default::default() };
    let mut pair = Pair::connected_with(Net::new(14), config);
    let probes = |pair: &Pair| [CLIENT, SERVER].map(|e| pair.stats(e).counters.pmtu_probes_sent);
    // 20 bytes of IP, 16 of DCCP-Data, 24 for options: 576 in all.
    pair.send(CLIENT, &[7; 576 - 60]);
    pair.pass(Duration::from_secs(100));
    assert_eq!(probes(&pair), [0, 0]);
    pair.send(CLIENT, &[7; 577 - 60]);
    pair.pass(Duration::from_secs(100));
    assert_eq!(probes(&pair), [1, 0]);
    assert_eq!(pair.stats(CLIENT).max_message_size, mps(1500));
}

//= 4340-14-5 test
//= 4340-14.2-8 test
#[test]
fn a_black_hole_costs_the_messages_in_it_and_the_application_is_told_the_new_size() {
    let mut pair = Pair::starting(Net::new(15), probing(), probing());
    narrow(&mut pair, 1400);
    pair.pass(ms(200));
    for _ in 0..40 {
        pair.try_send(CLIENT, &[7; mps(1500)]);
    }
    pair.pass(Duration::from_secs(60));
    let told = sizes(&pair, CLIENT);
    assert_eq!(told[0], mps(1280), "the base size first: {told:?}");
    let found = *told.last().unwrap();
    assert!(found <= mps(1400) && found > mps(1400) - 16, "{told:?}");
    assert!(told[1..].is_sorted());
    assert_eq!(pair.stats(CLIENT).max_message_size, found);
    let too_large =
        EventKind::MessageDropped { reason: DropReason::TooLarge, bytes: mps(1500) as u32 };
    assert!(pair.events[CLIENT].contains(&too_large));
    assert!(!pair.try_send(CLIENT, &vec![7; found + 1]));
    pair.received(SERVER);
    pair.send(CLIENT, &vec![7; found]);
    pair.pass(Duration::from_secs(5));
    assert_eq!(pair.received(SERVER), [vec![7; found]]);
    assert_eq!(pair.state(CLIENT), Some(State::Open));
}

#[test]
fn lost_probes_are_nothing_to_congestion_control() {
    for ccid in [2, 3] {
        let config = ConnectionConfig { tx_ccids: vec![ccid], rx_ccids: vec![ccid], ..probing() };
        let mut pair = Pair::starting(Net::new(16), config.clone(), config);
        narrow(&mut pair, 1300);
        pair.pass(ms(100));
        let mut received = 0;
        for n in 0..600_u32 {
            pair.send(CLIENT, &n.to_be_bytes());
            pair.pass(ms(50));
            received += pair.received(SERVER).len();
        }
        let stats = pair.stats(CLIENT);
        assert!(stats.counters.pmtu_probes_sent > 5);
        assert_eq!(stats.congestion_events, 0, "CCID {ccid}");
        assert_eq!(stats.counters.data_packets_lost, 0);
        assert_eq!(received, 600);
    }
}

#[test]
fn a_path_that_grows_narrow_later_is_noticed_by_its_losses() {
    let mut pair = Pair::connected_with(Net::new(17), probing());
    pair.pass(Duration::from_secs(20));
    narrow(&mut pair, 1000);
    for _ in 0..200 {
        let size = pair.stats(CLIENT).max_message_size;
        pair.try_send(CLIENT, &vec![1; size]);
        pair.pass(ms(500));
    }
    let now = pair.stats(CLIENT).max_message_size;
    assert!(now <= mps(1000) && now > mps(1000) - 16, "{now}");
}

#[test]
fn a_silence_of_the_whole_path_changes_no_size() {
    let mut pair = Pair::connected_with(Net::new(18), probing());
    pair.pass(Duration::from_secs(20));
    pair.filter = Some(Box::new(|_, _| false));
    pair.send(CLIENT, &[1; 1000]);
    pair.pass(Duration::from_secs(60));
    pair.filter = None;
    pair.pass(Duration::from_secs(70));
    assert_eq!(sizes(&pair, CLIENT), []);
    assert_eq!(pair.stats(CLIENT).max_message_size, mps(1500));
}

#[test]
fn a_search_begins_anew_after_the_raise_time() {
    let mut pair = Pair::starting(Net::new(19), probing(), probing());
    narrow(&mut pair, 1300);
    pair.pass(Duration::from_secs(60));
    assert!(pair.stats(CLIENT).max_message_size <= mps(1300));
    pair.filter = None;
    pair.pass(Duration::from_secs(600));
    assert_eq!(pair.stats(CLIENT).max_message_size, mps(1500));
}

fn report(pair: &mut Pair, quoted: &Datagram, cut: usize, mtu: u16) {
    let now = pair.now;
    let header = quoted.header[..cut].to_vec();
    let report = PathReport::PathMtu(mtu);
    pair.ends[CLIENT].handle_path_report(now, quoted.src, quoted.dst, &header, report);
    pair.collect();
}

#[test]
fn a_router_that_names_the_size_is_believed_at_once_and_tested() {
    let mut pair = Pair::connected_with(Net::new(20), probing());
    pair.pass(Duration::from_secs(20));
    narrow(&mut pair, 1400);
    pair.send(CLIENT, &[1; mps(1500)]);
    pair.drain();
    let quoted = pair.last[CLIENT].clone().unwrap();
    report(&mut pair, &quoted, 16, 1400);
    assert_eq!(sizes(&pair, CLIENT), [mps(1400)]);
    pair.pass(Duration::from_secs(30));
    assert_eq!(pair.stats(CLIENT).max_message_size, mps(1400));
    // A router that reports no size: the next usual size is used.
    pair.send(CLIENT, &[1; 1000]);
    pair.drain();
    let quoted = pair.last[CLIENT].clone().unwrap();
    report(&mut pair, &quoted, 16, 0);
    assert_eq!(pair.stats(CLIENT).max_message_size, mps(1006));
}

#[test]
fn a_router_that_names_the_size_for_a_probe_ends_the_search_there() {
    let mut pair = Pair::connected_with(Net::new(20), probing());
    narrow(&mut pair, 1000);
    while pair.stats(CLIENT).max_message_size > mps(1000) {
        pair.try_send(CLIENT, &[1; mps(1100)]);
        pair.pass(ms(500));
    }
    pair.pass(Duration::from_secs(60));
    // The path carries 1400 when the search starts again, ten minutes later.
    narrow(&mut pair, 1400);
    while pair.last[CLIENT].as_ref().is_none_or(|d| d.ip_len() <= 1400) {
        pair.pass(ms(10));
    }
    let quoted = pair.last[CLIENT].clone().unwrap();
    let before = pair.stats(CLIENT).counters.pmtu_probes_sent;
    report(&mut pair, &quoted, 16, 1400);
    pair.pass(Duration::from_secs(100));
    assert_eq!(pair.stats(CLIENT).max_message_size, mps(1400));
    assert_eq!(pair.stats(CLIENT).counters.pmtu_probes_sent - before, 1, "the size it named");
}

//= 4340-14.1-7 test
#[test]
fn implausible_mtu_report_counts_only_after_losses() {
    // Whether data packets are lost, and whether it is the larger ones or every fourth.
    for (losing, by_size) in [(false, false), (true, false), (true, true)] {
        let mut pair = Pair::connected_with(Net::new(21), ConnectionConfig::default());
        pair.send(CLIENT, b"one");
        pair.drain();
        let quoted = pair.last[CLIENT].clone().unwrap();
        let mut n = 0;
        let mut is_lost = move |d: &Datagram| {
            n += u32::from(!d.payload.is_empty());
            let lost = if by_size { d.ip_len() > 1000 } else { n % 4 == 0 };
            losing && lost && !d.payload.is_empty()
        };
        pair.filter = Some(Box::new(move |from, d| from == SERVER || !is_lost(d)));
        for round in 0..60 {
            // Old routers quote only eight bytes, which include no sequence number.
            report(&mut pair, &quoted, 8, 1000);
            if round < 3 {
                assert_eq!(pair.stats(CLIENT).max_message_size, mps(1500));
            }
            pair.try_send(CLIENT, &[1; 1000]);
            (0..4).for_each(|_| _ = pair.try_send(CLIENT, b"data"));
            pair.pass(ms(50));
        }
        let lost = pair.stats(CLIENT).counters.data_packets_lost;
        assert_eq!(lost > 3, losing);
        let expected = if by_size { mps(1000) } else { mps(1500) };
        assert_eq!(pair.stats(CLIENT).max_message_size, expected, "losing: {losing}");
    }
}

#[test]
fn report_of_the_current_mtu_starts_no_search() {
    let mut pair = Pair::connected_with(Net::new(23), probing());
    pair.pass(Duration::from_secs(20));
    let before = pair.stats(CLIENT).counters.pmtu_probes_sent;
    pair.send(CLIENT, &[1; mps(1500)]);
    pair.drain();
    let quoted = pair.last[CLIENT].clone().unwrap();
    report(&mut pair, &quoted, 16, 1500);
    pair.pass(Duration::from_secs(20));
    assert_eq!(pair.stats(CLIENT).counters.pmtu_probes_sent, before);
    assert_eq!(sizes(&pair, CLIENT), []);
}

/// They contain nothing new. Otherwise an attacker could prevent evidence from accumulating.
#[test]
fn reports_of_the_current_mtu_do_not_refute_others() {
    let mut pair = Pair::connected_with(Net::new(21), ConnectionConfig::default());
    pair.send(CLIENT, b"one");
    pair.drain();
    let quoted = pair.last[CLIENT].clone().unwrap();
    narrow(&mut pair, 1000);
    for _ in 0..60 {
        report(&mut pair, &quoted, 8, 1000);
        report(&mut pair, &quoted, 8, 1500);
        pair.try_send(CLIENT, &[1; 1000]);
        (0..4).for_each(|_| _ = pair.try_send(CLIENT, b"data"));
        pair.pass(ms(50));
    }
    assert_eq!(pair.stats(CLIENT).max_message_size, mps(1000));
}

//= 4340-14.1-6 test
#[test]
fn mtu_reports_cannot_go_below_the_minimum() {
    for probing in [None, Some(PmtuProbing::default())] {
        for (pmtu_floor, least) in [(None, 576), (Some(1000), 1000), (Some(296), 296)] {
            let config =
                ConnectionConfig { pmtu_probing: probing, pmtu_floor, ..Default::default() };
            let mut pair = Pair::connected_with(Net::new(22), config);
            for named in [68, 0, 0, 0, 0, 0, 0, 0, 0] {
                pair.send(CLIENT, &[1; 20]);
                pair.drain();
                let quoted = pair.last[CLIENT].clone().unwrap();
                report(&mut pair, &quoted, 16, named);
                assert_eq!(pair.stats(CLIENT).max_message_size, mps(least));
                pair.pass(ms(100));
            }
        }
    }
}
