//! Each window algorithm alone on a bottleneck: its throughput and its queue.

mod common;

use common::{Pipe, ms};
use udccp_base::{AppPort, Duration, Message, Payload, Transport};
use udccp_cc::{
    Algorithm, BbrConfig, BicConfig, CompoundConfig, CubicConfig, HighSpeedConfig, HtcpConfig,
    HyStart, HyblaConfig, IllinoisConfig, LpConfig, ScalableConfig, VegasConfig, VenoConfig,
    WestwoodConfig, YeahConfig,
};
use udccp_tcp::TcpConfig;

/// All algorithms, with the smallest share of the capacity that each uses alone.
fn all() -> Vec<(Algorithm, f64)> {
    vec![
        (Algorithm::NEW_RENO, 0.93),
        (Algorithm::Bic(BicConfig::default()), 0.93),
        (Algorithm::Cubic(CubicConfig::linux_2_6()), 0.93),
        (Algorithm::Cubic(CubicConfig::rfc9438()), 0.93),
        (Algorithm::Cubic(CubicConfig::with_hystart(HyStart::Classic)), 0.90),
        (Algorithm::Cubic(CubicConfig::linux_6_1()), 0.90),
        (Algorithm::Cubic(CubicConfig::with_hystart(HyStart::PlusPlus)), 0.90),
        (Algorithm::HighSpeed(HighSpeedConfig::default()), 0.93),
        (Algorithm::Htcp(HtcpConfig::default()), 0.93),
        (Algorithm::Hybla(HyblaConfig::default()), 0.90),
        (Algorithm::Illinois(IllinoisConfig::default()), 0.93),
        (Algorithm::Lp(LpConfig::default()), 0.50),
        (Algorithm::Scalable(ScalableConfig::default()), 0.93),
        (Algorithm::Vegas(VegasConfig::default()), 0.93),
        (Algorithm::Veno(VenoConfig::default()), 0.93),
        (Algorithm::Westwood(WestwoodConfig::default()), 0.93),
        (Algorithm::Yeah(YeahConfig::default()), 0.93),
        (Algorithm::Compound(CompoundConfig::default()), 0.93),
        (Algorithm::Bbr(BbrConfig::default()), 0.90),
    ]
}

/// 10 Mbit/s, 50 ms and a queue of the path's capacity: 42 packets each.
fn run(algorithm: Algorithm, seconds: u64) -> Outcome {
    let mut pipe = Pipe::new(TcpConfig::new(algorithm), ms(25)).with_rate(10, 42);
    pipe.start();
    pipe.run_for(Duration::from_secs(seconds / 4));
    run_until_in_order(&mut pipe);
    let (before, dropped) = (pipe.delivered, pipe.forward.dropped);
    let mut delays = Vec::new();
    for _ in 0..seconds * 15 {
        pipe.run_for(ms(50));
        delays.push(pipe.sender.probe().srtt.expect("a round-trip time").as_millis_f64() - 50.0);
    }
    delays.sort_by(f64::total_cmp);
    // 1448 bytes of data in 1500.
    let capacity = 10e6 / 8.0 * (seconds * 15 * 50) as f64 / 1000.0 * 1448.0 / 1500.0;
    Outcome {
        used: (pipe.delivered - before) as f64 / capacity,
        queue_ms: delays[delays.len() / 2],
        dropped: pipe.forward.dropped - dropped,
        timeouts: pipe.sender.stats().send.timeouts,
    }
}

/// Continues until ten consecutive packets were delivered one by one. Data waiting behind a hole
/// would otherwise be counted later, for a time in which it did not cross the path.
fn run_until_in_order(pipe: &mut Pipe) {
    let mut steady = 0;
    while steady < 5 {
        let before = pipe.delivered;
        // Two packets, or three.
        pipe.run_for(Duration::from_micros(2500));
        let is_in_order = (1448..=3 * 1448).contains(&(pipe.delivered - before));
        steady = if is_in_order { steady + 1 } else { 0 };
    }
}

#[derive(Debug)]
struct Outcome {
    used: f64,
    queue_ms: f64,
    dropped: u64,
    timeouts: u64,
}

#[test]
fn each_fills_a_path_with_a_queue_as_long_as_it() {
    for (algorithm, least) in all() {
        let name = format!("{algorithm:?}");
        let found = run(algorithm, 20);
        assert!(found.used > least && found.used < 1.001, "{found:?}: {name}");
        assert_eq!(found.timeouts, 0, "{found:?}: {name}");
    }
}

/// Vegas keeps 2 to 4 packets of 1.2 ms queued, and loses nothing. The smoothed round-trip time
/// also includes the packet's own 1.2 ms, and for the older of two packets the wait for the other:
/// 4.8 to 7.2 ms, and up to a packet more, because whole packets are compared.
#[test]
fn vegas_keeps_a_short_queue() {
    let found = run(Algorithm::Vegas(VegasConfig::default()), 20);
    assert!((4.8..8.4).contains(&found.queue_ms), "{found:?}");
    assert_eq!(found.dropped, 0, "{found:?}");
}

/// With about the path's capacity in flight the queue is short. In PROBE_RTT and after probing it
/// empties.
#[test]
fn bbr_fills_the_path_with_about_one_path_in_flight() {
    let mut pipe =
        Pipe::new(TcpConfig::new(Algorithm::Bbr(BbrConfig::default())), ms(25)).with_rate(10, 42);
    pipe.start();
    pipe.run_for(Duration::from_secs(3));
    let mut flights = Vec::new();
    for _ in 0..400 {
        pipe.run_for(ms(13));
        flights.push(pipe.sender.probe().pipe_packets.expect("a pipe") as f64);
    }
    // 10 Mbit/s of 1500 bytes in 50 ms: 41.7 packets.
    let mean = flights.iter().sum::<f64>() / flights.len() as f64 / 41.7;
    assert!((0.9..1.35).contains(&mean), "{mean} paths in flight");
    let found = run(Algorithm::Bbr(BbrConfig::default()), 40);
    assert!(found.used > 0.92 && found.queue_ms < 15.0, "{found:?}");
    assert!(found.dropped < 20, "{found:?}");
}

/// A flow that opens after 12 s has just measured its smallest round-trip time. Its first ten
/// segments are sent at once, and the window grows with them.
#[test]
fn bbr_starts_equally_early_or_late() {
    let config = TcpConfig::new(Algorithm::Bbr(BbrConfig::linux_6_1()));
    let mut pipe = Pipe::new(config, ms(25)).with_rate(10, 42);
    pipe.run_for(Duration::from_secs(12));
    pipe.start();
    pipe.run_for(ms(60));
    assert_eq!(pipe.sender.stats().send.segments_sent, 10);
    pipe.run_for(ms(55));
    let window = pipe.sender.probe().cwnd_packets.expect("a window");
    assert!(window >= 19.0, "{window}");
}

/// Once in 10 s, for 200 ms, BBR sends four packets per round trip.
#[test]
fn bbr_looks_for_the_smallest_round_trip_time_every_ten_seconds() {
    let mut pipe =
        Pipe::new(TcpConfig::new(Algorithm::Bbr(BbrConfig::default())), ms(25)).with_rate(10, 42);
    pipe.start();
    let (visits, share) = small_windows(&mut pipe, |_| {});
    assert!((3..=5).contains(&visits), "{visits} visits in 45 s");
    assert!((0.015..0.04).contains(&share), "{share} of the time");
}

/// An application of 2 Mbit/s leaves the queue empty, so every round-trip time is the smallest. The
/// kernel's BBR still probes for it, because only a smaller one renews it.
#[test]
fn a_round_trip_time_equal_to_the_smallest_does_not_renew_it() {
    let mut pipe =
        Pipe::new(TcpConfig::new(Algorithm::Bbr(BbrConfig::default())), ms(25)).with_rate(10, 42);
    pipe.to_send = 0;
    pipe.start();
    let (visits, _) = small_windows(&mut pipe, |pipe| {
        pipe.sender.send(pipe.now, Message::new(Payload::Zeros(2500)));
        pipe.drain();
    });
    assert!((3..=5).contains(&visits), "{visits} visits in 45 s");
}

/// How often in 45 s the window falls to four packets, and for which share of the time it stays so
/// small; `step` is called every 10 ms.
fn small_windows(pipe: &mut Pipe, step: impl Fn(&mut Pipe)) -> (u32, f64) {
    let (mut visits, mut inside, mut steps) = (0, false, 0);
    for _ in 0..4500 {
        step(pipe);
        pipe.run_for(ms(10));
        let small = pipe.sender.probe().cwnd_packets.is_some_and(|w| w <= 4.0);
        visits += u32::from(small && !inside);
        steps += u32::from(small);
        inside = small;
    }
    (visits, f64::from(steps) / 4500.0)
}

/// A loss of 1 % costs BBR next to nothing, and NewReno most of the capacity.
#[test]
fn bbr_does_not_take_losses_for_congestion() {
    let lossy = |algorithm| {
        let mut rng = udccp_base::Seed(7).stream("loss");
        let mut pipe = Pipe::new(TcpConfig::new(algorithm), ms(25)).with_rate(10, 42).with_rule(
            move |_, d| {
                let lost = !d.payload.is_empty() && rng.chance(0.01);
                if lost { common::Fate::Drop } else { common::Fate::Pass }
            },
        );
        pipe.start();
        pipe.run_for(Duration::from_secs(20));
        pipe.delivered as f64 / (20.0 * 10e6 / 8.0)
    };
    let [reno, bbr] = [Algorithm::NEW_RENO, Algorithm::Bbr(BbrConfig::default())].map(lossy);
    assert!(bbr > 0.85, "BBR {bbr}");
    assert!(reno < 0.5, "NewReno {reno}");
}

/// An application that sends 2 Mbit/s does not make BBR estimate a bandwidth of 2 Mbit/s.
#[test]
fn bbr_is_not_misled_by_an_application_that_sends_little() {
    let mut pipe =
        Pipe::new(TcpConfig::new(Algorithm::Bbr(BbrConfig::default())), ms(25)).with_rate(10, 42);
    pipe.start();
    pipe.run_for(Duration::from_secs(3));
    let before = pipe.delivered;
    pipe.to_send = 0;
    for _ in 0..500 {
        pipe.run_for(ms(10));
        pipe.sender.send(pipe.now, Message::new(Payload::Zeros(2500)));
        pipe.drain();
    }
    let slow = pipe.delivered - before;
    assert!((1_000_000..1_700_000).contains(&slow), "{slow}");
    let before = pipe.delivered;
    pipe.to_send = u64::MAX;
    pipe.drain();
    pipe.run_for(Duration::from_secs(1));
    let used = (pipe.delivered - before) as f64 / (10e6 / 8.0 * 1448.0 / 1500.0);
    assert!(used > 0.85, "{used} of the path in the first second");
}
