//! H-TCP: growth depends on the time since the cut, and the cut on the queue.

use udccp_base::Duration;
use udccp_cc::{Algorithm, Delivery, HtcpConfig};

use crate::path::{Path, near};

fn htcp() -> Algorithm {
    Algorithm::Htcp(HtcpConfig::default())
}

/// The window after `rounds` of `rtt_s`, starting `since` seconds after the cut, at beta 0.5. Steps
/// take W / alpha + 1 packets, rounded up, with alpha = 1 + 10 (D - 1) + (D - 1)^2 / 4, and its
/// multiple by RTT / 100 ms, in whole numbers.
fn grown(window: u32, since: f64, rounds: u32, rtt_s: f64) -> f64 {
    (0..rounds).fold(f64::from(window), |w, round| {
        // In the middle of the round.
        let d = (since + (f64::from(round) + 0.5) * rtt_s - 1.0).max(0.0);
        let factor = 1.0 + libm::floor(10.0 * d + d * d / 4.0);
        let alpha = libm::floor(factor * rtt_s / 0.1).max(1.0);
        w + alpha / (1.0 + 1.5 * alpha / w)
    })
}

/// One packet per round trip for a second, then more and more.
#[test]
fn growth_follows_the_time_since_the_cut() {
    let mut path = Path::cut_at(&htcp(), 1000, 100);
    assert_eq!(path.cc.cwnd(), 500);
    near(path.run(1.0), 510.0, 1.0);
    for (since, seconds) in [(1.0, 1.0), (2.0, 2.0)] {
        let before = path.cc.cwnd();
        let expected = grown(before, since, (10.0 * seconds) as u32, 0.1);
        near(path.run(seconds), expected, 0.01 * expected);
    }
}

/// The same seconds at other round-trip times: alpha is scaled by RTT / 100 ms, so growth in
/// packets per second is alpha / 0.1 s / second everywhere (down to 10 ms, up to 200 ms).
#[test]
fn growth_per_second_does_not_depend_on_the_round_trip_time() {
    for rtt_ms in [50, 200] {
        let mut path = Path::cut_at(&htcp(), 1000, rtt_ms);
        let start = path.run(2.0);
        // Between D = 2 and D = 4, at alpha of 11.25 to 33.25.
        let rtt_s = rtt_ms as f64 / 1000.0;
        let expected = grown(start, 2.0, (2.0 / rtt_s) as u32, rtt_s);
        near(path.run(2.0), expected, 0.012 * expected);
        // Without whole numbers: the integral of alpha over round trips of 0.1 s.
        let smooth = 10.0 * (2.0 + 5.0 * (9.0 - 1.0) + 26.0 / 12.0);
        near(path.cc.cwnd() - start, smooth, 0.15 * smooth);
    }
}

/// Steady throughput and a queue of a quarter of the path's capacity: beta = 80 / 100. The first
/// event only measures; the second has no earlier throughput to compare with.
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
    assert!((49..=50).contains(&kept[0]), "nothing is known before the first event: {kept:?}");
    let last = kept[3];
    // The maximum round-trip time has decayed by 5 % of 20 ms, and is reached again.
    assert!((78..=80).contains(&last), "{kept:?}");
}

/// If throughput halves from one event to the next, there is a new flow, and the cut is by half.
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

/// What is kept of 100 packets after an epoch with these numbers acknowledged in each 100 ms. The
/// round-trip time is 100 ms, and once 70 ms: 0.7 is kept if the cut depends on the queue.
fn kept_after(path: &mut Path, stretches: &[u32]) -> u32 {
    path.cc.set_window(path.now, 100, 100);
    for (k, &acked) in stretches.iter().enumerate() {
        path.now += Duration::from_millis(100);
        let rtt = Some(Duration::from_millis(if k == 1 { 70 } else { 100 }));
        path.cc.on_delivery(&Delivery { now: path.now, acked, rtt, ..Delivery::default() });
    }
    path.lose();
    path.cc.cwnd()
}

/// 1,000 packets per second, then an interval with more, which has weight 1/4. 3/4 of 1,000 and 1/4
/// of 1,700 are 1,175; with 1,900 it is 1,225, which is more than a fifth above.
#[test]
fn a_stretch_counts_for_a_quarter_of_the_throughput() {
    for (last, kept) in [(170, 70), (190, 50)] {
        let mut path = Path::new(&htcp(), 100, 100);
        let steady = [(); 3].map(|()| kept_after(&mut path, &[100; 10]));
        assert_eq!(steady, [50, 50, 70]);
        let mut stretches = [100; 10];
        stretches[9] = last;
        assert_eq!(kept_after(&mut path, &stretches), kept, "{last}");
    }
}

/// The measurement restarts in the first three round trips of an epoch: two changes, up and down,
/// then an event that finds throughput steady again, and only then one whose cut depends on the
/// queue.
#[test]
fn an_epoch_measures_its_own_throughput() {
    let mut path = Path::new(&htcp(), 100, 100);
    let epochs = [100, 100, 100, 200, 100, 100, 100];
    let kept = epochs.map(|acked| kept_after(&mut path, &[acked; 10]));
    assert_eq!(kept, [50, 50, 70, 50, 50, 50, 70]);
}

/// A recovery of two seconds does not count: growth is one packet per round trip for a second after
/// it.
#[test]
fn growth_begins_at_the_end_of_the_recovery() {
    let mut path = Path::cut_at(&htcp(), 1000, 100);
    path.in_recovery = true;
    assert_eq!(path.run(2.0), 500);
    path.in_recovery = false;
    near(path.run(1.0), 510.0, 1.0);
}
