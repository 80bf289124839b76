//! The sending side: reading vectors.

use core::ops::ControlFlow;

use super::*;

fn runs(ackno: u64, cells: &[u8]) -> Vec<(CellState, u64, u64)> {
    Runs::new(seq(ackno), cells).map(|r| (r.state, r.newest.value(), r.oldest.value())).collect()
}

/// The example of RFC 4340 section 11.4.
#[test]
fn the_rfcs_example_reads_as_it_says() {
    use CellState::{Marked, NotReceived, Received};
    let expected = [
        (Received, 100, 100),
        (NotReceived, 99, 99),
        (Received, 98, 95),
        (Marked, 94, 94),
        (Received, 93, 88),
    ];
    assert_eq!(runs(100, &[0, 192, 3, 64, 5]), expected);
    assert_eq!(covered_packets(&[0, 192, 3, 64, 5]), 13);
}

#[test]
fn neighbouring_cells_of_one_state_are_one_run() {
    use CellState::{NotReceived, Received, Reserved};
    let expected = [(Received, 300, 109), (NotReceived, 108, 44), (Reserved, 43, 43)];
    assert_eq!(runs(300, &[63, 63, 63, 192, 255, 128]), expected);
    assert_eq!(runs(300, &[]), []);
}

#[test]
fn reading_stops_on_request() {
    let mut seen = 0;
    for_each_run(seq(100), &[0, 192, 3, 64, 5], |_, newest, _| {
        seen += 1;
        if newest == seq(98) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(seen, 3);
}

//= 4340-11.4.1-1 test
#[test]
fn reports_combine_by_the_senders_table() {
    use CellState::{Marked, NotReceived, Received, Reserved};
    let table = [
        (Received, [Received, Marked, Received]),
        (Marked, [Marked, Marked, Marked]),
        (NotReceived, [Received, Marked, NotReceived]),
    ];
    for (old, row) in table {
        let reports = [Received, Marked, NotReceived];
        assert_eq!(reports.map(|r| old.combined_with(r)), row);
        assert_eq!(old.combined_with(Reserved), old.combined_with(NotReceived));
    }
    // The order of two acknowledgements makes no difference.
    for a in [Received, Marked, NotReceived] {
        for b in [Received, Marked, NotReceived] {
            let both = |x: CellState, y| NotReceived.combined_with(x).combined_with(y);
            assert_eq!(both(a, b), both(b, a));
        }
    }
}

//= 4340-11.4-9 test
#[test]
fn a_vector_that_reaches_before_the_first_packet_is_detected() {
    let isn = seq(88);
    let cells = [0, 192, 3, 64, 5];
    assert!(!is_before_isn(seq(100), &cells, isn));
    assert!(is_before_isn(seq(99), &cells, isn));
    assert!(is_before_isn(seq(100), &[0, 192, 3, 64, 6], isn));
    assert!(!is_before_isn(seq(100_000), &[255; 500], isn));
    // Numbers wrap in the middle of a vector. Beyond half the number space, the check cannot tell.
    assert!(!is_before_isn(seq(3), &[6], Seqno::MAX.sub(2)));
    assert!(is_before_isn(seq(3), &[7], Seqno::MAX.sub(2)));
    assert!(!is_before_isn(isn.add(1 << 47), &[63; 100], isn));
}
