//! Two hosts whose clocks disagree: one clock runs fast or slow, jumps ahead, or stops while its
//! host sleeps, and the other does not. Both hosts send. Messages keep arriving in both directions,
//! the rate recovers once the clocks run at the same speed, and the connection closes.
//!
//! `UDCCP_TEST_CASES=2000 cargo test --release -p udccp-proto --test clocks` runs more cases,
//! starting at `UDCCP_TEST_SEED`.

mod common;

use common::pair::lasting;
use common::world::{MILLION, World};
use udccp_base::{Duration, Rng, Seed};
use udccp_proto::State;
use udccp_testkit::randomised;

const CASES: u64 = 12;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

/// Disturbs a host's clock, or makes the host sleep.
fn disturb(world: &mut World) {
    let host = world.rng.below(2) as usize;
    let spans = [MS * 100, SECOND, SECOND * 5, SECOND * 60, SECOND * 600, SECOND * 20_000];
    let span = pick(&mut world.rng, &spans);
    let rate = pick(&mut world.rng, &[MILLION, 1_010_000, 990_000]);
    let senders = pick(&mut world.rng, &[[true, true], [true, false], [false, true], [false; 2]]);
    match world.rng.below(4) {
        0 => world.set_clock(host, span, rate),
        1 => world.set_clock(host, Duration::ZERO, rate),
        kind => {
            world.set_clock(host, Duration::ZERO, rate);
            let span = span.min(SECOND * 600);
            world.sleep(host, span, kind == 2);
            world.exchange(senders, span, MS * 100);
        }
    }
}

/// Once clocks run evenly and nothing is lost, the rate recovers.
fn assert_rate_recovers(world: &mut World) {
    world.loss = 0.0;
    world.exchange([true, true], SECOND * 200, MS * 20);
    let before = world.received();
    world.exchange([true, true], SECOND * 10, MS * 20);
    let received = [0, 1].map(|host: usize| world.received()[host] - before[host]);
    assert!(received.iter().all(|n| *n > 450), "{received:?} of 500 each: {}", world.stats());
}

fn run_case(seed: u64) {
    let mut rng = Seed(seed).stream("life");
    let ccid = pick(&mut rng, &[2, 3, 4]);
    let config = lasting(ccid, pick(&mut rng, &[None, Some(SECOND * 25)]));
    let delay = pick(&mut rng, &[MS / 10, MS * 5, MS * 50, MS * 300]);
    let mut world = World::with(seed, &config, delay);
    // The rate of CCID 3 follows the mean size, including old messages, so all have one size.
    world.size = pick(&mut rng, &[10, 200, 1300]);
    for _ in 0..5 {
        world.loss = pick(&mut rng, &[0.0, 0.0, 0.01]);
        let senders = pick(&mut rng, &[[true, true], [true, false], [false, true]]);
        let every = pick(&mut rng, &[MS, MS * 20]);
        let span = pick(&mut rng, &[SECOND, SECOND * 5]);
        world.exchange(senders, span, every);
        disturb(&mut world);
        world.exchange(senders, span, every);
        world.assert_delivery_both_ways();
        assert_eq!([0, 1].map(|host| world.state(host)), [Some(State::Open); 2]);
    }
    assert_rate_recovers(&mut world);
    world.end();
}

/// A regression: a peer that slept for ten minutes then acknowledged an earlier packet. That delay
/// was the minimum round-trip time of CCID 3 until several packets, a minute apart, were answered.
#[test]
fn a_single_ten_minute_rtt_sample_does_not_set_the_rate() {
    [168, 431].into_iter().for_each(run_case);
}

#[test]
fn clock_errors_stop_no_sender() {
    for seed in randomised::seeds(CASES) {
        run_case(seed);
    }
}
