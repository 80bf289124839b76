//! TCP-Illinois: alpha and beta as functions of the mean queueing delay.

use udccp_base::{Duration, Instant};
use udccp_cc::{Algorithm, Delivery, IllinoisConfig};

use crate::path::{Path, near};

/// A path of 100 ms with a largest queueing delay of 100 ms, and now `queue_ms`.
fn with_queue(queue_ms: u64) -> Path {
    let mut path = Path::new(&Algorithm::Illinois(IllinoisConfig::default()), 1000, 100);
    path.cc.set_window(Instant::ZERO, 1000, 1000);
    path.rounds(1);
    path.rtt = Duration::from_millis(200);
    path.rounds(1);
    path.rtt = Duration::from_millis(100 + queue_ms);
    path.rounds(2);
    path.cc.set_window(path.now, 1000, 1000);
    path
}

/// d_m = 100 ms: k1 = 99 * 0.3 * 10 / 9.7 = 30.62, k2 = 99 * 0.3 / 9.7 - 1 = 2.062 (in ms);
/// alpha(10) = 30.62 / 12.06 = 2.54, alpha(50) = 0.588, alpha(100) = 0.3.
#[test]
fn growth_falls_with_the_delay() {
    for (queue_ms, alpha) in [(10, 2.54), (50, 0.588), (100, 0.3)] {
        let mut path = with_queue(queue_ms);
        near(path.rounds(20), 1000.0 + 20.0 * alpha, 1.5);
    }
}

#[test]
fn growth_is_ten_packets_a_round_trip_without_delay() {
    let mut path = Path::new(&Algorithm::Illinois(IllinoisConfig::default()), 1000, 100);
    path.cc.set_window(Instant::ZERO, 1000, 1000);
    near(path.rounds(10), 1100.0, 5.0);
}

/// After a delay was measured, five rounds without delay must pass.
#[test]
fn the_largest_growth_returns_after_five_good_rounds() {
    let mut path = with_queue(0);
    // Two of the five are over.
    let slow = path.rounds(3);
    near(slow, 1000.0 + 3.0 * 0.3, 1.5);
    near(path.rounds(5) - slow, 50.0, 5.0);
}

/// beta: 1/8 up to a tenth of the largest delay, 1/2 from 0.8 of it, linear in between:
/// beta(45) = 1/8 + 3/8 * 35 / 70 = 0.3125.
#[test]
fn the_cut_rises_with_the_delay() {
    for (queue_ms, beta) in [(5, 0.125), (10, 0.125), (45, 0.3125), (80, 0.5), (100, 0.5)] {
        let mut path = with_queue(queue_ms);
        path.lose();
        near(path.cc.cwnd(), 1000.0 * (1.0 - beta), 1.0);
    }
}

#[test]
fn small_windows_are_newreno() {
    let mut path = Path::new(&Algorithm::Illinois(IllinoisConfig::default()), 10, 100);
    path.cc.set_window(Instant::ZERO, 10, 10);
    assert_eq!(path.rounds(2), 12);
    path.lose();
    assert_eq!(path.cc.cwnd(), 6);
}

/// A cumulative acknowledgement of 900 packets ends a recovery with a window of 875: alpha of 10
/// times 900 / 875, in whole packets.
#[test]
fn since_4_6_the_end_of_a_recovery_is_a_round_trip_of_growth() {
    for (config, grown) in [(IllinoisConfig::linux_6_1(), 10), (IllinoisConfig::default(), 0)] {
        let mut cc = Algorithm::Illinois(config).build(875);
        cc.set_window(Instant::ZERO, 875, 875);
        let ack = |in_recovery, advanced| Delivery { in_recovery, advanced, ..Delivery::default() };
        cc.on_delivery(&ack(true, 1));
        assert_eq!(cc.cwnd(), 875);
        cc.on_delivery(&ack(false, 900));
        assert_eq!(cc.cwnd(), 875 + grown);
        cc.on_delivery(&ack(false, 900));
        assert_eq!(cc.cwnd(), 875 + grown, "once");
    }
}

/// After a timeout: one packet, alpha 1, beta 1/2.
#[test]
fn a_timeout_forgets_what_was_learnt() {
    let mut path = with_queue(0);
    path.cc.on_rto(path.now, 1000);
    assert_eq!(path.cc.cwnd(), 1);
    let ssthresh = path.cc.ssthresh();
    path.cc.set_window(path.now, ssthresh, ssthresh);
    path.lose();
    assert_eq!(path.cc.cwnd(), ssthresh / 2);
}
