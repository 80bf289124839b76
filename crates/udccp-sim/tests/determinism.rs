//! The same seed gives the same run: repeated, checked or not, in any build, on any thread.

mod toy;

use proptest::prelude::*;
use toy::{ToyReceiver, ToySender};
use udccp_base::{DataRate, Duration, Seed};
use udccp_sim::{
    AccessConfig, Bulk, ConstantRate, Dumbbell, DumbbellConfig, LossConfig, PairConfig, QueueLimit,
    RunConfig, RunResult, Variation,
};

fn run(seed: u64, check: bool) -> RunResult {
    let rate = DataRate::from_mbps(20);
    let rtt = Duration::from_millis(30);
    let mut config = DumbbellConfig::symmetric(rate, rtt, QueueLimit::Packets(30));
    config.reverse.loss = LossConfig::Random(0.01);
    let mut net = Dumbbell::new(config);
    for i in 0..3 {
        let at = net.next_addresses();
        net.add_pair(PairConfig {
            start_jitter: Duration::from_millis(100),
            sender_access: AccessConfig {
                rate: Some(DataRate::from_mbps(100)),
                ..AccessConfig::default()
            }
            .into(),
            ..PairConfig::new(
                format!("flow {i}"),
                ToySender::new(at, 40),
                ToyReceiver::new(at),
                Box::new(Bulk::new()),
            )
        });
    }
    let at = net.next_addresses();
    let source = ConstantRate::new(DataRate::from_mbps(3), 500);
    net.add_pair(PairConfig::new(
        "cbr",
        ToySender::udp(at),
        ToyReceiver::udp(at),
        Box::new(source),
    ));
    let mut config = RunConfig::new(Duration::from_secs(10), Seed(seed));
    config.check = check;
    net.run(config).unwrap()
}

/// Committed. It changes only if events of a run change, and then every result changes.
const PINNED: u64 = 14_551_104_158_387_438_252;

#[test]
fn the_hash_of_a_known_run_never_changes() {
    assert_eq!(run(2008, true).hash, PINNED);
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_seed_another() {
    let first = run(1, true);
    assert_eq!(first, run(1, true));
    assert_eq!(first, run(1, false), "checking changes nothing");
    assert_ne!(first.hash, run(2, true).hash);
}

#[test]
fn threads_do_not_matter() {
    let alone: Vec<u64> = (0..6).map(|seed| run(seed, false).hash).collect();
    let together: Vec<u64> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6).map(|seed| scope.spawn(move || run(seed, false).hash)).collect();
        runs.into_iter().map(|r| r.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}

#[test]
fn a_flow_more_moves_no_other_flows_phase() {
    let starts = |flows: usize| -> Vec<Duration> {
        let rate = DataRate::from_mbps(20);
        let rtt = Duration::from_millis(30);
        let mut net = Dumbbell::new(DumbbellConfig::symmetric(rate, rtt, QueueLimit::Unlimited));
        for i in 0..flows {
            let at = net.next_addresses();
            net.add_pair(PairConfig {
                start_jitter: Duration::from_millis(100),
                ..PairConfig::new(
                    format!("flow {i}"),
                    ToySender::new(at, 4),
                    ToyReceiver::new(at),
                    Box::new(Bulk::new()),
                )
            });
        }
        let result = net.run(RunConfig::new(Duration::from_secs(1), Seed(5))).unwrap();
        result.flows.iter().map(|f| f.start).collect()
    };
    assert_eq!(starts(5)[..4], starts(4));
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (0..40_u32).prop_map(QueueLimit::Packets),
        (0..60_000_u64).prop_map(QueueLimit::Bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any network runs to its end with all invariants checked, and every packet accounted for.
    #[test]
    fn every_packet_is_accounted_for(
        seed in 0..1_000_u64,
        kbps in 100..200_000_u64,
        rtt_us in 0..300_000_u64,
        limit in limits(),
        loss in prop_oneof![Just(0.0), 0.0..0.5],
        windows in prop::collection::vec(1..200_u64, 1..5),
        access_mbps in prop::option::of(1..1_000_u64),
    ) {
        let rate = DataRate::from_bits_per_sec(kbps * 1_000);
        let mut config = DumbbellConfig::symmetric(rate, Duration::from_micros(rtt_us), limit);
        config.forward.loss = LossConfig::Random(loss);
        let mut net = Dumbbell::new(config);
        let access = AccessConfig {
            rate: access_mbps.map(DataRate::from_mbps),
            delay: Duration::from_micros(seed),
            limit: if seed % 3 == 0 { limit } else { QueueLimit::Unlimited },
            variation: Variation::Uniform(Duration::from_micros(seed % 4 * 50)),
            ..AccessConfig::default()
        };
        for (i, window) in windows.iter().enumerate() {
            let at = net.next_addresses();
            net.add_pair(PairConfig {
                sender_access: access.clone().into(),
                receiver_access: access.clone().into(),
                start_jitter: Duration::from_millis(300),
                ..PairConfig::new(
                    format!("flow {i}"),
                    ToySender::new(at, *window),
                    ToyReceiver::new(at),
                    Box::new(Bulk::new()),
                )
            });
        }
        let mut run = RunConfig::new(Duration::from_millis(1_700), Seed(seed));
        run.check = true;
        run.interval = Duration::from_millis(250);
        let result = net.run(run).unwrap();
        for flow in &result.flows {
            let f = &flow.forward;
            prop_assert_eq!(f.sent.packets, f.delivered.packets + f.dropped_total() + f.in_flight);
            let series: u64 = flow.series.iter().map(|s| s.wire_bytes).sum();
            prop_assert_eq!(series, f.delivered.bytes);
            prop_assert_eq!(flow.measured.delivered, f.delivered);
            let goodput: u64 = flow.series.iter().map(|s| s.goodput_bytes).sum();
            prop_assert_eq!(goodput, flow.goodput_bytes);
        }
        prop_assert!(result.system.forward.utilisation <= 1.0);
    }
}
