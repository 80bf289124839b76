//! Distributions of delays, order, and overtaking.

use std::sync::Arc;

use proptest::prelude::*;
use udccp_base::{Datagram, Duration, Instant, Seed};

use super::{Delay, DelayConfig, Reorder, Variation};
use crate::packet::tests::datagram;
use crate::{Drops, Link, Packet};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Sends `packets` (of length 1000, 1001...) `gap` apart. Returns arrivals in order, with delays.
fn run(config: DelayConfig, packets: u32, gap: Duration) -> Vec<(u32, Duration)> {
    let mut link: Delay<Datagram> =
        Delay::new(config, Seed(5).stream("jitter"), Seed(5).stream("reorder"));
    let mut drops = Drops::new();
    let mut out = Vec::new();
    let mut sends = (0..packets).map(|i| (Instant::ZERO + gap * u64::from(i), i)).peekable();
    loop {
        let due = link.poll_timeout();
        match sends.next_if(|(at, _)| due.is_none_or(|due| *at < due)) {
            Some((at, i)) => link.handle_packet(at, datagram(1000 + i), &mut drops),
            None => {
                let Some(due) = due else { break };
                let packet = link.poll_departure(due, &mut drops).expect("due");
                out.push((packet.wire_len() - 1000, due - Instant::ZERO));
            }
        }
    }
    assert_eq!((out.len(), link.packets_inside()), (packets as usize, 0));
    out
}

fn mean_and_deviation(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[test]
fn a_normal_delay_has_its_mean_and_deviation() {
    let config =
        DelayConfig { delay: ms(50), variation: Variation::Normal(ms(5)), ..Default::default() };
    // The packets are so far apart that keeping the order adds no delay.
    let out = run(config, 20_000, ms(100));
    let delays: Vec<f64> =
        out.iter().map(|(i, at)| (*at - ms(100) * u64::from(*i)).as_millis_f64()).collect();
    let (mean, deviation) = mean_and_deviation(&delays);
    assert!((mean - 50.0).abs() < 0.15 && (deviation - 5.0).abs() < 0.12, "{mean} {deviation}");
}

#[test]
fn a_normal_delay_below_zero_is_drawn_again() {
    let config =
        DelayConfig { delay: ms(1), variation: Variation::Normal(ms(10)), ..Default::default() };
    let out = run(config, 10_000, ms(200));
    let delays: Vec<f64> =
        out.iter().map(|(i, at)| (*at - ms(200) * u64::from(*i)).as_millis_f64()).collect();
    // Of a normal law truncated at a = -0.1: mean 1 + 10 phi(a) / (1 - Phi(a)) = 8.35.
    let (mean, _) = mean_and_deviation(&delays);
    assert!((mean - 8.35).abs() < 0.2, "{mean}");
}

#[test]
fn order_is_kept_unless_it_is_set_free() {
    let wild =
        DelayConfig { delay: ms(50), variation: Variation::Normal(ms(20)), ..Default::default() };
    let order = |config| run(config, 2_000, ms(1)).into_iter().map(|(i, _)| i).collect::<Vec<_>>();
    assert!(order(wild.clone()).is_sorted());
    assert!(!order(DelayConfig { free_order: true, ..wild }).is_sorted());
}

#[test]
fn a_trace_of_delays_holds_from_each_of_its_times() {
    let steps: Arc<[(Duration, Duration)]> =
        [(ms(0), ms(0)), (ms(20), ms(30)), (ms(100), ms(5))].into();
    let config =
        DelayConfig { delay: ms(10), variation: Variation::Trace(steps), ..Default::default() };
    let out: Vec<u64> = run(config, 6, ms(20)).iter().map(|(_, at)| at.as_millis()).collect();
    // Sent at 0, 20, 40, 60, 80 and 100 ms. The last must not overtake the one ahead.
    assert_eq!(out, [10, 60, 80, 100, 120, 120]);
}

#[test]
fn without_a_time_of_its_own_a_picked_packet_is_not_delayed() {
    let reorder = Some(Reorder { probability: 1.0, gap: 5, by: None });
    let config = DelayConfig { delay: ms(10), reorder, ..Default::default() };
    let out = run(config, 10, ms(1));
    let order: Vec<u32> = out.iter().map(|(i, _)| *i).collect();
    // Every fifth leaves at once and so overtakes the four ahead of it.
    assert_eq!(order, [4, 9, 0, 1, 2, 3, 5, 6, 7, 8]);
    assert_eq!(out[0].1, ms(4));
}

#[test]
fn with_a_time_of_its_own_a_picked_packet_is_overtaken() {
    let reorder =
        Some(Reorder { probability: 1.0, gap: 4, by: Some(Duration::from_micros(2_500)) });
    let config = DelayConfig { delay: ms(10), reorder, ..Default::default() };
    let order: Vec<u32> = run(config, 8, ms(1)).iter().map(|(i, _)| *i).collect();
    assert_eq!(order, [0, 1, 2, 4, 5, 3, 6, 7]);
}

proptest! {
    #[test]
    fn every_packet_comes_out_once(
        seed in any::<u64>(),
        probability in 0.0..1.0_f64,
        gap in 1..10_u64,
        by in prop::option::of(0..20_u64),
        free_order: bool,
    ) {
        let reorder = Some(Reorder { probability, gap, by: by.map(ms) });
        let variation = Variation::Normal(ms(3 + seed % 10));
        let config =
            DelayConfig { delay: ms(10), variation, free_order, reorder, ..Default::default() };
        let mut numbers: Vec<u32> = run(config, 200, ms(1)).into_iter().map(|(i, _)| i).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    }
}
