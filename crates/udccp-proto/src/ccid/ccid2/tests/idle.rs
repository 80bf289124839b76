//! Windows that the application does not use.

use udccp_cc::{Algorithm, IdlePolicy, InitialWindow};

use super::line::Line;
use crate::ccid::ccid2::Ccid2Config;
use crate::ccid::{AckInfo, CcidSender, SendVerdict};

/// A window of 32 is used for round-trip times of 100 ms, then the sender is silent for `millis`.
fn after_silence(idle: IdlePolicy, millis: u64) -> Line {
    let initial_window = InitialWindow::Packets(4);
    let mut line = Line::new(&Ccid2Config { idle, initial_window, ..Ccid2Config::default() });
    while line.cwnd() < 32 {
        line.round_trip();
    }
    line.wait(millis);
    line.verdict();
    line
}

#[test]
//= 4341-5.1-1 test
fn after_silence_each_policy_does_what_its_rfc_says() {
    let rto = after_silence(IdlePolicy::Keep, 0).sender.rto().as_millis();
    let before = after_silence(IdlePolicy::Keep, 0).cwnd();
    let cwnd = |policy, millis| after_silence(policy, millis).cwnd();
    assert_eq!(cwnd(IdlePolicy::Keep, 100 * rto), before);
    assert_eq!(cwnd(IdlePolicy::Restart, 2 * rto), 4);
    assert_eq!(cwnd(IdlePolicy::Rfc2861, rto), before / 2);
    assert_eq!(cwnd(IdlePolicy::Rfc2861, 2 * rto), before / 4);
    assert_eq!(cwnd(IdlePolicy::Rfc7661, 2 * rto), before);
    assert_eq!(cwnd(IdlePolicy::Rfc7661, 301_000), before / 2);
}

#[test]
fn an_unvalidated_window_is_let_go_in_pace_after_one_initial_window() {
    let mut line = after_silence(IdlePolicy::Rfc7661, 5_000);
    let start = line.now;
    let mut burst = 0;
    while line.verdict() == SendVerdict::Now {
        line.leave(true, false);
        burst += 1;
    }
    assert_eq!(burst, 4);
    let SendVerdict::At(at) = line.verdict() else { panic!("not paced") };
    let interval = (at - start).as_micros();
    let expected = 100_000 / u64::from(line.cwnd());
    assert!(interval.abs_diff(expected) <= 1, "{interval} us instead of {expected}");
}

#[test]
fn an_application_with_little_to_say_does_not_grow_its_window() {
    for policy in [IdlePolicy::Rfc7661, IdlePolicy::Rfc2861, IdlePolicy::Restart] {
        let initial_window = InitialWindow::Packets(16);
        let config = Ccid2Config { idle: policy, initial_window, ..Ccid2Config::default() };
        let mut line = Line::new(&config);
        let first = 1;
        for k in 0..50 {
            line.send(2);
            line.wait(100);
            line.ack(first + 2 * k + 1, "rr");
        }
        assert!(line.cwnd() <= 17, "{policy:?}: {}", line.cwnd());
    }
}

/// RFC 7661 section 4.4.1. A window of 40, of which five were used, loses eight of a burst of 30.
#[test]
fn a_loss_in_an_unvalidated_window_cuts_from_what_was_used_and_then_by_half_the_losses() {
    let config = Ccid2Config {
        idle: IdlePolicy::Rfc7661,
        initial_window: InitialWindow::Packets(40),
        algorithm: Algorithm::NEW_RENO,
        ..Ccid2Config::default()
    };
    let mut line = Line::new(&config);
    line.acked(AckInfo { slow_receiver: true, ..AckInfo::default() });
    for _ in 0..30 {
        let first = line.next();
        line.send(5);
        line.wait(100);
        line.ack(first + 4, "rrrrr");
    }
    assert_eq!(line.cwnd(), 40);
    let first = line.next();
    (0..30).for_each(|_| line.leave(true, false));
    line.wait(100);
    line.ack(first + 11, "rrrxxxxxxxxr");
    assert_eq!((line.cwnd(), line.ssthresh()), (15, Some(15)));
    line.ack(first + 29, &"r".repeat(18));
    assert_eq!(line.cwnd(), 15, "of what was sent before the cut");
    // The first packet sent after the cut arrives, so recovery ends.
    line.send(1);
    line.wait(100);
    line.ack(first + 30, "r");
    assert_eq!(line.cwnd(), 11);
}
