//! Losses: fast retransmit and what follows (RFC 6675), timeouts (RFC 6298), reordering.

mod common;

use common::{Fate, Pipe, drop_segments, ms, plain};
use udccp_base::{AppPort, Datagram, Duration, Instant, Message, Payload, Transport};
use udccp_cc::{Algorithm, CubicConfig, InitialWindow};
use udccp_tcp::wire::TcpHeader;
use udccp_tcp::{DelayedAck, LossDetection, SendStats, TcpConfig, WindowReduction};

/// A constant window of 20 segments without delayed acknowledgements, so that numbers are simple.
fn twenty() -> TcpConfig {
    TcpConfig {
        initial_window: InitialWindow::Packets(20),
        max_cwnd: Some(20),
        delayed_ack: DelayedAck::OFF,
        ..plain()
    }
}

fn after(
    config: TcpConfig,
    segments: u64,
    rule: impl FnMut(u64, &Datagram) -> Fate + 'static,
) -> (Pipe, SendStats) {
    let mut pipe = Pipe::new(config, ms(50)).with_bytes(segments * 1448).with_rate(100, 1000);
    pipe.forward.rule = Some(Box::new(rule));
    pipe.start();
    pipe.run_to_end(Duration::from_secs(300));
    assert_eq!(pipe.delivered, segments * 1448);
    let stats = pipe.sender.stats().send;
    (pipe, stats)
}

#[test]
fn one_loss_is_one_retransmission_and_one_cut() {
    for window_reduction in
        [WindowReduction::AtOnce, WindowReduction::Proportional, WindowReduction::RateHalving]
    {
        let config = TcpConfig { window_reduction, ..twenty() };
        let (pipe, stats) = after(config, 100, drop_segments(&[5]));
        assert_eq!((stats.retransmits, stats.timeouts, stats.congestion_events), (1, 0, 1));
        assert_eq!(stats.duplicates_reported, 0);
        assert_eq!(pipe.sender.probe().ssthresh_packets, Some(10.0));
    }
}

#[test]
fn any_number_of_losses_in_a_window_is_one_cut_and_no_timeout() {
    let patterns: [&'static [u64]; 5] = [
        &[5, 6],
        &[5, 7, 9, 11, 13],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        &[4, 5, 6, 12, 13, 16],
        &[0, 16],
    ];
    for window_reduction in
        [WindowReduction::AtOnce, WindowReduction::Proportional, WindowReduction::RateHalving]
    {
        for lost in patterns {
            let config = TcpConfig { window_reduction, ..twenty() };
            let (_, stats) = after(config, 200, drop_segments(lost));
            let expected = (lost.len() as u64, 0, 1);
            let got = (stats.retransmits, stats.timeouts, stats.congestion_events);
            assert_eq!(got, expected, "{window_reduction:?} {lost:?}");
        }
    }
}

#[test]
fn recovery_keeps_the_new_window_in_flight() {
    let mut pipe = Pipe::new(twenty(), ms(50)).with_rule(drop_segments(&[5]));
    pipe = pipe.with_rate(100, 1000);
    pipe.start();
    pipe.run_for(ms(210));
    assert_eq!(pipe.sender.stats().send.congestion_events, 1);
    // From the second half of recovery, ten segments circulate: one window per round trip.
    pipe.run_for(ms(90));
    let before = pipe.sender.stats().send.segments_sent;
    pipe.run_for(ms(100));
    let in_a_round_trip = pipe.sender.stats().send.segments_sent - before;
    assert!((9..=12).contains(&in_a_round_trip), "{in_a_round_trip}");
    assert!(pipe.sender.probe().pipe_packets <= Some(11));
}

#[test]
fn a_loss_at_the_end_waits_for_the_timer() {
    let (pipe, stats) = after(twenty(), 30, drop_segments(&[29]));
    assert_eq!((stats.retransmits, stats.timeouts), (1, 1));
    assert_eq!(pipe.sender.stats().send.congestion_events, 0);
}

/// Loses segment 5 and the first `copies` - 1 retransmissions of it.
fn drop_copies(copies: usize) -> impl FnMut(u64, &Datagram) -> Fate {
    drop_copies_of(&[5], copies)
}

/// The same for several segments.
fn drop_copies_of(victims: &'static [usize], copies: usize) -> impl FnMut(u64, &Datagram) -> Fate {
    let mut seen: Vec<u32> = Vec::new();
    move |_, d| {
        if d.payload.is_empty() {
            return Fate::Pass;
        }
        seen.push(TcpHeader::of(d).expect("intact").0.seq);
        let last = seen[seen.len() - 1];
        let victim = victims.iter().any(|&n| seen.get(n).is_some_and(|v| *v == last));
        let so_far = seen.iter().filter(|s| **s == last).count();
        if victim && so_far <= copies { Fate::Drop } else { Fate::Pass }
    }
}

#[test]
fn lost_retransmission_waits_for_the_timer_unless_detected() {
    // The scoreboard is kept after the timeout: data that arrived is not retransmitted.
    let config = TcpConfig { rescue: false, ..twenty() };
    let (_, stats) = after(config.clone(), 100, drop_copies(2));
    assert_eq!((stats.timeouts, stats.congestion_events, stats.retransmits), (1, 1, 2));
    let config = TcpConfig { detect_lost_retransmissions: true, ..config };
    for copies in [2, 3, 4] {
        let (_, stats) = after(config.clone(), 200, drop_copies(copies));
        let expected = (0, 1, copies as u64);
        assert_eq!((stats.timeouts, stats.congestion_events, stats.retransmits), expected);
    }
}

/// Of 100 segments the 41st is lost. The acknowledgement that starts the recovery counts in it, so
/// the second after it sends a segment: one per two packets of 120 us each.
#[test]
fn the_cut_begins_with_the_acknowledgement_that_shows_the_loss() {
    let config = TcpConfig {
        initial_window: InitialWindow::Packets(20),
        max_cwnd: Some(20),
        delayed_ack: DelayedAck::OFF,
        compresses_sacks: false,
        ..TcpConfig::new(Algorithm::NEW_RENO)
    };
    let mut pipe = Pipe::new(config, ms(50)).with_bytes(100 * 1448).with_rate(100, 1000);
    let log = pipe.record();
    pipe.forward.rule = Some(Box::new(drop_segments(&[40])));
    pipe.start();
    pipe.run_to_end(Duration::from_secs(300));
    let log = log.borrow();
    let sent: Vec<_> = log.iter().filter(|s| s.forward && s.data > 0).collect();
    let again = sent.windows(2).position(|w| w[1].header.seq < w[0].header.seq);
    let at = |n: usize| sent[again.expect("a retransmission") + n].at;
    assert_eq!((at(2) - at(1)).as_micros(), 240);
}

#[test]
fn overshoot_is_repaired_without_a_timeout() {
    // Slow start into a short queue causes hundreds of losses, including retransmissions.
    for algorithm in [Algorithm::NEW_RENO, Algorithm::Cubic(CubicConfig::rfc9438())] {
        let mut pipe = Pipe::new(TcpConfig::new(algorithm), ms(50)).with_rate(50, 416);
        pipe.start();
        pipe.run_for(Duration::from_secs(5));
        let stats = pipe.sender.stats().send;
        assert!(stats.retransmits > 400, "{stats:?}");
        assert_eq!((stats.timeouts, stats.duplicates_reported), (0, 0));
    }
}

#[test]
fn the_timer_doubles_until_an_answer_comes_and_the_threshold_is_held() {
    // Everything sent between 200 ms and 8 s is lost.
    let mut pipe = Pipe::new(plain(), ms(50));
    let log = pipe.record();
    pipe.forward.rule = Some(Box::new(|_, _| Fate::Pass));
    pipe.start();
    pipe.run_for(ms(1050));
    pipe.forward.rule = Some(Box::new(|_, _| Fate::Drop));
    pipe.run_for(Duration::from_secs(8));
    let stats = pipe.sender.stats().send;
    assert_eq!(stats.timeouts, 3, "after 1, 3 and 7 s");
    let log = log.borrow();
    let data: Vec<_> = log.iter().filter(|s| s.forward && s.data > 0).collect();
    let times: Vec<u64> = data[data.len() - 3..].iter().map(|s| s.at.as_nanos()).collect();
    assert_eq!((times[1] - times[0]) / 1_000_000, 2000);
    assert_eq!((times[2] - times[1]) / 1_000_000, 4000);
    let probe = pipe.sender.probe();
    assert_eq!(probe.cwnd_packets, Some(1.0));
    assert!(probe.ssthresh_packets.unwrap() > 100.0, "cut once and not three times: {probe:?}");
}

#[test]
fn a_timeout_sends_again_only_what_did_not_arrive() {
    // The second half of the first window is lost, except for every third segment.
    let lost: &[u64] = &[10, 11, 13, 14, 16, 17, 18, 19];
    let config = TcpConfig { limited_transmit: false, ..twenty() };
    let (pipe, stats) = after(config, 20, drop_segments(lost));
    assert_eq!(stats.retransmits, 8);
    assert_eq!(pipe.receiver.stats().recv.duplicates, 0);
}

/// A segment that is overtaken by `others` segments.
fn overtaken_by(others: u64) -> impl FnMut(u64, &Datagram) -> Fate {
    let mut n = 0;
    move |_, d| {
        n += u64::from(!d.payload.is_empty());
        // Segments follow each other every 120 us.
        let by = Duration::from_micros(120 * others + 60);
        if n == 10 && !d.payload.is_empty() { Fate::Late(by) } else { Fate::Pass }
    }
}

#[test]
fn reordering_below_three_is_no_loss() {
    for others in [1, 2] {
        let (_, stats) = after(twenty(), 100, overtaken_by(others));
        assert_eq!((stats.retransmits, stats.congestion_events), (0, 0), "{others}");
    }
}

#[test]
fn reordering_by_three_is_taken_for_loss_and_reported_as_a_duplicate() {
    let (pipe, stats) = after(twenty(), 100, overtaken_by(3));
    assert_eq!((stats.retransmits, stats.congestion_events, stats.timeouts), (1, 1, 0));
    assert_eq!(stats.duplicates_reported, 1, "RFC 2883");
    assert_eq!(pipe.receiver.stats().recv.duplicates, 1);
}

/// RFC 6675 section 5, step 1: three duplicates are enough if the segments are too small for
/// `IsLost`. The first hole is then sent before new data, which waits for the window here.
#[test]
fn three_duplicates_of_small_segments_send_the_hole_again() {
    let config =
        TcpConfig { initial_window: InitialWindow::Packets(4), max_cwnd: Some(4), ..twenty() };
    let mut pipe = Pipe::new(TcpConfig { limited_transmit: false, ..config }, ms(50));
    pipe.to_send = 0;
    pipe.forward.rule = Some(Box::new(drop_segments(&[0])));
    pipe.start();
    pipe.run_for(ms(300));
    let log = pipe.record();
    for _ in 0..4 {
        pipe.sender.send(pipe.now, Message::new(Payload::Zeros(100)));
        pipe.drain();
    }
    for _ in 0..4 {
        pipe.sender.send(pipe.now, Message::new(Payload::Zeros(1448)));
    }
    pipe.run_for(ms(110));
    let log = log.borrow();
    let sent: Vec<_> = log.iter().filter(|s| s.forward).map(|s| s.header.seq).collect();
    assert_eq!(sent.iter().filter(|seq| **seq == sent[0]).count(), 2, "{sent:?}");
    assert_eq!(pipe.sender.stats().send.timeouts, 0);
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_duplicates() {
    let sent_before_recovery = |limited_transmit| {
        let config = TcpConfig { limited_transmit, ..twenty() };
        let mut pipe = Pipe::new(config, ms(50)).with_rate(100, 1000);
        pipe.forward.rule = Some(Box::new(drop_segments(&[5])));
        pipe.start();
        while pipe.sender.stats().send.congestion_events == 0 {
            pipe.run_for(Duration::from_micros(20));
        }
        pipe.sender.stats().send.segments_sent
    };
    let (with, without) = (sent_before_recovery(true), sent_before_recovery(false));
    assert_eq!(with - without, 2, "{with} {without}");
}

#[test]
fn a_window_of_four_survives_a_loss_with_limited_transmit() {
    let config =
        TcpConfig { initial_window: InitialWindow::Packets(4), max_cwnd: Some(4), ..twenty() };
    let (_, stats) = after(config, 50, drop_segments(&[9]));
    assert_eq!((stats.retransmits, stats.timeouts), (1, 0));
}

#[test]
fn a_recovery_that_runs_out_of_data_rescues_its_tail() {
    // Segment 5 and the last one are lost; nothing follows the last.
    let lost: &[u64] = &[5, 19];
    let with = after(twenty(), 20, drop_segments(lost)).1;
    assert_eq!((with.retransmits, with.timeouts), (2, 0));
    let config = TcpConfig { rescue: false, ..twenty() };
    let without = after(config, 20, drop_segments(lost)).1;
    assert_eq!((without.retransmits, without.timeouts), (2, 1));
}

#[test]
fn losses_of_acknowledgements_cost_nothing_but_time() {
    let mut pipe = Pipe::new(TcpConfig::new(Algorithm::NEW_RENO), ms(20))
        .with_bytes(3_000_000)
        .with_back_rule(|n, _| if n % 3 == 1 { Fate::Drop } else { Fate::Pass });
    pipe.start();
    pipe.run_to_end(Duration::from_secs(100));
    let stats = pipe.sender.stats().send;
    assert_eq!((stats.retransmits, stats.congestion_events), (0, 0));
}

/// The same window with detection of losses by time.
fn by_time() -> TcpConfig {
    let loss_detection = LossDetection::RackTlp;
    TcpConfig { loss_detection, min_rto: ms(200), time_wait: ms(1), ..twenty() }
}

#[test]
fn a_silent_tail_is_probed_after_two_round_trips() {
    // The last segment is lost, and no later one can show that.
    let (pipe, stats) = after(by_time(), 30, drop_segments(&[29]));
    assert_eq!((stats.retransmits, stats.timeouts), (1, 0));
    assert!(pipe.now < Instant::ZERO + Duration::from_millis(700), "{}", pipe.now);
    // The last three: the probe reveals the other two, which are then retransmitted.
    let (_, stats) = after(by_time(), 30, drop_segments(&[27, 28, 29]));
    assert_eq!((stats.retransmits, stats.timeouts, stats.congestion_events), (3, 0, 1));
}

#[test]
fn a_tail_without_loss_is_not_cut_by_its_probe() {
    // Only the acknowledgement of the tail is late.
    let mut pipe = Pipe::new(by_time(), ms(50)).with_bytes(10 * 1448).with_rate(100, 1000);
    pipe.back.rule = Some(Box::new(|n, _| if n >= 9 { Fate::Late(ms(260)) } else { Fate::Pass }));
    pipe.start();
    pipe.run_to_end(Duration::from_secs(100));
    let stats = pipe.sender.stats().send;
    assert_eq!((stats.retransmits, stats.timeouts, stats.congestion_events), (1, 0, 0));
}

#[test]
fn one_later_segment_shows_a_loss_where_three_never_come() {
    // Segment 8 of ten is lost. Only one segment follows, and the window has no room for more.
    let few = |loss_detection| TcpConfig { loss_detection, min_rto: ms(1000), ..twenty() };
    let run = |config| after(config, 10, drop_segments(&[8])).1;
    let stats = run(few(LossDetection::RackTlp));
    assert_eq!((stats.retransmits, stats.timeouts, stats.congestion_events), (1, 0, 1));
    let stats = run(few(LossDetection::Sack));
    assert_eq!((stats.retransmits, stats.timeouts), (1, 1));
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_later() {
    for copies in [2, 3, 4] {
        let (_, stats) = after(by_time(), 200, drop_copies(copies));
        let got = (stats.timeouts, stats.congestion_events, stats.retransmits);
        assert_eq!(got, (0, 1, copies as u64));
    }
}

#[test]
fn observed_reordering_delays_loss_detection() {
    // Every fortieth segment is 1 ms late: overtaken by eight, and by less than a quarter of a
    // round trip.
    let late = |_: u64, d: &Datagram| -> Fate {
        let header = TcpHeader::of(d).expect("intact").0;
        let nth = u64::from(header.seq.wrapping_sub(1)) / 1448;
        if !d.payload.is_empty() && nth % 40 == 15 { Fate::Late(ms(1)) } else { Fate::Pass }
    };
    let config = TcpConfig { initial_sequence: Some(0), ..by_time() };
    let (_, stats) = after(config.clone(), 2000, late);
    assert!(stats.retransmits <= 1, "{stats:?}");
    let config = TcpConfig { loss_detection: LossDetection::Sack, ..config };
    let (_, stats) = after(config, 2000, late);
    assert!(stats.retransmits >= 10, "{stats:?}");
}

#[test]
fn a_cut_leaves_two_segments() {
    for loss_detection in [LossDetection::Sack, LossDetection::RackTlp] {
        let config = TcpConfig { loss_detection, ..twenty() };
        // Two losses in eleven segments for a long time.
        let mut pipe = Pipe::new(config, ms(20)).with_rate(100, 1000);
        pipe.forward.rule =
            Some(Box::new(|n, _| if n * n % 11 == 3 { Fate::Drop } else { Fate::Pass }));
        pipe.start();
        let mut before = pipe.sender.stats().send;
        let mut cuts = 0;
        for _ in 0..20_000 {
            pipe.run_for(ms(1));
            let stats = pipe.sender.stats().send;
            if stats.congestion_events > before.congestion_events
                && stats.timeouts == before.timeouts
            {
                cuts += 1;
                assert!(pipe.sender.probe().cwnd_packets >= Some(2.0), "{stats:?}");
            }
            before = stats;
        }
        assert!(cuts > 3, "{cuts}");
    }
}

#[test]
fn the_acknowledgement_that_ends_a_recovery_may_count_for_growth() {
    let sent = |grows_at_recovery_end| {
        let config = TcpConfig { grows_at_recovery_end, max_cwnd: None, ..by_time() };
        let mut pipe = Pipe::new(config, ms(20)).with_rate(100, 1000);
        pipe.forward.rule =
            Some(Box::new(|n, _| if n % 25 == 24 { Fate::Drop } else { Fate::Pass }));
        pipe.start();
        pipe.run_for(Duration::from_secs(20));
        pipe.sender.stats().send.segments_sent
    };
    let (with, without) = (sent(true), sent(false));
    assert!(with * 100 > without * 103, "{with} {without}");
}

/// Segment 5 and its retransmission are lost, and a timeout in the recovery repairs them. The
/// recovery had halved the threshold to 10.
#[test]
fn a_timeout_in_a_recovery_may_keep_the_threshold() {
    let threshold = |timeout_keeps_threshold| {
        let config = TcpConfig { rescue: false, timeout_keeps_threshold, ..twenty() };
        let (pipe, stats) = after(config, 40, drop_copies(2));
        assert_eq!((stats.timeouts, stats.congestion_events), (1, 1));
        pipe.sender.probe().ssthresh_packets
    };
    assert_eq!((threshold(true), threshold(false)), (Some(10.0), Some(5.0)));
}

/// All 20 segments of a window are lost. With F-RTO, the two segments sent after the answer to the
/// retransmission are new data.
#[test]
fn after_a_timeout_new_data_may_go_first() {
    let next_two = |frto| {
        let lost = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
        let mut pipe = Pipe::new(TcpConfig { frto, ..twenty() }, ms(50));
        pipe.forward.rule = Some(Box::new(drop_segments(lost)));
        let log = pipe.record();
        pipe.start();
        pipe.run_for(Duration::from_secs(3));
        assert_eq!(pipe.sender.stats().send.timeouts, 1);
        let log = log.borrow();
        let sent: Vec<u32> =
            log.iter().filter(|s| s.forward && s.data > 0).map(|s| s.header.seq).collect();
        let number = |n: usize| sent[n].wrapping_sub(sent[0]) / 1448;
        [number(20), number(21), number(22)]
    };
    assert_eq!((next_two(true), next_two(false)), ([0, 20, 21], [0, 1, 2]));
}

/// Segments 5 and 6 are lost twice, so a timer ends their recovery. Such a timeout is not tested:
/// after the answer to segment 5, segment 6 is sent again.
#[test]
fn a_timeout_in_a_recovery_is_not_tested_with_new_data() {
    let config = TcpConfig { rescue: false, frto: true, ..twenty() };
    let mut pipe = Pipe::new(config, ms(50));
    pipe.forward.rule = Some(Box::new(drop_copies_of(&[5, 6], 2)));
    let log = pipe.record();
    pipe.start();
    pipe.run_for(Duration::from_secs(3));
    let stats = pipe.sender.stats().send;
    assert_eq!((stats.timeouts, stats.congestion_events), (1, 1));
    let log = log.borrow();
    let sent: Vec<u32> =
        log.iter().filter(|s| s.forward && s.data > 0).map(|s| s.header.seq).collect();
    let [fifth, sixth] = [5, 6].map(|n| sent[n]);
    let last = sent.iter().rposition(|seq| *seq == fifth).expect("segment 5");
    assert_eq!((sent.iter().filter(|seq| **seq == fifth).count(), sent[last + 1]), (3, sixth));
}
