//! Compares CUBIC with its closed form and with numbers computed by hand.

use udccp_base::{Duration, Instant};
use udccp_cc::{AckSample, CongestionControl, Cubic, CubicConfig};

/// A sender with a full window and a constant round-trip time, one acknowledgement per packet.
struct Path {
    cubic: Cubic,
    now: Instant,
    rtt: Duration,
    acks_per_rtt: fn(u32) -> (u32, u32),
    since_loss: u64,
}

impl Path {
    fn new(cubic: Cubic, rtt_ms: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        Self { cubic, now: Instant::ZERO, rtt, acks_per_rtt: |cwnd| (cwnd, 1), since_loss: 0 }
    }

    /// One round trip: a window of packets is acknowledged, evenly spread.
    fn round_trip(&mut self) {
        let (acks, each) = (self.acks_per_rtt)(self.cubic.cwnd());
        let step = self.rtt / u64::from(acks);
        let end = self.now + self.rtt;
        for _ in 0..acks {
            self.now += step;
            let rtt = Some(self.rtt);
            let full = AckSample::full_window(self.now, each);
            self.cubic.on_ack(&AckSample { rtt, srtt: rtt, min_rtt: rtt, ..full });
        }
        self.now = end;
    }

    fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.round_trip();
        }
    }

    fn lose(&mut self) {
        let cwnd = self.cubic.cwnd();
        self.cubic.on_congestion_event(self.now, cwnd);
    }
}

/// A path whose first cut is at a window of `cwnd`.
fn cut_at(config: CubicConfig, cwnd: u32, rtt_ms: u64) -> Path {
    let mut path = Path::new(Cubic::new(cwnd, config), rtt_ms);
    path.lose();
    path
}

fn near(got: u32, want: f64, tolerance: f64) {
    assert!((f64::from(got) - want).abs() <= tolerance, "{got}, expected {want}");
}

/// W_max 1000 and 0.8 kept: K = cbrt(200 / 0.4) = 7.937 s. W(t) = 0.4 (t - 7.937)^3 + 1000.
#[test]
fn the_2_6_form_follows_its_curve() {
    let config = CubicConfig { max_increment: None, ..CubicConfig::linux_2_6() };
    let mut path = cut_at(config, 1000, 100);
    assert_eq!((path.cubic.cwnd(), path.cubic.ssthresh()), (800, 800));
    // The window aims at the curve one round trip ahead, so it matches W only within 1 %.
    for (t, want) in [(2.0, 916.3), (4.0, 975.6), (6.0, 997.1), (8.0, 1000.0), (12.0, 1026.8)] {
        let elapsed = path.now.as_secs_f64();
        path.run(t - elapsed);
        near(path.cubic.cwnd(), want, 9.0);
    }
    path.run(15.874 - path.now.as_secs_f64());
    near(path.cubic.cwnd(), 1200.0, 12.0);
}

/// 0.7 kept: K = cbrt(300 / 0.4) = 9.086 s. W(3) = 0.4 (-6.086)^3 + 1000 = 909.8. Linux 6.1 with
/// its whole packets follows the same curve.
#[test]
fn the_form_of_rfc_9438_follows_its_curve() {
    for config in [CubicConfig::rfc9438(), CubicConfig::linux_6_1()] {
        let mut path = cut_at(config, 1000, 100);
        assert_eq!(path.cubic.cwnd(), 700);
        for (t, want) in [(3.0, 909.8), (6.0, 988.3), (9.1, 1000.0), (12.1, 1010.9)] {
            path.run(t - path.now.as_secs_f64());
            near(path.cubic.cwnd(), want, 10.0);
        }
    }
}

/// W_max 6, cut to 4: K = cbrt(2 / 0.4) = 1.71 s. The curve is 6 - 0.4 (0.2 - 1.71)^3 = 4.6 after a
/// round trip of 100 ms and one more, which the kernel rounds to 6 - 1 = 5: four acknowledgements
/// add a packet. The RFC's arithmetic adds 0.53 packets.
#[test]
fn a_small_window_of_linux_6_1_grows_sooner() {
    for (config, after) in [(CubicConfig::linux_6_1(), 5), (CubicConfig::rfc9438(), 4)] {
        let mut path = cut_at(config, 6, 100);
        assert_eq!(path.cubic.cwnd(), 4);
        path.round_trip();
        path.now += Duration::from_millis(1);
        assert_eq!(path.cubic.cwnd(), after);
    }
}

/// RTT 10 ms, W_max 50: always 8/15 of a packet per round trip, 35 + 60 * 0.53 = 67 after 600 ms.
/// The window follows a few packets behind. The RFC's estimate grows by one beyond 50.
#[test]
fn the_estimate_of_linux_6_1_keeps_its_pace() {
    let mut path = cut_at(CubicConfig::linux_6_1(), 50, 10);
    path.run(0.60);
    near(path.cubic.cwnd(), 66.0, 2.5);
}

/// A window of 4 far below its plateau of 100, with a round-trip time of 1 s, should reach 71 in
/// the next round trip. It grows by a packet per two acknowledged.
#[test]
fn linux_6_1_grows_by_half_at_most() {
    let mut path = cut_at(CubicConfig::linux_6_1(), 100, 1000);
    path.cubic.set_window(path.now, 4, 2);
    path.round_trip();
    assert_eq!(path.cubic.cwnd(), 6);
}

/// After a timeout the path's capacity is unknown: at least one packet per 20 acknowledged.
#[test]
fn linux_6_1_grows_by_one_in_twenty_until_a_loss() {
    let mut path = cut_at(CubicConfig::linux_6_1(), 200, 10);
    path.cubic.on_rto(path.now, 200);
    path.run(0.2);
    let before = path.cubic.cwnd();
    path.round_trip();
    near(path.cubic.cwnd(), f64::from(before) * 1.05, 1.0);
    assert!(path.cubic.cwnd() > before + 4, "from {before}");
}

/// A window set from outside begins a new curve towards the same plateau: again from 700 to 909.8
/// in 3 s. The old curve would be at 996.3 by then.
#[test]
fn a_window_from_outside_begins_a_new_curve() {
    for config in [CubicConfig::rfc9438(), CubicConfig::linux_6_1()] {
        let mut path = cut_at(config, 1000, 100);
        path.run(4.0);
        path.cubic.set_window(path.now, 700, 700);
        path.run(3.0);
        near(path.cubic.cwnd(), 909.8, 10.0);
    }
}

/// S_max = 16 packets per 100 ms: far below the plateau growth is linear at 160 packets/s. W_max
/// 20,000: K = cbrt(4000 / 0.4) = 21.5 s, with an initial slope of 3 C K^2 = 557 /s.
#[test]
fn the_2_6_form_grows_linearly_far_from_the_plateau() {
    let mut path = cut_at(CubicConfig::linux_2_6(), 20_000, 50);
    path.run(2.0);
    near(path.cubic.cwnd(), 16_320.0, 10.0);
    path.run(2.0);
    near(path.cubic.cwnd(), 16_640.0, 10.0);
}

/// RTT 10 ms, W_max 50: the curve needs 2.9 s (with 0.8 kept) for what NewReno does in a fraction
/// of that. alpha = 3 * 0.3 / 1.7 = 0.529 per round trip up to 50, 1 from there.
#[test]
fn short_paths_are_as_fast_as_newreno() {
    let mut path = cut_at(CubicConfig::rfc9438(), 50, 10);
    path.run(0.28); // 28 round trips at 0.529: 35 + 14.8
    near(path.cubic.cwnd(), 49.8, 1.0);
    path.run(0.30); // 30 round trips at 1
    near(path.cubic.cwnd(), 79.8, 2.5);

    // 2.6: always alpha = 3 * 0.2 / 1.8 = 1/3.
    let mut path = cut_at(CubicConfig::linux_2_6(), 50, 10);
    path.run(0.60);
    near(path.cubic.cwnd(), 40.0 + 20.0, 2.0);
}

/// The 2.6 estimate of NewReno counts acknowledgements. With one per two packets it grows at half
/// speed; the curve itself does not slow down.
#[test]
fn delayed_acknowledgements_slow_only_the_estimate_of_2_6() {
    let mut path = cut_at(CubicConfig::linux_2_6(), 50, 10);
    path.acks_per_rtt = |cwnd| (cwnd.div_ceil(2), 2);
    path.run(0.60);
    near(path.cubic.cwnd(), 40.0 + 10.0, 2.5);

    let config = CubicConfig { max_increment: None, ..CubicConfig::linux_2_6() };
    let mut path = cut_at(config, 1000, 100);
    path.acks_per_rtt = |cwnd| (cwnd.div_ceil(2), 2);
    path.run(4.0);
    near(path.cubic.cwnd(), 975.6, 9.0);
}

/// RFC 9438 section 4.3 counts packets: 14.8 in 28 round trips up to 50, and 30 in 30 from there.
#[test]
fn delayed_acknowledgements_do_not_slow_the_estimate_of_the_rfc() {
    let mut path = cut_at(CubicConfig::rfc9438(), 50, 10);
    path.acks_per_rtt = |cwnd| (cwnd.div_ceil(2), 2);
    path.run(0.28);
    near(path.cubic.cwnd(), 49.8, 1.5);
    path.run(0.30);
    near(path.cubic.cwnd(), 79.8, 3.0);
}

/// Cut at 1000, then again at 800 before the plateau: the next plateau is 800 * 0.9 = 720, so
/// K = cbrt((720 - 640) / 0.4) = 5.848 s.
#[test]
fn fast_convergence_lowers_the_plateau() {
    let config = CubicConfig { max_increment: None, ..CubicConfig::linux_2_6() };
    let mut path = cut_at(config.clone(), 1000, 100);
    path.lose();
    assert_eq!(path.cubic.cwnd(), 640);
    path.run(5.9);
    near(path.cubic.cwnd(), 720.0, 5.0);

    // Without it the plateau is 800: K = cbrt(160 / 0.4) = 7.368 s.
    let mut path = cut_at(CubicConfig { fast_convergence: false, ..config }, 1000, 100);
    path.lose();
    path.run(7.4);
    near(path.cubic.cwnd(), 800.0, 6.0);
}

/// RFC 9438 section 4.7: 700 of 1000 packets give a plateau of 700 * 0.85 = 595; in 2.6, 640 give
/// 720. The first half of the curve leads there: 595 - 0.4 (2 - 6.403)^3 = 561 after 2 s, 720 - 0.4
/// (2 - 5.848)^3 = 697. The second half, above a lower plateau, would begin flat.
#[test]
fn a_window_that_makes_room_returns_fast_to_the_lower_plateau() {
    let old = CubicConfig { max_increment: None, ..CubicConfig::linux_2_6() };
    let forms = [(CubicConfig::rfc9438(), 561.0), (CubicConfig::linux_6_1(), 561.0), (old, 697.2)];
    for (config, want) in forms {
        let mut path = cut_at(config, 1000, 100);
        path.lose();
        path.run(2.0);
        near(path.cubic.cwnd(), want, 4.0);
    }
}

/// RFC 9438 section 4.8: slow start ends at 490 packets. In a second the curve adds 0.4 to that and
/// the estimate of NewReno 10 * 0.53; a curve towards 1000 would add over 100.
#[test]
fn a_timeout_forgets_the_last_plateau() {
    let mut path = cut_at(CubicConfig::rfc9438(), 1000, 100);
    path.cubic.on_rto(path.now, 700);
    path.run(1.1);
    let start = path.cubic.cwnd();
    near(start, 490.0, 2.0);
    path.run(1.0);
    near(path.cubic.cwnd(), f64::from(start) + 5.3, 2.0);
}

#[test]
fn a_timeout_starts_from_one_and_makes_a_plateau_where_slow_start_ends() {
    for config in [CubicConfig::rfc9438(), CubicConfig::linux_2_6()] {
        let keep = config.cut;
        let mut path = cut_at(config, 1000, 100);
        let before = path.cubic.cwnd();
        path.cubic.on_rto(path.now, before);
        assert_eq!((path.cubic.cwnd(), path.cubic.ssthresh()), (1, keep.apply(before)));
        path.run(1.1);
        assert!(path.cubic.cwnd() >= keep.apply(before), "slow start is over");
        let start = f64::from(path.cubic.cwnd());
        path.run(1.0);
        // Not the window at the loss, but 0.4 t^3 above the new start (or 2.6's one in fifty).
        assert!(f64::from(path.cubic.cwnd()) < start * 1.3);
    }
}

/// RFC 9438 section 4.2: the window does not grow while an application pauses.
#[test]
fn cubic_time_stops_while_the_window_is_not_used() {
    let mut path = cut_at(CubicConfig::rfc9438(), 1000, 100);
    path.run(2.0);
    let before = path.cubic.cwnd();
    for _ in 0..100 {
        path.now += Duration::from_millis(100);
        let idle = AckSample { cwnd_limited: false, ..AckSample::full_window(path.now, 1) };
        path.cubic.on_ack(&idle);
    }
    path.round_trip();
    assert!(path.cubic.cwnd() <= before + 8, "{before} -> {}", path.cubic.cwnd());
}

/// The mean window over `seconds` with one loss per `packets_per_loss` packets.
fn mean_window(path: &mut Path, packets_per_loss: u64, seconds: u64) -> f64 {
    let mut area = 0;
    for _ in 0..seconds * 10 {
        let cwnd = u64::from(path.cubic.cwnd());
        path.round_trip();
        area += cwnd;
        path.since_loss += cwnd;
        if path.since_loss >= packets_per_loss {
            path.since_loss -= packets_per_loss;
            path.lose();
        }
    }
    area as f64 / (seconds * 10) as f64
}

/// RFC 9438 section 5.1, equation 6: one loss per 1/p packets gives an average window of (C (3 + b)
/// / (4 (1 - b)))^(1/4) (RTT / p)^(3/4). Near its plateau the curve is so flat that the window
/// drifts by fractions of a packet per cut: it rises below this value and falls above it.
#[test]
fn the_average_window_obeys_the_law_of_the_rfc() {
    for (config, keep) in [(CubicConfig::rfc9438(), 0.7), (CubicConfig::linux_2_6(), 0.8)] {
        let law = libm::pow(0.4 * (3.0 + keep) / (4.0 * (1.0 - keep)), 0.25)
            * libm::pow(0.1 / 1e-5, 0.75);
        let plateau = law / (1.0 - (1.0 - keep) / 4.0);
        let averages = |start: f64| {
            let config = CubicConfig {
                fast_convergence: false,
                reno_friendly: false,
                max_increment: None,
                ..config.clone()
            };
            let mut path = cut_at(config, (plateau * start) as u32, 100);
            path.acks_per_rtt = |cwnd| (cwnd / 4, 4);
            [(); 3].map(|()| mean_window(&mut path, 100_000, 150) / law)
        };
        assert!(averages(1.0).iter().all(|a| (a - 1.0).abs() < 0.01), "{:?}", averages(1.0));
        let below = averages(0.85);
        assert!(below.is_sorted() && below[2] < 1.01, "{below:?}");
        let above = averages(1.15);
        assert!(above.is_sorted_by(|a, b| a > b) && above[2] > 0.99, "{above:?}");
    }
}

#[test]
fn cubic_windows_are_bit_identical_on_all_platforms() {
    let mut path = cut_at(CubicConfig::rfc9438(), 777, 37);
    let mut hash = 0_u64;
    for i in 0..2000 {
        path.round_trip();
        if i % 400 == 399 {
            path.lose();
        }
        hash = hash.rotate_left(5) ^ u64::from(path.cubic.cwnd());
    }
    assert_eq!(hash, PINNED, "a change here moves every committed result");
}

const PINNED: u64 = 5_490_278_538_579_954_468;
