//! Timeouts, round-trip times and pacing.

use udccp_base::Duration;
use udccp_wire::Seqno;

use super::line::{Line, cells, ms};
use crate::ccid::ccid2::{Ccid2Config, Pacing};
use crate::ccid::{AckInfo, CcidSender, SendVerdict};

/// A sender in avoidance with a window of `packets`, after one measured round-trip time of 100 ms.
fn measured(packets: u32) -> Line {
    let mut line = Line::in_avoidance(packets);
    line.round_trip();
    line
}

#[test]
fn a_timeout_empties_the_pipe_and_leaves_one_packet() {
    let mut line = measured(20);
    let first = line.next();
    line.fill();
    assert_eq!((line.pipe(), line.cwnd()), (21, 21));
    // SRTT 100 ms + 4 x 50 ms. 200 ms more, because the first packet was sent alone and its
    // acknowledgement might be delayed.
    assert_eq!(line.timer_in_ms(), Some(500));
    line.expire();
    assert_eq!((line.pipe(), line.cwnd(), line.ssthresh()), (0, 1, Some(10)));
    assert_eq!((line.metrics().timeouts, line.fill()), (1, 1));
    // The packets acknowledged now have already left the pipe, and do not count for growth.
    line.ack(first + 3, "rrrr");
    assert_eq!((line.pipe(), line.cwnd()), (1, 1));
}

#[test]
fn the_timer_backs_off_twofold_until_a_packet_is_measured() {
    let mut line = measured(20);
    line.fill();
    let mut waits = Vec::new();
    for _ in 0..5 {
        line.expire();
        line.fill();
        // For a single packet, the acknowledgement may be delayed by 200 ms.
        waits.push(line.timer_in_ms().unwrap() - 200);
    }
    assert_eq!(waits, [600, 1200, 2400, 4800, 9600]);
    assert_eq!((line.cwnd(), line.ssthresh()), (1, Some(2)));
    line.wait(100);
    line.ack(line.next() - 1, "r");
    assert_eq!(line.sender.rto(), Duration::from_micros(250_000));
}

#[test]
fn the_timer_is_restarted_by_news_and_stops_with_an_empty_pipe() {
    let mut line = measured(4);
    let first = line.next();
    line.send(4);
    line.wait(100);
    line.ack(first, "r");
    // SRTT 100 ms + 4 x 37.5 ms.
    assert_eq!((line.pipe(), line.timer_in_ms()), (3, Some(250)));
    line.wait(50);
    line.ack(first, "r");
    assert_eq!(line.timer_in_ms(), Some(200), "a duplicate restarts nothing");
    line.ack(first + 3, "rrrr");
    assert_eq!((line.pipe(), line.timer_in_ms()), (0, None));
}

#[test]
fn after_a_timeout_slow_start_leads_to_the_threshold() {
    let mut line = measured(20);
    line.fill();
    line.expire();
    let trace: Vec<u32> = (0..8).map(|_| line.round_trip()).collect();
    // A window of 1 gives half a packet of growth. The delayed-ack timer acknowledges it.
    assert_eq!(trace, [1, 2, 3, 4, 6, 9, 10, 11]);
}

#[test]
fn losses_of_packets_sent_before_a_timeout_cut_nothing_more() {
    let mut line = measured(20);
    let first = line.next();
    line.fill();
    line.expire();
    line.fill();
    line.ack(line.next() - 1, &format!("rrr{}", "x".repeat((line.next() - first - 3) as usize)));
    assert_eq!((line.cwnd(), line.metrics().congestion_events), (1, 0));
}

#[test]
fn elapsed_time_is_taken_off_the_round_trip_time() {
    let mut line = Line::in_avoidance(10);
    line.fill();
    line.wait(150);
    let vector = cells("r");
    let ack = AckInfo {
        ackno: Seqno::new(1),
        ack_vector: Some((&vector, false)),
        elapsed: Some(ms(50)),
        ..AckInfo::default()
    };
    line.acked(ack);
    assert_eq!(line.sender.rtt(), Some(ms(100)));
    // An Elapsed Time longer than the whole is ignored.
    let ack = AckInfo { ackno: Seqno::new(2), elapsed: Some(ms(151)), ..ack };
    line.acked(ack);
    assert_eq!(line.metrics().min_rtt, Some(ms(100)));
}

#[test]
fn one_sample_a_window_goes_into_the_averages() {
    let mut line = Line::in_avoidance(10);
    line.fill();
    line.wait(100);
    line.ack(2, "rr");
    line.wait(800);
    line.ack_each(3, 10, 2);
    assert_eq!(line.sender.rtt(), Some(ms(100)));
    line.fill();
    line.wait(180);
    line.ack(12, "rr");
    assert_eq!(line.sender.rtt(), Some(ms(110)));
}

#[test]
fn timestamps_serve_where_no_packet_can_be_measured() {
    let mut line = Line::in_avoidance(10);
    line.leave(false, true);
    let ackno = Seqno::new(1);
    line.acked(AckInfo { ackno, timestamp_echo_rtt: Some(ms(70)), ..AckInfo::default() });
    assert_eq!(line.sender.rtt(), Some(ms(70)));
    let mut line = Line::with_window(4);
    line.sender.on_handshake_rtt(line.now, ms(40));
    assert_eq!((line.sender.rtt(), line.sender.rto()), (Some(ms(40)), ms(200)));
}

#[test]
//= 4341-5-6 test
fn pacing_spreads_a_window_over_the_round_trip_time() {
    let mut line = Line::new(&Ccid2Config { pacing: Pacing::Always, ..Ccid2Config::default() });
    line.sender.on_handshake_rtt(line.now, ms(100));
    let (window, interval) = loop {
        let interval = line.sender.rtt().unwrap().as_micros() / u64::from(line.cwnd());
        let left = paced_window(&mut line);
        line.wait(100);
        line.ack_each(line.next() - left.len() as u64, line.next() - 1, 2);
        if left.len() >= 10 {
            break (left, interval);
        }
    };
    assert_eq!(window[..3], [0, 0, 0]);
    let steps: Vec<u64> = window[2..].windows(2).map(|w| w[1] - w[0]).collect();
    assert!(steps.iter().all(|s| s.abs_diff(interval) <= 1), "{steps:?}, not {interval} us");
}

/// Sends a window. Returns when each packet was sent, in microseconds after the first.
fn paced_window(line: &mut Line) -> Vec<u64> {
    line.wait(1000);
    let start = line.now;
    let mut left = Vec::new();
    loop {
        match line.verdict() {
            SendVerdict::Now => {
                left.push((line.now - start).as_micros());
                line.leave(true, false);
            }
            SendVerdict::At(at) => {
                assert!(line.sender.poll_timeout() <= Some(at));
                line.now = at;
                line.sender.handle_timeout(at);
            }
            SendVerdict::Blocked => return left,
        }
    }
}
