//! Updates of the drop probability compared with values computed by hand.

use udccp_base::{Datagram, Duration, Ecn, Instant, Seed};

use super::{Pie, PieConfig, auto_tuning};
use crate::Drops;
use crate::packet::tests::datagram;
use crate::queue::Queue;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn pie(config: PieConfig) -> Pie<Datagram> {
    Pie::new(config, Seed(1).stream("pie"))
}

/// `drop_prob_` after one update from this state.
fn updated(probability: f64, delay: Duration, old_delay: Duration) -> f64 {
    let mut pie = pie(PieConfig::default());
    (pie.probability, pie.delay, pie.old_delay) = (probability, delay, old_delay);
    pie.update();
    pie.probability
}

#[test]
fn a_step_is_alpha_times_the_deviation_and_beta_times_the_trend() {
    let near = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-12, "{got}");
    // 0.125 * (25 - 15) ms + 1.25 * (25 - 21) ms = 0.00625; scaled down by 2 at 5 %.
    near(updated(0.05, ms(25), ms(21)), 0.05 + 0.003_125);
    // Not scaled at 20 %; the delay falls from 21 to 11 ms: -0.0005 - 0.0125.
    near(updated(0.2, ms(11), ms(21)), 0.2 - 0.013);
    // Scaled down by 8 at 0.5 %.
    near(updated(0.005, ms(25), ms(21)), 0.005 + 0.00625 / 8.0);
    // Scaled down by 2048 at zero.
    near(updated(0.0, ms(100), ms(0)), (0.010_625 + 0.125) / 2048.0);
    // A jump of 100 ms at 20 % would add 0.1356; it is capped.
    near(updated(0.2, ms(100), ms(0)), 0.22);
    // Nothing waits now or before: -0.125 * 15 ms, then reduced by 2 %.
    near(updated(0.2, ms(0), ms(0)), (0.2 - 0.001_875) * 0.98);
    near(updated(0.000_001, ms(0), ms(200)), 0.0);
}

#[test]
fn the_scale_has_seven_steps() {
    let points = [0.0, 0.000_001, 0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0];
    let divisors = [2048.0, 512.0, 128.0, 32.0, 8.0, 2.0, 1.0, 1.0];
    assert_eq!(points.map(auto_tuning), divisors);
}

#[test]
fn updates_that_are_due_are_made_up_for() {
    let mut pie = pie(PieConfig::default());
    (pie.probability, pie.delay, pie.old_delay) = (0.05, ms(25), ms(25));
    let at = |us: u64| Instant::from_nanos(us * 1_000);
    pie.catch_up(at(14_999));
    assert_eq!(pie.probability(), 0.05);
    // Three updates of 0.125 * 10 ms / 2 each.
    pie.catch_up(at(45_000));
    assert!((pie.probability() - (0.05 + 3.0 * 0.000_625)).abs() < 1e-12);
    assert_eq!(pie.burst_allowance, ms(105));
}

#[test]
fn the_trend_is_that_since_the_update_before() {
    let mut pie = pie(PieConfig::default());
    (pie.probability, pie.delay, pie.old_delay) = (0.05, ms(25), ms(21));
    pie.update();
    // As above; then the delay stays the same, and only 0.125 * 10 ms / 2 remains.
    pie.update();
    assert!((pie.probability() - (0.05 + 0.003_125 + 0.000_625)).abs() < 1e-12);
}

/// Shares of arrivals dropped and marked, at a queueing delay of 100 ms and this probability.
fn shares(probability: f64, burst: Duration, ecn: Ecn) -> (f64, f64) {
    let mut pie = pie(PieConfig { ecn: true, ..PieConfig::default() });
    (pie.probability, pie.delay, pie.old_delay) = (probability, ms(100), ms(100));
    pie.burst_allowance = burst;
    let mut drops = Drops::new();
    let now = Instant::ZERO + ms(1);
    for _ in 0..20_000 {
        pie.enqueue(now, Datagram { ecn, ..datagram(1000) }, false, &mut drops);
    }
    (drops.len() as f64 / 2e4, pie.marked() as f64 / 2e4)
}

#[test]
fn arrivals_are_dropped_by_the_probability_or_marked_while_it_is_below_a_tenth() {
    let near = |got: f64, expected: f64| assert!((got - expected).abs() < 0.008, "{got}");
    near(shares(0.05, ms(0), Ecn::NotEct).0, 0.05);
    let (dropped, marked) = shares(0.05, ms(0), Ecn::Ect0);
    assert_eq!(dropped, 0.0);
    near(marked, 0.05);
    let (dropped, marked) = shares(0.2, ms(0), Ecn::Ect0);
    near(dropped, 0.2);
    assert_eq!(marked, 0.0);
    assert_eq!(shares(0.2, ms(15), Ecn::NotEct).0, 0.0, "a burst is allowed");
}

/// RFC 8033 section 4.4.
#[test]
fn the_next_burst_is_allowed_once_congestion_has_gone() {
    let allowed = |probability: f64, delay: Duration, old_delay: Duration| {
        let mut pie = pie(PieConfig::default());
        (pie.probability, pie.delay, pie.old_delay) = (probability, delay, old_delay);
        pie.burst_allowance = Duration::ZERO;
        pie.enqueue(Instant::ZERO + ms(1), datagram(1000), false, &mut Drops::new());
        pie.burst_allowance
    };
    // Half of the target is 7.5 ms.
    assert_eq!(allowed(0.0, ms(7), ms(7)), ms(150));
    assert_eq!(allowed(0.000_1, ms(7), ms(7)), ms(0), "packets are still dropped");
    assert_eq!(allowed(0.0, ms(8), ms(7)), ms(0), "the queue grows");
    assert_eq!(allowed(0.0, ms(7), ms(8)), ms(0), "the queue has only just gone");
}
