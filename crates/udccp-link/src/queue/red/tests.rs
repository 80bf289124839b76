//! Averages and probabilities compared with values computed by hand.

use udccp_base::{DataRate, Datagram, Duration, Ecn, Instant, Seed};

use super::{Adaptive, Red, RedConfig, RedUnit, Verdict};
use crate::packet::tests::datagram;
use crate::queue::Queue;
use crate::{Drops, QueueLimit};

fn config() -> RedConfig {
    RedConfig {
        max_probability: 0.1,
        weight: 0.25,
        mean_packet: 1000,
        gentle: false,
        ..RedConfig::between(5.0, 15.0, Some(DataRate::from_mbps(8)), QueueLimit::Unlimited)
    }
}

fn red(config: RedConfig) -> Red<Datagram> {
    Red::new(config, Seed(1).stream("red"))
}

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

#[test]
fn the_average_follows_the_queue_by_its_weight() {
    let mut red = red(config());
    let mut seen = Vec::new();
    // Each arrival finds one more packet: 0, 1, 2, 3.
    for _ in 0..4 {
        red.enqueue(at(0), datagram(1000), false, &mut Drops::new());
        seen.push(red.average());
    }
    // From 0: + (1 - 0) / 4, + (2 - 0.25) / 4, + (3 - 0.6875) / 4.
    assert_eq!(seen, [0.0, 0.25, 0.6875, 1.265_625]);
}

#[test]
fn an_idle_time_counts_as_so_many_empty_arrivals() {
    let mut red = red(config());
    red.average = 8.0;
    red.idle_since = Some(at(0));
    // 1000 B at 8 Mbit/s take 1 ms: in 3 ms three packets could have left. 8 * 0.75^3.
    red.enqueue(at(3_000), datagram(1000), true, &mut Drops::new());
    assert!((red.average() - 3.375).abs() < 1e-12, "{}", red.average());
}

#[test]
fn bytes_count_in_packets_of_mean_length() {
    let mut red = red(RedConfig { unit: RedUnit::Bytes, ..config() });
    red.enqueue(at(0), datagram(500), false, &mut Drops::new());
    red.enqueue(at(0), datagram(500), false, &mut Drops::new());
    assert_eq!(red.average(), 0.125, "half a packet, a quarter of it");
}

#[test]
fn the_base_probability_rises_from_min_to_max() {
    let points = |gentle: bool, averages: &[f64]| {
        let mut red = red(RedConfig { gentle, ..config() });
        let at = |average: &f64| {
            red.average = *average;
            red.base_probability()
        };
        averages.iter().map(at).collect::<Vec<_>>()
    };
    assert_eq!(points(false, &[4.9, 5.0, 7.5, 10.0, 15.0]), [0.0, 0.0, 0.025, 0.05, 1.0]);
    // Gentle: 0.1 at 15, then up to 1 at 30; half-way 0.55.
    assert_eq!(points(true, &[10.0, 15.0, 22.5, 30.0]), [0.05, 0.1, 0.55, 1.0]);
}

#[test]
fn drops_are_spread_evenly() {
    let mut red = red(RedConfig { weight: 0.0, ..config() });
    red.average = 10.0;
    red.idle_since = None;
    // p_b = 0.05 and so p_a = 0.05 / (1 - 0.05 count), where count is 1 at the first arrival after
    // a drop: the gap is uniform on 1..=19.
    let mut gaps = [0_u32; 20];
    let mut gap = 0;
    red.count = 0;
    for _ in 0..210_000 {
        gap += 1;
        if red.judge(1000) == Verdict::Early {
            gaps[gap] += 1;
            gap = 0;
        }
    }
    let drops: u32 = gaps.iter().sum();
    assert!(drops.abs_diff(21_000) < 330, "mean gap 10: {drops} drops");
    let expected = f64::from(drops) / 19.0;
    for (gap, n) in gaps.iter().enumerate().skip(1) {
        assert!((f64::from(*n) - expected).abs() < 170.0, "gap {gap}: {n}, not {expected}");
    }
}

#[test]
fn in_bytes_a_packet_is_dropped_by_its_length() {
    let drops = |len: u32| {
        let mut red = red(RedConfig { unit: RedUnit::Bytes, weight: 0.0, ..config() });
        red.average = 10.0;
        (0..100_000).filter(|_| red.judge(len) == Verdict::Early).count()
    };
    // p_b is 0.05 for 1000 bytes. The gap between drops is uniform on 1..1/p_b, its mean 1 / 2 p_b.
    for (len, expected) in [(500, 5_000), (1000, 10_000), (2000, 20_000)] {
        let drops = drops(len);
        assert!(drops.abs_diff(expected) < expected / 20, "{len} bytes: {drops} drops");
    }
}

#[test]
fn a_forced_drop_or_a_short_queue_begins_a_gap_as_an_early_drop_does() {
    // The next one is certainly dropped 18 packets after a drop: 0.05 / (1 - 0.05 * 19) = 1.
    let after = |average: f64| {
        let mut red = red(RedConfig { weight: 0.0, ..config() });
        red.count = 17;
        red.average = average;
        let before = red.judge(1000);
        red.average = 10.0;
        (before, red.judge(1000))
    };
    assert_eq!(after(5.0), (Verdict::Take, Verdict::Early));
    assert_eq!(after(4.9), (Verdict::Take, Verdict::Take));
    assert_eq!(after(16.0), (Verdict::Forced, Verdict::Take));
}

#[test]
fn ect_is_marked_between_the_thresholds_and_dropped_beyond() {
    let packet = |ecn| Datagram { ecn, ..datagram(1000) };
    let run = |average: f64, ecn: Ecn| {
        let mut red = red(RedConfig { weight: 0.0, ecn: true, max_probability: 1.0, ..config() });
        red.average = average;
        red.idle_since = None;
        let mut drops = Drops::new();
        for _ in 0..1_000 {
            red.enqueue(at(0), packet(ecn), false, &mut drops);
        }
        (red.marked() > 0, !drops.is_empty())
    };
    assert_eq!(run(10.0, Ecn::Ect0), (true, false));
    assert_eq!(run(10.0, Ecn::NotEct), (false, true));
    assert_eq!(run(16.0, Ecn::Ect0), (false, true), "RFC 3168 section 7");
}

#[test]
fn the_automatic_settings_are_those_of_the_paper() {
    // 10 Mbit/s and packets of 1250 B: C = 1000 packets/s, w_q = 1 - exp(-0.001).
    let rate = DataRate::from_mbps(10);
    let weight = RedConfig::automatic_weight(rate, 1250);
    assert!((weight - 0.000_999_500_166).abs() < 1e-12, "{weight}");
    let thresholds = |ms| RedConfig::automatic_thresholds(rate, 1250, Duration::from_millis(ms));
    assert_eq!(thresholds(40), (20.0, 60.0));
    assert_eq!(thresholds(5), (5.0, 15.0), "never below 5 packets");
}

#[test]
fn max_p_goes_up_by_little_and_down_by_a_tenth_twice_a_second() {
    let adaptive = Some(Adaptive::default());
    let mut red = red(RedConfig { weight: 0.0, adaptive, ..config() });
    red.idle_since = None;
    // The target lies between 5 + 0.4 * 10 and 5 + 0.6 * 10.
    let mut after = |average: f64, ms: u64| {
        red.average = average;
        red.adapt(at(ms * 1_000));
        red.max_probability()
    };
    assert_eq!(after(12.0, 400), 0.1, "too early");
    assert!((after(12.0, 500) - 0.11).abs() < 1e-12, "up by 0.01, less than a quarter of 0.1");
    assert!((after(10.0, 1_000) - 0.11).abs() < 1e-12, "within the target");
    assert!((after(8.0, 1_500) - 0.099).abs() < 1e-12);
    for i in 0..40 {
        after(8.0, 2_000 + 500 * i);
    }
    let least = red.max_probability();
    assert!((0.009..0.01).contains(&least), "{least}");
    red.average = 12.0;
    red.adapt(at(60_000_000));
    assert!((red.max_probability() - 1.25 * least).abs() < 1e-12, "up by a quarter");
}
