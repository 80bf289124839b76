//! Westwood+: the window after a loss follows from bandwidth and smallest round-trip time.

use udccp_base::{Duration, Instant};
use udccp_cc::{Algorithm, WestwoodConfig};

use crate::path::Path;

/// A congestion event, a round trip of recovery, and the acknowledgement that ends it.
fn recover(path: &mut Path) {
    let before = path.cc.cwnd();
    path.lose();
    assert_eq!((path.cc.cwnd(), path.cc.ssthresh()), (before / 2, before / 2));
    path.in_recovery = true;
    path.rounds(1);
    path.in_recovery = false;
    path.ack(path.now, false);
}

fn westwood() -> Algorithm {
    Algorithm::Westwood(WestwoodConfig::default())
}

/// 1000 packets in 110 ms are 9091 per second. At an RTT_min of 100 ms that is a window of 909: the
/// tenth in the queue is removed, and the pipe stays full.
#[test]
fn a_loss_empties_the_queue_and_no_more() {
    let mut path = Path::new(&westwood(), 1000, 100);
    path.cc.set_window(Instant::ZERO, 1000, 1000);
    path.rounds(1);
    path.rtt = Duration::from_millis(110);
    path.rounds(60);
    let expected = f64::from(path.cc.cwnd()) / 1.1;
    recover(&mut path);
    let kept = f64::from(path.cc.cwnd());
    // The filter lags behind the growing window, and a sample covers whole acknowledgements.
    assert!((kept / expected - 1.0).abs() < 0.02, "{kept}, expected {expected}");
    assert_eq!(path.cc.ssthresh(), path.cc.cwnd());
}

/// A change of bandwidth passes two stages of 7/8: after n samples 1 - (7/8)^n (1 + n / 8) of it
/// has taken effect; n = 16: 0.646.
#[test]
fn the_estimate_follows_through_two_stages() {
    let mut path = Path::new(&westwood(), 500, 100);
    path.cc.set_window(Instant::ZERO, 500, 500);
    path.rounds(40);
    path.cc.set_window(path.now, 1000, 1000);
    path.rounds(1);
    path.cc.set_window(path.now, 1000, 1000);
    path.rounds(15);
    recover(&mut path);
    let moved = (f64::from(path.cc.cwnd()) - 540.0) / (1008.0 - 540.0);
    assert!((0.58..0.70).contains(&moved), "{moved}: {}", path.cc.cwnd());
}

#[test]
fn it_grows_as_newreno_and_a_timeout_leaves_one_packet() {
    let mut path = Path::new(&westwood(), 100, 100);
    path.cc.set_window(Instant::ZERO, 100, 100);
    assert_eq!(path.rounds(10), 110);
    path.cc.on_rto(path.now, 110);
    assert_eq!(path.cc.cwnd(), 1);
    let kept = path.cc.ssthresh();
    assert!((95..=110).contains(&kept), "{kept}");
}
