//! Sending packets in trains.

use udccp_base::{Duration, Seed};
use udccp_cc::{Algorithm, BbrConfig, CubicConfig, InitialWindow};

use super::line::Line;
use crate::ccid::ccid2::{Ccid2Config, Pacing};
use crate::ccid::{CcidSender as _, SendVerdict};

/// A sender whose window of this size is full.
fn full(max_train: u32, window: u32) -> Line {
    let algorithm = Algorithm::Cubic(CubicConfig::default());
    let initial_window = InitialWindow::Packets(window);
    let config = Ccid2Config { algorithm, initial_window, max_train, ..Ccid2Config::default() };
    let mut line = Line::new(&config);
    assert_eq!(line.fill(), window);
    line
}

/// Sizes of the trains, if one acknowledgement reports three packets, and the packets that it
/// releases are also reported together, as on a path without delay.
fn batches(max_train: u32) -> Vec<u32> {
    let mut line = full(max_train, 300);
    let mut in_flight: std::collections::VecDeque<u32> = vec![3; 100].into();
    let mut acked = 0;
    let mut batches = Vec::new();
    for _ in 0..600 {
        let Some(batch) = in_flight.pop_front() else { break };
        acked += u64::from(batch);
        line.ack_each(acked + 1 - u64::from(batch), acked, batch as usize);
        line.now += Duration::from_nanos(300);
        let left = line.fill();
        if left > 0 {
            in_flight.push_back(left);
            batches.push(left);
        }
    }
    batches
}

#[test]
fn small_batches_do_not_persist() {
    let endless = batches(1);
    assert!(endless.iter().all(|n| *n <= 16), "without trains it does: {endless:?}");
    let trains = batches(43);
    let later = &trains[trains.len() / 2..];
    assert!(later.iter().all(|n| *n >= 30), "{trains:?}");
}

#[test]
fn a_window_with_little_room_is_used_after_a_quarter_of_a_round_trip() {
    let mut line = full(43, 80);
    line.wait(100);
    line.ack_each(1, 80, 80);
    let window = line.fill();
    line.wait(100);
    // The round-trip time is now known: 100 ms.
    line.ack_each(81, 83, 3);
    assert_eq!(line.verdict(), SendVerdict::At(line.now + Duration::from_millis(25)), "{window}");
    line.wait(24);
    assert!(matches!(line.verdict(), SendVerdict::At(_)));
    line.wait(1);
    assert!(line.fill() >= 3);
}

#[test]
fn after_a_train_what_is_left_of_the_window_waits_for_acknowledgements() {
    // Packets that the window has room for after a train, packets that wait, and what follows.
    for (room, waiting, rests) in [(43, 500, false), (42, 500, true), (42, 42, false)] {
        let mut line = full(43, 400);
        line.ack_each(1, 100, 100);
        let free = line.cwnd() - line.pipe();
        line.send(free - room);
        line.sender.end_train(waiting);
        let now = if rests { SendVerdict::Blocked } else { SendVerdict::Now };
        assert_eq!(line.verdict(), now, "{room} {waiting}");
        line.ack_each(101, 102, 2);
        assert!(line.fill() >= room);
    }
}

//= 4341-6.2-2 test
#[test]
fn the_ack_of_acks_follows_long_trains_and_is_on_the_data_of_short_ones() {
    for (max_train, window, follows) in
        [(43, 400, true), (43, 4000, true), (43, 30, false), (1, 400, false)]
    {
        let mut line = full(max_train, window);
        line.ack_each(1, u64::from(window), 100);
        line.leave(false, true);
        line.ack(line.next() - 1, "r");
        // On data, after data.
        let wants =
            |line: &Line| (line.sender.wants_ack_of_ack(), line.sender.wants_ack_after_data());
        let due = (line.cwnd() / 2).min(512);
        line.send(due - 2);
        assert_eq!(wants(&line), (false, false), "{window}");
        line.send(1);
        assert_eq!(wants(&line), (!follows, follows), "{window}");
        line.leave(false, true);
        assert_eq!(wants(&line), (false, false), "an Ack has left");
    }
}

#[test]
fn paced_packets_leave_as_one_train_a_millisecond_and_at_the_same_rate() {
    let (initial_window, pacing) = (InitialWindow::Packets(1000), Pacing::Always);
    let base = Ccid2Config::default();
    let mut line = Line::new(&Ccid2Config { initial_window, pacing, max_train: 43, ..base });
    line.send(1);
    line.wait(100);
    line.ack_each(1, 1, 1);
    line.fill();
    // 1,000 packets in 100 ms are ten per millisecond. The clock is not exact.
    let (mut trains, mut sent) = (Vec::new(), 0_u32);
    for n in 0..500 {
        line.now += Duration::from_micros(90 + n % 20);
        let left = line.fill();
        sent += left;
        trains.extend((left > 0).then_some(left));
    }
    assert!(trains.iter().all(|n| (9..=20).contains(n)), "{trains:?}");
    assert!(sent.abs_diff(500) <= 10, "{sent}");
}

/// Number of packets sent in 50 ms at 1,000 per millisecond, if the sender wakes up every
/// `granularity_us` microseconds.
fn paced_with_timers_of(granularity_us: u64) -> u32 {
    let (initial_window, pacing) = (InitialWindow::Packets(100_000), Pacing::Always);
    let config = Ccid2Config { initial_window, pacing, max_train: 43, ..Ccid2Config::default() };
    let mut line = Line::new(&Ccid2Config { max_window: 1_000_000, ..config });
    line.send(1);
    line.wait(100);
    line.ack_each(1, 1, 1);
    line.fill();
    let mut sent = 0;
    for _ in 0..50_000 / granularity_us {
        line.now += Duration::from_micros(granularity_us);
        sent += line.fill();
    }
    sent
}

#[test]
fn coarse_timers_do_not_slow_paced_trains() {
    let exact = paced_with_timers_of(20);
    let coarse = paced_with_timers_of(1000);
    assert!(exact.abs_diff(50_000) < 2_500, "{exact}");
    assert!(coarse.abs_diff(exact) < 2_500, "{coarse} instead of {exact}");
    // Longer delays are not made up for.
    assert!(paced_with_timers_of(10_000) < exact / 2);
}

#[test]
fn a_message_that_is_alone_in_the_network_is_not_paced() {
    let initial_window = InitialWindow::Packets(10);
    let mut line =
        Line::new(&Ccid2Config { initial_window, max_train: 43, ..Ccid2Config::default() });
    // One answer took long. The next ones do not, but the estimate has not followed yet.
    for message in 1..=20 {
        line.send(1);
        line.now += Duration::from_micros(if message == 1 { 200_000 } else { 20 });
        line.ack_each(message, message, 1);
    }
    let burst = line.fill();
    assert!(burst < line.cwnd(), "{burst} of {}", line.cwnd());
    assert!(matches!(line.verdict(), SendVerdict::At(at) if at > line.now));
}

#[test]
fn bbr_leaves_room_for_trains() {
    let window = |max_train| {
        let algorithm = Algorithm::Bbr(BbrConfig::default());
        let mut line = Line::new(&Ccid2Config { algorithm, max_train, ..Ccid2Config::default() });
        let mut acked = 0;
        // A path of 50 microseconds that delivers a million packets per second.
        for _ in 0..2000 {
            let left = line.fill();
            line.now += Duration::from_micros(50.max(u64::from(left)));
            if left > 0 {
                line.ack_each(acked + 1, acked + u64::from(left), left as usize);
                acked += u64::from(left);
            }
        }
        line.cwnd()
    };
    assert!(window(43) >= 3 * 43, "{}", window(43));
    assert!(window(1) < 3 * 43, "{}", window(1));
}

#[test]
fn packets_that_may_follow_are_those_that_single_polls_would_send() {
    let bbr = Algorithm::Bbr(BbrConfig::default());
    for (max_train, pacing, algorithm) in [
        (1, Pacing::Off, Algorithm::CCID2),
        (43, Pacing::NonValidated, Algorithm::CCID2),
        (43, Pacing::NonValidated, bbr),
        (43, Pacing::Always, Algorithm::CCID2),
    ] {
        let is_paced = pacing == Pacing::Always;
        let config = Ccid2Config { algorithm, max_train, pacing, ..Ccid2Config::default() };
        let (mut line, mut rng) = (Line::new(&config), Seed(5).stream("what may follow"));
        let (mut acked, mut followed) = (0, 0);
        for _ in 0..3000 {
            line.now += Duration::from_micros(rng.below(3000));
            let most = rng.below(30);
            let mut left = 0;
            while left < most && line.verdict() == SendVerdict::Now {
                line.leave(true, false);
                left += 1;
                if line.sender.may_follow() {
                    followed += 1;
                    let mut asked = line.sender.clone();
                    let verdict = asked.poll_send(line.now, 1400);
                    assert_eq!(verdict, SendVerdict::Now, "{max_train} {pacing:?}");
                    if left < 3 {
                        // The query has not changed the sender's state.
                        assert_eq!(format!("{asked:?}"), format!("{:?}", line.sender));
                    }
                }
            }
            let arrived = rng.below(u64::from(line.pipe()) + 1);
            if arrived > 0 {
                line.ack_each(acked + 1, acked + arrived, arrived as usize);
                acked += arrived;
            }
        }
        assert!(followed > 1000 || is_paced || max_train == 43, "{followed}");
        assert!(followed == 0 || !is_paced, "paced packets ask each");
    }
}
