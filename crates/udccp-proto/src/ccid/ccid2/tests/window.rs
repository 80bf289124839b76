//! Pipe, losses and the window.

use udccp_cc::{Algorithm, Cut, GrowthAfterCut, InitialWindow};
use udccp_wire::FeatureNumber;

use super::line::Line;
use crate::ccid::ccid2::Ccid2Config;
use crate::ccid::{AckInfo, CcidRegistry, CcidSender, SendVerdict};
use crate::features::Location;

#[test]
//= 4341-5-1 test
fn nothing_leaves_while_the_pipe_is_full() {
    let mut line = Line::with_window(3);
    assert_eq!(line.fill(), 3);
    assert_eq!((line.pipe(), line.verdict()), (3, SendVerdict::Blocked));
    line.ack(1, "r");
    assert_eq!((line.pipe(), line.fill()), (2, 1));
    assert_eq!(line.verdict(), SendVerdict::Blocked);
}

#[test]
fn slow_start_adds_one_packet_for_every_two_acknowledged() {
    let mut line = Line::with_window(4);
    let trace: Vec<u32> = (0..5).map(|_| line.round_trip()).collect();
    // 4 + 2, 6 + 3, 9 + 4 (one half left over), 13 + 7, 20 + 10.
    assert_eq!(trace, [6, 9, 13, 20, 30]);
}

#[test]
fn one_acknowledgement_grows_slow_start_by_half_the_ack_ratio_at_most() {
    let mut line = Line::with_window(20);
    line.fill();
    line.ack(10, &"r".repeat(10));
    assert_eq!(line.cwnd(), 21);
    line.sender.on_ack_ratio_confirmed(6);
    line.fill();
    line.ack(20, &"r".repeat(10));
    assert_eq!(line.cwnd(), 24);
    // Ack Ratio 1: half a packet per acknowledgement.
    line.sender.on_ack_ratio_confirmed(1);
    line.fill();
    line.ack(21, "r");
    assert_eq!(line.cwnd(), 24);
    line.ack(22, "r");
    assert_eq!(line.cwnd(), 25);
}

#[test]
fn avoidance_adds_one_packet_per_window() {
    let mut line = Line::in_avoidance(10);
    let trace: Vec<u32> = (0..5).map(|_| line.round_trip()).collect();
    assert_eq!(trace, [11, 12, 13, 14, 15]);
}

/// One round-trip time on two equal lines. Each acknowledgement reports two packets, the last
/// perhaps one, and repeats two: it takes the short way on one line, the general way on the other.
fn round_trip_on_both_ways([short, general]: &mut [Line; 2]) -> u32 {
    let [mut left, same] = [&mut *short, &mut *general].map(|line| {
        // After an Ack of ours, the next Ack Vector is the first to be acknowledged.
        line.leave(false, true);
        let sent = line.fill();
        line.wait(100);
        sent
    });
    assert_eq!(left, same);
    while left > 0 {
        let packets = left.min(2);
        left -= packets;
        let ackno = short.next() - 1 - u64::from(left);
        assert_eq!(short.plain_ack(ackno, packets as u8 + 1), packets);
        assert_eq!(general.ack(ackno, &"r".repeat(packets as usize + 2)).newly_acked, packets);
        assert_eq!(format!("{:?}", short.sender), format!("{:?}", general.sender));
    }
    short.cwnd()
}

#[test]
fn plain_acknowledgements_do_what_others_do() {
    let starts = [|| Line::with_window(4), || Line::in_avoidance(9)];
    let traces = starts.map(|start| {
        let mut lines = [start(), start()];
        for line in &mut lines {
            line.round_trip();
        }
        [(); 4].map(|()| round_trip_on_both_ways(&mut lines))
    });
    assert_eq!(traces, [[9, 13, 20, 30], [11, 12, 13, 14]]);
}

/// After a plain acknowledgement, packets leave without a decision; after others, by a decision.
#[test]
fn packets_leave_without_a_decision_only_where_a_decision_lets_them() {
    let changes: [fn(&mut Line); 6] = [
        |_| {},
        |line| line.sender.limit_in_flight(7),
        |line| line.wait(900),
        |line| line.wait(5000),
        |line| line.expire(),
        |line| line.leave(true, true),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut lines = [Line::with_window(8), Line::with_window(8)];
        for line in &mut lines {
            line.round_trip();
            line.leave(false, true);
            line.fill();
            line.wait(100);
        }
        let [short, general] = &mut lines;
        let oldest = short.next() - u64::from(short.pipe());
        assert_eq!(short.plain_ack(oldest + 5, 7), 6);
        assert_eq!(general.ack(oldest + 5, "rrrrrrrr").newly_acked, 6);
        let sent = lines.each_mut().map(|line| {
            change(line);
            (line.fill(), line.verdict(), line.timer_in_ms())
        });
        assert_eq!(sent[0], sent[1], "{n}");
        assert_eq!(format!("{:?}", lines[0].sender), format!("{:?}", lines[1].sender), "{n}");
    }
}

#[test]
//= 4340-11.4-11 test
fn a_packet_is_lost_once_three_later_ones_were_acknowledged() {
    let mut line = Line::in_avoidance(8);
    line.fill();
    assert_eq!(line.ack(2, "rx").newly_lost, 0);
    assert_eq!(line.ack(3, "rrx").newly_lost, 0);
    assert_eq!((line.pipe(), line.cwnd()), (6, 8));
    let outcome = line.ack(4, "rrrx");
    assert_eq!((outcome.newly_acked, outcome.newly_lost), (1, 1));
    assert_eq!((line.pipe(), line.cwnd(), line.ssthresh()), (4, 4, Some(4)));
    // Those that arrived before do not count.
    let mut line = Line::in_avoidance(8);
    line.fill();
    line.ack(3, "rrr");
    let lost = [(5, "rx"), (6, "rrx"), (7, "rrrx")].map(|(ackno, s)| line.ack(ackno, s).newly_lost);
    assert_eq!(lost, [0, 0, 1]);
}

#[test]
fn three_later_packets_may_be_in_one_or_several_acknowledgements() {
    let mut line = Line::in_avoidance(8);
    line.fill();
    assert_eq!(line.ack(4, "rrrx").newly_lost, 1);
    let mut line = Line::in_avoidance(8);
    line.fill();
    // Each vector reports only one packet, out of order.
    assert_eq!(line.ack(4, "r").newly_lost, 0);
    assert_eq!(line.ack(2, "r").newly_lost, 0);
    assert_eq!(line.ack(3, "r").newly_lost, 1);
}

#[test]
//= 4341-5-5 test
fn packets_without_data_reveal_a_loss_but_are_not_in_the_pipe() {
    let mut line = Line::in_avoidance(8);
    line.send(2);
    for _ in 0..3 {
        line.leave(false, true);
    }
    assert_eq!(line.pipe(), 2);
    // Packets 3, 4 and 5 carry no data; 1 was received, 2 was not.
    let outcome = line.ack(5, "rrrxr");
    assert_eq!((outcome.newly_acked, outcome.newly_lost), (1, 1));
    assert_eq!(line.pipe(), 0);
    // The loss of a packet without data is not a congestion event.
    let mut line = Line::in_avoidance(8);
    line.leave(false, true);
    line.send(3);
    assert_eq!(line.ack(4, "rrrx").newly_lost, 0);
    assert_eq!(line.metrics().congestion_events, 0);
}

#[test]
//= 4341-5-2 test
//= 4341-5-3 test
//= 4341-5-4 test
//= 4340-11.4.1-1 test
fn duplicates_and_late_arrivals_leave_the_pipe_alone() {
    let mut line = Line::in_avoidance(8);
    line.fill();
    line.ack(5, "rrrxr");
    assert_eq!(line.pipe(), 3);
    for _ in 0..3 {
        assert_eq!(line.ack(5, "rrrxr").newly_acked, 0);
    }
    // An older acknowledgement arrives late: what was received stays received.
    line.ack(3, "rxx");
    assert_eq!(line.pipe(), 3);
    // The lost packet arrives after all.
    let outcome = line.ack(5, "rrrrr");
    assert_eq!((outcome.newly_acked, outcome.late), (0, 1));
    assert_eq!((line.pipe(), line.metrics().packets_lost), (3, 1));
}

#[test]
//= 4340-11.4.1-2 test
fn acknowledgements_of_forgotten_packets_change_nothing() {
    let mut line = Line::in_avoidance(4);
    for _ in 0..20 {
        line.round_trip();
    }
    let (pipe, cwnd) = (line.pipe(), line.cwnd());
    let everything = "m".repeat(line.next() as usize - 1);
    line.ack(30, &everything[..30]);
    assert_eq!((line.pipe(), line.cwnd()), (pipe, cwnd));
}

#[test]
fn one_cut_for_all_losses_of_a_window() {
    let mut line = Line::in_avoidance(16);
    line.fill();
    // Packets 1, 6 and 9 of the window are lost, and detected one after another.
    line.ack(4, "rrrx");
    assert_eq!((line.cwnd(), line.metrics().congestion_events), (8, 1));
    line.fill();
    // Nine packets have arrived, three before the cut: the window grows by one.
    line.ack(12, "rrrxrrxrrrrx");
    assert_eq!((line.cwnd(), line.metrics().congestion_events), (9, 1));
    assert_eq!(line.metrics().packets_lost, 3);
    line.ack(16, "rrrrrrrxrrxrrrrx");
    // Packets sent after the cut form another window, and their loss is another event.
    let sent = line.next();
    line.fill();
    line.ack(sent + 3, "rrrx");
    assert_eq!((line.cwnd(), line.metrics().congestion_events), (4, 2));
}

#[test]
fn the_window_goes_on_growing_after_a_cut() {
    let mut line = Line::in_avoidance(16);
    line.fill();
    line.ack(4, "rrrx");
    assert_eq!(line.cwnd(), 8);
    line.fill();
    // Three packets were counted before the cut. With five more they are a window of eight. Seven
    // of the last twelve are carried over.
    line.ack(9, "rrrrrrrrx");
    assert_eq!(line.cwnd(), 9);
    line.ack(16, &format!("{}x", "r".repeat(15)));
    assert_eq!(line.cwnd(), 9);
    let first = line.next() - u64::from(line.pipe());
    line.fill();
    line.ack_each(first, first + 1, 2);
    assert_eq!(line.cwnd(), 10);
}

#[test]
fn nothing_sent_before_a_timeout_lets_the_window_grow() {
    let mut line = Line::in_avoidance(16);
    line.fill();
    line.expire();
    assert_eq!(line.cwnd(), 1);
    line.ack(16, &"r".repeat(16));
    assert_eq!(line.cwnd(), 1);
}

#[test]
fn growth_can_pause_after_a_cut() {
    let mut line = Line::in_avoidance_by(16, Algorithm::NEW_RENO);
    line.fill();
    line.ack(4, "rrrx");
    line.fill();
    line.ack(16, &format!("{}x", "r".repeat(15)));
    assert_eq!(line.cwnd(), 8);
    // The next eight packets are a window without loss.
    let first = line.next() - u64::from(line.pipe());
    line.fill();
    line.ack_each(first, first + 7, 2);
    assert_eq!(line.cwnd(), 9);
}

#[test]
fn a_mark_cuts_like_a_loss_and_once_a_window() {
    let mut line = Line::in_avoidance(10);
    line.fill();
    let outcome = line.ack(2, "mr");
    assert_eq!((outcome.newly_acked, outcome.newly_marked, outcome.newly_lost), (2, 1, 0));
    assert_eq!((line.cwnd(), line.ssthresh(), line.pipe()), (5, Some(5), 8));
    line.ack(4, "mmmr");
    assert_eq!((line.cwnd(), line.metrics().packets_marked), (5, 3));
}

//= 4340-11.4.1-1 test
#[test]
fn a_copy_that_was_marked_counts_while_the_packet_is_remembered() {
    let mut line = Line::in_avoidance(10);
    line.fill();
    assert_eq!(line.ack(3, "rrx").newly_marked, 0);
    assert_eq!(line.ack(3, "rmx").newly_marked, 1);
    assert_eq!(line.cwnd(), 5);
}

#[test]
fn the_cut_is_a_parameter() {
    for (percent, cwnd) in [(50, 50), (25, 75), (5, 95)] {
        let config = Ccid2Config {
            algorithm: Algorithm::NewReno {
                cut: Cut::drop_percent(percent),
                after_cut: GrowthAfterCut::Pauses,
            },
            initial_window: InitialWindow::Packets(100),
            ..Ccid2Config::default()
        };
        let mut line = Line::new(&config);
        line.fill();
        line.ack(4, "rrrx");
        assert_eq!((line.cwnd(), line.ssthresh()), (cwnd, Some(cwnd)), "{percent} %");
    }
}

#[test]
fn cwnd_stays_above_zero_and_ssthresh_above_one() {
    let mut line = Line::in_avoidance(3);
    for _ in 0..4 {
        let first = line.next();
        line.fill();
        line.ack(first, "m");
        line.ack(line.next() - 1, "r");
    }
    assert_eq!((line.cwnd(), line.ssthresh()), (1, Some(2)));
}

#[test]
//= 4340-11.6-1 test
//= 4341-5.2-1 test
fn a_slow_receiver_ends_slow_start_and_holds_growth_for_a_round_trip_time() {
    let mut line = Line::with_window(4);
    line.round_trip();
    assert_eq!((line.cwnd(), line.ssthresh()), (6, None));
    let first = line.next();
    line.fill();
    line.acked(AckInfo { slow_receiver: true, ..AckInfo::default() });
    line.wait(99);
    line.ack_each(first, first + 5, 2);
    assert_eq!((line.cwnd(), line.ssthresh()), (6, Some(6)));
    line.wait(1);
    line.round_trip();
    assert_eq!(line.cwnd(), 7);
}

#[test]
//= 4341-3.1-1 test
fn the_first_window_follows_rfc_3390_or_by_choice_6928() {
    let first = |initial_window| {
        Line::new(&Ccid2Config { initial_window, ..Ccid2Config::default() }).cwnd()
    };
    assert_eq!(first(InitialWindow::Rfc3390), 3);
    assert_eq!(first(InitialWindow::Rfc6928), 10);
    assert_eq!(Line::new(&Ccid2Config::default()).ssthresh(), None);
}

#[test]
fn any_window_algorithm_serves() {
    let config = Ccid2Config {
        algorithm: Algorithm::Cubic(udccp_cc::CubicConfig::default()),
        initial_window: InitialWindow::Packets(100),
        ..Ccid2Config::default()
    };
    let mut line = Line::new(&config);
    line.fill();
    line.wait(100);
    line.ack(4, "rrrx");
    assert!((70..=85).contains(&line.cwnd()), "{}", line.cwnd());
}

#[test]
fn the_sequence_window_asked_for_is_five_congestion_windows() {
    let mut line = Line::with_window(10);
    assert_eq!(line.sender.seq_window_needed(), 100);
    while line.cwnd() < 100 {
        line.round_trip();
    }
    assert_eq!(line.sender.seq_window_needed(), 5 * u64::from(line.cwnd()));
}

#[test]
//= 4341-4-1 test
fn ack_vectors_are_asked_for_with_mandatory() {
    let registry = CcidRegistry::default();
    let needs = registry.get(2).unwrap().needed_features();
    let [need] = needs else { panic!("{needs:?}") };
    assert_eq!((need.feature, need.location), (FeatureNumber::SEND_ACK_VECTOR, Location::Remote));
    assert_eq!((need.value, need.mandatory), (1, true));
}

#[test]
fn the_sequence_window_in_force_limits_what_is_in_flight() {
    let mut line = Line::in_avoidance(50);
    line.sender.limit_in_flight(20);
    assert_eq!(line.fill(), 20);
    // A window that is never full does not grow.
    for first in [1, 21, 41, 61, 81] {
        line.wait(100);
        line.ack_each(first, first + 19, 2);
        assert_eq!(line.fill(), 20);
    }
    assert_eq!(line.cwnd(), 50);
}

#[test]
fn sequence_numbers_may_wrap() {
    let mut line = Line::in_avoidance(10);
    line.jump((1 << 48) - 5);
    let mut trace = Vec::new();
    for _ in 0..3 {
        trace.push(line.round_trip());
    }
    assert_eq!((trace, line.pipe()), (vec![11, 12, 13], 0));
    assert!(line.next() > 1 << 48);
}
