//! HyStart and HyStart++: where slow start ends.

use udccp_base::Duration;
use udccp_cc::{Algorithm, CubicConfig, HyStart};

use crate::path::{Path, near};

fn cubic(hystart: HyStart) -> Algorithm {
    Algorithm::Cubic(CubicConfig::with_hystart(hystart))
}

/// RTT_min 80 ms: an increase of more than 80 / 8 = 10 ms in all samples of a round, at least nine.
#[test]
fn a_rise_of_an_eighth_ends_slow_start() {
    for (rtt_ms, ends) in [(89, false), (92, true)] {
        let mut path = Path::new(&cubic(HyStart::Classic), 10, 80);
        // Acknowledgements 5 ms apart are not a train.
        assert_eq!(path.rounds(1), 20);
        path.rtt = Duration::from_millis(rtt_ms);
        path.rounds(1);
        assert_eq!(path.cc.in_slow_start(), !ends, "{rtt_ms} ms");
    }
    let mut path = Path::new(&cubic(HyStart::Classic), 16, 80);
    path.ack(path.now, true);
    path.rtt = Duration::from_millis(92);
    path.rounds(1);
    // The window had grown by eight acknowledgements before the ninth sample.
    near(path.cc.ssthresh(), 25.0, 0.0);
}

/// A window of 64 in 100 ms: acknowledgements 1.6 ms apart, for longer than 50.5 ms.
#[test]
fn a_train_of_half_the_round_trip_ends_slow_start() {
    let mut path = Path::new(&cubic(HyStart::Classic), 32, 100);
    assert_eq!(path.rounds(1), 64);
    assert!(path.cc.in_slow_start());
    path.rounds(1);
    assert!(!path.cc.in_slow_start());
    // Half of 64 have arrived by then.
    near(path.cc.ssthresh(), 96.0, 2.0);
}

/// A window of 200 in 10 ms: (10 + 1) / 2 = 5.5 ms have passed after 111 of them.
#[test]
fn a_short_path_allows_a_millisecond_for_bursts() {
    let mut path = Path::new(&cubic(HyStart::Classic), 200, 10);
    path.rounds(1);
    near(path.cc.ssthresh(), 200.0 + 111.0, 1.0);
}

/// 100 then 115 ms are more than 100 / 8 apart: a quarter of the growth for five rounds.
#[test]
fn hystart_plus_plus_slows_down_first() {
    let mut path = Path::new(&cubic(HyStart::PlusPlus), 40, 100);
    assert_eq!(path.rounds(1), 80);
    path.rtt = Duration::from_millis(115);
    // Seven acknowledgements with full growth, 73 with a quarter of it.
    near(path.rounds(1), 80.0 + 7.0 + 18.25, 1.0);
    near(path.rounds(4), 105.0 * 2.4414, 6.0);
    assert!(path.cc.in_slow_start());
    path.rounds(1);
    assert!(!path.cc.in_slow_start());
}

/// The delay falls below its value at the change: the increase was noise, and slow start continues.
#[test]
fn hystart_plus_plus_returns_where_the_delay_falls() {
    let mut path = Path::new(&cubic(HyStart::PlusPlus), 40, 100);
    path.rounds(1);
    path.rtt = Duration::from_millis(115);
    let slow = path.rounds(1);
    path.rtt = Duration::from_millis(101);
    // Seven acknowledgements with a quarter of the growth, then full growth.
    near(path.rounds(1), f64::from(2 * slow) - 7.0 * 0.75, 1.5);
    path.rounds(6);
    assert!(path.cc.in_slow_start());
}

#[test]
fn without_a_rise_slow_start_goes_on() {
    let mut path = Path::new(&cubic(HyStart::PlusPlus), 10, 100);
    assert_eq!(path.rounds(6), 640);
}

/// Only the first slow start is slowed down (RFC 9406). After a timeout, or below a threshold set
/// from outside, slow start doubles the window.
#[test]
fn later_slow_starts_are_not_slowed_down() {
    for by_timeout in [true, false] {
        let mut path = Path::new(&cubic(HyStart::PlusPlus), 100, 100);
        path.rounds(1);
        path.rtt = Duration::from_millis(115);
        path.rounds(1);
        let before = path.cc.cwnd();
        assert!(path.rounds(1) < before * 3 / 2, "a quarter of the growth");
        if by_timeout {
            path.cc.on_rto(path.now, before);
        } else {
            path.cc.set_window(path.now, 1, 100);
        }
        assert_eq!(path.rounds(4), 16);
    }
}
