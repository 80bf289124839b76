//! The allowed sending rate (RFC 5348 sections 4.2 to 4.5).

use udccp_base::{Duration, Instant};

use super::{at, ms};
use crate::ccid::tfrc::{Rate, RateControl, Report, equation};

const S: u32 = 1000;

fn rate(packets_per_rtt: f64, rtt: Duration) -> Rate {
    Rate::from_bytes_per_sec_f64(packets_per_rtt * f64::from(S) / rtt.as_secs_f64())
}

/// Feedback on a path with a round-trip time of 100 ms.
fn report(x_recv: Rate, p: f64) -> Report {
    Report { rtt: Some(ms(100)), x_recv, loss_event_rate: p, more_loss: false, data_limited: false }
}

fn packets_per_rtt(control: &RateControl) -> f64 {
    control.allowed(S).bytes_per_sec() * 0.1 / f64::from(S)
}

/// A sender with a round-trip time from the handshake, which has sent data since time 0.
fn started() -> RateControl {
    let mut control = RateControl::new(false, ms(10));
    control.on_handshake_rtt(at(0), ms(100), S);
    control.on_data_sent(at(0));
    control
}

fn assert_near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-3 * b, "{a}, not {b}");
}

#[test]
fn without_a_round_trip_time_one_segment_leaves_in_a_second() {
    let control = RateControl::new(false, ms(10));
    assert_eq!(control.allowed(S).interval(S), Duration::from_secs(1));
    assert_eq!(control.timeout(S), Duration::from_secs(2));
}

//= 5348-4.2-1 test
#[test]
fn the_initial_rate_is_4380_bytes_a_round_trip_or_two_to_four_segments() {
    for (s, packets) in
        [(64, 4.0), (1000, 4.0), (1095, 4.0), (1460, 3.0), (3000, 2.0), (65_536, 2.0)]
    {
        let mut control = RateControl::new(false, ms(10));
        control.on_handshake_rtt(at(0), ms(100), s);
        let per_rtt = control.allowed(s).bytes_per_sec() * 0.1 / f64::from(s);
        assert_near(per_rtt, packets);
    }
}

//= 5348-1-1 test
//= 5348-4.3-1 test
#[test]
fn slow_start_doubles_once_a_round_trip_and_the_first_report_does_not_limit_it() {
    let mut control = started();
    control.on_feedback(at(100), &report(Rate::default(), 0.0), S);
    assert_near(packets_per_rtt(&control), 8.0);
    control.on_feedback(at(200), &report(rate(4.0, ms(100)), 0.0), S);
    assert_near(packets_per_rtt(&control), 16.0);
    control.on_feedback(at(250), &report(rate(4.0, ms(100)), 0.0), S);
    assert_near(packets_per_rtt(&control), 16.0);
    // Infinity has left the set: the limit is twice the receive rate.
    control.on_feedback(at(310), &report(rate(6.0, ms(100)), 0.0), S);
    assert_near(packets_per_rtt(&control), 12.0);
}

#[test]
fn the_first_measurement_of_all_gives_the_initial_rate() {
    let mut control = RateControl::new(false, ms(10));
    control.on_data_sent(at(0));
    control.on_feedback(at(100), &report(Rate::default(), 0.0), S);
    assert_near(packets_per_rtt(&control), 4.0);
}

#[test]
fn after_a_loss_the_equation_or_the_receiver_limits() {
    let mut control = started();
    control.on_feedback(at(300), &report(rate(10.0, ms(100)), 0.01), S);
    let x = equation::throughput(S, ms(100), 0.01);
    assert_eq!(control.allowed(S), x);
    control.on_feedback(at(400), &report(rate(3.0, ms(100)), 0.001), S);
    assert_near(packets_per_rtt(&control), 20.0);
    control.on_feedback(at(620), &report(rate(3.0, ms(100)), 0.001), S);
    assert_near(packets_per_rtt(&control), 6.0);
}

//= 5348-4.3-2 test
#[test]
fn round_trip_times_are_averaged_by_tenths() {
    let mut control = started();
    let sample = |millis| Report { rtt: Some(ms(millis)), ..report(Rate::default(), 0.0) };
    control.on_feedback(at(100), &sample(200), S);
    assert_eq!(control.rtt(), Some(ms(200)), "the first feedback replaces the handshake's");
    control.on_feedback(at(200), &sample(100), S);
    assert_eq!(control.rtt(), Some(ms(190)));
    assert_eq!(control.timeout(S), ms(760));
}

#[test]
fn data_limited_intervals_keep_the_rate_of_before() {
    let limited =
        |x_recv, more_loss| Report { data_limited: true, more_loss, ..report(x_recv, 1e-6) };
    let mut control = started();
    control.on_feedback(at(300), &report(rate(40.0, ms(100)), 1e-6), S);
    for i in 0..20 {
        control.on_feedback(at(400 + 100 * i), &limited(rate(1.0, ms(100)), false), S);
    }
    assert_near(packets_per_rtt(&control), 80.0);
    // A loss in the meantime halves the stored rates.
    control.on_feedback(at(3000), &limited(rate(1.0, ms(100)), true), S);
    assert_near(packets_per_rtt(&control), 20.0);
}

//= 5348-4.3-1 test
#[test]
fn a_loss_in_a_data_limited_interval_leaves_85_percent_of_what_arrived_or_half_of_before() {
    for (before, arrived, allowed) in [(40.0, 30.0, 25.5), (40.0, 22.0, 20.0), (10.0, 40.0, 34.0)] {
        let mut control = started();
        control.on_feedback(at(300), &report(rate(before, ms(100)), 1e-6), S);
        let loss = report(rate(arrived, ms(100)), 1e-6);
        control.on_feedback(at(400), &Report { more_loss: true, data_limited: true, ..loss }, S);
        assert_near(packets_per_rtt(&control), allowed);
    }
}

//= 5348-4.3-1 test
#[test]
fn a_data_limited_report_replaces_the_infinity_of_the_beginning() {
    let mut control = started();
    let limited = Report { data_limited: true, ..report(rate(10.0, ms(100)), 1e-6) };
    control.on_feedback(at(100), &limited, S);
    assert_near(packets_per_rtt(&control), 20.0);
}

#[test]
fn a_report_of_nothing_while_nothing_was_sent_leaves_half_the_rate_of_before() {
    let mut control = started();
    control.on_feedback(at(300), &report(rate(40.0, ms(100)), 1e-6), S);
    let nothing = report(Rate::default(), 1e-6);
    let idle = Report { more_loss: true, data_limited: true, ..nothing };
    control.on_feedback(at(5000), &idle, S);
    assert_near(packets_per_rtt(&control), 20.0);
    // Everything allowed was sent, but nothing arrived: the receive rate is zero.
    control.on_feedback(at(6000), &nothing, S);
    assert_eq!(control.allowed(S), Rate::lowest(S));
}

//= 5348-4.5-1 test
#[test]
fn the_instantaneous_rate_is_never_more_than_twice_the_allowed_one() {
    let mut control = RateControl::new(true, ms(10));
    control.on_handshake_rtt(at(0), ms(40), S);
    for i in 1..50 {
        let usual = Report { rtt: Some(ms(40)), ..report(rate(10.0, ms(40)), 0.01) };
        control.on_feedback(at(40 * i), &usual, S);
    }
    for sample in [ms(30), ms(10), ms(2), Duration::from_micros(1), Duration::ZERO] {
        let mut control = control.clone();
        let tiny = Report { rtt: Some(sample), ..report(rate(10.0, ms(40)), 0.01) };
        control.on_feedback(at(2040), &tiny, S);
        let (now, x) = (control.instantaneous(S), control.allowed(S));
        assert!(x < now && now <= x.doubled(), "{sample}: {now:?} of {x:?}");
    }
}

#[test]
fn larger_segments_than_before_still_leave_once_in_64_seconds() {
    let mut control = started();
    control.on_feedback(at(300), &report(rate(10.0, ms(100)), 0.5), 1);
    for i in 0..60 {
        control.on_no_feedback(at(1000 + i), false, 1);
    }
    assert_eq!(control.instantaneous(1460).interval(1460), Duration::from_secs(64));
}

//= 5348-4.4-1 test
#[test]
fn without_feedback_the_rate_is_halved_down_to_a_segment_in_64_seconds() {
    for p in [0.0, 1e-4] {
        let mut control = started();
        control.on_feedback(at(300), &report(rate(100.0, ms(100)), p), S);
        let mut last = control.allowed(S);
        for i in 0..40 {
            assert!(control.on_no_feedback(at(1000 + i), false, S));
            let now = control.allowed(S);
            assert!(now <= last.halved().max(Rate::lowest(S)) || i == 0, "{p}: {last:?}, {now:?}");
            last = now;
        }
        assert_eq!(last.interval(S), Duration::from_secs(64));
        assert_eq!(control.timeout(S), Duration::from_secs(128));
    }
}

#[test]
fn a_limit_by_the_equation_is_halved_too() {
    let mut control = started();
    control.on_feedback(at(300), &report(rate(1000.0, ms(100)), 0.01), S);
    let x = control.allowed(S);
    control.on_no_feedback(at(700), false, S);
    assert_near(control.allowed(S).bytes_per_sec(), x.halved().bytes_per_sec());
}

//= 5348-4.4-1 test
#[test]
fn an_idle_sender_keeps_its_initial_rate() {
    let mut control = started();
    control.on_feedback(at(100), &report(Rate::default(), 0.0), S);
    control.on_feedback(at(200), &report(rate(40.0, ms(100)), 0.0), S);
    control.on_feedback(at(300), &report(rate(40.0, ms(100)), 0.0), S);
    assert_near(packets_per_rtt(&control), 32.0);
    for i in 0..50 {
        control.on_no_feedback(at(1000 + 400 * i), true, S);
    }
    assert!((4.0..8.0).contains(&packets_per_rtt(&control)), "{}", packets_per_rtt(&control));
    assert!(!control.on_no_feedback(at(90_000), true, S));
}

/// RFC 5348 section 4.4: before the first sample, only a sender that was not idle halves its rate.
#[test]
fn an_idle_sender_without_a_round_trip_time_keeps_its_packet_a_second() {
    let mut control = RateControl::new(false, ms(10));
    assert!(!control.on_no_feedback(at(2_000), true, S));
    assert_eq!(control.allowed(S).interval(S), Duration::from_secs(1));
    assert!(control.on_no_feedback(at(4_000), false, S));
    assert_eq!(control.allowed(S).interval(S), Duration::from_secs(2));
}

#[test]
fn minutes_without_feedback_are_recovered_from_by_slow_start() {
    let mut control = started();
    control.on_feedback(at(300), &report(rate(100.0, ms(100)), 1e-4), S);
    let before = control.allowed(S);
    let mut now = at(300);
    while now < Instant::ZERO + Duration::from_secs(300) {
        now += control.timeout(S);
        control.on_no_feedback(now, false, S);
    }
    assert!(control.allowed(S).interval(S) >= Duration::from_secs(16));
    // The receiver reports what is sent, but at least one packet per round-trip time.
    let mut rounds = 0;
    while control.allowed(S) < before {
        now += ms(100);
        let x_recv = control.allowed(S).max(rate(1.0, ms(100)));
        control.on_feedback(now, &report(x_recv, 1e-4), S);
        rounds += 1;
    }
    assert!((4..12).contains(&rounds), "{rounds} round-trip times");
}

//= 5348-4.5-1 test
//= 5348-4.5-2 test
//= 5348-4.5-3 test
#[test]
fn a_growing_queue_lowers_the_rate_by_the_square_root() {
    let mut control = RateControl::new(true, ms(10));
    control.on_handshake_rtt(at(0), ms(100), S);
    for i in 1..50 {
        control.on_feedback(at(100 * i), &report(rate(100.0, ms(100)), 0.01), S);
    }
    assert_eq!(control.instantaneous(S), control.allowed(S));
    let longer = Report { rtt: Some(ms(200)), ..report(rate(100.0, ms(100)), 0.01) };
    control.on_feedback(at(5100), &longer, S);
    let ratio = control.instantaneous(S).bytes_per_sec() / control.allowed(S).bytes_per_sec();
    // R_sqmean = 0.9 * sqrt(0.1) + 0.1 * sqrt(0.2).
    assert_near(ratio, (0.9 + 0.1 * 2.0_f64.sqrt()) / 2.0_f64.sqrt());
}

#[test]
fn paths_of_microseconds_and_seconds_have_sane_rates() {
    for rtt in [Duration::ZERO, Duration::from_micros(3), Duration::from_secs(5)] {
        for s in [1, 64, 1460, 65_536] {
            let mut control = RateControl::new(true, ms(10));
            control.on_handshake_rtt(at(0), rtt, s);
            for (i, p) in [0.0, 0.0, 1e-8, 0.5, 1.0].into_iter().enumerate() {
                let now = at(10_000 * (1 + i as u64));
                let r =
                    Report { rtt: Some(rtt), ..report(Rate::from_bytes_per_sec(u64::from(s)), p) };
                control.on_feedback(now, &r, s);
                let interval = control.instantaneous(s).interval(s);
                assert!(interval <= Duration::from_secs(64), "{rtt}, {s} B, {p}: {interval}");
                assert!(control.timeout(s) >= ms(10));
            }
        }
    }
}
