//! Hybla: windows in packets per second follow a flow with 25 ms.

use udccp_base::Instant;
use udccp_cc::{Algorithm, HyblaConfig};

use crate::path::{Path, near};

fn hybla() -> Algorithm {
    Algorithm::Hybla(HyblaConfig::default())
}

/// 100 ms are rho = 4: growth of 16 packets per round trip, 160 packets in a second. The reference
/// flow grows by one in 25 ms: 40 packets in a second, each worth four of them in window.
#[test]
fn avoidance_grows_by_rho_squared() {
    let mut path = Path::new(&hybla(), 100, 100);
    path.cc.exit_slow_start(Instant::ZERO);
    // Less the growth of the window within the round: 100 * 16 / 108.
    near(path.rounds(1), 114.8, 1.0);
    near(path.rounds(9), 260.0, 9.0);
    let mut reference = Path::new(&hybla(), 25, 25);
    reference.cc.exit_slow_start(Instant::ZERO);
    assert_eq!(reference.run(1.0), 65);
}

/// 50 ms: 2^2 - 1 = 3 packets per packet acknowledged; 100 ms: 15. NewReno adds one.
#[test]
fn slow_start_adds_two_to_the_rho_less_one() {
    let grown = [10, 25, 50, 100].map(|rtt_ms| Path::new(&hybla(), 4, rtt_ms).rounds(1));
    assert_eq!(grown, [8, 8, 16, 64]);
}

/// Otherwise the first acknowledgement after a timeout would bring the window to the threshold.
#[test]
fn slow_start_after_a_timeout_doubles_as_newreno() {
    let mut path = Path::new(&hybla(), 64, 100);
    path.cc.on_rto(Instant::ZERO, 64);
    let grown: Vec<u32> = (0..5).map(|_| path.rounds(1)).collect();
    assert_eq!(grown, [2, 4, 8, 16, 32]);
    // Above the threshold it grows by rho squared per round trip again.
    near(path.rounds(1), 44.0, 2.0);
}

#[test]
fn slow_start_ends_at_the_threshold() {
    let mut path = Path::new(&hybla(), 4, 100);
    path.cc.set_window(Instant::ZERO, 4, 30);
    // Two of four packets reach it; the other two add 16 / 30 each.
    assert_eq!(path.rounds(1), 31);
    path.lose();
    assert_eq!((path.cc.cwnd(), path.cc.ssthresh()), (15, 15));
}
