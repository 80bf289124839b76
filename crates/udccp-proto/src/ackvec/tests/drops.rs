//! Data Dropped on both sides.

use core::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use DropCode::*;

const ALL: [DropCode; 8] = [
    ProtocolConstraints,
    ApplicationNotListening,
    ReceiveBuffer,
    Corrupt,
    Reserved(4),
    Reserved(5),
    Reserved(6),
    DeliveredCorrupt,
];

fn read(ackno: u64, blocks: &[u8]) -> Vec<(DropState, u64, u64)> {
    let mut list = Vec::new();
    for_each_drop(seq(ackno), blocks, |state, newest, oldest| {
        list.push((state, newest.value(), oldest.value()));
        ControlFlow::Continue(())
    });
    list
}

/// The blocks of a log for this acknowledgement number.
fn blocks(log: &mut DropLog, ackno: u64) -> Vec<u8> {
    let mut out = [0; MAX_OPTION_CELLS];
    let len = log.write_blocks(seq(ackno), &mut out);
    out[..len].to_vec()
}

/// The example of RFC 4340 section 11.7 (whose text counts packet 95 twice).
#[test]
fn the_rfcs_example_is_read_and_written() {
    let (normal, dropped) = (DropState::Normal, DropState::Dropped(ReceiveBuffer));
    let bytes = [0, 160, 3, 162];
    let expected = [(normal, 100, 100), (dropped, 99, 99), (normal, 98, 95), (dropped, 94, 92)];
    assert_eq!(read(100, &bytes), expected);
    let mut log = DropLog::new(64);
    for n in [92, 93, 94, 99] {
        log.on_drop(seq(n), ReceiveBuffer);
    }
    assert_eq!(blocks(&mut log, 100), bytes);
}

#[test]
fn all_drop_codes_round_trip() {
    for (number, code) in (0..8).zip(ALL) {
        assert_eq!((DropCode::from_number(number), code.number()), (code, number));
        let mut log = DropLog::new(64);
        log.on_drop(seq(5), code);
        assert_eq!(read(5, &blocks(&mut log, 5)), [(DropState::Dropped(code), 5, 5)]);
    }
    let marked = ALL.map(DropCode::counts_as_marked);
    assert_eq!(marked, [false, false, false, true, true, true, true, true]);
}

//= 4340-11.7-8 test
//= 4340-11.7-7 test
#[test]
fn nothing_is_written_when_nothing_was_dropped() {
    let mut log = DropLog::new(64);
    assert!(log.is_empty());
    assert_eq!(blocks(&mut log, 1000), []);
    // All other packets, received or not, are in normal blocks or in none.
    log.on_drop(seq(700), Corrupt);
    assert_eq!(blocks(&mut log, 1000), [127, 127, 43, 0xb0]);
}

#[test]
fn long_runs_take_several_blocks() {
    let mut log = DropLog::new(64);
    (1..=40).for_each(|n| log.on_drop(seq(n), ApplicationNotListening));
    assert_eq!(blocks(&mut log, 40), [0x9f, 0x9f, 0x97]);
}

//= 4340-11.7-12 test
#[test]
fn drops_are_repeated_until_the_peer_knows() {
    let mut log = DropLog::new(64);
    log.on_drop(seq(10), ReceiveBuffer);
    assert_eq!(blocks(&mut log, 10), [0xa0]);
    log.on_ack_sent(seq(500));
    log.on_drop(seq(12), ReceiveBuffer);
    assert_eq!(blocks(&mut log, 12), [0xa0, 0, 0xa0]);
    log.on_ack_sent(seq(501));
    log.on_ack_of_ack(seq(499));
    assert_eq!(blocks(&mut log, 12), [0xa0, 0, 0xa0]);
    log.on_ack_of_ack(seq(500));
    assert_eq!(blocks(&mut log, 12), [0xa0]);
    log.on_ack_of_ack(seq(501));
    assert!(log.is_empty());
}

#[test]
fn unreported_drops_are_kept() {
    let mut log = DropLog::new(64);
    log.on_drop(seq(10), ReceiveBuffer);
    log.on_drop(seq(400), ReceiveBuffer);
    let mut out = [0; 2];
    // The buffer has space for the newest drop only.
    assert_eq!(log.write_blocks(seq(400), &mut out), 1);
    log.on_ack_sent(seq(500));
    log.on_ack_of_ack(seq(500));
    assert_eq!(blocks(&mut log, 400), [127, 127, 127, 5, 0xa0]);
    // A drop after the acknowledgement number waits for a later one.
    log.on_drop(seq(401), ReceiveBuffer);
    assert_eq!(blocks(&mut log, 400).len(), 5);
    log.on_ack_sent(seq(501));
    log.on_ack_of_ack(seq(501));
    assert_eq!(blocks(&mut log, 401), [0xa0]);
}

/// For example, a fast sender learns only once per round-trip time that the application has stopped
/// reading.
#[test]
fn a_run_longer_than_the_option_is_reported_in_parts() {
    let mut log = DropLog::new(64);
    (1..=1000).for_each(|n| log.on_drop(seq(n), ApplicationNotListening));
    let (mut said, mut acks) = (0, 0);
    while !log.is_empty() {
        let mut out = [0; 32];
        let len = log.write_blocks(seq(1000), &mut out);
        let is_drop = |run: &&(DropState, u64, u64)| run.0 != DropState::Normal;
        said += read(1000, &out[..len]).iter().filter(is_drop).map(|r| r.1 - r.2 + 1).sum::<u64>();
        acks += 1;
        assert!(acks < 10, "the peer never knows all");
        log.on_ack_sent(seq(5000 + acks));
        log.on_ack_of_ack(seq(5000 + acks));
    }
    assert_eq!((said, acks), (1000, 3));
}

//= 4340-11.7-11 test
/// A regression: they stayed in the log, and each acknowledgement had to look at them.
#[test]
fn drops_too_far_behind_for_an_option_are_discarded() {
    let mut log = DropLog::new(10);
    for n in [100, 101, 200] {
        log.on_drop(seq(n), ReceiveBuffer);
    }
    let mut write = |ackno| {
        let mut out = [0; 32];
        log.discard_unreachable(seq(ackno), out.len());
        let len = log.write_blocks(seq(ackno), &mut out);
        (read(ackno, &out[..len]).pop().map(|(_, _, oldest)| oldest), log.forgotten_packets())
    };
    // The last of 32 blocks is for the drop.
    let newest = 101 + 31 * 128;
    assert_eq!(write(newest), (Some(200), 0), "together they are too long");
    assert_eq!(write(newest + 1), (Some(200), 2));
    assert_eq!(write(newest + 99), (Some(200), 2));
    assert_eq!(write(newest + 100), (None, 3));
    assert!(log.is_empty());
}

#[test]
fn a_drop_can_only_become_more_serious_and_only_before_it_is_reported() {
    let mut log = DropLog::new(64);
    (1..=3).for_each(|n| log.on_drop(seq(n), ReceiveBuffer));
    log.on_drop(seq(2), ProtocolConstraints);
    assert_eq!(blocks(&mut log, 3), [0xa2]);
    log.on_drop(seq(2), Corrupt);
    assert_eq!(blocks(&mut log, 3), [0xa0, 0xb0, 0xa0]);
    log.on_ack_sent(seq(500));
    log.on_drop(seq(1), Corrupt);
    assert_eq!(blocks(&mut log, 3), [0xa0, 0xb0, 0xa0]);
}

#[test]
fn the_log_is_bounded() {
    let mut log = DropLog::new(8);
    (0..100).for_each(|n| log.on_drop(seq(2 * n), ReceiveBuffer));
    assert_eq!(read(198, &blocks(&mut log, 198)).len(), 15);
    assert_eq!(log.forgotten_packets(), 92);
    // Sustained overload, and each drop is reported at once. Adjacent runs merge, nothing is lost.
    let mut log = DropLog::new(8);
    for n in 0..100 {
        log.on_drop(seq(n), ReceiveBuffer);
        blocks(&mut log, n);
        log.on_ack_sent(seq(1000 + n));
    }
    assert_eq!(log.forgotten_packets(), 0);
    let dropped: u64 = read(99, &blocks(&mut log, 99)).iter().map(|r| r.1 - r.2 + 1).sum();
    assert_eq!(dropped, 100);
}

//= 4340-11.7-9 test
#[test]
fn contradictory_and_too_long_reports_are_distinguished() {
    let isn = seq(90);
    // R1 N1 R4, downwards from packet 100.
    let cells = [0, 192, 3];
    let invalid = |blocks: &[u8]| is_invalid_drop(seq(100), isn, &cells, blocks);
    assert!(!invalid(&[0xa0]));
    assert!(invalid(&[0, 0xa0]), "99 was not received");
    assert!(invalid(&[0xa2]), "a block over 100 to 98 holds 99");
    assert!(!invalid(&[1, 0xa3]));
    assert!(!invalid(&[1, 0xa3, 0xa0]), "the vector does not speak of 94");
    assert!(!invalid(&[10]), "eleven packets were sent");
    assert!(invalid(&[11]));
    assert!(!is_invalid_drop(seq(100), isn, &[], &[0, 0xa0]), "nothing to compare with");
    assert!(!is_invalid_drop(isn.add(1 << 47), isn, &[], &[11]));
}

proptest! {
    /// Reading the blocks returns the drops that were written.
    #[test]
    fn writing_and_reading_agree(drops in prop::collection::btree_map(0_u64..300, 0_u8..8, 0..60)) {
        let mut log = DropLog::new(64);
        for (&n, &code) in &drops {
            log.on_drop(seq(n), DropCode::from_number(code));
        }
        let mut found = std::collections::BTreeMap::new();
        for (state, newest, oldest) in read(300, &blocks(&mut log, 300)) {
            if let DropState::Dropped(code) = state {
                found.extend((oldest..=newest).map(|n| (n, code.number())));
            }
        }
        prop_assert_eq!(found, drops);
    }

    /// Arbitrary bytes do not make the readers panic.
    #[test]
    fn any_blocks_can_be_read(
        ackno: u64, isn: u64, cells: Vec<u8>, blocks: Vec<u8>,
    ) {
        let _ = is_invalid_drop(seq(ackno), seq(isn), &cells, &blocks);
        let _ = is_before_isn(seq(ackno), &cells, seq(isn));
        prop_assert_eq!(read(ackno, &blocks).len(), blocks.len());
        let covered: u64 = Runs::new(seq(ackno), &cells)
            .map(|r| r.newest.distance_from(r.oldest) as u64 + 1)
            .sum();
        prop_assert_eq!(covered, covered_packets(&cells));
    }
}
