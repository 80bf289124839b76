//! Every kind of link in a whole simulation with the checker on, which verifies order, limits,
//! conservation, and that packets arrive unchanged.

mod toy;

use std::sync::Arc;

use toy::{ToyReceiver, ToySender};
use udccp_base::{DataRate, Duration, Instant, Seed};
use udccp_sim::{
    Bulk, Change, CoDelConfig, DropReason, Dumbbell, DumbbellConfig, FqCoDelConfig, Gather,
    GilbertElliott, LinkConfig, LossConfig, Opportunities, PairConfig, PieConfig, QueueConfig,
    QueueLimit, RedConfig, Reorder, RunConfig, RunResult, Variation,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

/// Runs two flows over 8 Mbit/s and 40 ms for 20 s, with `change` made to the forward bottleneck.
fn run(change: impl FnOnce(&mut LinkConfig)) -> RunResult {
    let rate = DataRate::from_mbps(8);
    let mut config = DumbbellConfig::symmetric(rate, ms(40), QueueLimit::Packets(30));
    change(&mut config.forward);
    let mut net = Dumbbell::new(config);
    for name in ["one", "two"] {
        let at = net.next_addresses();
        let (sender, receiver) = (ToySender::new(at, 25), ToyReceiver::new(at));
        net.add_pair(PairConfig::new(name, sender, receiver, Box::new(Bulk::new())));
    }
    let run = RunConfig { check: true, ..RunConfig::new(Duration::from_secs(20), Seed(4)) };
    net.run(run).expect("a run")
}

fn drops(result: &RunResult, reason: DropReason) -> u64 {
    result.system.forward.whole.dropped_by(reason).packets
}

#[test]
fn every_queue_carries_both_flows() {
    let rate = Some(DataRate::from_mbps(8));
    let red = RedConfig::between(5.0, 15.0, rate, QueueLimit::Unlimited);
    let queues = [
        QueueConfig::DropHead,
        QueueConfig::Red(red),
        QueueConfig::CoDel(CoDelConfig::default()),
        QueueConfig::FqCoDel(FqCoDelConfig::default()),
        QueueConfig::Pie(PieConfig::default()),
    ];
    for queue in queues {
        let result = run(|link| link.queue = queue);
        assert!(result.flows.iter().all(|f| f.goodput_bytes > 1_000_000), "{queue:?}");
        assert!(result.system.forward.utilisation > 0.5, "{queue:?}");
    }
}

#[test]
fn copies_arrive_and_are_accounted_for() {
    let result = run(|link| {
        link.duplicate = 0.1;
        link.loss = LossConfig::Random(0.05);
        link.reorder = Some(Reorder { probability: 0.05, gap: 1, by: Some(ms(10)) });
        link.variation = Variation::Normal(ms(2));
    });
    let copies: u64 = result.flows.iter().map(|f| f.forward.duplicated).sum();
    assert!(copies > 100, "{copies}");
    assert_eq!(copies, result.system.forward.whole.duplicated.packets);
    for flow in &result.flows {
        let c = flow.forward;
        let known = c.delivered.packets + c.dropped_total() + c.in_flight;
        assert_eq!(c.sent.packets + c.duplicated, known);
    }
}

#[test]
fn corruption_and_bursts_have_their_own_reasons() {
    let bursts = GilbertElliott::with_bursts(0.05, 5.0).expect("a channel");
    let result = run(|link| {
        link.corrupt = 0.05;
        link.loss = LossConfig::GilbertElliott(bursts);
    });
    assert!(drops(&result, DropReason::Corrupted) > 50);
    assert!(drops(&result, DropReason::RandomLoss) > 50);
}

#[test]
fn packets_above_the_mtu_do_not_pass() {
    let result = run(|link| link.mtu = Some(1400));
    assert!(drops(&result, DropReason::TooLong) > 0);
    assert_eq!(result.flows[0].forward.delivered_data, 0);
}

#[test]
fn a_change_of_rate_changes_what_arrives_from_then_on() {
    let to = DataRate::from_mbps(2);
    let result = run(|link| link.changes = vec![(at(10_000), Change::Rate(to))]);
    let sum = |range: core::ops::Range<usize>| -> f64 {
        let rate = |f: &udccp_sim::FlowResult| -> f64 {
            f.series[range.clone()].iter().map(|s| s.throughput().as_mbps()).sum()
        };
        result.flows.iter().map(|f| rate(f)).sum::<f64>() / range.len() as f64
    };
    assert!(sum(5..10) > 6.0, "{}", sum(5..10));
    assert!((1.9..=2.05).contains(&sum(12..20)), "{}", sum(12..20));
}

#[test]
fn nothing_arrives_while_the_link_is_down_and_flows_come_back() {
    let down = vec![(at(5_000), Change::Down(true)), (at(8_000), Change::Down(false))];
    let result = run(|link| link.changes = down);
    assert!(drops(&result, DropReason::LinkDown) > 0);
    let bytes =
        |second: usize| result.flows.iter().map(|f| f.series[second].wire_bytes).sum::<u64>();
    assert_eq!((bytes(6), bytes(7)), (0, 0));
    assert!(bytes(18) > 100_000, "{}", bytes(18));
}

#[test]
fn a_trace_sets_the_pace() {
    // Two opportunities every 5 ms: 4.8 Mbit/s.
    let trace = Opportunities::new(Arc::from([ms(5), ms(5)])).expect("a trace");
    let result = run(|link| link.trace = Some(trace));
    let rate = result.system.forward.measured.departure_rate(Duration::from_secs(20)).as_mbps();
    assert!((4.0..=4.8).contains(&rate), "{rate}");
    assert!((rate / 4.8 - result.system.forward.utilisation).abs() < 0.01);
}

#[test]
fn packets_that_arrive_together_keep_their_order_and_limits() {
    let result = run(|link| {
        link.gather = Gather { delay_tick: Some(ms(4)), interrupt_moderation: Some(ms(6)) };
    });
    assert!(result.system.forward.utilisation > 0.9, "{}", result.system.forward.utilisation);
    assert_ne!(result.hash, run(|_| ()).hash);
}
