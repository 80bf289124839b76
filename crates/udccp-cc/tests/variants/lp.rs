//! TCP-LP: yields at the first sign of a queue.

use udccp_base::{Duration, Instant};
use udccp_cc::{Algorithm, LpConfig};

use crate::path::Path;

/// Delays of 100 to 200 ms were measured; the smoothed delay is back near 100 ms.
fn learnt() -> Path {
    let mut path = Path::new(&Algorithm::Lp(LpConfig::default()), 100, 100);
    path.cc.set_window(Instant::ZERO, 100, 100);
    path.rounds(1);
    path.rtt = Duration::from_millis(200);
    path.rounds(1);
    path.rtt = Duration::from_millis(100);
    path.rounds(10);
    path.cc.set_window(path.now, 100, 100);
    path
}

/// The threshold is 100 + 0.15 * 100 = 115 ms.
#[test]
fn below_the_threshold_it_is_newreno() {
    let mut path = learnt();
    path.rtt = Duration::from_millis(114);
    assert_eq!(path.rounds(5), 105);
}

#[test]
fn a_sign_of_a_queue_halves_and_growth_waits_three_round_trips() {
    let mut path = learnt();
    path.rtt = Duration::from_millis(117);
    path.rounds(1);
    assert_eq!(path.cc.cwnd(), 50);
    // The queue disappears at once.
    path.rtt = Duration::from_millis(100);
    assert_eq!(path.rounds(2), 50);
    let later = path.rounds(6);
    assert!((53..=56).contains(&later), "{later}");
}

#[test]
fn a_queue_that_stays_leaves_one_packet() {
    let mut path = learnt();
    path.rtt = Duration::from_millis(150);
    path.rounds(3);
    assert_eq!(path.cc.cwnd(), 1);
    // While the queue stays, the window stays.
    path.rounds(20);
    assert_eq!(path.cc.cwnd(), 1);
    // Without the queue, slow start leads back to half of the old window, then growth is one by
    // one.
    path.rtt = Duration::from_millis(100);
    let back = path.rounds(30);
    assert!((50..=75).contains(&back), "{back}");
}

#[test]
fn a_loss_halves() {
    let mut path = learnt();
    path.lose();
    assert_eq!((path.cc.cwnd(), path.cc.ssthresh()), (50, 50));
}
