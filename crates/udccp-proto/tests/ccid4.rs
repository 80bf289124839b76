//! CCID 4 between two endpoints: negotiation, packets, calls over a lossy path.

mod common;

use std::sync::{Arc, Mutex};

use common::packet::{forge, numbers};
use common::pair::{CLIENT, Pair, SERVER};
use common::{Impairments, Net};
use udccp_base::{Datagram, Duration};
use udccp_proto::{ConnectionConfig, State};
use udccp_wire::{HeaderKind, OptionRef, PacketView};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn both(ccids: &[u8]) -> ConnectionConfig {
    let (tx_ccids, rx_ccids) = (ccids.to_vec(), ccids.to_vec());
    ConnectionConfig { tx_ccids, rx_ccids, ..ConnectionConfig::default() }
}

fn connect(seed: u64, client: &[u8], server: &[u8]) -> Pair {
    let mut pair = Pair::starting(Net::new(seed), both(client), both(server));
    pair.pass(ms(200));
    pair
}

/// Sends a message of `size` bytes every 20 ms for `span`; returns how many arrived.
fn call(pair: &mut Pair, size: usize, span: Duration) -> usize {
    let (mut got, end) = (0, pair.now + span);
    let message = vec![7; size];
    while pair.now < end {
        pair.try_send(CLIENT, &message);
        pair.pass(ms(20));
        got += pair.received(SERVER).len();
    }
    got
}

#[test]
fn ccid_4_is_negotiated_like_any_other_ccid() {
    for (client, server, chosen) in
        [(&[4][..], &[2, 3, 4][..], 4), (&[4], &[4], 4), (&[3, 4], &[4, 2], 4), (&[2, 4], &[2], 2)]
    {
        let pair = connect(1, client, server);
        let stats = pair.stats(CLIENT);
        assert_eq!(
            (stats.tx_ccid, stats.rx_ccid),
            (Some(chosen), Some(chosen)),
            "{client:?}, {server:?}"
        );
    }
}

/// Counts the reports with this many loss intervals or more during a call at 5 % loss. Each has as
/// many Drop Counts.
fn reports(pair: &mut Pair, size: usize, least: usize) -> u32 {
    pair.net.impairments = Impairments { loss: 0.05, ..Impairments::default() };
    let seen = Arc::new(Mutex::new(0));
    let tally = seen.clone();
    pair.net.filter = Some(Box::new(move |from, d: &Datagram| {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        let (mut intervals, mut counts) = (None, None);
        for option in view.options().map(Result::unwrap) {
            match option {
                OptionRef::LossIntervals { intervals: bytes, .. } => {
                    intervals = Some(bytes.len() / 9);
                }
                OptionRef::DroppedPackets(bytes) => counts = Some(bytes.len() / 3),
                _ => {}
            }
        }
        assert_eq!(intervals, counts);
        assert!(from == SERVER || counts.is_none());
        *tally.lock().unwrap() += u32::from(counts.is_some_and(|n| n >= least));
        true
    }));
    call(pair, size, ms(4000));
    *seen.lock().unwrap()
}

//= 5622-8.7-2 test
//= 5622-8.7-3 test
#[test]
fn feedback_has_dropped_packets_for_the_intervals_that_it_has() {
    assert!(reports(&mut connect(2, &[4], &[4]), 172, 2) > 50);
}

//= 5622-8.7-2 test
//= 5622-8.7-3 test
#[test]
fn on_a_narrow_path_feedback_is_shorter_and_whole() {
    for (path_mtu, intervals) in [(128, 4), (150, 5), (188, 8), (190, 9)] {
        let config = ConnectionConfig { path_mtu, pmtu_floor: Some(128), ..both(&[4]) };
        let mut pair = Pair::starting(Net::new(6), config.clone(), config);
        pair.pass(ms(200));
        assert!(reports(&mut pair, 32, intervals) > 50, "MTU {path_mtu}");
    }
}

#[test]
fn calls_of_both_codecs_pass_at_ten_percent_loss() {
    // Sizes with 12 bytes of RTP. A round trip takes 20 ms, so the equation allows a higher rate.
    for size in [172, 32] {
        let mut pair = connect(3, &[4], &[4]);
        pair.net.impairments = Impairments { loss: 0.1, ..Impairments::default() };
        call(&mut pair, size, ms(5000));
        let got = call(&mut pair, size, ms(20_000));
        assert!((860..=940).contains(&got), "{size}: {got} of 1000");
        let p = pair.stats(CLIENT).loss_event_rate.unwrap();
        assert!((0.03..0.25).contains(&p), "{p}");
    }
}

#[test]
fn rate_is_limited_to_100_packets_per_second() {
    let mut pair = connect(4, &[4], &[4]);
    let (mut got, end) = (0, pair.now + ms(10_000));
    while pair.now < end {
        while pair.stats(CLIENT).send_queue_packets < 20 && pair.try_send(CLIENT, &[7; 1000]) {}
        pair.pass(ms(5));
        got += pair.received(SERVER).len();
    }
    assert!((950..=1001).contains(&got), "{got}");
}

#[test]
fn duplicates_reordering_and_corruption_do_no_harm() {
    for seed in 0..4 {
        let mut pair = connect(100 + seed, &[4], &[4]);
        let (loss, duplicate, reorder, corrupt) = (0.03, 0.05, 0.2, 0.02);
        pair.net.impairments =
            Impairments { loss, duplicate, reorder, corrupt, ..Impairments::default() };
        assert!(call(&mut pair, 160, ms(10_000)) > 200);
        for end in [CLIENT, SERVER] {
            assert_eq!(pair.state(end), Some(State::Open));
            assert_eq!(pair.stats(end).counters.drops.bad_options, 0);
        }
    }
}

//= 5622-8-1 test
#[test]
fn reports_on_data_packets_are_ignored() {
    let mut pair = connect(5, &[4], &[4]);
    call(&mut pair, 172, ms(1000));
    pair.pass(ms(50));
    let x = pair.stats(CLIENT).x_bytes_per_sec;
    let like = pair.net.last[SERVER].clone().unwrap();
    let (_, seq, _) = numbers(&like);
    let ack = numbers(pair.net.last[CLIENT].as_ref().unwrap()).1;
    let intervals = [0, 0, 0, 0, 0, 5, 0, 0, 1, 0, 0, 20, 0, 0, 0, 0, 0, 9];
    let options = [
        OptionRef::ElapsedTime(0),
        OptionRef::ReceiveRate(1),
        OptionRef::LossEventRate(1),
        OptionRef::LossIntervals { skip_length: 0, intervals: &intervals },
        OptionRef::DroppedPackets(&[0, 0, 5, 0, 0, 0]),
    ];
    let data = forge(&like, HeaderKind::Data, seq.add(1), &options);
    pair.net.deliver(CLIENT, data);
    assert_eq!(pair.stats(CLIENT).x_bytes_per_sec, x);
    // The same on an acknowledgement is accepted.
    let acknowledgement = forge(&like, HeaderKind::Ack { ack }, seq.add(2), &options);
    pair.net.deliver(CLIENT, acknowledgement);
    assert_ne!(pair.stats(CLIENT).x_bytes_per_sec, x);
}
