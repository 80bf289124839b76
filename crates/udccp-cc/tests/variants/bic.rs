//! BIC: each part of its window curve.

use udccp_base::{Duration, Instant};
use udccp_cc::{AckSample, Algorithm, BicConfig, CongestionControl, Delivery};

use crate::path::{Path, near};

fn bic() -> Algorithm {
    Algorithm::Bic(BicConfig::linux_2_6())
}

/// Cut at 1000: 800, then 16 packets per round trip until the distance is 4 * 16.
#[test]
fn far_below_the_last_maximum_growth_is_additive() {
    let mut path = Path::cut_at(&bic(), 1000, 100);
    assert_eq!((path.cc.cwnd(), path.cc.ssthresh()), (800, 800));
    near(path.rounds(1), 816.0, 1.0);
    near(path.rounds(7), 928.0, 3.0);
}

/// dW/dt = (1000 - W) / 4 per round trip: the distance falls as exp(-t / 4).
#[test]
fn near_the_last_maximum_the_distance_falls_exponentially() {
    let mut path = Path::cut_at(&bic(), 1000, 100);
    path.cc.set_window(Instant::ZERO, 940, 940);
    for (rounds, total) in [(1, 1.0), (1, 2.0), (2, 4.0)] {
        // Integer steps lag behind the exponential by up to one in the divisor.
        near(path.rounds(rounds), 1000.0 - 60.0 * libm::exp(-total / 4.0), 2.0);
    }
}

/// From 8 below to 4 above: 4 / 20 of a packet per round trip, so 60 round trips for 12 packets.
#[test]
fn window_grows_slowly_around_the_last_maximum() {
    let mut path = Path::cut_at(&bic(), 1000, 100);
    path.cc.set_window(Instant::ZERO, 993, 993);
    near(path.rounds(20), 997.0, 1.0);
    near(path.rounds(35), 1004.0, 1.0);
}

/// Beyond it dW/dt = (W - 1000) / 3: the distance grows as exp(t / 3) up to 48, then 16 per round.
#[test]
fn beyond_the_last_maximum_it_probes_ever_faster() {
    let mut path = Path::cut_at(&bic(), 1000, 100);
    path.cc.set_window(Instant::ZERO, 1006, 1006);
    near(path.rounds(3), 1000.0 + 6.0 * libm::exp(1.0), 1.5);
    // Integer steps lag behind.
    near(path.rounds(3), 1000.0 + 6.0 * libm::exp(2.0), 4.0);
    path.cc.set_window(Instant::ZERO, 1100, 1100);
    near(path.rounds(10), 1260.0, 6.0);
}

#[test]
fn a_cut_below_the_last_maximum_makes_room() {
    let mut path = Path::cut_at(&bic(), 1000, 100);
    path.lose();
    // Cut at 800 < 1000: the next maximum is 800 * 0.9 = 720, 80 above the window of 640.
    assert_eq!(path.cc.cwnd(), 640);
    // (720 - 640) / 4 = 20 > 16: additive for one round, then binary search.
    near(path.rounds(1), 656.0, 1.0);
    near(path.rounds(2), 720.0 - 64.0 * libm::exp(-0.5), 2.0);
}

/// Every second packet is acknowledged: 32 packets per round trip where additive increase is 16. If
/// every packet is, the average in whole sixteenths stays at 31: 100 * 16 / 31 = 51 packets
/// acknowledged per packet of growth.
#[test]
fn since_3_18_growth_is_doubled() {
    for (covers, grown) in [(2, 32.0), (1, 1600.0 / 51.0)] {
        let mut cc = Algorithm::Bic(BicConfig::linux_6_1()).build(2000);
        let odd = Delivery { advanced: 30, ..Delivery::default() };
        cc.on_congestion_event(Instant::ZERO, 2000);
        // A round trip to update the average; then the window is reset.
        for round in 0..2 {
            if round == 1 {
                cc.set_window(Instant::ZERO, 1600, 1600);
            }
            for _ in 0..1600 / covers {
                let in_order = Delivery { advanced: covers, was_in_order: true, ..odd };
                cc.on_delivery(&in_order);
                // Acknowledgements after a hole, or in a recovery, do not count for the average.
                cc.on_delivery(&odd);
                cc.on_ack(&AckSample::full_window(Instant::ZERO, covers));
            }
        }
        near(cc.cwnd(), 1600.0 + grown, 1.0);
    }
}

/// 819/1024 of 20 packets are 15, and 922/1024 of 15 packets 13. Growth is in whole packets.
#[test]
fn linux_6_1_cuts_by_1024ths() {
    let mut cc = Algorithm::Bic(BicConfig::linux_6_1()).build(20);
    cc.on_congestion_event(Instant::ZERO, 20);
    assert_eq!(cc.cwnd(), 15);
    // One packet below the maximum: one per 20 / 4 windows, and with the average of 2 per half of
    // that.
    for _ in 0..37 {
        assert_eq!(cc.cwnd(), 15);
        cc.on_ack(&AckSample::full_window(Instant::ZERO, 1));
    }
    assert_eq!(cc.cwnd(), 16);
}

/// Even if growth is doubled above `low_window`.
#[test]
fn small_windows_are_newreno() {
    for algorithm in [bic(), Algorithm::Bic(BicConfig::linux_6_1())] {
        let mut path = Path::cut_at(&algorithm, 14, 100);
        assert_eq!(path.cc.cwnd(), 7);
        assert_eq!([1, 1, 1, 1].map(|n| path.rounds(n)), [8, 9, 10, 11]);
    }
}

/// After a timeout the threshold is the cut window and the last maximum is unknown: 16 packets per
/// round trip, or 5 % if that is more.
#[test]
fn after_a_timeout_it_probes_without_a_maximum() {
    let mut path = Path::new(&bic(), 100, 100);
    path.cc.on_rto(Instant::ZERO, 100);
    assert_eq!((path.cc.cwnd(), path.cc.ssthresh()), (1, 80));
    // In the seventh round 16 packets reach the threshold; the other 48 count five per packet of
    // growth.
    assert_eq!(path.rounds(7), 80 + 48 / 5);
    path.cc.set_window(Instant::ZERO, 1000, 1000);
    near(path.rounds(2), 1000.0 * 1.05 * 1.05, 2.0);
}

/// `HZ / 32` are 7 ticks of 4 ms. A window of 1600 with maximum 2000 grows by 16 per round trip,
/// and by twice that with two packets per acknowledgement: one per 50. With eight it would be one
/// per 12.
#[test]
fn linux_6_1_keeps_the_growth_of_a_window_for_seven_ticks() {
    let mut cc = Algorithm::Bic(BicConfig::linux_6_1()).build(2000);
    cc.on_congestion_event(Instant::ZERO, 2000);
    cc.set_window(Instant::ZERO, 1600, 1600);
    let ack = |cc: &mut dyn CongestionControl, tick: u64| {
        let now = Instant::ZERO + Duration::from_millis(4 * tick);
        cc.on_ack(&AckSample::full_window(now, 1));
        cc.cwnd()
    };
    assert_eq!(ack(cc.as_mut(), 0), 1600);
    for _ in 0..100 {
        cc.on_delivery(&Delivery { advanced: 8, was_in_order: true, ..Delivery::default() });
    }
    for _ in 0..40 {
        assert_eq!(ack(cc.as_mut(), 7), 1600);
    }
    assert_eq!(ack(cc.as_mut(), 8), 1601);
    // After a change of the window the growth is recomputed at once.
    for _ in 0..12 {
        ack(cc.as_mut(), 9);
    }
    assert_eq!(cc.cwnd(), 1602);
}

/// A window of 14 packets is the largest that grows by one, however far the maximum is.
#[test]
fn newreno_ends_above_fourteen_packets() {
    let mut path = Path::cut_at(&bic(), 100, 100);
    path.cc.set_window(Instant::ZERO, 14, 14);
    assert_eq!(path.rounds(1), 15);
    assert!(path.rounds(1) > 25, "{}", path.cc.cwnd());
}
