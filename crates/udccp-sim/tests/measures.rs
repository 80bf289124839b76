//! Times, rates and losses that can be computed by hand.

mod toy;

use toy::{ToyReceiver, ToySender};
use udccp_base::{DataRate, Duration, Seed};
use udccp_sim::{
    AccessConfig, Bulk, ConstantRate, DropReason, Dumbbell, DumbbellConfig, PairConfig, QueueLimit,
    RunConfig, RunResult,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn access(mbps: u64, delay: Duration) -> AccessConfig {
    AccessConfig { rate: Some(DataRate::from_mbps(mbps)), delay, ..AccessConfig::default() }
}

fn checked(seconds: u64, seed: u64) -> RunConfig<'static> {
    let mut run = RunConfig::new(Duration::from_secs(seconds), Seed(seed));
    run.check = true;
    run
}

/// One constant-rate flow of 1000 B packets, over links of 8 Mbit/s (1 ms each).
fn one_cbr(kbps: u64, seconds: u64) -> RunResult {
    let rate = DataRate::from_mbps(8);
    let mut net = Dumbbell::new(DumbbellConfig::symmetric(rate, ms(20), QueueLimit::Packets(5)));
    let at = net.next_addresses();
    let source = ConstantRate::new(DataRate::from_bits_per_sec(kbps * 1_000), 1000 - 32);
    net.add_pair(PairConfig {
        sender_access: access(80, ms(2)).into(),
        receiver_access: access(80, ms(3)).into(),
        ..PairConfig::new("cbr", ToySender::udp(at), ToyReceiver::udp(at), Box::new(source))
    });
    net.run(checked(seconds, 1)).unwrap()
}

#[test]
fn one_way_delay_is_the_sum_of_its_parts() {
    let result = one_cbr(96, 10);
    let flow = &result.flows[0];
    // 0.1 + 2 ms, 1 + 10 ms, 0.1 + 3 ms.
    let delay = &flow.measured.delay;
    assert_eq!(delay.mean(), Some(Duration::from_micros(16_200)));
    assert_eq!(delay.max(), Some(Duration::from_micros(16_200)));
    let jitter = flow.measured.jitter;
    assert_eq!((jitter.rfc3550, jitter.transit), (Some(Duration::ZERO), Some(Duration::ZERO)));
    // Gaps of 80.666... ms are kept to the nanosecond.
    assert!(jitter.arrival_gap.unwrap() <= Duration::from_nanos(1));
    assert_eq!(result.system.forward.measured.queue_delay.max(), Some(Duration::ZERO));
    assert_eq!(flow.forward.dropped_total(), 0);
}

#[test]
fn a_constant_rate_below_the_bottleneck_arrives_as_it_was_sent() {
    // 96.8 kbit/s of data are 12.5 packets a second, and 100 kbit/s on the wire.
    let result = one_cbr(968, 40);
    let flow = &result.flows[0];
    assert_eq!(flow.source.accepted, 5_000);
    assert_eq!(flow.forward.sent.packets, 5_000);
    assert_eq!(flow.source.refused, 0);
    let mean = flow.measured.throughput().as_mbps();
    assert!((mean - 1.0).abs() < 0.001, "{mean}");
    let goodput = flow.measured.goodput().as_mbps();
    assert!((goodput - 0.968).abs() < 0.001, "{goodput}");
    assert_eq!(flow.measured.delay.mean(), Some(Duration::from_micros(16_200)));
    assert_eq!(flow.series.len(), 40);
    for sample in &flow.series[1..] {
        assert_eq!((sample.wire_bytes, sample.goodput_bytes), (125_000, 121_000));
        assert_eq!(sample.throughput().as_mbps(), 1.0);
    }
    let used = result.system.forward.utilisation;
    assert!((used - 0.125).abs() < 1e-4, "{used}");
}

#[test]
fn what_exceeds_the_bottleneck_is_dropped_at_its_queue() {
    let result = one_cbr(9_680, 20);
    let flow = &result.flows[0];
    let measured = &flow.measured;
    // 1250 packets per second are sent, and 1000 get through.
    assert!((measured.loss() - 0.2).abs() < 0.001, "{}", measured.loss());
    assert!((measured.throughput().as_mbps() - 8.0).abs() < 0.02);
    assert!(result.system.forward.utilisation > 0.999);
    let dropped = result.system.forward.whole.dropped_by(DropReason::QueueFull).packets;
    assert_eq!(dropped, flow.forward.dropped[DropReason::QueueFull as usize]);
    assert_eq!(dropped, flow.forward.dropped_total());
    let queue = &result.system.forward.measured.queue_delay;
    let p99 = queue.quantile(0.99).unwrap().as_millis_f64();
    // Four packets wait ahead of one that is accepted, and a fifth is in transmission.
    assert!((4.9..5.01).contains(&p99), "{p99}");
    assert!(result.system.forward.series.iter().all(|s| s.backlog.packets <= 5));
    let sampled: u64 = result.system.forward.series.iter().map(|s| s.dropped).sum();
    assert_eq!(sampled, dropped);
}

#[test]
fn a_window_of_twice_the_path_fills_the_link_and_half_a_window_half_of_it() {
    for (window, low, high) in [(200, 0.999, 1.0), (25, 0.20, 0.25)] {
        let rate = DataRate::from_mbps(12);
        let mut net =
            Dumbbell::new(DumbbellConfig::symmetric(rate, ms(100), QueueLimit::Unlimited));
        let at = net.next_addresses();
        net.add_pair(PairConfig::new(
            "window",
            ToySender::new(at, window),
            ToyReceiver::new(at),
            Box::new(Bulk::new()),
        ));
        let mut run = checked(20, 1);
        run.measure = ms(5_000)..ms(20_000);
        let result = net.run(run).unwrap();
        let used = result.system.forward.utilisation;
        assert!((low..=high).contains(&used), "window {window}: {used}");
        let flow = &result.flows[0];
        assert!(flow.forward.in_flight <= window);
        assert!(flow.source.accepted_bytes >= flow.goodput_bytes);
        assert_eq!(flow.last_probe.cwnd_packets, Some(window as f64));
        assert_eq!(flow.series[3].sender.cwnd_packets.get(), Some(window as f64));
        // An ack for every second packet; a last odd packet waits for the timer.
        let acks = flow.reverse.sent.packets as f64 / flow.forward.delivered.packets as f64;
        assert!((acks - 0.5).abs() < 0.03, "{acks}");
    }
}

#[test]
fn random_loss_is_that_of_the_configuration() {
    let rate = DataRate::from_mbps(100);
    let mut config = DumbbellConfig::symmetric(rate, ms(20), QueueLimit::Unlimited);
    config.forward.loss = udccp_sim::LossConfig::Random(0.05);
    let mut net = Dumbbell::new(config);
    let at = net.next_addresses();
    let source = ConstantRate::new(DataRate::from_mbps(10), 1000);
    net.add_pair(PairConfig::new(
        "lossy",
        ToySender::udp(at),
        ToyReceiver::udp(at),
        Box::new(source),
    ));
    let result = net.run(checked(40, 7)).unwrap();
    let flow = &result.flows[0];
    assert_eq!(flow.forward.sent.packets, 50_000);
    let lost = flow.forward.dropped[DropReason::RandomLoss as usize];
    // Standard deviation 49 packets.
    assert!(lost.abs_diff(2_500) < 200, "{lost}");
    assert_eq!(lost, flow.forward.dropped_total());
}

#[test]
fn a_flow_starts_at_its_phase_and_stops_when_told() {
    let rate = DataRate::from_mbps(10);
    let mut net = Dumbbell::new(DumbbellConfig::symmetric(rate, ms(10), QueueLimit::Unlimited));
    for (i, jitter) in [(0, ms(0)), (1, ms(500))] {
        let at = net.next_addresses();
        net.add_pair(PairConfig {
            start: ms(2_000),
            start_jitter: jitter,
            stop: Some(ms(6_000)),
            ..PairConfig::new(
                format!("flow {i}"),
                ToySender::new(at, 10),
                ToyReceiver::new(at),
                Box::new(Bulk::new()),
            )
        });
    }
    let result = net.run(checked(10, 1)).unwrap();
    let starts: Vec<Duration> = result.flows.iter().map(|f| f.start).collect();
    assert_eq!(starts[0], ms(2_000));
    assert!(starts[1] > ms(2_000) && starts[1] < ms(2_500), "{}", starts[1]);
    for flow in &result.flows {
        let active: Vec<bool> = flow.series.iter().map(|s| s.wire_bytes > 0).collect();
        assert_eq!(active[..2], [false; 2]);
        assert!(active[2..6].iter().all(|a| *a));
        assert_eq!(active[7..], [false; 3]);
        assert_eq!(flow.stop, Some(ms(6_000)));
    }
}

#[test]
fn a_transfer_of_a_given_size_ends_and_arrives_whole() {
    let rate = DataRate::from_mbps(10);
    let mut net = Dumbbell::new(DumbbellConfig::symmetric(rate, ms(10), QueueLimit::Unlimited));
    let at = net.next_addresses();
    let source = Bulk::new().with_message_bytes(1_000).with_total_bytes(123_456);
    net.add_pair(PairConfig::new(
        "file",
        ToySender::new(at, 8),
        ToyReceiver::new(at),
        Box::new(source),
    ));
    let result = net.run(checked(5, 1)).unwrap();
    let flow = &result.flows[0];
    assert_eq!(flow.goodput_bytes, 123_456);
    assert_eq!((flow.source.accepted, flow.source.accepted_bytes), (124, 123_456));
    assert_eq!(flow.forward.delivered_data, 124);
    assert_eq!(flow.forward.in_flight, 0);
}

#[test]
fn a_source_faster_than_its_transport_is_refused_and_that_is_counted() {
    let rate = DataRate::from_mbps(1);
    let mut net = Dumbbell::new(DumbbellConfig::symmetric(rate, ms(100), QueueLimit::Unlimited));
    let at = net.next_addresses();
    let source = ConstantRate::new(DataRate::from_mbps(10), 1_000);
    net.add_pair(PairConfig::new(
        "hasty",
        ToySender::new(at, 4),
        ToyReceiver::new(at),
        Box::new(source),
    ));
    let flow = net.run(checked(10, 1)).unwrap().flows.remove(0);
    assert_eq!(flow.source.accepted + flow.source.refused, 12_500);
    assert!(flow.source.refused > 11_000);
    assert!(flow.source.accepted - flow.forward.sent.packets <= toy::QUEUE as u64);
}
