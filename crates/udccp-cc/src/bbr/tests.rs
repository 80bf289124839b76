//! Rules of Linux that are not visible in the behaviour on a whole path.

use super::*;
use crate::delivery::RateSample;

/// The number in flight that ends a probing phase on a path of 40 packets: 1,600 packets of 1,250
/// bytes per second (16 Mbit/s) for 25 ms, with trains of two.
fn probed_until(counts_departures: bool, wait: Duration) -> u32 {
    let mut bbr = Bbr::new(10, BbrConfig { counts_departures, ..BbrConfig::default() });
    bbr.set_trains(44);
    bbr.packet_bytes = 1_250;
    bbr.bandwidth.update(0, path::bandwidth(50_000, 1_250, Duration::from_millis(25)), 10);
    bbr.rate = Some(2_475_000);
    bbr.min_rtt = Some(Duration::from_millis(25));
    bbr.mode = Mode::ProbeBw;
    bbr.gain = parts(1.25);
    let now = Instant::ZERO + Duration::from_millis(26);
    bbr.delivered_at = now;
    (0..100)
        .find(|&prior_in_flight| {
            let delivery =
                Delivery { now, prior_in_flight, departure: now + wait, ..Delivery::default() };
            bbr.update_phase(&delivery);
            bbr.phase != 0
        })
        .expect("an end")
}

/// A congestion event does not change the window; the acknowledgements of the recovery do.
#[test]
fn a_loss_alone_leaves_the_window() {
    let mut bbr = Bbr::new(80, BbrConfig::linux_6_1());
    bbr.on_delivery(&Delivery { in_flight: 40, delivered: 1, ..Delivery::default() });
    let before = bbr.cwnd();
    bbr.on_congestion_event(Instant::ZERO, 40);
    assert_eq!(bbr.cwnd(), before);
    assert!(before > 41, "{before}");
}

/// 5/4 of the path's capacity is 50 packets; with three trains 56, and 58 in this phase.
#[test]
fn next_departure_counts_as_in_flight_while_probing() {
    assert_eq!(probed_until(false, Duration::ZERO), 58);
    assert_eq!(probed_until(true, Duration::ZERO), 56);
    // One packet is delivered before the next ones leave.
    assert_eq!(probed_until(true, Duration::from_micros(700)), 57);
}

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS * ms
}

/// On a path of 40 packets as in [`probed_until`], in this phase of PROBE_BW.
fn in_phase(phase: usize) -> Bbr {
    let mut bbr = Bbr::new(80, BbrConfig::linux_6_1());
    bbr.set_trains(44);
    bbr.packet_bytes = 1_250;
    bbr.bandwidth.update(0, path::bandwidth(50_000, 1_250, MS * 25), 10);
    bbr.rate = Some(2_475_000);
    bbr.min_rtt = Some(MS * 25);
    (bbr.mode, bbr.phase, bbr.full) = (Mode::ProbeBw, phase, true);
    bbr.gain = bbr.pacing_gain();
    bbr
}

/// 16,384 units of 1,000 bytes per microsecond are 976,562 bytes per second; less 1 %, times
/// 739/256 and 88/256.
#[test]
fn gains_are_whole_parts_of_256() {
    let mut bbr = Bbr::new(10, BbrConfig::linux_6_1());
    bbr.packet_bytes = 1_000;
    let mut rate = |mode| {
        bbr.mode = mode;
        bbr.paced(1 << 14, bbr.pacing_gain())
    };
    assert_eq!(rate(Mode::Startup), 2_790_870);
    assert_eq!(rate(Mode::Drain), 332_336);
    assert_eq!(rate(Mode::ProbeRtt), 966_796);
}

/// The path's capacity and three trains are 46 packets. Packets that this acknowledgement reports
/// as lost were in flight before it.
#[test]
fn a_draining_phase_lasts_while_what_was_lost_was_in_flight() {
    let phase_after = |prior_in_flight| {
        let mut bbr = in_phase(1);
        bbr.on_delivery(&Delivery {
            now: at(5),
            prior_in_flight,
            in_flight: 30,
            delivered: 1,
            lost: prior_in_flight - 31,
            packet_bytes: 1_250,
            ..Delivery::default()
        });
        bbr.phase
    };
    assert_eq!((phase_after(47), phase_after(46)), (1, 2));
}

/// The ten seconds after the smallest round-trip time end only at a later tick, and so do the 200
/// ms of PROBE_RTT.
#[test]
fn probe_rtt_begins_and_ends_on_ticks() {
    let mut bbr = in_phase(2);
    bbr.min_rtt_at = at(3);
    bbr.round_end = u64::MAX;
    let ack = |bbr: &mut Bbr, ms| {
        bbr.round_start = true;
        bbr.update_min_rtt(&Delivery { now: at(ms), in_flight: 4, ..Delivery::default() });
        bbr.mode == Mode::ProbeRtt
    };
    assert!(!ack(&mut bbr, 10_003));
    assert!(ack(&mut bbr, 10_004));
    assert!(ack(&mut bbr, 10_207));
    assert!(!ack(&mut bbr, 10_208));
}

/// The window before PROBE_RTT may have been reduced by a recovery.
#[test]
fn probe_rtt_keeps_the_larger_window_to_restore() {
    let mut bbr = in_phase(2);
    (bbr.cwnd, bbr.prior_cwnd, bbr.min_rtt_at) = (60, 80, at(0));
    bbr.update_min_rtt(&Delivery { now: at(10_100), in_flight: 60, ..Delivery::default() });
    assert_eq!((bbr.mode, bbr.prior_cwnd), (Mode::ProbeRtt, 80));
}

/// The kernel's clock has microseconds: a smaller difference is not a new minimum.
#[test]
fn differences_of_nanoseconds_do_not_renew_the_smallest_rtt() {
    let mut bbr = in_phase(2);
    (bbr.min_rtt, bbr.min_rtt_at) = (Some(MS * 25), at(0));
    let ack = |bbr: &mut Bbr, ms, nanos| {
        let (now, rtt) = (at(ms), Some(Duration::from_nanos(nanos)));
        bbr.update_min_rtt(&Delivery { now, rtt, in_flight: 60, ..Delivery::default() });
        bbr.min_rtt_at
    };
    assert_eq!(ack(&mut bbr, 500, 24_999_900), at(500));
    assert_eq!(ack(&mut bbr, 600, 24_999_100), at(500));
    assert_eq!(ack(&mut bbr, 700, 24_998_999), at(700));
}

/// A phase lasts from delivery to delivery: an acknowledgement without new data does not end it.
#[test]
fn acks_without_delivery_end_no_phase() {
    let phase_after = |delivered| {
        let mut bbr = in_phase(3);
        bbr.phase_began = at(0);
        bbr.on_delivery(&Delivery {
            now: at(26),
            delivered,
            in_flight: 40,
            packet_bytes: 1_250,
            ..Delivery::default()
        });
        bbr.phase
    };
    assert_eq!((phase_after(0), phase_after(1)), (3, 4));
}

/// At the acknowledgement that ends STARTUP, the train that its rate releases still counts.
#[test]
fn next_departure_counts_at_the_end_of_startup() {
    let mode_after = |in_flight| {
        let mut bbr = in_phase(0);
        bbr.mode = Mode::Startup;
        bbr.gain = bbr.pacing_gain();
        bbr.check_drain(&Delivery { now: at(500), in_flight, ..Delivery::default() });
        bbr.mode
    };
    assert_eq!((mode_after(45), mode_after(44)), (Mode::Drain, Mode::ProbeBw));
}

/// A timeout resets the bandwidth of the full-pipe check, but not the number of rounds without
/// growth.
#[test]
fn a_timeout_keeps_the_rounds_without_growth() {
    let mut bbr = in_phase(0);
    (bbr.full_bandwidth, bbr.full_count) = (1_000, 2);
    bbr.on_rto(at(500), 40);
    assert_eq!((bbr.full_bandwidth, bbr.full_count), (0, 2));
}

/// The path delivers 2,000,000 bytes per second; the pacing rate is 1 % less.
#[test]
fn idle_restart_paces_at_the_estimate_and_keeps_the_window() {
    let mut bbr = in_phase(0);
    assert_eq!(bbr.rate, Some(2_475_000), "5/4 of it: probing");
    bbr.on_idle_restart(at(1_000), 4);
    assert!(bbr.rate.is_some_and(|rate| rate.abs_diff(1_980_000) < 100), "{:?}", bbr.rate);
    assert_eq!(bbr.cwnd(), 80);
}

/// The sample of a packet sent when `prior_delivered` bytes had been delivered: the path delivers
/// one packet per round-trip time.
fn slow_sample(prior_delivered: u64, total_delivered: u64) -> Option<RateSample> {
    let (delivered_bytes, interval) = (1_250, MS * 25);
    let sample = RateSample { delivered_bytes, interval, ..RateSample::default() };
    Some(RateSample { prior_delivered, total_delivered, ..sample })
}

/// Draft section 4.2.3: the window falls to the number in flight and does not grow for a round.
/// Then it grows as usual, and at the end of the recovery its old value returns.
#[test]
fn a_recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
    let mut bbr = in_phase(2);
    bbr.round_end = 60_000;
    bbr.on_congestion_event(at(5), 62);
    let mut ack = |ms, in_flight, delivered, lost, sample, in_recovery| {
        bbr.on_delivery(&Delivery {
            now: at(ms),
            in_flight,
            prior_in_flight: in_flight + delivered + lost,
            delivered,
            lost,
            packet_bytes: 1_250,
            rate: sample,
            in_recovery,
            ..Delivery::default()
        });
        bbr.cwnd()
    };
    assert_eq!(ack(5, 50, 2, 10, slow_sample(50_000, 102_500), true), 52);
    assert_eq!(ack(6, 40, 1, 0, slow_sample(70_000, 103_750), true), 52);
    assert_eq!(ack(7, 30, 1, 5, slow_sample(75_000, 105_000), true), 47);
    assert_eq!(ack(8, 50, 1, 0, slow_sample(80_000, 106_250), true), 51);
    assert_eq!(ack(20, 50, 1, 0, slow_sample(102_500, 107_500), true), 52);
    assert_eq!(ack(21, 50, 1, 0, slow_sample(102_500, 108_750), false), 81);
}

/// After a timeout the window grows from one packet, regardless of the number in flight. At the end
/// of the recovery its old value returns.
#[test]
fn a_timeout_begins_a_recovery_that_does_not_conserve_packets() {
    for at_once in [false, true] {
        let mut bbr = in_phase(2);
        bbr.on_rto(at(5), 40);
        assert_eq!(bbr.cwnd(), 1);
        let mut ack = |in_recovery| {
            bbr.on_delivery(&Delivery {
                now: at(6),
                in_flight: 20,
                delivered: 1,
                packet_bytes: 1_250,
                in_recovery,
                ..Delivery::default()
            });
            bbr.cwnd()
        };
        if !at_once {
            assert_eq!([ack(true), ack(true)], [4, 5]);
        }
        assert_eq!(ack(false), 81);
    }
}

/// In PROBE_RTT with 40 packets in flight, starting at 100,000 delivered bytes.
fn probing() -> Bbr {
    let mut bbr = in_phase(2);
    bbr.round_end = 95_000;
    ack_slowly(&mut bbr, 10_100, 40, slow_sample(90_000, 100_000));
    assert_eq!(bbr.mode, Mode::ProbeRtt);
    bbr
}

fn ack_slowly(bbr: &mut Bbr, ms: u64, in_flight: u32, rate: Option<RateSample>) {
    bbr.on_delivery(&Delivery {
        now: at(ms),
        in_flight,
        delivered: 1,
        packet_bytes: 1_250,
        rate,
        ..Delivery::default()
    });
}

/// Draft section 4.3.5: in PROBE_RTT the window limits sending, not the path. Its last packets
/// leave with 4 in flight (5,000 bytes).
#[test]
fn samples_of_probe_rtt_do_not_lower_the_bandwidth() {
    let mut bbr = probing();
    let path = bbr.bandwidth.get();
    let mut total = 100_000;
    // More than the ten rounds of the bandwidth filter.
    for round in 1..=20 {
        ack_slowly(&mut bbr, 10_100 + 20 * round, 4, slow_sample(total, total + 1_250));
        total += 1_250;
        assert_eq!(bbr.bandwidth.get(), path, "round {round}");
        if bbr.mode != Mode::ProbeRtt {
            break;
        }
    }
    assert_eq!(bbr.mode, Mode::ProbeBw);
    let last = total + 5_000;
    ack_slowly(&mut bbr, 10_600, 40, slow_sample(last, last + 1_250));
    assert_eq!(bbr.bandwidth.get(), path);
    ack_slowly(&mut bbr, 10_601, 40, slow_sample(last + 1_250, last + 2_500));
    assert!(bbr.bandwidth.get() < path / 30);
}

/// Draft section 4.3.5: 200 ms and a round after no more than 4 packets are in flight. The round in
/// progress at that time does not count.
#[test]
fn probe_rtt_lasts_for_a_round_from_when_the_window_has_drained() {
    let mut bbr = probing();
    ack_slowly(&mut bbr, 10_110, 4, slow_sample(93_000, 145_000));
    ack_slowly(&mut bbr, 10_500, 4, slow_sample(140_000, 146_250));
    assert_eq!(bbr.mode, Mode::ProbeRtt);
    ack_slowly(&mut bbr, 10_501, 4, slow_sample(145_000, 147_500));
    assert_eq!(bbr.mode, Mode::ProbeBw);
}

/// One acknowledgement in STARTUP with 100 packets in flight and a sample of `packets` in 25 ms.
/// The first one of a round is for a packet that was sent in that round.
fn ack_in_startup(bbr: &mut Bbr, packets: u64, is_first: bool, app_limited: bool) {
    let prior_delivered = if is_first { bbr.delivered } else { 0 };
    let (delivered_bytes, total_delivered) = (packets * 1_250, bbr.delivered + 1_250);
    let sample = RateSample { delivered_bytes, interval: MS * 25, ..RateSample::default() };
    bbr.on_delivery(&Delivery {
        now: at(100),
        in_flight: 100,
        delivered: 1,
        rtt: Some(MS * 25),
        srtt: Some(MS * 25),
        packet_bytes: 1_250,
        rate: Some(RateSample { prior_delivered, total_delivered, app_limited, ..sample }),
        ..Delivery::default()
    });
}

/// Draft section 4.3.2.2: 40 packets and less than a quarter more in three rounds, consecutive or
/// not. Further acknowledgements of a round and app-limited rounds do not count.
#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let in_startup = |rounds: &[u64]| {
        let mut bbr = Bbr::new(10, BbrConfig::linux_6_1());
        for &packets in rounds {
            ack_in_startup(&mut bbr, packets, true, false);
            (0..5).for_each(|_| ack_in_startup(&mut bbr, packets, false, false));
            (0..5).for_each(|_| ack_in_startup(&mut bbr, packets / 2, true, true));
        }
        bbr.mode == Mode::Startup
    };
    assert!(in_startup(&[10, 20, 40, 49, 49]));
    assert!(!in_startup(&[10, 20, 40, 49, 49, 49]));
    // Growth by a quarter restarts the count.
    assert!(in_startup(&[10, 20, 40, 49, 49, 50, 50, 50]));
    assert!(!in_startup(&[10, 20, 40, 49, 49, 50, 50, 50, 50]));
}

/// Draft section 4.2.1: 10 packets in 25 ms are 500,000 bytes per second; times 739/256, less 1 %.
/// A first sample of half of that leaves the rate unchanged, and twice that doubles it. When the
/// pipe is full, the rate falls to 88/256 of the estimate.
#[test]
fn the_rate_of_startup_only_rises() {
    let mut bbr = Bbr::new(10, BbrConfig::linux_6_1());
    let mut rate_after = |packets| {
        ack_in_startup(&mut bbr, packets, true, false);
        bbr.rate.map_or(0, |rate| rate / 1_000)
    };
    assert_eq!([5, 5, 20].map(&mut rate_after), [1_428, 1_428, 2_857]);
    assert_eq!([20, 20, 20].map(&mut rate_after), [2_857, 2_857, 340]);
}

/// Draft section 4.2.3: on a path of 40 packets, 739/256 of it are 116, with three trains of four
/// 128. The window grows up to that, and beyond it until 10 packets have been delivered.
#[test]
fn the_window_of_startup_grows_up_to_its_target() {
    let window_after = |cwnd, delivered| {
        let mut bbr = in_phase(0);
        (bbr.mode, bbr.full, bbr.cwnd, bbr.delivered) = (Mode::Startup, false, cwnd, delivered);
        bbr.on_delivery(&Delivery {
            now: at(5),
            in_flight: 100,
            delivered: 1,
            packet_bytes: 1_250,
            ..Delivery::default()
        });
        bbr.cwnd
    };
    assert_eq!([126, 127, 128, 200].map(|cwnd| window_after(cwnd, 12_500)), [127, 128, 128, 200]);
    assert_eq!(window_after(200, 12_499), 201);
}

/// After an idle time PROBE_RTT does not begin until something is delivered, because the path was
/// empty meanwhile.
#[test]
fn probe_rtt_does_not_begin_with_the_first_delivery_after_silence() {
    let mut bbr = in_phase(2);
    bbr.on_idle_restart(at(10_100), 4);
    let mode_after = [0, 1, 1].map(|delivered| {
        bbr.update_min_rtt(&Delivery { now: at(10_200), delivered, ..Delivery::default() });
        bbr.mode
    });
    assert_eq!(mode_after, [Mode::ProbeBw, Mode::ProbeBw, Mode::ProbeRtt]);
}
