//! The sender half: pacing, feedback, timers, and other contents of acknowledgements.

use udccp_base::{DataRate, Duration, Ecn, Instant};
use udccp_wire::{LossInterval, Seqno};

use super::{at, ms};
use crate::ccid::ccid3::{Ccid3Config, Ccid3Sender, SegmentSizeRule};
use crate::ccid::{AckInfo, AckOutcome, CcidSender, QuickStartStep, SendVerdict, SentInfo};

pub(super) const SIZE: u32 = 1000;
pub(super) const RTT: Duration = Duration::from_millis(100);

/// A sender whose packets are numbered 1, 2, 3...
pub(super) struct Line {
    pub(super) sender: Ccid3Sender,
    pub(super) now: Instant,
    next: u64,
    /// When each packet was sent.
    left: Vec<Instant>,
}

/// Contents of an acknowledgement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Report {
    pub(super) rate: Option<u32>,
    /// Lossless, loss and data length of each interval, newest first.
    pub(super) intervals: Vec<[u32; 3]>,
    /// Elapsed Time. If it is `None`, the true time is reported.
    pub(super) elapsed: Option<Duration>,
    /// The round-trip time that Timestamp Echo measures.
    pub(super) echo: Option<Duration>,
    pub(super) inverse: Option<u32>,
    pub(super) dropped: Vec<u8>,
    pub(super) slow: bool,
}

impl Line {
    fn new(config: &Ccid3Config) -> Self {
        Self::of(Ccid3Sender::new(config, 1400))
    }

    pub(super) fn of(sender: Ccid3Sender) -> Self {
        Self { sender, now: at(1000), next: 1, left: Vec::new() }
    }

    /// Creates a line with a round-trip time of 100 ms from the handshake.
    fn open() -> Self {
        let mut line = Self::new(&Ccid3Config::default());
        line.sender.on_handshake_rtt(line.now, RTT);
        line
    }

    pub(super) fn leave(&mut self, is_data: bool) {
        let info = SentInfo {
            seq: Seqno::new(self.next),
            size_bytes: if is_data { SIZE } else { 0 },
            is_data,
            has_ack: !is_data,
            app_limited: false,
            ecn: Ecn::Ect0,
        };
        if is_data {
            let _ = self.sender.ccval(self.now);
        }
        self.sender.on_sent(self.now, info);
        self.left.push(self.now);
        self.next += 1;
    }

    /// Sends as much as is allowed until `until`. Returns the send times in milliseconds.
    pub(super) fn send_until(&mut self, until: Instant) -> Vec<u64> {
        let mut times = Vec::new();
        loop {
            match self.sender.poll_send(self.now, SIZE) {
                SendVerdict::Now => {
                    self.leave(true);
                    times.push(self.now.as_nanos() / 1_000_000);
                }
                SendVerdict::At(when) if when <= until => self.now = when,
                _ => break,
            }
            assert!(times.len() < 100_000);
        }
        self.now = until;
        times
    }

    /// Number of packets sent.
    pub(super) fn sent(&self) -> u64 {
        self.left.len() as u64
    }

    /// The newest packet that can have been acknowledged by now.
    pub(super) fn arrived(&self) -> u64 {
        self.left.iter().filter(|left| **left + RTT <= self.now).count() as u64
    }

    pub(super) fn acked(&mut self, ackno: u64, report: &Report) -> AckOutcome {
        let mut bytes = Vec::new();
        if let Some(rate) = report.rate {
            bytes.extend_from_slice(&[194, 6]);
            bytes.extend_from_slice(&rate.to_be_bytes());
        }
        if !report.intervals.is_empty() {
            bytes.extend_from_slice(&[193, 3 + 9 * report.intervals.len() as u8, 0]);
            for &[lossless_length, loss_length, data_length] in &report.intervals {
                let nonce_echo = false;
                let i = LossInterval { lossless_length, nonce_echo, loss_length, data_length };
                bytes.extend_from_slice(&i.to_bytes());
            }
        }
        if let Some(inverse) = report.inverse {
            bytes.extend_from_slice(&[192, 6]);
            bytes.extend_from_slice(&inverse.to_be_bytes());
        }
        let ack = AckInfo {
            ackno: Seqno::new(ackno),
            ccid_options: &bytes,
            data_dropped: &report.dropped,
            slow_receiver: report.slow,
            // The receiver delayed the acknowledgement by the time beyond the round-trip time.
            elapsed: report
                .elapsed
                .or_else(|| self.left.get(ackno as usize - 1).map(|left| self.now - *left - RTT)),
            timestamp_echo_rtt: report.echo,
            ..AckInfo::default()
        };
        self.sender.on_ack(self.now, &ack)
    }

    /// Feedback without loss.
    fn fine(&mut self, ackno: u64, rate: u32) -> AckOutcome {
        let intervals = vec![[ackno as u32, 0, 0]];
        self.acked(ackno, &Report { rate: Some(rate), intervals, ..Report::default() })
    }

    pub(super) fn x(&self) -> f64 {
        self.sender.metrics().x_bytes_per_sec.unwrap()
    }

    /// Creates a line in steady state: no loss, 50 kB/s arrive, and twice that is allowed.
    fn steady() -> Self {
        let mut line = Self::open();
        for i in 1..12 {
            line.send_until(at(1000 + 100 * i));
            line.fine(line.arrived(), 50_000);
        }
        assert_eq!(line.x(), 100_000.0);
        line
    }
}

//= 5348-4.6-1 test
#[test]
fn the_first_round_trip_time_carries_four_paced_packets() {
    let mut line = Line::open();
    assert_eq!(line.send_until(at(1099)), [1000, 1024, 1049, 1074]);
}

#[test]
fn without_a_round_trip_time_a_packet_leaves_each_second_and_then_less() {
    let mut line = Line::new(&Ccid3Config::default());
    assert_eq!(line.send_until(at(2900)), [1000, 2000]);
    assert_eq!(line.sender.poll_timeout(), Some(at(3000)));
    line.now = at(3000);
    line.sender.handle_timeout(line.now);
    assert_eq!(line.send_until(at(7000)), [4000, 6000]);
}

#[test]
fn incomplete_feedback_is_ignored() {
    let mut line = Line::open();
    line.send_until(at(1200));
    let x = line.x();
    let intervals = vec![[4, 0, 0]];
    for report in [
        Report::default(),
        Report { rate: Some(9), ..Report::default() },
        Report { intervals: intervals.clone(), ..Report::default() },
    ] {
        assert_eq!(line.acked(4, &report), AckOutcome::default());
        assert_eq!(line.x(), x);
    }
    let out = line.fine(4, 0);
    assert_eq!((out.newly_acked, out.newly_lost), (4, 0));
    assert_eq!(line.x(), 2.0 * x);
}

//= 5348-4.3-1 test
#[test]
fn what_arrives_limits_the_rate_from_two_round_trips_after_the_first_data_on() {
    let mut line = Line::open();
    for (until, rate) in [(1100, 0), (1200, 40_000), (1310, 60_000)] {
        line.send_until(at(until));
        line.fine(line.arrived(), rate);
    }
    assert_eq!(line.x(), 120_000.0);
}

//= 4342-6.1.1-2 test
#[test]
fn a_loss_event_rate_alone_suffices_unless_disabled() {
    let report = Report { rate: Some(1_000_000), inverse: Some(100), ..Report::default() };
    for (accept, rate) in [(true, 0.01), (false, 0.0)] {
        let config = Ccid3Config { accept_loss_event_rate: accept, ..Ccid3Config::default() };
        let mut line = Line::new(&config);
        line.sender.on_handshake_rtt(line.now, RTT);
        line.send_until(at(1200));
        line.acked(4, &report);
        assert_eq!(line.sender.metrics().loss_event_rate, Some(rate));
    }
}

#[test]
fn losses_end_slow_start() {
    let mut line = Line::steady();
    line.send_until(at(2200));
    let newest = line.arrived();
    let lost = vec![[9, 1, 10], [newest as u32 - 10, 0, 50]];
    let report = Report { rate: Some(90_000), intervals: lost, ..Report::default() };
    let out = line.acked(newest, &report);
    assert_eq!((out.newly_acked, out.newly_lost), (9, 1));
    let m = line.sender.metrics();
    assert_eq!((m.loss_event_rate, m.congestion_events), (Some(0.02), 1));
    // f(0.02) = 0.13652: 7.325 packets per round-trip time.
    assert!((line.x() - 73_249.0).abs() < 10.0, "{}", line.x());
}

#[test]
fn old_feedback_and_feedback_for_packets_never_sent_are_ignored() {
    let mut line = Line::steady();
    let x = line.x();
    let next = line.next;
    line.now = at(2400);
    line.fine(next, 1);
    line.fine(3, 1);
    assert_eq!(line.x(), x);
}

//= 4342-5.2-1 test
//= 4342-6-2 test
//= 4342-5.2-2 test
//= 4340-11.7.2-6 test
//= 4340-11.7.1-3 test
#[test]
fn drops_and_slow_receiver_reduce_the_rate_for_a_round_trip_time() {
    let report = |dropped: &[u8], slow| Report {
        rate: Some(80_000),
        intervals: vec![[1, 0, 0]],
        dropped: dropped.to_vec(),
        slow,
        ..Report::default()
    };
    let x_after = |report: &Report| {
        let mut line = Line::steady();
        for i in 0..4 {
            line.send_until(at(2300 + 100 * i));
            line.acked(line.arrived(), &Report { dropped: vec![], ..report.clone() });
        }
        line.send_until(at(2700));
        line.acked(line.arrived(), report);
        line.x()
    };
    assert_eq!(x_after(&report(&[], false)), 160_000.0);
    assert_eq!(x_after(&report(&[], true)), 80_000.0, "Slow Receiver: no more than arrives");
    // A drop block: state 1, Drop Code 2, run of three.
    let mut line = Line::steady();
    line.now = at(2900);
    line.leave(true);
    let out = line.acked(line.arrived(), &report(&[0xa2], false));
    assert_eq!(out.data_dropped, 3);
    assert_eq!(line.x(), 50_000.0, "80 kB/s less three packets a round-trip time");
    // The same report again changes nothing more.
    let out = line.acked(line.arrived(), &report(&[0xa2], false));
    assert_eq!(out.data_dropped, 0);
}

//= 4340-11.7.2-6 test
//= 4340-11.6-1 test
#[test]
fn drops_reported_without_feedback_count_with_the_next_feedback() {
    let x_after = |early: &Report| {
        let mut line = Line::steady();
        line.now = at(2900);
        line.leave(true);
        let report = Report { rate: Some(80_000), intervals: vec![[1, 0, 0]], ..Report::default() };
        line.acked(line.arrived() - 1, early);
        line.acked(line.arrived(), &report);
        let x = line.x();
        line.now = at(3000);
        line.leave(true);
        line.acked(line.arrived(), &report);
        assert!(line.x() > x || *early == Report::default(), "it counts once");
        x
    };
    assert_eq!(x_after(&Report::default()), 160_000.0);
    assert_eq!(x_after(&Report { slow: true, ..Report::default() }), 80_000.0);
    assert_eq!(x_after(&Report { dropped: vec![0xa2], ..Report::default() }), 50_000.0);
}

//= 4340-11.7.2-7 test
#[test]
fn corrupt_data_is_a_loss_event() {
    for (block, is_loss) in [(0xb0, true), (0xc0, true), (0xf0, true), (0xa0, false)] {
        let mut line = Line::steady();
        line.send_until(at(2300));
        let (dropped, intervals) = (vec![0, block], vec![[10, 0, 0]]);
        line.acked(
            line.arrived(),
            &Report { rate: Some(50_000), intervals, dropped, ..Report::default() },
        );
        let p = line.sender.metrics().loss_event_rate.unwrap();
        assert_eq!(p > 0.0, is_loss, "block {block:x}: {p}");
    }
}

//= 4342-8.1-3 test
#[test]
fn an_acknowledgement_moves_the_window_counter_a_round_trip_on() {
    let mut line = Line::open();
    let first = line.sender.ccval(line.now);
    line.leave(true);
    line.now += ms(30);
    line.fine(1, 0);
    let next = line.sender.ccval(line.now);
    assert_eq!((next + 16 - first) % 16, 4, "one quarter by the clock");
}

//= 4340-11.7.2-1 test
//= 4340-11.7.2-5 test
#[test]
fn other_drop_codes_are_passed_on() {
    let drop = |block: u8| {
        let mut line = Line::steady();
        line.send_until(at(2300));
        let dropped = vec![block];
        let report =
            Report { rate: Some(50_000), intervals: vec![[1, 0, 0]], dropped, ..Report::default() };
        let out = line.acked(line.arrived(), &report);
        (out.constrained, out.not_listening)
    };
    assert_eq!(drop(0x80), (true, false));
    assert_eq!(drop(0x90), (false, true));
    assert_eq!(drop(0xb0), (false, false));
}

//= 4342-6.3-1 test
//= 4342-6.3-2 test
#[test]
fn data_dropped_and_ack_vectors_are_acknowledged_once_a_round_trip_time() {
    let mut line = Line::steady();
    assert!(!line.sender.wants_ack_of_ack());
    let report = Report { dropped: vec![0xa0], ..Report::default() };
    line.acked(line.arrived(), &report);
    assert!(line.sender.wants_ack_of_ack());
    line.leave(false);
    assert!(!line.sender.wants_ack_of_ack());
    line.acked(line.arrived(), &report);
    assert!(!line.sender.wants_ack_of_ack(), "a moment ago");
    line.now += RTT;
    line.acked(line.arrived(), &report);
    assert!(line.sender.wants_ack_of_ack());
    line.leave(false);
    line.now += RTT;
    let ack_vector = Some((&[0][..], false));
    let ackno = Seqno::new(line.arrived());
    let ack = AckInfo { ackno, ack_vector, ..AckInfo::default() };
    line.sender.on_ack(line.now, &ack);
    assert!(line.sender.wants_ack_of_ack(), "an Ack Vector alone");
}

#[test]
fn feedback_that_stays_away_for_minutes_leaves_a_packet_in_64_seconds() {
    let mut line = Line::steady();
    let end = Instant::ZERO + Duration::from_secs(900);
    while line.now < end {
        let timer = line.sender.poll_timeout().expect("a timer runs");
        line.send_until(timer);
        line.sender.handle_timeout(line.now);
    }
    assert!(line.sender.metrics().timeouts > 8);
    assert!((line.x() - f64::from(SIZE) / 64.0).abs() < 0.1, "{}", line.x());
    // Feedback is back: data is sent at once, and slow start continues.
    line.fine(line.arrived(), 20);
    assert!(line.x() >= 40_000.0, "{}", line.x());
    assert!(!line.send_until(line.now + ms(25)).is_empty());
}

//= 4340-7.5.2-3 test
#[test]
fn acknowledgements_of_ours_are_not_in_flight_and_those_of_the_peer_need_no_receive_rate() {
    let mut line = Line::steady();
    line.sender.limit_in_flight(15);
    // The peer sends data, and we only send acknowledgements.
    for _ in 0..1000 {
        line.now += ms(10);
        line.leave(false);
    }
    assert_eq!(line.sender.poll_send(line.now, SIZE), SendVerdict::Now);
    // Data has left the network if any packet acknowledges it.
    let mut line = Line::steady();
    line.sender.limit_in_flight(15);
    for _ in 0..30 {
        let before = line.next;
        line.send_until(line.now + ms(50));
        assert!(line.next > before, "sent nothing");
        line.acked(line.arrived(), &Report::default());
    }
}

#[test]
fn an_idle_sender_has_no_timers() {
    let mut line = Line::steady();
    for _ in 0..10 {
        let Some(timer) = line.sender.poll_timeout() else { break };
        line.now = timer;
        line.sender.handle_timeout(timer);
    }
    assert_eq!(line.sender.poll_timeout(), None);
    assert!(line.x() >= 40_000.0, "not below the initial rate");
    line.leave(true);
    assert!(line.sender.poll_timeout().is_some());
}

#[test]
fn no_more_packets_are_in_flight_than_the_sequence_window_has_room_for() {
    let mut line = Line::steady();
    line.sender.limit_in_flight(15);
    let sent = line.send_until(line.now + ms(300)).len();
    assert!((4..=6).contains(&sent), "ten were in flight, {sent} followed");
    assert_eq!(line.sender.poll_send(line.now, SIZE), SendVerdict::Blocked);
    // The nofeedback timer gives up the lost packets.
    line.now = line.sender.poll_timeout().unwrap();
    line.sender.handle_timeout(line.now);
    assert_eq!(line.sender.poll_send(line.now, SIZE), SendVerdict::Now);
}

#[test]
fn where_the_nofeedback_timer_waits_longer_no_more_is_in_flight_than_leaves_in_four_round_trips() {
    let most_in_flight = |min_nofeedback_timeout| {
        let mut line = Line::new(&Ccid3Config { min_nofeedback_timeout, ..Ccid3Config::default() });
        line.sender.on_handshake_rtt(line.now, RTT);
        // More than a second at 500 packets per second. X grows to twice that.
        while line.now < at(2500) {
            line.send_until(line.now + RTT);
            line.fine(line.arrived(), 500 * SIZE);
        }
        let (acked, x) = (line.arrived(), line.x());
        line.send_until(line.now + ms(390));
        let sent = line.sent() - acked;
        // Silence does not stop the sender forever.
        line.now = line.sender.poll_timeout().expect("a timer runs");
        line.sender.handle_timeout(line.now);
        let until = line.now + ms(100);
        assert!(!line.send_until(until).is_empty());
        (sent, x / f64::from(SIZE) * 0.4)
    };
    // Five round-trip times: four of silence, and the one before.
    let (sent, in_four) = most_in_flight(RTT);
    assert!(sent as f64 > 1.2 * in_four, "{sent} beside {in_four}");
    let (sent, in_four) = most_in_flight(Duration::from_secs(1));
    assert!((sent as f64 - in_four).abs() <= 2.0, "{sent} beside {in_four}");
    assert!(sent > 300);
}

//= 4342-5.3-1 test
//= 4342-5.3-2 test
#[test]
fn segments_count_by_their_mean_or_as_full_ones() {
    for (rule, x) in [(SegmentSizeRule::Mean, 40_000.0), (SegmentSizeRule::Maximum, 43_800.0)] {
        let config = Ccid3Config { segment_size: rule, ..Ccid3Config::default() };
        let mut line = Line::new(&config);
        line.sender.on_handshake_rtt(line.now, RTT);
        line.send_until(at(1050));
        assert_eq!(line.x(), x);
    }
}

#[test]
fn the_sequence_window_holds_five_round_trip_times() {
    let line = Line::steady();
    assert_eq!(line.sender.seq_window_needed(), 100);
    let mut line = Line::open();
    for i in 1..12 {
        line.send_until(at(1000 + 100 * i));
        line.fine(line.arrived(), 500_000);
    }
    assert_eq!(line.sender.seq_window_needed(), 500);
}

const FAST: QuickStartStep = QuickStartStep::Approved(DataRate::from_bytes_per_sec(103_200));

//= 5634-2.3.1-1 test
//= 5634-3.2.3-2 test
//= 5634-3.2.3-3 test
#[test]
fn quick_start_sends_at_the_approved_rate_without_headers() {
    let mut line = Line::open();
    assert!(line.sender.quick_start(line.now, FAST));
    // 103.2 kB/s with 32 bytes of headers per 1000 bytes are 100 kB/s: a packet every 10 ms.
    let sent = line.send_until(at(1099)).len();
    assert!((10..=11).contains(&sent), "{sent}");
    let slow = QuickStartStep::Approved(DataRate::from_bytes_per_sec(20_000));
    assert!(!line.sender.quick_start(line.now, slow), "not more than there is");
}

//= 5634-3.2.4-3 test
#[test]
fn the_usual_rules_apply_after_validation() {
    let mut line = Line::open();
    line.sender.quick_start(line.now, FAST);
    line.send_until(at(1150));
    line.fine(line.arrived(), 100_000);
    line.sender.quick_start(line.now, QuickStartStep::Validated);
    let x = line.x();
    assert!((99_000.0..=205_000.0).contains(&x), "at most twice what arrives: {x}");
    for i in 2..8 {
        line.send_until(at(1050 + 100 * i));
        line.fine(line.arrived(), 30_000);
    }
    assert!(line.x() <= 60_000.0, "{}", line.x());
}

//= 5634-3.2.3-4 test
//= 5634-3.2.4-4 test
#[test]
fn silence_restores_the_rate_before_quick_start() {
    let mut line = Line::open();
    line.send_until(at(1001));
    let before = line.x();
    line.sender.quick_start(line.now, FAST);
    line.send_until(at(1290));
    line.sender.quick_start(line.now, QuickStartStep::Silent);
    assert_eq!(line.x(), before.min(50_000.0));
    // The nofeedback timer starts again: nothing is reduced for four round-trip times.
    line.now += RTT * 3;
    line.sender.handle_timeout(line.now);
    assert_eq!(line.x(), before.min(50_000.0));
}

//= 5634-3.2.4-1 test
//= 5634-3.2.5-1 test
#[test]
fn a_loss_ends_quick_start_with_the_rate_of_the_equation() {
    let mut line = Line::open();
    line.sender.quick_start(line.now, FAST);
    line.send_until(at(1150));
    let ackno = line.arrived();
    let intervals = vec![[0, 1, 1], [ackno as u32 - 1, 0, ackno as u32 - 1]];
    line.acked(ackno, &Report { rate: Some(40_000), intervals, ..Report::default() });
    line.sender.quick_start(line.now, QuickStartStep::Congested);
    assert!(line.x() <= 80_000.0, "X_calc, and no more than twice what arrives: {}", line.x());
    assert!(line.sender.metrics().loss_event_rate.unwrap() > 0.0);
}
