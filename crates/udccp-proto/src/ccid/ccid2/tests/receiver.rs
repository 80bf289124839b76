//! The receiver half.

use udccp_base::{Ecn, Instant};
use udccp_wire::{OptionRef, Seqno};

use super::line::{ms, packet};
use crate::ccid::ccid2::{Ccid2Config, Ccid2Receiver};
use crate::ccid::{CcidReceiver, Feedback, OptionSink};

fn receiver() -> (Ccid2Receiver, Instant) {
    (Ccid2Receiver::new(&Ccid2Config::default()), Instant::ZERO + ms(1000))
}

fn data(receiver: &mut Ccid2Receiver, now: Instant, seqs: impl IntoIterator<Item = u64>) {
    for seq in seqs {
        receiver.on_packet(now, &packet(seq, true, Ecn::Ect0));
    }
}

#[test]
//= 4340-11.3-2 test
fn an_acknowledgement_is_due_for_every_ack_ratio_packets() {
    let (mut r, now) = receiver();
    assert_eq!(r.feedback(now), Feedback::None);
    data(&mut r, now, [1]);
    assert!(matches!(r.feedback(now), Feedback::At(_)));
    data(&mut r, now, [2]);
    assert_eq!(r.feedback(now), Feedback::Due);
    r.on_feedback_sent(now, Seqno::new(77));
    assert_eq!((r.feedback(now), r.poll_timeout()), (Feedback::None, None));
    r.set_ack_ratio(5);
    data(&mut r, now, 3..=6);
    assert!(matches!(r.feedback(now), Feedback::At(_)));
    data(&mut r, now, [7]);
    assert_eq!(r.feedback(now), Feedback::Due);
}

#[test]
fn a_batch_is_acknowledged_once() {
    let (mut r, now) = receiver();
    data(&mut r, now, 1..=64);
    assert_eq!(r.feedback(now), Feedback::Due);
    r.on_feedback_sent(now, Seqno::new(1));
    assert_eq!(r.feedback(now), Feedback::None);
}

#[test]
//= 4340-11.3-5 test
fn no_acknowledgement_is_delayed_by_more_than_200_ms() {
    let (mut r, now) = receiver();
    r.set_ack_ratio(10);
    data(&mut r, now, [1]);
    data(&mut r, now + ms(150), [2]);
    assert_eq!(r.feedback(now + ms(150)), Feedback::At(now + ms(200)));
    assert_eq!(r.poll_timeout(), Some(now + ms(200)));
    assert_eq!(r.feedback(now + ms(200)), Feedback::Due);
}

#[test]
//= 4340-11.3-6 test
fn gaps_and_late_packets_are_acknowledged_at_once() {
    let (mut r, now) = receiver();
    r.set_ack_ratio(100);
    data(&mut r, now, [1, 2]);
    assert!(matches!(r.feedback(now), Feedback::At(_)));
    data(&mut r, now, [4]);
    assert_eq!(r.feedback(now), Feedback::Due);
    r.on_feedback_sent(now, Seqno::new(1));
    data(&mut r, now, [5]);
    assert!(matches!(r.feedback(now), Feedback::At(_)));
    data(&mut r, now, [3]);
    assert_eq!(r.feedback(now), Feedback::Due);
}

#[test]
//= 4340-11.3-6 test
fn marks_are_acknowledged_at_once_but_once_per_round_trip_time() {
    let (mut r, now) = receiver();
    r.set_ack_ratio(100);
    r.set_rtt(ms(50));
    let mark = |r: &mut Ccid2Receiver, seq, at| {
        r.on_packet(at, &packet(seq, true, Ecn::Ce));
        let due = r.feedback(at) == Feedback::Due;
        r.on_feedback_sent(at, Seqno::new(seq));
        due
    };
    assert!(mark(&mut r, 1, now));
    assert!(!mark(&mut r, 2, now + ms(49)));
    assert!(mark(&mut r, 3, now + ms(50)));
}

#[test]
fn packets_without_data_are_not_acknowledged_even_after_a_gap() {
    let (mut r, now) = receiver();
    for seq in [1, 2, 9, 5] {
        r.on_packet(now, &packet(seq, false, Ecn::Ce));
    }
    assert_eq!(r.feedback(now), Feedback::None);
}

#[test]
fn ack_ratio_zero_reads_as_the_default() {
    let (mut r, now) = receiver();
    r.set_ack_ratio(0);
    data(&mut r, now, [1]);
    assert!(matches!(r.feedback(now), Feedback::At(_)));
    data(&mut r, now, [2]);
    assert_eq!(r.feedback(now), Feedback::Due);
}

#[derive(Default)]
struct Elapsed(Option<u32>);

impl OptionSink for Elapsed {
    fn option(&mut self, option: &OptionRef<'_>) -> bool {
        let OptionRef::ElapsedTime(units) = *option else { panic!("{option:?}") };
        self.0 = Some(units);
        true
    }

    fn room_bytes(&self) -> usize {
        usize::MAX
    }
}

#[test]
//= 4340-13.2-4 test
fn elapsed_time_is_that_of_the_newest_packet_rounded_down() {
    let (mut r, now) = receiver();
    let elapsed = |r: &mut Ccid2Receiver, at| {
        let mut sink = Elapsed::default();
        r.write_options(at, &mut sink);
        sink.0
    };
    assert_eq!(elapsed(&mut r, now), None);
    data(&mut r, now, [2]);
    data(&mut r, now + ms(20), [1]);
    assert_eq!(elapsed(&mut r, now), None);
    assert_eq!(elapsed(&mut r, now + ms(30)), Some(3000));
    let odd = now + udccp_base::Duration::from_nanos(19_999);
    assert_eq!(elapsed(&mut r, odd), Some(1));
}

#[test]
fn a_sender_is_quiescent_when_silent_and_fully_informed() {
    let (mut r, now) = receiver();
    assert!(r.peer_is_quiescent(now));
    data(&mut r, now, [1, 2]);
    let later = now + ms(10_000);
    assert!(!r.peer_is_quiescent(later), "never acknowledged");
    r.on_feedback_sent(now, Seqno::new(50));
    r.on_ack_of_ack(Seqno::new(49));
    assert!(!r.peer_is_quiescent(later), "the acknowledgement is not acknowledged");
    r.on_ack_of_ack(Seqno::new(50));
    assert!(r.peer_is_quiescent(later));
    // T is the greater of 0.2 s and two round-trip times.
    r.set_rtt(ms(300));
    assert!(!r.peer_is_quiescent(now + ms(599)));
    assert!(r.peer_is_quiescent(now + ms(600)));
    r.set_rtt(ms(10));
    assert!(!r.peer_is_quiescent(now + ms(199)));
    assert!(r.peer_is_quiescent(now + ms(200)));
}
