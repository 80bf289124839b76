//! Tests of a session's state: reports, sources, and rules of RFC 3550.

use super::*;
use crate::reports::Packet;

fn state(ssrc: u32) -> State {
    let setup = Setup {
        ssrc,
        spare_ssrc: ssrc + 1000,
        sequence: 65_535,
        timestamp_offset: 1000,
        name: format!("{ssrc}@test"),
        payload_type: 0,
        clock_rate: 8000,
        bandwidth: 64_000,
        minimum: Duration::from_secs(5),
    };
    State::new(setup, Instant::now())
}

fn sent(state: &mut State, now: Instant, timestamp: u32, payload: &[u8]) -> Bytes {
    let packet = state.packet(timestamp, false, payload);
    state.packet_sent(now, timestamp, payload.len());
    packet
}

fn packet_of(event: Option<Event>) -> Packet {
    match event {
        Some(Event::Packet(packet)) => packet,
        other => panic!("{other:?}"),
    }
}

fn exchange(a: &mut State, b: &mut State, at: Instant, ntp: u64) -> Vec<Event> {
    let report = a.report(at, ntp, None, 1200).unwrap();
    a.report_left(at, report.len(), at);
    b.receive_rtcp(at, ntp, &report)
}

#[test]
fn reports_tell_loss_and_round_trip_time() {
    let (mut a, mut b) = (state(1), state(2));
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    for n in 0..10 {
        let packet = sent(&mut a, at(n * 20), n as u32 * 160, &[0; 160]);
        if n != 4 && n != 5 {
            let packet = packet_of(b.receive_packet(at(n * 20 + 30), &packet));
            assert_eq!(packet.sequence, 65_535 + n as u32);
            assert_eq!(packet.timestamp, 1000 + n as u32 * 160);
        }
    }
    // A reports; B answers 500 ms later; both paths together take 40 ms.
    let ntp = |ms: u64| (ms << 32) / 1000;
    let sr = a.report(at(200), ntp(200), None, 1200).unwrap();
    let events = b.receive_rtcp(at(220), ntp(9_000), &sr);
    let Event::Report(report) = &events[0] else { panic!("{events:?}") };
    let info = report.sender.unwrap();
    assert_eq!((info.packets, info.octets), (10, 1600));
    // The last packet had 9 * 160 at 180 ms; 20 ms later, the timestamp is 160 higher.
    assert_eq!(info.rtp_timestamp, 1000 + 1600);
    let rr = b.report(at(720), ntp(9_500), None, 1200).unwrap();
    let events = a.receive_rtcp(at(740), ntp(740), &rr);
    let Event::Report(report) = &events[0] else { panic!("{events:?}") };
    let block = report.blocks[0];
    assert_eq!((block.ssrc, block.lost), (1, 2));
    assert!((block.fraction_lost - 0.2).abs() < 0.004);
    let rtt = block.rtt.unwrap().as_millis();
    assert!((39..=40).contains(&rtt), "{rtt} ms");
    assert_eq!(a.stats().sources[0].hears_us, Some(block));
    assert_eq!(b.stats().sources[0].name.as_deref(), Some("1@test"));
}

//= 5762-4.4-1 test
//= 5762-4.4-2 test
#[test]
fn several_sources_on_one_connection_are_kept_apart() {
    let (mut a, mut b, mut us) = (state(1), state(2), state(3));
    let now = Instant::now();
    for n in 0..4 {
        let _ = us.receive_packet(now, &sent(&mut a, now, n, b"a"));
        let _ = us.receive_packet(now, &sent(&mut b, now, n, b"b"));
    }
    let _ = us.receive_packet(now, &sent(&mut a, now, 4, b"a"));
    let received: Vec<_> =
        us.stats().sources.iter().map(|s| (s.ssrc, s.packets_received, s.lost)).collect();
    assert_eq!(received, [(1, 5, 0), (2, 4, 0)]);
    let report = us.report(now, 0, None, 1200).unwrap();
    let Event::Report(report) = &a.receive_rtcp(now, 0, &report)[0] else { panic!() };
    assert_eq!(report.blocks.iter().map(|b| b.ssrc).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((us.interval().members, us.interval().senders), (3, 2));
}

#[test]
fn silent_sources_time_out_and_leaving_ones_are_removed_at_once() {
    let (mut a, mut b, mut us) = (state(1), state(2), state(3));
    let now = Instant::now();
    exchange(&mut a, &mut us, now, 0);
    exchange(&mut b, &mut us, now, 0);
    assert_eq!(us.interval().members, 3);
    let bye = a.report(now, 0, Some("enough"), 1200).unwrap();
    let events = us.receive_rtcp(now, 0, &bye);
    assert_eq!(events.last(), Some(&Event::Bye { ssrc: 1, reason: Some("enough".into()) }));
    assert_eq!(us.interval().members, 2);
    let later = now + Duration::from_secs(60);
    us.report(later, 0, None, 1200).unwrap();
    assert_eq!(us.interval().members, 1);
}

//= 5762-4.2-1 test
/// RFC 5762 section 4.2: the time that counts is when the packet left.
#[test]
fn the_next_interval_starts_when_a_delayed_report_has_left() {
    let mut us = state(1);
    let left = Instant::now() + Duration::from_secs(9);
    assert!(us.interval().initial);
    us.report_left(left, 100, left - Duration::from_secs(4));
    assert!(!us.interval().initial, "only the first interval is halved");
    assert_eq!(us.last_rtcp, left);
    assert_eq!(us.stats().report_delay, Duration::from_secs(4));
}

fn received(us: &mut State, at: Instant, bytes: &Bytes) -> Vec<Event> {
    us.receive_rtcp(at, 0, bytes)
}

fn sender_of(report: Option<Bytes>) -> Option<SenderInfo> {
    match &state(9).receive_rtcp(Instant::now(), 0, &report.unwrap())[0] {
        Event::Report(report) => report.sender,
        other => panic!("{other:?}"),
    }
}

/// RFC 3550 section 6.3.8: a participant without media for two intervals is not a sender.
#[test]
fn silent_sender_reports_as_a_receiver() {
    let (mut us, mut them) = (state(1), state(2));
    let start = Instant::now();
    let at = |s| start + Duration::from_secs(s);
    let media = sent(&mut us, at(1), 0, b"media");
    them.receive_packet(at(1), &media);
    for (time, sends) in [(5, true), (10, true), (15, false), (20, false)] {
        assert_eq!(sender_of(us.report(at(time), 0, None, 1200)).is_some(), sends, "at {time}");
        assert_eq!(us.interval().we_sent, sends);
        assert_eq!(them.interval().senders, usize::from(sends), "at {time}");
        us.report_left(at(time), 100, at(time));
        them.report_left(at(time), 100, at(time));
    }
    sent(&mut us, at(21), 0, b"media");
    assert!(sender_of(us.report(at(25), 0, None, 1200)).is_some());
}

#[test]
fn all_of_many_sources_are_reported_in_turn() {
    let mut us = state(1);
    let start = Instant::now();
    let mut reported = std::collections::BTreeMap::new();
    for round in 0..9 {
        let now = start + Duration::from_secs(round);
        for ssrc in 100..150 {
            us.receive_packet(now, &reports::rtp(ssrc, (0, false), round as u16, 0, b"media"));
        }
        // Every other report only has room for a few blocks.
        let max = if round % 2 == 0 { 1200 } else { 300 };
        let report = us.report(now, 0, None, max).unwrap();
        assert!(report.len() <= max);
        us.report_left(now, report.len(), now);
        let Event::Report(report) = received(&mut state(2), now, &report).remove(0) else {
            panic!("no report")
        };
        for block in report.blocks {
            *reported.entry(block.ssrc).or_insert(0) += 1;
        }
    }
    assert_eq!(reported.len(), 50);
    assert!(reported.values().all(|&n| n >= 3), "{reported:?}");
}

/// RFC 3550 section 8.2.
#[test]
fn ssrc_collision_is_resolved_and_a_loop_ignored() {
    let (mut us, mut them) = (state(7), state(7));
    them.setup.spare_ssrc = 8;
    let now = Instant::now();
    let (ours, theirs) = (sent(&mut us, now, 0, b"ours"), sent(&mut them, now, 0, b"theirs"));
    assert_eq!(packet_of(us.receive_packet(now, &theirs)).payload, &b"theirs"[..]);
    assert_eq!(packet_of(them.receive_packet(now, &ours)).payload, &b"ours"[..]);
    assert_eq!((us.stats().ssrc, them.stats().ssrc), (1007, 8));
    let stats = us.stats();
    assert_eq!((stats.collisions, stats.packets_sent, stats.octets_sent), (1, 0, 0));
    // A BYE for the old identifier is sent once.
    let report = us.report(now, 0, None, 1200).unwrap();
    let bye = Event::Bye { ssrc: 7, reason: Some(COLLISION.into()) };
    assert_eq!(received(&mut them, now, &report).last(), Some(&bye));
    let report = us.report(now, 0, None, 1200).unwrap();
    assert!(!received(&mut them, now, &report).contains(&bye));
    let next = packet_of(them.receive_packet(now, &sent(&mut us, now, 0, b"more")));
    assert_eq!(next.ssrc, 1007);
    // A packet with the new identifier is our own, looped back.
    let looped = sent(&mut us, now, 0, b"loop");
    assert_eq!(us.receive_packet(now, &looped), None);
    assert_eq!(received(&mut us, now, &report), []);
    assert!(!us.sources.contains_key(&1007), "we are no source of ours");
    assert_eq!((us.stats().ssrc, us.stats().collisions), (1007, 3));
}

/// RFC 3550 section 6.3.7: who has sent nothing leaves without a BYE.
#[test]
fn an_identifier_that_was_never_sent_is_given_up_silently() {
    let (mut us, mut them) = (state(7), state(7));
    let now = Instant::now();
    us.receive_packet(now, &sent(&mut them, now, 0, b"theirs"));
    assert_eq!((us.stats().ssrc, us.stats().collisions), (1007, 1));
    let events = received(&mut state(9), now, &us.report(now, 0, None, 1200).unwrap());
    assert!(events.iter().all(|event| matches!(event, Event::Report(_))), "{events:?}");
}

#[test]
fn a_report_about_another_source_is_none_about_us() {
    let (mut a, mut us, mut reporter) = (state(1), state(2), state(3));
    let now = Instant::now();
    reporter.receive_packet(now, &sent(&mut a, now, 0, b"a"));
    exchange(&mut a, &mut reporter, now, 1 << 40);
    let events = exchange(&mut reporter, &mut us, now + Duration::from_secs(1), 1 << 40);
    let Event::Report(report) = &events[0] else { panic!("{events:?}") };
    assert_eq!((report.blocks[0].ssrc, report.blocks[0].rtt), (1, None));
    assert_eq!(us.stats().sources[0].hears_us, None);
}

/// RFC 3550 section 6.4.1: LSR is zero if no sender report has arrived.
#[test]
fn a_round_trip_needs_a_sender_report_and_is_never_negative() {
    let (mut us, mut them) = (state(1), state(2));
    let start = Instant::now();
    let rtt = |us: &mut State, report: &Bytes, ntp| match &us.receive_rtcp(start, ntp, report)[0] {
        Event::Report(report) => report.blocks[0].rtt,
        other => panic!("{other:?}"),
    };
    them.receive_packet(start, &sent(&mut us, start, 0, b"us"));
    let report = them.report(start, 0, None, 1200).unwrap();
    assert_eq!(rtt(&mut us, &report, 7 << 32), None);
    exchange(&mut us, &mut them, start, 7 << 32);
    them.receive_packet(start, &sent(&mut us, start, 160, b"us"));
    let report = them.report(start + Duration::from_secs(1), 0, None, 1200).unwrap();
    // Our clock shows a little less than the second that they waited.
    assert_eq!(rtt(&mut us, &report, (8 << 32) - (1 << 20)), Some(Duration::ZERO));
}

#[test]
fn the_average_size_is_that_of_packets_sent_and_received() {
    let (mut us, mut them) = (state(1), state(2));
    let now = Instant::now();
    for n in 0..2 {
        let before = [us.average_bytes, them.average_bytes];
        let report = us.report(now, 0, None, 1200).unwrap();
        us.report_left(now, report.len() + n, now);
        them.receive_rtcp(now, 0, &report);
        let bytes = report.len() + LOWER_HEADER_BYTES;
        assert_eq!(us.average_bytes, timing::average(before[0], bytes + n));
        assert_eq!(them.average_bytes, timing::average(before[1], bytes));
    }
}

#[test]
fn media_that_arrives_at_the_time_of_a_report_is_in_the_next() {
    let (mut us, mut them) = (state(1), state(2));
    let now = Instant::now();
    let blocks = |us: &mut State, at| match &received(
        &mut state(9),
        now,
        &us.report(at, 0, None, 1200).unwrap(),
    )[0]
    {
        Event::Report(report) => report.blocks.len(),
        other => panic!("{other:?}"),
    };
    us.receive_packet(now, &sent(&mut them, now, 0, b"x"));
    assert_eq!(blocks(&mut us, now), 1);
    us.receive_packet(now, &sent(&mut them, now, 160, b"x"));
    assert_eq!(blocks(&mut us, now + Duration::from_secs(1)), 1);
    assert_eq!(blocks(&mut us, now + Duration::from_secs(2)), 0, "nothing is new");
}

#[test]
fn number_of_sources_is_bounded() {
    let mut us = state(1);
    let start = Instant::now();
    for n in 0..5000_u32 {
        let now = start + Duration::from_micros(n.into());
        us.receive_packet(now, &reports::rtp(100 + n, (0, false), 0, 0, b"x"));
        // A source that continues to send stays.
        let then = now + Duration::from_nanos(500);
        us.receive_packet(then, &reports::rtp(50, (0, false), n as u16, 0, b"x"));
    }
    assert_eq!(us.sources.len(), MAX_SOURCES);
    assert_eq!(us.stats().sources[0].packets_received, 5000);
}

#[test]
fn huge_intervals_do_not_overflow() {
    let mut us = state(1);
    us.setup.minimum = Duration::from_secs(10 * 365 * 24 * 3600);
    assert!(us.report(Instant::now(), 0, None, 1200).is_some());
    assert!(us.interval().randomised(1.0) > us.setup.minimum / 4);
}
