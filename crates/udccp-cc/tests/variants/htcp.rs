//! H-TCP: growth over time since the cut, and the cut over the queue.

use udccp_base::Duration;
use udccp_cc::{Algorithm, HtcpConfig};

use crate::path::{Path, near};

fn htcp() -> Algorithm {
    Algorithm::Htcp(HtcpConfig::default())
}

/// At 100 ms the scaling is 1 and beta 0.5: alpha(D) packets a round trip. One a round trip for a
/// second, then alpha = 1 + 10 (D - 1) + (D - 1)^2 / 4, whose integral over round trips of 0.1 s is
/// 10 (d + 5 d^2 + d^3 / 12) with d = D - 1: 62.5 + ... .
#[test]
fn growth_follows_the_time_since_the_cut() {
    let mut path = Path::cut_at(&htcp(), 1000, 100);
    assert_eq!(path.cc.cwnd(), 500);
    near(path.run(1.0), 510.0, 1.0);
    let at = |d: f64| 510.0 + 10.0 * (d + 5.0 * d * d + d * d * d / 12.0);
    near(path.run(1.0), at(1.0), 4.0);
    near(path.run(2.0), at(3.0), 10.0);
}

/// The same seconds at other round-trip times: alpha is scaled by RTT / 100 ms, so growth in
/// packets per second is alpha / 0.1 s / second everywhere (down to 10 ms, up to 200 ms).
#[test]
fn growth_per_second_does_not_depend_on_the_round_trip_time() {
    for rtt_ms in [50, 200] {
        let mut path = Path::cut_at(&htcp(), 1000, rtt_ms);
        let start = path.run(2.0);
        // Between D = 2 and D = 4, at alpha of 11.25 to 33.25.
        let grown = path.run(2.0) - start;
        near(grown, 10.0 * (2.0 + 5.0 * (9.0 - 1.0) + (27.0 - 1.0) / 12.0), 20.0);
    }
}

/// Steady throughput and a queue of a quarter of the path: beta = 80 / 100. The first event only
/// learns, the second finds no throughput to compare with before that.
#[test]
fn the_cut_follows_the_queue() {
    let mut path = Path::new(&htcp(), 100, 80);
    let mut kept = Vec::new();
    for _ in 0..4 {
        path.cc.set_window(path.now, 100, 100);
        path.rtt = Duration::from_millis(80);
        path.rounds(6);
        path.rtt = Duration::from_millis(100);
        path.rounds(4);
        let before = path.cc.cwnd();
        path.lose();
        kept.push(100 * path.cc.cwnd() / before);
    }
    assert_eq!(kept[0], 50, "nothing is known before the first event");
    let last = kept[3];
    // The memory of the longest round-trip time has faded by 5 % of 20 ms, and is met again.
    assert!((78..=80).contains(&last), "{kept:?}");
}

/// Throughput that halves from one event to the next: another flow came, and the cut is by half.
#[test]
fn a_change_of_throughput_cuts_by_half() {
    let mut path = Path::new(&htcp(), 100, 80);
    for window in [100, 100, 100, 50] {
        path.cc.set_window(path.now, window, window);
        path.rtt = Duration::from_millis(80);
        path.rounds(6);
        path.rtt = Duration::from_millis(100);
        path.rounds(4);
        path.lose();
    }
    let kept = path.cc.cwnd();
    near(kept, 30.0, 4.0);
}
