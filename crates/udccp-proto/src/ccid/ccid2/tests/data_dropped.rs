//! Data Dropped (RFC 4340 section 11.7, RFC 4341 section 5.2).

use udccp_wire::Seqno;

use super::line::{Line, cells};
use crate::ccid::{AckInfo, AckOutcome};

/// A drop block of one packet.
const fn drop_block(code: u8) -> u8 {
    0x80 | code << 4
}

fn report(line: &mut Line, ackno: u64, states: &str, blocks: &[u8]) -> AckOutcome {
    let cells = cells(states);
    line.acked(AckInfo {
        ackno: Seqno::new(ackno),
        ack_vector: Some((&cells, false)),
        data_dropped: blocks,
        ..AckInfo::default()
    })
}

/// cwnd and ssthresh after one packet of a full window of 20 in slow start was dropped with `code`.
fn after_drop(code: u8) -> (u32, Option<u32>, AckOutcome) {
    let mut line = Line::with_window(20);
    line.fill();
    let outcome = report(&mut line, 2, "rr", &[drop_block(code)]);
    (line.cwnd(), line.ssthresh(), outcome)
}

//= 4340-11.7.1-2 test
#[test]
//= 4340-11.7.2-1 test
//= 4340-11.7.2-6 test
//= 4340-11.7.2-7 test
//= 4340-11.7-1 test
//= 4340-11.7-2 test
//= 4341-5.2-1 test
fn every_drop_code_ends_slow_start_and_has_its_own_response() {
    for code in [0, 1] {
        let (cwnd, ssthresh, outcome) = after_drop(code);
        assert_eq!((cwnd, ssthresh), (20, Some(20)), "code {code}");
        assert_eq!((outcome.constrained, outcome.not_listening), (code == 0, code == 1));
    }
    let (cwnd, ssthresh, _) = after_drop(2);
    assert_eq!((cwnd, ssthresh), (19, Some(19)));
    for code in 3..=7 {
        let (cwnd, ssthresh, outcome) = after_drop(code);
        assert_eq!((cwnd, ssthresh), (10, Some(10)), "code {code}");
        assert_eq!((outcome.newly_marked, outcome.data_dropped), (0, 1));
    }
}

//= 4340-11.7.2-6 test
#[test]
fn a_report_that_is_repeated_counts_once() {
    let mut line = Line::in_avoidance(20);
    line.fill();
    for ackno in 4..8 {
        let states = "r".repeat(ackno);
        // Packets up to 2 were delivered, 3 and 4 dropped, and those after them delivered.
        let blocks = [(ackno as u8).saturating_sub(5), drop_block(2) + 1, 1];
        let first = usize::from(ackno == 4);
        report(&mut line, ackno as u64, &states, &blocks[first..]);
        assert_eq!(line.cwnd(), 18);
    }
}

//= 4340-11.7.2-6 test
#[test]
//= 4340-11.7.1-1 test
//= 4340-11.7.1-2 test
fn buffer_drops_come_on_top_of_a_cut() {
    let mut line = Line::in_avoidance(20);
    line.fill();
    // Packet 2 is lost. Packets 3 to 5 found no space in the receive buffer.
    report(&mut line, 5, "rrrxr", &[drop_block(2) + 2]);
    assert_eq!((line.cwnd(), line.ssthresh()), (20 / 2 - 3, Some(7)));
    // Never below one packet.
    let states = "r".repeat(15);
    report(&mut line, 20, &states, &[drop_block(2) + 14]);
    assert_eq!(line.cwnd(), 1);
}

#[test]
//= 4340-11.7-9 test
//= 4340-11.7-10 test
fn reports_about_packets_that_did_not_arrive_are_ignored() {
    let mut line = Line::in_avoidance(20);
    line.fill();
    let outcome = report(&mut line, 3, "rxx", &[0, drop_block(2) + 1]);
    assert_eq!((outcome.data_dropped, line.cwnd()), (0, 20));
}

#[test]
fn corruption_before_the_last_cut_belongs_to_it() {
    let mut line = Line::in_avoidance(20);
    line.fill();
    report(&mut line, 1, "m", &[]);
    assert_eq!(line.cwnd(), 10);
    report(&mut line, 3, "rrm", &[drop_block(3) + 1]);
    assert_eq!((line.cwnd(), line.metrics().congestion_events), (10, 1));
}
