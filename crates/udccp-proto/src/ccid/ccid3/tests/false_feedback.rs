//! Neither false times from the peer nor reordered packets make the sender faster. CCID 4 uses the
//! same sender.

use udccp_base::{Duration, Instant};

use super::sender::{Line, RTT, Report, SIZE};
use super::{at, ms};
use crate::ccid::CcidSender;
use crate::ccid::ccid3::{Ccid3Config, Ccid3Sender};
use crate::ccid::ccid4::{self, Ccid4Config};

/// A sender of CCID 3 and one of CCID 4, with a round-trip time of 100 ms from the handshake.
fn lines() -> [Line; 2] {
    let three = Ccid3Sender::new(&Ccid3Config::default(), 1400);
    let four = ccid4::sender(&Ccid4Config::default(), 1400);
    [three, four].map(|mut sender| {
        sender.on_handshake_measured(at(1000), RTT);
        sender.on_handshake_rtt(at(1000), RTT);
        Line::of(sender)
    })
}

/// Feedback of one loss event in a hundred packets.
fn lossy(report: Report) -> Report {
    Report { rate: Some(1_000_000), intervals: vec![[99, 1, 100], [0, 0, 0]], ..report }
}

/// Runs 60 round-trip times with one loss event in a hundred packets, while the peer reports what
/// `false_times` returns. Returns the rate X_inst at the end, in bytes per second.
fn rate_after(mut line: Line, false_times: impl Fn(&Line) -> Report) -> f64 {
    for i in 1..60 {
        line.send_until(at(1000 + 100 * i));
        if line.arrived() > 200 {
            let report = lossy(false_times(&line));
            line.acked(line.arrived(), &report);
        } else {
            let whole = vec![[line.arrived() as u32, 0, 0]];
            let report = Report { rate: Some(100_000), intervals: whole, ..false_times(&line) };
            line.acked(line.arrived(), &report);
        }
    }
    line.x()
}

#[test]
fn no_elapsed_time_makes_the_round_trip_time_less_than_what_our_clock_measured() {
    let false_elapsed =
        [ms(99), ms(100) - Duration::from_nanos(1), ms(50), Duration::from_secs(100)];
    for (ccid, honest) in
        [3, 4].into_iter().zip(lines().map(|l| rate_after(l, |_| Report::default())))
    {
        for elapsed in false_elapsed {
            let line = lines().into_iter().nth(ccid - 3).unwrap();
            let dishonest =
                rate_after(line, |_| Report { elapsed: Some(elapsed), ..Report::default() });
            let ratio = dishonest / honest;
            assert!(ratio <= 1.05, "CCID {ccid}, {elapsed}: {ratio} of the honest rate");
        }
    }
}

#[test]
fn the_handshake_is_not_believed_below_what_our_clock_measured() {
    for (echo, rtt) in [(ms(0), ms(100)), (ms(99), ms(100)), (ms(130), ms(130))] {
        let mut sender = Ccid3Sender::new(&Ccid3Config::default(), 1400);
        sender.on_handshake_measured(at(1000), ms(100));
        sender.on_handshake_rtt(at(1000), echo);
        assert_eq!(sender.rtt(), Some(rtt));
        let x = sender.metrics().x_bytes_per_sec.unwrap();
        assert!(x <= 4380.0 / rtt.as_secs_f64(), "{x}");
    }
}

#[test]
fn the_first_feedback_is_not_believed_below_the_handshake() {
    for mut line in lines() {
        line.send_until(at(1100));
        let tiny = Duration::from_nanos(1);
        let elapsed = Some(ms(100) - tiny);
        line.acked(
            1,
            &Report { rate: Some(0), intervals: vec![[1, 0, 0]], elapsed, ..Report::default() },
        );
        assert_eq!(line.sender.rtt(), Some(RTT));
    }
    // If the handshake measured nothing, only our own clock is available.
    let mut line = Line::of(Ccid3Sender::new(&Ccid3Config::default(), 1400));
    line.send_until(at(1100));
    let elapsed = Some(ms(100) - Duration::from_nanos(1));
    line.acked(
        1,
        &Report { rate: Some(0), intervals: vec![[1, 0, 0]], elapsed, ..Report::default() },
    );
    assert_eq!(line.sender.rtt(), Some(ms(100)));
}

#[test]
fn a_timestamp_echo_is_not_believed_below_what_our_clock_measured() {
    for mut line in lines() {
        line.send_until(at(1300));
        let newest = line.arrived();
        // An Ack without feedback arrives first. The packet that it overtook then acknowledges a
        // packet that the log has removed.
        line.acked(newest, &Report::default());
        let echo = Some(Duration::from_micros(10));
        let whole = vec![[newest as u32 - 1, 0, 0]];
        line.acked(
            newest - 1,
            &Report { rate: Some(0), intervals: whole, echo, ..Report::default() },
        );
        assert!(line.sender.rtt() >= Some(RTT), "{:?}", line.sender.rtt());
    }
}

//= 4340-13.2-5 test
#[test]
fn an_elapsed_time_of_the_whole_round_trip_or_more_is_ignored() {
    for elapsed in [ms(300), ms(301), Duration::from_secs(1000)] {
        let [mut line, _] = lines();
        line.send_until(at(1000));
        // Far above the minimum of the path, so that the floor has no effect.
        line.now = at(1300);
        line.acked(
            1,
            &Report {
                rate: Some(0),
                intervals: vec![[1, 0, 0]],
                elapsed: Some(elapsed),
                ..Report::default()
            },
        );
        assert_eq!(line.sender.rtt(), Some(ms(300)), "{elapsed}");
    }
}

/// The number of packets sent until `until`, which is a round-trip time away.
fn most_in_a_round(line: &mut Line, until: Instant) -> usize {
    line.send_until(until).len()
}

#[test]
fn a_packet_that_overtakes_the_others_does_not_send_the_window_at_once() {
    for mut line in lines() {
        for i in 1..60 {
            line.send_until(at(1000 + 100 * i));
            let report = lossy(Report::default());
            line.acked(line.arrived(), &report);
        }
        let x = line.x() * RTT.as_secs_f64() / f64::from(SIZE);
        // The packet is sent, arrives and is acknowledged within a microsecond. So is a second.
        for step in 0..2 {
            line.leave(true);
            line.now += Duration::from_micros(1);
            let report = lossy(Report { elapsed: Some(Duration::ZERO), ..Report::default() });
            let newest = line.sent();
            line.acked(newest, &report);
            let until = line.now + RTT;
            let sent = most_in_a_round(&mut line, until);
            assert!((sent as f64) < 2.0 * x + 3.0, "{step}: {sent} packets, X allows {x}");
            line.acked(line.arrived(), &lossy(Report::default()));
        }
    }
}
