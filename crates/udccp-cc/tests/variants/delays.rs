//! Vegas, Veno, YeAH and Compound: the reaction of each to packets in the queue.

use udccp_base::{Duration, Instant};
use udccp_cc::{Algorithm, CompoundConfig, VegasConfig, VenoConfig, YeahConfig};

use crate::path::{Path, near};

/// A path with a base round-trip time of 100 ms, in congestion avoidance with a window of `cwnd`,
/// and now with a round-trip time of `rtt_ms`.
fn queueing(algorithm: &Algorithm, cwnd: u32, rtt_ms: u64) -> Path {
    let mut path = Path::new(algorithm, cwnd, 100);
    path.cc.set_window(Instant::ZERO, cwnd, cwnd);
    path.rounds(2);
    path.cc.set_window(path.now, cwnd, cwnd);
    path.rtt = Duration::from_millis(rtt_ms);
    // The current round still ends with the old delay.
    path.rounds(1);
    path.cc.set_window(path.now, cwnd, cwnd);
    path
}

/// Of 100 packets at 100 / (1 - q / 100) ms, q are queued: 1 at 101.01, 3 at 103.1, 6 at 106.4.
#[test]
fn vegas_keeps_two_to_four_packets_queued() {
    let vegas = Algorithm::Vegas(VegasConfig::default());
    let after = [101, 103, 107].map(|rtt_ms| queueing(&vegas, 100, rtt_ms).rounds(6));
    // Decisions are made at the start of a round: five in six rounds. In the first round, after the
    // window was set from outside, there is no estimate: one packet as in NewReno.
    assert_eq!(after, [106, 101, 96]);
}

/// Doubles until more than one packet is queued, then W base / RTT + 1.
#[test]
fn vegas_leaves_slow_start_before_the_queue_fills() {
    let mut path = Path::new(&Algorithm::Vegas(VegasConfig::default()), 10, 100);
    assert_eq!(path.rounds(2), 40);
    path.rtt = Duration::from_millis(105);
    path.rounds(2);
    // 80 packets at 105 ms: 3.8 are queued; 80 / 1.05 + 1 = 77.2, followed by decisions.
    assert!(!path.cc.in_slow_start());
    near(path.cc.cwnd(), 77.0, 4.0);
}

/// At 150 ms a third of 160 packets is queued: 160 / 1.5 + 1 = 107 are left.
#[test]
fn vegas_gives_the_queue_of_slow_start_back() {
    let mut path = Path::new(&Algorithm::Vegas(VegasConfig::default()), 10, 100);
    assert_eq!(path.rounds(3), 80);
    path.rtt = Duration::from_millis(150);
    // The decision is made at the start of the next round.
    assert_eq!(path.rounds(1), 160);
    near(path.rounds(1), 107.0, 1.0);
    assert!(!path.cc.in_slow_start());
}

#[test]
fn vegas_halves_at_a_loss() {
    let path = Path::cut_at(&Algorithm::Vegas(VegasConfig::default()), 100, 100);
    assert_eq!((path.cc.cwnd(), path.cc.ssthresh()), (50, 50));
}

/// 100 packets: at 102 ms two are queued (N < 3), at 104 ms nearly four.
#[test]
fn veno_grows_half_as_fast_and_cuts_more_where_a_queue_stands() {
    let veno = Algorithm::Veno(VenoConfig::default());
    let mut free = queueing(&veno, 100, 102);
    assert_eq!(free.rounds(2), 102);
    free.lose();
    assert_eq!(free.cc.cwnd(), 81);
    let mut queued = queueing(&veno, 100, 104);
    assert_eq!(queued.rounds(4), 102);
    queued.lose();
    assert_eq!(queued.cc.cwnd(), 51);
}

/// No queue: 1 % per round trip.
#[test]
fn yeah_is_scalable_tcp_on_a_free_path() {
    let mut path = Path::new(&Algorithm::Yeah(YeahConfig::default()), 1000, 100);
    path.cc.set_window(Instant::ZERO, 1000, 1000);
    near(path.rounds(10), 1000.0 * 1.1046, 2.0);
    // Nothing queued: the smallest cut, one eighth.
    path.lose();
    near(path.cc.cwnd(), 1104.6 * 0.875, 2.0);
}

/// 1000 packets at 110 ms: 90.9 are queued, more than 80, and are removed at the first decision.
#[test]
fn yeah_gives_the_queue_back() {
    let yeah = Algorithm::Yeah(YeahConfig::default());
    let mut path = queueing(&yeah, 1000, 110);
    // One round of 1 %, the decision, one round of slow mode.
    path.rounds(2);
    near(path.cc.cwnd(), 1010.0 * (1.0 - 0.0909) + 1.0, 2.0);
}

/// 500 packets at 115 ms: 65 are queued, which is less than 80, but 15 ms are more than 100 / 8:
/// slow mode, one packet per round trip. A loss removes the 65; after 16 rounds of slow mode it
/// removes half.
#[test]
fn yeah_competes_as_newreno_where_the_queue_is_not_its_own() {
    let yeah = Algorithm::Yeah(YeahConfig::default());
    let mut path = queueing(&yeah, 500, 115);
    path.rounds(1);
    let before = path.rounds(1);
    assert_eq!(path.rounds(4), before + 4);
    path.lose();
    near(path.cc.cwnd(), f64::from(before + 4) * (1.0 - 0.1304), 2.0);
    let mut path = queueing(&yeah, 500, 115);
    let before = path.rounds(20);
    path.lose();
    near(path.cc.cwnd(), f64::from(before) / 2.0, 1.0);
}

/// At 300 ms two thirds of the window are queued, and a decision removes half of it: 1010, 505,
/// 253. The first leaves 505 packets, and NewReno would have half of them, plus one per round. At
/// the third decision that is 253, the lower limit of the window. A loss halves it too.
#[test]
fn yeah_does_not_fall_below_what_newreno_would_have() {
    let yeah = Algorithm::Yeah(YeahConfig::default());
    let mut path = queueing(&yeah, 1000, 300);
    near(path.rounds(3), 254.0, 1.0);
    near(path.rounds(7), 260.0, 1.0);
    path.lose();
    near(path.cc.cwnd(), 130.0, 1.0);
    path.cc.set_window(path.now, 1000, 1000);
    near(path.rounds(4), 130.0 + 3.0, 1.0);
    near(path.rounds(6), 130.0 + 9.0, 1.0);
}

/// After more than 50 rounds of fast mode, cuts leave 202 and 101 of 404 packets, of which 67 are
/// queued. Before that, the estimate of NewReno holds the window at 260.
#[test]
fn yeah_forgets_newreno_in_fast_mode() {
    let yeah = Algorithm::Yeah(YeahConfig::default());
    for (fast_rounds, left) in [(48, 260.0), (53, 103.0)] {
        let mut path = queueing(&yeah, 1000, 300);
        path.rounds(10);
        path.rtt = Duration::from_millis(100);
        path.rounds(fast_rounds);
        path.cc.set_window(path.now, 400, 400);
        path.rtt = Duration::from_millis(300);
        near(path.rounds(3), left, 4.0);
    }
}

/// dwnd grows by win^0.75 / 8 - 1 per round trip, cwnd by one: together win^0.75 / 8.
#[test]
fn compound_grows_as_the_three_quarters_power_of_the_window() {
    let mut path = Path::new(&Algorithm::Compound(CompoundConfig::default()), 1000, 100);
    path.cc.set_window(Instant::ZERO, 1000, 1000);
    path.rounds(1);
    let start = f64::from(path.cc.cwnd());
    // dW/dt = W^(3/4) / 8: W(t) = (W^(1/4) + t / 32)^4.
    let curve = |t: f64| {
        let root = libm::sqrt(libm::sqrt(start)) + t / 32.0;
        root * root * root * root
    };
    near(path.rounds(10), curve(10.0), 4.0);
    near(path.rounds(10), curve(20.0), 8.0);
    path.lose();
    near(path.cc.cwnd(), curve(20.0) / 2.0, 5.0);
}

/// 1000 packets at 110 ms: diff = 90.9 > 30, so each round reduces dwnd by that until it is zero.
#[test]
fn compound_falls_back_to_newreno_where_a_queue_stands() {
    let mut path = Path::new(&Algorithm::Compound(CompoundConfig::default()), 1000, 100);
    path.cc.set_window(Instant::ZERO, 1000, 1000);
    let high = path.rounds(8);
    assert!(high > 1150, "{high}");
    path.rtt = Duration::from_millis(110);
    path.rounds(1);
    let first = path.rounds(1);
    near(first, f64::from(high) * (1.0 - 0.0909) + 24.0, 5.0);
    // Only cwnd is left: 1000 and one per round trip.
    near(path.rounds(4), 1000.0 + 14.0, 2.0);
    near(path.rounds(4), 1000.0 + 18.0, 2.0);
}
