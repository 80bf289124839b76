//! Scalable TCP: growth and cut are shares of the window.

use udccp_cc::{Algorithm, ScalableConfig};

use crate::path::{Path, near};

/// 875 * 1.01^n: back at 1000 after log(1 / 0.875) / log(1.01) = 13.4 round trips.
#[test]
fn the_window_grows_by_one_percent_a_round_trip() {
    let mut path = Path::cut_at(&Algorithm::Scalable(ScalableConfig::default()), 1000, 100);
    assert_eq!(path.cc.cwnd(), 875);
    near(path.rounds(5), 875.0 * 1.0510, 1.5);
    near(path.rounds(8), 875.0 * 1.1381, 2.0);
}

#[test]
fn the_time_back_to_the_old_window_does_not_depend_on_it() {
    let rounds = [1000, 10_000, 100_000].map(|cwnd| {
        let mut path = Path::cut_at(&Algorithm::Scalable(ScalableConfig::default()), cwnd, 100);
        (1..).find(|_| path.rounds(1) >= cwnd).expect("it grows for ever")
    });
    assert_eq!(rounds, [14, 14, 14]);
}

#[test]
fn below_a_hundred_packets_growth_is_newreno() {
    let mut path = Path::cut_at(&Algorithm::Scalable(ScalableConfig::default()), 48, 100);
    assert_eq!([1, 1, 1].map(|n| path.rounds(n)), [43, 44, 45]);
}

/// Linux 2.6: one packet per fifty acknowledgements, however many packets each of them covers.
#[test]
fn in_kernel_2_6_an_acknowledgement_adds_a_fiftieth_of_a_packet() {
    let kernel = Algorithm::Scalable(ScalableConfig::linux_2_6());
    let mut path = Path::cut_at(&kernel, 1000, 100);
    near(path.rounds(5), 875.0 * libm::pow(1.02, 5.0), 1.5);
    let mut path = Path::cut_at(&kernel, 48, 100);
    assert_eq!([1, 1, 1].map(|n| path.rounds(n)), [43, 44, 45], "NewReno below fifty packets");
}

/// An eighth of 35 packets is 4: the amount cut is rounded down, as in the kernels.
#[test]
fn the_cut_is_rounded_down() {
    for (cwnd, kept) in [(35, 31), (40, 35), (16, 14), (15, 14)] {
        let path = Path::cut_at(&Algorithm::Scalable(ScalableConfig::default()), cwnd, 100);
        assert_eq!(path.cc.cwnd(), kept, "{cwnd}");
    }
}
