//! Neither false times from the peer nor reordered packets make the sender faster. CCID 4 uses the
//! same sender.

use udccp_base::{Duration, Instant};

use super::sender::{Line, RTT, SIZE, Says};
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
fn lossy(says: Says) -> Says {
    Says { rate: Some(1_000_000), intervals: vec![[99, 1, 100], [0, 0, 0]], ..says }
}

/// Runs 60 round-trip times with one loss event in a hundred packets, while the peer reports what
/// `lie` returns. Returns the rate X_inst at the end, in bytes per second.
fn rate_after(mut line: Line, lie: impl Fn(&Line) -> Says) -> f64 {
    for i in 1..60 {
        line.send_until(at(1000 + 100 * i));
        if line.arrived() > 200 {
            let says = lossy(lie(&line));
            line.acked(line.arrived(), &says);
        } else {
            let whole = vec![[line.arrived() as u32, 0, 0]];
            let says = Says { rate: Some(100_000), intervals: whole, ..lie(&line) };
            line.acked(line.arrived(), &says);
        }
    }
    line.x()
}

#[test]
fn no_elapsed_time_makes_the_round_trip_time_less_than_what_our_clock_measured() {
    let lies = [ms(99), ms(100) - Duration::from_nanos(1), ms(50), Duration::from_secs(100)];
    for (ccid, honest) in
        [3, 4].into_iter().zip(lines().map(|l| rate_after(l, |_| Says::default())))
    {
        for elapsed in lies {
            let line = lines().into_iter().nth(ccid - 3).unwrap();
            let lying = rate_after(line, |_| Says { elapsed: Some(elapsed), ..Says::default() });
            let ratio = lying / honest;
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
            &Says { rate: Some(0), intervals: vec![[1, 0, 0]], elapsed, ..Says::default() },
        );
        assert_eq!(line.sender.rtt(), Some(RTT));
    }
    // If the handshake measured nothing, only our own clock is available.
    let mut line = Line::of(Ccid3Sender::new(&Ccid3Config::default(), 1400));
    line.send_until(at(1100));
    let elapsed = Some(ms(100) - Duration::from_nanos(1));
    line.acked(1, &Says { rate: Some(0), intervals: vec![[1, 0, 0]], elapsed, ..Says::default() });
    assert_eq!(line.sender.rtt(), Some(ms(100)));
}

#[test]
fn a_timestamp_echo_is_not_believed_below_what_our_clock_measured() {
    for mut line in lines() {
        line.send_until(at(1300));
        let newest = line.arrived();
        // An Ack without feedback arrives first. The packet that it overtook then acknowledges a
        // packet that the log has removed.
        line.acked(newest, &Says::default());
        let echo = Some(Duration::from_micros(10));
        let whole = vec![[newest as u32 - 1, 0, 0]];
        line.acked(newest - 1, &Says { rate: Some(0), intervals: whole, echo, ..Says::default() });
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
            &Says {
                rate: Some(0),
                intervals: vec![[1, 0, 0]],
                elapsed: Some(elapsed),
                ..Says::default()
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
            let says = lossy(Says::default());
            line.acked(line.arrived(), &says);
        }
        let x = line.x() * RTT.as_secs_f64() / f64::from(SIZE);
        // The packet is sent, arrives and is acknowledged within a microsecond. So is a second.
        for step in 0..2 {
            line.leave(true);
            line.now += Duration::from_micros(1);
            let says = lossy(Says { elapsed: Some(Duration::ZERO), ..Says::default() });
            let newest = line.sent();
            line.acked(newest, &says);
            let until = line.now + RTT;
            let sent = most_in_a_round(&mut line, until);
            assert!((sent as f64) < 2.0 * x + 3.0, "{step}: {sent} packets, X allows {x}");
            line.acked(line.arrived(), &lossy(Says::default()));
        }
    }
}
