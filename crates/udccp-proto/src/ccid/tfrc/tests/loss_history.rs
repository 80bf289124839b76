//! From packets to loss intervals (RFC 4342 sections 6.1, 8.6.2 and 10.2, RFC 5348 section 5).

use udccp_base::Ecn;
use udccp_wire::{LossInterval, Seqno};

use crate::ccid::tfrc::loss_history::Change;
use crate::ccid::tfrc::{Arrived, LossHistory};

/// A receiver that assumes 15 packets in the interval before the first loss.
struct Line {
    history: LossHistory,
    /// Packets per step of the window counter.
    packets_per_step: u64,
}

impl Line {
    fn new(packets_per_step: u64) -> Self {
        Self { history: LossHistory::new(true, false), packets_per_step }
    }

    fn arrived(&self, seq: u64) -> Arrived {
        let ccval = (seq / self.packets_per_step % 16) as u8;
        Arrived { seq: Seqno::new(seq), data: Some(ccval), ecn: Ecn::NotEct, ndp: 0 }
    }

    fn take(&mut self, packet: Arrived) -> Change {
        self.history.on_packet(packet, &|| 15)
    }

    fn get(&mut self, seq: u64) -> Change {
        let packet = self.arrived(seq);
        self.take(packet)
    }

    fn get_marked(&mut self, seq: u64) -> Change {
        let packet = Arrived { ecn: Ecn::Ce, ..self.arrived(seq) };
        self.take(packet)
    }

    /// All packets of the range arrive, except the lost ones. Returns where loss events were
    /// detected.
    fn run(&mut self, range: core::ops::Range<u64>, lost: &[u64]) -> Vec<u64> {
        range.filter(|seq| !lost.contains(seq) && self.get(*seq).new_event).collect()
    }

    /// Skip Length, then lossless, loss and data length of each interval.
    fn report(&self) -> (u8, Vec<[u32; 3]>) {
        let (skip, intervals) = self.history.report();
        let lengths = |i: LossInterval| [i.lossless_length, i.loss_length, i.data_length];
        (skip, intervals.map(lengths).collect())
    }
}

//= 4342-6.1-1 test
//= 4342-8.6.1-1 test
//= 4342-8.6.1-5 test
#[test]
fn the_example_of_rfc_4342_is_reported_as_there() {
    let mut line = Line::new(2);
    let events = line.run(0..45, &[10, 19, 20, 21, 23, 32, 43]);
    // Each loss is detected when three packets after it have arrived.
    assert_eq!(events, [13, 25, 35]);
    let (skip, intervals) = line.report();
    assert_eq!(skip, 2);
    // All packets are data here. In the RFC's example, three and one of them are not.
    assert_eq!(intervals, [[10, 1, 11], [8, 5, 13], [8, 1, 9], [10, 0, 15]]);
}

#[test]
fn before_any_loss_there_is_one_interval_without_data_length() {
    let mut line = Line::new(2);
    assert_eq!(line.run(100..140, &[]), [0; 0]);
    assert_eq!(line.report(), (0, vec![[40, 0, 0]]));
    assert_eq!(line.history.rate(), 0.0);
}

//= 4342-6.1-1 test
#[test]
fn losses_within_a_round_trip_time_are_one_event() {
    // Four packets per step: 16 per round-trip time.
    let mut line = Line::new(4);
    assert_eq!(line.run(0..60, &[21, 30, 37]).len(), 1);
    let mut line = Line::new(4);
    // The packet before the first loss has counter 5, and the one before 41 has counter 10.
    assert_eq!(line.run(0..60, &[21, 41]).len(), 2);
}

#[test]
fn a_wrap_of_the_whole_counter_between_two_losses_is_noticed() {
    let mut line = Line::new(2);
    // After 32 packets, the counter has the same value again.
    assert_eq!(line.run(0..80, &[20, 52]).len(), 2);
}

#[test]
fn an_outage_is_one_event_however_long() {
    let mut line = Line::new(2);
    let lost: Vec<u64> = (20..500).collect();
    assert_eq!(line.run(0..520, &lost).len(), 1);
    assert_eq!(line.report().1, [[20, 480, 500], [20, 0, 15]]);
}

#[test]
fn reordering_of_less_than_three_packets_is_no_loss() {
    let mut line = Line::new(2);
    line.run(0..10, &[]);
    for seq in [11, 12, 10, 14, 13] {
        assert_eq!(line.get(seq), Change::default());
    }
    assert_eq!(line.report(), (0, vec![[15, 0, 0]]));
}

#[test]
fn a_mark_counts_at_once_and_takes_the_hole_before_it_along() {
    let mut line = Line::new(2);
    line.run(0..10, &[]);
    assert!(line.get_marked(10).new_event);
    line.run(11..40, &[]);
    // Packet 40 is missing, and 42 is marked: the event begins with 40.
    assert!(!line.get(41).new_event);
    assert!(line.get_marked(42).new_event);
    assert_eq!(line.report(), (0, vec![[0, 3, 3], [29, 1, 30], [10, 0, 15]]));
}

//= 5348-6-2 test
//= 5348-6.1-1 test
#[test]
fn a_late_packet_removes_its_loss_event() {
    let mut line = Line::new(2);
    line.run(0..30, &[10]);
    assert!(line.history.rate() > 0.0);
    let late = line.get(10);
    assert!(late.removed_event);
    assert_eq!(line.history.rate(), 0.0);
    assert_eq!(line.report().1[0][..2], [30, 0]);
    // If an event has two losses, one late packet does not remove it.
    let mut line = Line::new(2);
    line.run(0..30, &[10, 12]);
    assert!(!line.get(10).removed_event);
    assert!(line.get(12).removed_event);
}

/// Regression: the one loss event that late packets had left became the interval before the first
/// loss. Its report was impossible, so the sender ignored all feedback and stood still.
#[test]
fn reports_stay_possible_if_late_packets_remove_all_loss_events_but_one() {
    let mut line = Line::new(2);
    let lost: Vec<u64> = (1..=11).map(|n| 20 * n).collect();
    assert_eq!(line.run(0..240, &lost).len(), 11);
    for late in &lost[3..] {
        line.get(*late);
    }
    line.run(240..270, &[250]);
    let (_, intervals) = line.report();
    // The data length of the first interval is an assumption, and may exceed its other lengths
    // only if it has no lossy part.
    assert_eq!((intervals.len(), intervals[1][1]), (2, 0), "{intervals:?}");
}

//= 4342-6.1-2 test
//= 4342-6.1.1-1 test
#[test]
fn lost_packets_are_data_unless_ndp_counts_say_otherwise() {
    let lose_three = |ndp| {
        let mut line = Line::new(2);
        line.run(0..20, &[]);
        let packet = Arrived { ndp, ..line.arrived(23) };
        let mut events = u32::from(line.take(packet).new_event);
        events += line.run(24..40, &[]).len() as u32;
        (events, line.report().1[0])
    };
    assert_eq!(lose_three(0), (1, [17, 3, 20]));
    assert_eq!(lose_three(2), (1, [19, 1, 18]), "the last two held no data");
    assert_eq!(lose_three(3), (0, [40, 0, 0]), "no data was lost at all");
    assert_eq!(lose_three(9), (0, [40, 0, 0]));
}

#[test]
fn non_data_packets_lengthen_intervals_and_not_their_data() {
    let mut line = Line::new(2);
    line.run(0..20, &[10]);
    for seq in 20..25 {
        line.take(Arrived { data: None, ..Line::new(2).arrived(seq) });
    }
    assert_eq!(line.report().1, [[14, 1, 10], [10, 0, 15]]);
}

#[test]
fn a_long_hole_that_may_yet_be_filled_is_skipped_by_three_at_most() {
    let mut line = Line::new(2);
    line.run(0..20, &[]);
    line.get(40);
    assert_eq!(line.report(), (3, vec![[38, 0, 0]]));
}

#[test]
fn a_first_packet_that_is_lost_or_marked_ends_an_interval_of_nothing() {
    let mut line = Line::new(2);
    assert!(line.get_marked(0).new_event);
    assert_eq!(line.report().1, [[0, 1, 1], [0, 0, 15]]);
}

//= 4342-7-1 test
//= 4342-8.6.1-6 test
//= 4342-8.6.1-7 test
#[test]
fn the_nonce_echo_is_the_parity_of_unmarked_data_after_the_losses() {
    let mut line = Line::new(2);
    let nonce = |line: &Line| line.history.report().1.next().unwrap().nonce_echo;
    for seq in 0..3 {
        line.take(Arrived { ecn: Ecn::Ect1, ..Line::new(2).arrived(seq) });
    }
    assert!(nonce(&line));
    line.take(Arrived { ecn: Ecn::Ect1, data: None, ..Line::new(2).arrived(3) });
    assert!(nonce(&line), "packets without data do not count");
    line.get_marked(4);
    assert!(!nonce(&line), "nothing follows the mark yet");
    line.take(Arrived { ecn: Ecn::Ect1, ..Line::new(2).arrived(5) });
    assert!(nonce(&line));
    line.get_marked(6);
    assert!(!nonce(&line), "the lossy part now reaches to the second mark");
}

//= 4342-8.6.1-1 test
#[test]
fn nine_intervals_are_kept() {
    let mut line = Line::new(2);
    let lost: Vec<u64> = (1..40).map(|i| i * 20).collect();
    line.run(0..800, &lost);
    assert_eq!(line.report().1.len(), 9);
    assert!((line.history.rate() - 0.05).abs() < 0.01, "{}", line.history.rate());
}

#[test]
fn numbers_wrap() {
    let mut line = Line::new(2);
    let start = (1 << 48) - 20;
    assert_eq!(line.run(start..start + 60, &[start + 30]).len(), 1);
    assert_eq!(line.report().1, [[29, 1, 30], [30, 0, 15]]);
}
