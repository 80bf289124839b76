//! Windows that are not used.

use udccp_cc::{IdlePolicy, InitialWindow};

use super::line::Line;
use crate::ccid::ccid2::Ccid2Config;
use crate::ccid::{CcidSender, SendVerdict};

/// A window of 32 in use over round-trip times of 100 ms, then silence for so long.
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
