//! The receiving side, with examples.

use super::*;

/// The example buffer of RFC 4340 appendix A: packets 10, 6 to 2 and 0, and 1 marked.
fn example() -> AckVectorBuffer {
    let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
    buffer.on_packet(seq(0), Ecn::Ect1);
    buffer.on_packet(seq(1), Ecn::Ce);
    for n in [2, 3, 4, 5, 6, 10] {
        buffer.on_packet(seq(n), Ecn::Ect0);
    }
    buffer
}

//= 4340-11.4-1 test
//= 4340-11.4-2 test
//= 4340-11-1 test
#[test]
fn each_codepoint_is_reported_in_its_state() {
    let state_of = |ecn| {
        let mut buffer = received([1]);
        assert_eq!(buffer.on_packet(seq(2), ecn), Arrival::InOrder);
        CellState::of_cell(buffer.cells()[0])
    };
    assert_eq!(state_of(Ecn::Ce), CellState::Marked);
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        assert_eq!(state_of(ecn), CellState::Received);
    }
}

#[test]
fn the_appendix_example_grows_as_it_shows() {
    let mut buffer = example();
    assert_eq!(show(buffer.cells()), "R1 N3 R5 M1 R1");
    assert_eq!((buffer.ackno(), buffer.ecn_nonce_echo()), (Some(seq(10)), true));
    // Packet 11 marked; or unmarked with nonce 0; or packet 12 with nonce 1.
    buffer.on_packet(seq(11), Ecn::Ce);
    assert_eq!(show(buffer.cells()), "M1 R1 N3 R5 M1 R1");
    let mut buffer = example();
    buffer.on_packet(seq(11), Ecn::Ect0);
    assert_eq!((show(buffer.cells()).as_str(), buffer.ecn_nonce_echo()), ("R2 N3 R5 M1 R1", true));
    assert_eq!(buffer.on_packet(seq(13), Ecn::Ect1), Arrival::Gap { missing: 1 });
    assert_eq!(show(buffer.cells()), "R1 N1 R2 N3 R5 M1 R1");
    assert!(!buffer.ecn_nonce_echo());
}

#[test]
fn a_late_packet_fills_its_gap_and_joins_its_neighbours() {
    let mut buffer = example();
    assert_eq!(buffer.on_packet(seq(8), Ecn::NotEct), Arrival::Late);
    assert_eq!(show(buffer.cells()), "R1 N1 R1 N1 R5 M1 R1");
    buffer.on_packet(seq(7), Ecn::NotEct);
    assert_eq!(show(buffer.cells()), "R1 N1 R7 M1 R1");
    buffer.on_packet(seq(9), Ecn::NotEct);
    assert_eq!(show(buffer.cells()), "R9 M1 R1");
    // A marked packet in the middle of a gap of five.
    let mut buffer = received([1, 7]);
    buffer.on_packet(seq(4), Ecn::Ce);
    assert_eq!(show(buffer.cells()), "R1 N2 M1 N2 R1");
}

/// The receiver's table of section 11.4.1: received or marked packets never become missing, a mark
/// stays, and a mark on a later copy counts.
#[test]
fn duplicates_follow_the_table() {
    let mut buffer = received([1, 2, 3]);
    assert_eq!(buffer.on_packet(seq(2), Ecn::NotEct), Arrival::Duplicate);
    assert_eq!(show(buffer.cells()), "R3");
    assert_eq!(buffer.on_packet(seq(2), Ecn::Ce), Arrival::Duplicate);
    assert_eq!(show(buffer.cells()), "R1 M1 R1");
    assert_eq!(buffer.on_packet(seq(2), Ecn::Ect1), Arrival::Duplicate);
    assert_eq!(show(buffer.cells()), "R1 M1 R1");
    assert!(!buffer.ecn_nonce_echo());
    assert_eq!(buffer.on_packet(seq(0), Ecn::NotEct), Arrival::Forgotten, "before all others");
    assert_eq!(show(buffer.cells()), "R1 M1 R1");
}

#[test]
fn runs_longer_than_64_take_several_cells_and_no_more() {
    for n in [63, 64, 65, 128, 129, 1000] {
        assert_eq!(received(1..=n).cells().len() as u64, n.div_ceil(64), "{n} packets");
    }
    assert_eq!(show(received(1..=130).cells()), "R2 R64 R64");
    assert_eq!(show(received([1, 200]).cells()), "R1 N6 N64 N64 N64 R1");
    // A gap that fills up one packet at a time in any order takes at most twice the cells.
    let mut buffer = received([1, 400]);
    for n in 0..398 {
        buffer.on_packet(seq(2 + (n * 151) % 398), Ecn::NotEct);
    }
    assert_eq!(covered_packets(buffer.cells()), 400);
    assert!(buffer.cells().len() <= 14, "{}", show(buffer.cells()));
}

//= 4340-12.2-2 test
#[test]
fn the_nonce_echo_is_the_parity_over_received_packets() {
    let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
    let mut parity = false;
    for n in 0..5000 {
        let ecn = if n % 3 == 0 { Ecn::Ect1 } else { Ecn::Ect0 };
        parity ^= ecn == Ecn::Ect1;
        buffer.on_packet(seq(n), ecn);
        assert_eq!(buffer.ecn_nonce_echo(), parity);
    }
    // A mark destroys the nonce.
    let mut buffer = received([1]);
    buffer.on_packet(seq(2), Ecn::Ect1);
    assert!(buffer.ecn_nonce_echo());
    buffer.on_packet(seq(2), Ecn::Ce);
    assert!(!buffer.ecn_nonce_echo());
}

//= 4340-12.2-3 test
#[test]
fn an_ecn_incapable_receiver_echoes_zero() {
    let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
    buffer.set_ecn_incapable();
    buffer.on_packet(seq(1), Ecn::Ect1);
    assert!(!buffer.ecn_nonce_echo());
    assert!(buffer.options().all(|(nonce, _)| !nonce));
}

#[test]
fn long_vectors_are_several_options_with_echoes_of_their_own() {
    let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
    // Every second packet is missing: each packet takes a cell.
    for n in 0..200 {
        let ecn = if n % 5 == 0 { Ecn::Ect1 } else { Ecn::Ect0 };
        buffer.on_packet(seq(2 * n), ecn);
    }
    let options: Vec<(bool, &[u8])> = buffer.options().collect();
    assert_eq!(options.iter().map(|o| o.1.len()).collect::<Vec<_>>(), [253, 146]);
    assert_eq!(options[0].0 ^ options[1].0, buffer.ecn_nonce_echo());
    // The first 253 cells begin at 398 and end at 146, the 73rd packet.
    let nonces = (73..200).filter(|n| n % 5 == 0).count();
    assert_eq!(options[0].0, nonces % 2 == 1);
    let joined: Vec<u8> = options.iter().flat_map(|o| o.1.to_vec()).collect();
    assert_eq!(joined, buffer.cells());
}

#[test]
fn the_buffer_is_bounded_and_reports_what_it_discarded() {
    let mut buffer = AckVectorBuffer::new(10);
    for n in 0..100 {
        buffer.on_packet(seq(2 * n), Ecn::Ect1);
        assert!(buffer.cells().len() <= 10);
    }
    assert!(buffer.is_nearly_full());
    assert_eq!(covered_packets(buffer.cells()), 10);
    assert_eq!(buffer.overflowed_packets(), 199 - 10);
    assert!(buffer.ecn_nonce_echo(), "five nonces are left");
    // After a gap as large as the whole buffer, only the newest packet is left.
    let far = seq(198 + 64 * 10);
    assert!(matches!(buffer.on_packet(far, Ecn::NotEct), Arrival::Gap { .. }));
    assert_eq!(show(buffer.cells()), "R1");
    assert!(!buffer.ecn_nonce_echo());
    // Even the largest possible gap takes little time.
    buffer.on_packet(far.add((1 << 47) - 1), Ecn::NotEct);
    assert_eq!(show(buffer.cells()), "R1");
}

#[test]
fn numbers_may_wrap() {
    let start = Seqno::MAX.sub(2);
    let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
    for n in [0, 1, 4, 5] {
        buffer.on_packet(start.add(n), Ecn::Ect1);
    }
    assert_eq!((buffer.ackno(), show(buffer.cells()).as_str()), (Some(seq(2)), "R2 N2 R2"));
    assert_eq!(buffer.on_packet(Seqno::ZERO, Ecn::NotEct), Arrival::Late);
    assert_eq!(show(buffer.cells()), "R3 N1 R2");
}

#[test]
fn an_empty_buffer_sends_no_ack_vector() {
    let buffer = AckVectorBuffer::new(0);
    assert_eq!((buffer.ackno(), buffer.cells()), (None, &[][..]));
    assert_eq!(buffer.options().count(), 0);
    assert!(!buffer.is_nearly_full());
}
