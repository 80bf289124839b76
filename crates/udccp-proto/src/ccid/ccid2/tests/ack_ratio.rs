//! Congestion control on acknowledgements, and acknowledgements of acknowledgements.

use udccp_base::Ecn;
use udccp_cc::InitialWindow;

use super::line::{Line, packet};
use crate::ccid::ccid2::peer_log::PeerLog;
use crate::ccid::ccid2::{AckRatioConfig, Ccid2Config};
use crate::ccid::{AckInfo, CcidSender, ReceivedInfo};

fn feed(log: &mut PeerLog, seqs: impl IntoIterator<Item = u64>) -> Vec<bool> {
    seqs.into_iter().map(|seq| log.on_packet(&packet(seq, false, Ecn::Ect0))).collect()
}

#[test]
fn an_acknowledgement_is_lost_after_three_later_packets() {
    let mut log = PeerLog::default();
    assert_eq!(feed(&mut log, [1, 2, 4, 5, 6, 7]), [false, false, false, false, true, false]);
    // Reordering is not loss.
    assert_eq!(feed(&mut log, [9, 10, 8, 11, 12]), [false; 5]);
}

//= 4341-6.1.1-1 test
#[test]
fn holes_that_fall_out_of_memory_count_and_numbers_before_the_first_do_not() {
    let mut log = PeerLog::default();
    assert_eq!(feed(&mut log, [1000, 1001, 1002, 1003]), [false; 4]);
    assert_eq!(feed(&mut log, [1005, 1060]), [false, false]);
    assert_eq!(feed(&mut log, [1100]), [true]);
    assert_eq!(feed(&mut log, [9000]), [true]);
    assert_eq!(feed(&mut log, [9001, 9002]), [false, false]);
}

//= 4341-6.1.1-1 test
#[test]
fn marks_count_on_acknowledgements_only() {
    let mut log = PeerLog::default();
    assert!(log.on_packet(&packet(1, false, Ecn::Ce)));
    assert!(!log.on_packet(&packet(2, true, Ecn::Ce)));
}

#[test]
//= 4341-6.1.1-1 test
fn a_lost_packet_is_taken_for_an_acknowledgement_unless_the_ndp_count_says_data() {
    let run = |ndp_count| {
        let mut log = PeerLog::default();
        let after_hole = ReceivedInfo { ndp_count, ..packet(3, true, Ecn::Ect0) };
        log.on_packet(&packet(1, false, Ecn::Ect0));
        log.on_packet(&after_hole);
        feed(&mut log, [4, 5]).contains(&true)
    };
    assert!(run(None));
    assert!(run(Some(1)));
    assert!(!run(Some(0)));
}

/// The ratios wanted by a sender with a window of 16 in avoidance. The path loses one
/// acknowledgement in each round-trip time for which `lossy` is true.
fn ratios(lossy: &[bool]) -> Vec<u16> {
    let mut line = Line::in_avoidance(16);
    let mut ack_seq = 0;
    let mut seen = Vec::new();
    for &loses in lossy {
        ack_seq += if loses { 2 } else { 1 };
        for _ in 0..4 {
            line.sender.on_peer_packet(line.now, &packet(ack_seq, false, Ecn::Ect0));
            ack_seq += 1;
        }
        ack_seq -= 1;
        line.round_trip();
        let wanted = line.sender.wanted_ack_ratio().unwrap();
        line.sender.on_ack_ratio_confirmed(wanted);
        seen.push(wanted);
    }
    seen
}

//= 4341-6.1.1-1 test
//= 4341-6.1.2-3 test
#[test]
fn the_ratio_doubles_per_lossy_window_up_to_half_the_window() {
    // The window grows by one packet per round trip, from 16.
    assert_eq!(ratios(&[false, true, true, true, true]), [2, 4, 8, 10, 10]);
}

#[test]
//= 4341-6.1.2-2 test
//= 4341-6.1.2-3 test
fn the_ratio_comes_down_by_one_after_enough_clean_windows() {
    let mut path = vec![true, true];
    path.extend([false; 12]);
    let seen = ratios(&path);
    // With windows of 18 and 19 packets, ratio 4 takes 19/12 windows to fall, and so two. With 20
    // to 23 packets, ratio 3 takes 23/6, and so four.
    assert_eq!(seen, [2, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2]);
}

#[test]
fn a_cut_brings_the_ratio_within_half_the_new_window() {
    let config = Ccid2Config {
        initial_window: InitialWindow::Packets(20),
        ack_ratio: AckRatioConfig::Fixed(30),
        ..Ccid2Config::default()
    };
    let mut line = Line::new(&config);
    assert_eq!(line.sender.wanted_ack_ratio(), Some(10));
    line.fill();
    line.ack(1, "m");
    assert_eq!((line.cwnd(), line.sender.wanted_ack_ratio()), (10, Some(5)));
    line.expire();
    assert_eq!((line.cwnd(), line.sender.wanted_ack_ratio()), (1, Some(2)));
}

/// A receiver that counts packets but has no timer (Linux) would acknowledge a window of one only
/// after two transmit timeouts.
#[test]
fn by_choice_a_window_of_one_has_each_packet_acknowledged() {
    let config = Ccid2Config {
        initial_window: InitialWindow::Packets(1),
        ack_ratio: AckRatioConfig::Adaptive { min: 1 },
        ..Ccid2Config::default()
    };
    let mut ratio = super::super::ack_ratio::AckRatio::new(config.ack_ratio, 1);
    let at = |n| udccp_wire::Seqno::new(n);
    assert_eq!(ratio.wanted(), 2);
    ratio.on_ack(at(1), at(2), 1);
    ratio.on_ack(at(2), at(3), 1);
    assert_eq!(ratio.wanted(), 1, "after a window in which no acknowledgement was lost");
    ratio.on_ack(at(3), at(4), 4);
    assert_eq!(ratio.wanted(), 2, "a window of four is large enough for two");
}

#[test]
fn a_large_window_has_no_more_acknowledgements_than_asked_for() {
    let config = AckRatioConfig::Thinned { min: 1, acks: 20 };
    let mut ratio = super::super::ack_ratio::AckRatio::new(config, 4);
    let mut seq = 1;
    let mut after = |ratio: &mut super::super::ack_ratio::AckRatio, cwnd| {
        ratio.on_ack(udccp_wire::Seqno::new(seq), udccp_wire::Seqno::new(seq + 1), cwnd);
        seq += 1;
        ratio.wanted()
    };
    assert_eq!(after(&mut ratio, 1), 2);
    let wanted = [1, 2, 3, 4, 40, 41, 80, 81, 400].map(|cwnd| after(&mut ratio, cwnd));
    assert_eq!(wanted, [1, 1, 2, 2, 2, 4, 4, 8, 32]);
    // It falls by one per window without lost acknowledgements, to what a smaller window needs.
    let wanted: Vec<u16> = (0..18).map(|_| after(&mut ratio, 200)).collect();
    assert!(wanted.iter().copied().eq((16..32).rev().chain([16, 16])), "{wanted:?}");
    ratio.on_cut(20);
    assert_eq!(ratio.wanted(), 10);
}

//= 4341-6.1.2-3 test
#[test]
fn ratio_one_is_for_small_windows_only_and_by_choice() {
    let wanted = |packets, ratio| {
        let config = Ccid2Config {
            initial_window: InitialWindow::Packets(packets),
            ack_ratio: AckRatioConfig::Fixed(ratio),
            ..Ccid2Config::default()
        };
        Line::new(&config).sender.wanted_ack_ratio().unwrap()
    };
    assert_eq!([wanted(1, 1), wanted(3, 1), wanted(4, 1)], [1, 1, 2]);
    assert_eq!([wanted(1, 9), wanted(3, 9), wanted(5, 9)], [2, 2, 3]);
}

#[test]
//= 4341-6.2-1 test
//= 4341-6.2-2 test
fn acknowledgements_are_acknowledged_at_least_once_a_window() {
    for packets in [1_u32, 2, 3, 10, 100, 5000] {
        let mut line = Line::in_avoidance(packets);
        line.send(1);
        line.ack(1, "r");
        let mut since = 0;
        let mut longest = 0;
        for _ in 0..3 * packets {
            let wants = line.sender.wants_ack_of_ack();
            since = if wants { 0 } else { since + 1 };
            longest = longest.max(since);
            line.leave(true, wants);
            line.ack(line.next() - 1, "r");
        }
        assert!(longest < packets.max(2), "{packets}: {longest} without");
    }
}

#[test]
fn every_data_packet_can_acknowledge() {
    let mut line = Line::new(&Ccid2Config { ack_of_ack_after: 1, ..Ccid2Config::default() });
    for _ in 0..100 {
        line.send(1);
        line.ack(line.next() - 1, "r");
        assert!(line.sender.wants_ack_of_ack());
        line.leave(true, true);
        line.ack(line.next() - 1, "r");
    }
}

#[test]
fn without_acknowledgements_there_is_nothing_to_acknowledge() {
    let mut line = Line::in_avoidance(10);
    line.send(10);
    assert!(!line.sender.wants_ack_of_ack());
    line.acked(AckInfo::default());
    assert!(!line.sender.wants_ack_of_ack());
    line.ack(2, "rr");
    assert!(line.sender.wants_ack_of_ack());
    line.leave(false, true);
    assert!(!line.sender.wants_ack_of_ack());
}
