//! The receiver half: when it sends feedback, and the contents.

use udccp_base::{Ecn, Instant};
use udccp_wire::{LossInterval, OptionRef, Seqno};

use super::{at, ms};
use crate::ccid::ccid3::{Ccid3Config, Ccid3Receiver};
use crate::ccid::{CcidReceiver, Feedback, OptionSink, ReceivedInfo};

/// The options of a packet as text.
#[derive(Default)]
struct Written {
    all: Vec<String>,
    room: usize,
}

impl OptionSink for Written {
    fn option(&mut self, option: &OptionRef<'_>) -> bool {
        if option.encoded_len() > self.room {
            return false;
        }
        self.room -= option.encoded_len();
        self.all.push(match *option {
            OptionRef::LossIntervals { skip_length, intervals } => {
                let text = |i: LossInterval| {
                    format!("{}/{}/{}", i.lossless_length, i.loss_length, i.data_length)
                };
                let all: Vec<String> = LossInterval::iter(intervals).map(text).collect();
                format!("skip {skip_length}: {}", all.join(" "))
            }
            ref other => format!("{other:?}"),
        });
        true
    }

    fn room_bytes(&self) -> usize {
        self.room
    }
}

/// A stream of packets with 1000 bytes of data each and consecutive sequence numbers.
struct Line {
    receiver: Ccid3Receiver,
    seq: u64,
}

impl Line {
    fn new() -> Self {
        let mut receiver = Ccid3Receiver::new(&Ccid3Config::default());
        receiver.set_rtt(ms(100));
        Self { receiver, seq: 0 }
    }

    fn packet(&mut self, ccval: u8) -> ReceivedInfo {
        self.seq += 1;
        ReceivedInfo {
            seq: Seqno::new(self.seq),
            is_data: true,
            size_bytes: 1000,
            ccval,
            ecn: Ecn::Ect0,
            ndp_count: Some(0),
        }
    }

    /// A data packet arrives. Returns whether feedback is due.
    fn data(&mut self, millis: u64, ccval: u8) -> bool {
        let packet = self.packet(ccval);
        self.receiver.on_packet(at(millis), &packet);
        self.receiver.feedback(at(millis)) == Feedback::Due
    }

    fn lose(&mut self, packets: u64) {
        self.seq += packets;
    }

    fn report_in(&mut self, now: Instant, room: usize) -> Vec<String> {
        let mut written = Written { room, ..Written::default() };
        self.receiver.write_options(now, &mut written);
        self.receiver.on_feedback_sent(now, Seqno::new(7));
        written.all
    }

    fn report(&mut self, millis: u64) -> Vec<String> {
        self.report_in(at(millis), 200)
    }
}

//= 4342-8.2-1 test
//= 4342-8.2-2 test
//= 4342-8.3-1 test
//= 4342-6-1 test
//= 4342-8.4-1 test
//= 4342-8.4-2 test
//= 4342-8.5-1 test
//= 4342-8.6-1 test
//= 4342-8.6.1-2 test
#[test]
fn the_first_packet_is_answered_at_once_with_rate_zero() {
    let mut line = Line::new();
    assert_eq!(line.receiver.feedback(at(0)), Feedback::None);
    assert!(line.data(1000, 0));
    let none = ["ElapsedTime(200)", "ReceiveRate(0)", "skip 0: 1/0/0", "LossEventRate(4294967295)"];
    assert_eq!(line.report(1002), none);
    assert_eq!(line.receiver.feedback(at(1002)), Feedback::None);
}

//= 5348-6-1 test
//= 4342-8.3-2 test
#[test]
fn feedback_follows_the_window_counter() {
    let mut line = Line::new();
    line.data(1000, 14);
    line.report(1000);
    assert!(!line.data(1020, 14));
    assert!(!line.data(1060, 0));
    assert!(!line.data(1080, 1));
    assert!(line.data(1100, 2), "14 + 4, modulo 16");
    assert_eq!(line.report(1100)[1], "ReceiveRate(40000)");
    assert!(!line.data(1190, 5));
    assert!(line.data(1200, 7), "five steps");
}

//= 5348-6-1 test
#[test]
fn a_slow_sender_gets_an_answer_for_every_packet() {
    let mut line = Line::new();
    for i in 0..20 {
        assert!(line.data(1000 + 300 * i, (5 * i % 16) as u8));
        line.report(1000 + 300 * i);
    }
}

#[test]
fn data_that_stops_is_reported_after_five_quarters_of_a_round_trip() {
    let mut line = Line::new();
    line.data(1000, 0);
    line.report(1000);
    line.data(1010, 0);
    assert_eq!(line.receiver.poll_timeout(), Some(at(1125)));
    assert_eq!(line.receiver.feedback(at(1125)), Feedback::Due);
    line.report(1125);
    assert_eq!(line.receiver.poll_timeout(), None);
}

//= 5348-6-2 test
//= 5348-4.1-1 test
//= 5348-6.3.1-1 test
//= 5348-6.3.1-2 test
#[test]
fn a_new_loss_event_is_reported_at_once_with_an_interval_made_from_the_rate() {
    let mut line = Line::new();
    line.data(1000, 0);
    line.report(1000);
    for i in 1..40 {
        // The counter ticks every 25 ms.
        if line.data(1000 + 10 * i, (i * 2 / 5 % 16) as u8) {
            line.report(1000 + 10 * i);
        }
    }
    line.lose(1);
    assert!(line.data(1410, 0), "a round-trip time since the last report");
    line.report(1410);
    assert!(!line.data(1420, 0));
    assert!(line.data(1430, 1));
    let report = line.report(1430);
    // Ten packets per round-trip time: f(p) = 1/10 gives 1/p = 83.
    let first: u32 = report[2].rsplit('/').next().unwrap().parse().unwrap();
    assert!((78..=83).contains(&first), "{report:?}");
    assert!(report[2].starts_with("skip 0: 3/1/4 40/0/"), "{report:?}");
    assert_eq!(report[3], format!("LossEventRate({first})"));
}

//= 5348-6-2 test
#[test]
fn a_late_packet_that_removes_a_loss_event_is_reported_at_once() {
    let mut line = Line::new();
    line.data(1000, 0);
    line.report(1000);
    line.data(1010, 0);
    line.lose(1);
    let late = line.seq;
    for i in 0..3 {
        line.data(1020 + i, 1);
    }
    assert!(line.report(1023)[2].contains("3/1/4"), "a loss event");
    assert!(line.receiver.loss_event_rate() > 0.0);
    // Long before a round-trip time has passed, the packet that was considered lost arrives.
    line.seq = late - 1;
    assert!(line.data(1030, 1), "due at once");
    assert_eq!(line.receiver.loss_event_rate(), 0.0);
    // A late packet that changes nothing waits like any other.
    line.report(1030);
    line.seq = late - 1;
    assert!(!line.data(1031, 1));
}

#[test]
fn a_loss_that_only_acknowledgements_show_is_reported_with_the_next_data() {
    let mut line = Line::new();
    line.data(1000, 0);
    line.report(1000);
    line.data(1100, 4);
    line.report(1100);
    line.lose(1);
    for i in 0..5 {
        let ack = ReceivedInfo { is_data: false, size_bytes: 0, ..line.packet(0) };
        line.receiver.on_packet(at(1200 + i), &ack);
        assert_eq!(line.receiver.feedback(at(1300)), Feedback::None, "nothing to report a rate of");
    }
    assert!(line.receiver.loss_event_rate() > 0.0);
    assert!(line.data(5000, 9), "due at once");
    assert!(line.report(5000)[1] != "ReceiveRate(0)");
}

//= 5348-6.3.1-4 test
#[test]
fn a_first_packet_with_a_mark_stands_for_half_a_packet_a_round_trip() {
    let mut line = Line::new();
    let packet = ReceivedInfo { ecn: Ecn::Ce, ..line.packet(0) };
    line.receiver.on_packet(at(1000), &packet);
    // f(p) = 2 gives p = 0.24 and 1/p = 4.
    assert_eq!(line.report(1000)[2], "skip 0: 0/1/1 0/0/4");
}

#[test]
fn no_rate_is_too_high_for_a_first_interval() {
    let mut line = Line::new();
    line.receiver.set_rtt(udccp_base::Duration::ZERO);
    for _ in 0..100 {
        line.data(1000, 0);
        line.report(1000);
    }
    line.lose(1);
    (0..3).for_each(|_| _ = line.data(1000, 8));
    let report = line.report(1000);
    let first: u32 = report[2].rsplit('/').next().unwrap().parse().unwrap();
    assert!((1..=0xff_ffff).contains(&first), "{report:?}");
}

#[test]
fn a_report_that_does_not_fit_is_due_again_a_round_trip_time_later() {
    let mut line = Line::new();
    line.data(1000, 0);
    assert!(line.receiver.feedback_len_bytes() >= 6 + 6 + 6 + 12);
    assert_eq!(line.report_in(at(1000), 14).len(), 2);
    assert_eq!(line.receiver.feedback(at(1099)), Feedback::None, "no storm of packets");
    assert_eq!(line.receiver.poll_timeout(), Some(at(1100)));
    assert_eq!(line.receiver.feedback(at(1100)), Feedback::Due);
    assert_eq!(line.report(1100).len(), 4);
}

#[test]
fn where_there_is_little_room_the_newest_loss_intervals_are_reported() {
    let mut line = Line::new();
    for i in 0..200 {
        line.data(1000 + 10 * i, (i * 2 / 5 % 16) as u8);
        if i % 20 == 0 {
            line.lose(1);
        }
    }
    let whole = line.report(3000)[2].clone();
    assert_eq!(whole.matches('/').count(), 2 * 9, "{whole}");
    line.data(3100, 1);
    let report = line.report_in(at(3300), 6 + 6 + 6 + 3 + 4 * 9 + 3);
    assert_eq!(report.len(), 4, "{report:?}");
    assert_eq!(report[2].matches('/').count(), 2 * 4);
    assert!(
        report[3].starts_with("LossEventRate"),
        "senders without intervals need it: {report:?}"
    );
    assert_eq!(line.receiver.feedback(at(3300)), Feedback::None, "it was a whole report");
}

#[test]
fn a_sender_is_quiescent_after_two_round_trips_or_a_fifth_of_a_second() {
    let mut line = Line::new();
    line.data(1000, 0);
    assert!(!line.receiver.peer_is_quiescent(at(1199)));
    assert!(line.receiver.peer_is_quiescent(at(1200)));
    line.receiver.set_rtt(ms(500));
    assert!(!line.receiver.peer_is_quiescent(at(1999)));
}

//= 4342-8.1-4 test
#[test]
fn the_round_trip_time_follows_the_counter() {
    let mut line = Line::new();
    for i in 0..400 {
        line.data(1000 + 10 * i, (i / 5 % 16) as u8);
    }
    assert!(line.receiver.rtt().abs_diff(ms(200)) < ms(1), "{}", line.receiver.rtt());
}

/// A handshake that lost a packet gives no round-trip time, and a sender that starts slowly gives a
/// sample or two and then none. An average with the default of 200 ms would keep the rate low
/// forever.
#[test]
fn the_first_rtt_sample_is_not_averaged_with_the_default() {
    let mut line = Line { receiver: Ccid3Receiver::new(&Ccid3Config::default()), seq: 0 };
    assert_eq!(line.receiver.rtt(), ms(200));
    line.data(1000, 0);
    line.data(1005, 4);
    assert_eq!(line.receiver.rtt(), ms(5));
}
