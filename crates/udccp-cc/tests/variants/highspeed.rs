//! Compares HighSpeed TCP with rows of the table in RFC 3649, appendix B.

use udccp_base::Instant;
use udccp_cc::{Algorithm, HighSpeedConfig};

use crate::path::{Path, near};

/// w, a(w), b(w) as printed in the RFC.
const ROWS: [(u32, f64, f64); 7] = [
    (118, 2.0, 0.44),
    (221, 3.0, 0.41),
    (1058, 8.0, 0.33),
    (2699, 14.0, 0.28),
    (10_661, 30.0, 0.21),
    (42_707, 57.0, 0.13),
    (83_981, 71.0, 0.10),
];

#[test]
fn growth_per_round_trip_is_the_table_of_the_rfc() {
    for (w, a, _) in ROWS {
        let mut path = Path::cut_at(&Algorithm::HighSpeed(HighSpeedConfig::default()), w, 100);
        path.cc.set_window(Instant::ZERO, w, w);
        let grown = path.rounds(1) - w;
        // The window grows within the round, and the table rounds a(w) up.
        near(grown, a, 1.0);
    }
}

/// Up to the window of a row, growth is that of the row; above it, the next whole number.
#[test]
fn growth_of_kernels_is_the_row_of_the_window() {
    for (w, a) in [(60, 2), (115, 2), (120, 3), (215, 3), (225, 4), (1050, 8)] {
        let algorithm = Algorithm::HighSpeed(HighSpeedConfig::linux_6_1());
        let mut path = Path::cut_at(&algorithm, w, 100);
        path.cc.set_window(Instant::ZERO, w, w);
        // The window grows within the round, so a fraction is missing at its end.
        near(path.rounds(1), f64::from(w + a), 1.0);
        let grown = path.rounds(1) - w;
        assert!((2 * a - 1..=2 * a + 1).contains(&grown), "{w}: {grown}");
    }
}

#[test]
fn the_share_cut_away_is_the_table_of_the_rfc() {
    for (w, _, b) in ROWS {
        let path = Path::cut_at(&Algorithm::HighSpeed(HighSpeedConfig::default()), w, 100);
        near(path.cc.cwnd(), f64::from(w) * (1.0 - b), 0.006 * f64::from(w) + 1.0);
    }
}

#[test]
fn up_to_38_packets_it_is_newreno() {
    let mut path = Path::cut_at(&Algorithm::HighSpeed(HighSpeedConfig::default()), 38, 100);
    assert_eq!(path.cc.cwnd(), 19);
    assert_eq!(path.rounds(10), 29);
}
