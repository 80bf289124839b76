//! Rules of Linux that a path as a whole does not show.

use super::*;

/// In flight at the end of a probing phase on a path of 40 packets: 1,600 packets of 1,250
/// bytes a second (16 Mbit/s) for 25 ms, with trains of two.
fn probed_until(counts_departures: bool, wait: Duration) -> u32 {
    let mut bbr = Bbr::new(10, BbrConfig { counts_departures, ..BbrConfig::default() });
    bbr.set_trains(44);
    bbr.packet_bytes = 1_250.0;
    bbr.bandwidth.update(0, 2e6, 10);
    bbr.rate = Some(2.475e6);
    bbr.min_rtt = Some(Duration::from_millis(25));
    bbr.mode = Mode::ProbeBw;
    let now = Instant::ZERO + Duration::from_millis(26);
    (0..100)
        .find(|&in_flight| {
            let delivery =
                Delivery { now, in_flight, departure: now + wait, ..Delivery::default() };
            bbr.update_phase(&delivery);
            bbr.phase != 0
        })
        .expect("an end")
}

/// The window of a recovery is that of its first acknowledgement, or of what follows it.
#[test]
fn a_loss_alone_leaves_the_window() {
    let mut bbr = Bbr::new(80, BbrConfig::linux_6_1());
    bbr.on_delivery(&Delivery { in_flight: 40, delivered: 1, ..Delivery::default() });
    let before = bbr.cwnd();
    bbr.on_congestion_event(Instant::ZERO, 40);
    assert_eq!(bbr.cwnd(), before);
    assert!(before > 41, "{before}");
}

/// 5/4 of the path is 50 packets, with three trains 56, and 58 in this phase.
#[test]
fn what_leaves_next_counts_as_in_flight_while_probing() {
    assert_eq!(probed_until(false, Duration::ZERO), 58);
    assert_eq!(probed_until(true, Duration::ZERO), 56);
    // One packet is delivered before the next ones leave.
    assert_eq!(probed_until(true, Duration::from_micros(700)), 57);
}
