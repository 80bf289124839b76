//! The buffer discards history that the peer has received: section 11.4.2 and appendix A.3.

use super::*;

#[test]
fn acknowledged_history_is_discarded() {
    let mut buffer = received(0..=3);
    buffer.on_ack_sent(seq(59));
    for n in [4, 5, 6, 10] {
        buffer.on_packet(seq(n), Ecn::NotEct);
    }
    buffer.on_ack_sent(seq(60));
    assert_eq!(show(buffer.cells()), "R1 N3 R7");
    assert_eq!(buffer.on_ack_of_ack(seq(59)), Some(seq(3)));
    assert_eq!(show(buffer.cells()), "R1 N3 R3", "as in appendix A.3");
    assert_eq!(buffer.on_ack_of_ack(seq(60)), Some(seq(10)));
    assert_eq!(show(buffer.cells()), "R1", "the acknowledged packet itself stays");
    assert_eq!(buffer.on_ack_of_ack(seq(60)), None);
}

#[test]
fn only_packets_that_carried_a_vector_count() {
    let mut buffer = received(0..=3);
    buffer.on_ack_sent(seq(59));
    buffer.on_packet(seq(4), Ecn::NotEct);
    // Our packet 60 was a Data packet, so its arrival says nothing about 59.
    buffer.on_ack_sent(seq(61));
    assert_eq!(buffer.on_ack_of_ack(seq(60)), None);
    assert_eq!(show(buffer.cells()), "R5");
    assert_eq!(buffer.on_ack_of_ack(seq(58)), None);
    assert_eq!(buffer.on_ack_of_ack(seq(61)), Some(seq(4)));
}

#[test]
fn a_packet_that_came_late_is_reported_before_it_is_forgotten() {
    let mut buffer = received([1, 2, 3, 5, 6]);
    buffer.on_ack_sent(seq(60));
    buffer.on_packet(seq(4), Ecn::NotEct);
    // The peer received 60, which reported 4 as missing.
    assert_eq!(buffer.on_ack_of_ack(seq(60)), Some(seq(3)));
    assert_eq!(show(buffer.cells()), "R3");
    buffer.on_ack_sent(seq(61));
    assert_eq!(buffer.on_ack_of_ack(seq(61)), Some(seq(6)));
    assert_eq!(show(buffer.cells()), "R1");
}

#[test]
fn a_long_connection_keeps_a_short_vector() {
    let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
    let mut longest = 0;
    // Windows of 640 packets with one acknowledgement per two packets. Once per window, half a
    // window late, an acknowledgement is acknowledged.
    for n in 0..100_000_u64 {
        buffer.on_packet(seq(n), Ecn::Ect0);
        if n % 2 == 1 {
            buffer.on_ack_sent(seq(n / 2));
        }
        if n % 640 == 639 {
            buffer.on_ack_of_ack(seq(n / 2 - 160));
        }
        longest = longest.max(buffer.cells().len());
    }
    assert!(longest <= 17, "{longest} cells for a window of 640 packets");
    assert_eq!(buffer.overflowed_packets(), 0);
}

#[test]
fn records_stay_bounded_while_nothing_is_acknowledged() {
    let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
    for n in 0..10_000_u64 {
        buffer.on_packet(seq(n), Ecn::NotEct);
        buffer.on_ack_sent(seq(70_000 + n));
    }
    // Neighbouring records were merged. The rest still clears most of the history.
    let known = buffer.on_ack_of_ack(seq(79_000)).unwrap();
    assert!(known.value() > 8_000 && known.value() <= 9_000, "{known}");
    assert!(buffer.cells().len() <= 33);
    // The same with data packets between acknowledgements.
    for n in 10_000..20_000_u64 {
        buffer.on_packet(seq(n), Ecn::NotEct);
        buffer.on_ack_sent(seq(70_000 + 2 * n));
    }
    let known = buffer.on_ack_of_ack(seq(70_000 + 2 * 19_999)).unwrap();
    assert_eq!(known, seq(19_999));
}

/// Regression: of acknowledgements between data, only some were still recorded when one of them was
/// acknowledged. The others confirmed nothing, and took the records of older ones with them.
#[test]
fn acknowledgements_between_data_are_remembered_too() {
    for (in_flight, data) in [(100_u64, 1), (300, 12), (3000, 1), (3000, 20)] {
        let ack = |n: u64| seq(70_000 + n * (data + 1));
        let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
        for n in 0..20_000_u64 {
            buffer.on_packet(seq(n), Ecn::NotEct);
            buffer.on_ack_sent(ack(n));
            // Now and then, one is acknowledged.
            if n >= in_flight && n % 37 == 0 {
                let acked = n - in_flight;
                let known = buffer.on_ack_of_ack(ack(acked)).map_or(0, |known| known.value());
                assert!(known <= acked, "{acked} of {n}: it said nothing of {known}");
                assert!(known + in_flight / 10 >= acked, "{acked} of {n}: {known}");
            }
        }
        let known = buffer.on_ack_of_ack(ack(19_999));
        assert_eq!(known, Some(seq(19_999)), "the newest is never merged");
    }
}

/// A merged record must not confirm more than its packets reported.
#[test]
fn joined_records_cover_the_history_of_both() {
    for sent in [128, 129, 300, 1000_u64] {
        let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
        for n in 0..sent {
            buffer.on_packet(seq(n), Ecn::NotEct);
            buffer.on_ack_sent(seq(70_000 + n));
        }
        // With 128 records, each covers at most sixteen packets.
        for n in 0..sent {
            let known = buffer.clone().on_ack_of_ack(seq(70_000 + n)).expect("it is remembered");
            assert!(known.at_most(seq(n)), "{n} of {sent}: it said nothing of {known}");
            assert!(n - known.value() < 16, "{n} of {sent}: {known}");
            assert!(sent > 128 || known == seq(n));
        }
    }
}
