//! The cost of the simulator alone: links, events and recorders under toy transports.
//!
//! `cargo bench -p udccp-sim --bench hops` prints hops (links crossed by packets) per second of
//! one core, events per delivered data packet, and nanoseconds per delivered data packet.
//! `-- --only "2 flows, RTT 100 ms" --runs 1` selects a case and the number of runs.

#![allow(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "../tests/toy/mod.rs"]
mod toy;

use cpu_time::ProcessTime;
use toy::{ToyReceiver, ToySender};
use udccp_base::{DataRate, Duration, Seed};
use udccp_sim::{
    AccessConfig, Bulk, Dumbbell, DumbbellConfig, PairConfig, QueueLimit, RunConfig, RunResult,
};

struct Case {
    name: &'static str,
    flows: usize,
    mbps: u64,
    rtt_ms: u64,
    seconds: u64,
    check: bool,
}

const fn case(name: &'static str, flows: usize, mbps: u64, rtt_ms: u64, seconds: u64) -> Case {
    Case { name, flows, mbps, rtt_ms, seconds, check: false }
}

fn run(case: &Case) -> RunResult {
    let rate = DataRate::from_mbps(case.mbps);
    let rtt = Duration::from_millis(case.rtt_ms);
    let bdp = rate.bytes_in(rtt).bytes();
    let mut net = Dumbbell::new(DumbbellConfig::symmetric(rate, rtt, QueueLimit::Bytes(bdp)));
    // Together the windows fill the path and half of the queue.
    let window = (bdp * 3 / 2 / 1500 / case.flows as u64).max(2);
    let access = AccessConfig {
        rate: Some(DataRate::from_mbps(case.mbps * 10)),
        delay: Duration::from_micros(10),
        ..AccessConfig::default()
    };
    for i in 0..case.flows {
        let at = net.next_addresses();
        net.add_pair(PairConfig {
            sender_access: access.clone().into(),
            receiver_access: access.clone().into(),
            start_jitter: Duration::from_millis(100),
            ..PairConfig::new(
                format!("flow {i}"),
                ToySender::new(at, window),
                ToyReceiver::new(at),
                Box::new(Bulk::new()),
            )
        });
    }
    let mut config = RunConfig::new(Duration::from_secs(case.seconds), Seed(1));
    config.check = case.check;
    net.run(config).expect("a benchmark runs")
}

fn option(key: &str) -> Option<String> {
    std::env::args().skip_while(|a| a != key).nth(1)
}

fn report(case: &Case) {
    if option("--only").is_some_and(|only| only != case.name) {
        return;
    }
    let runs = option("--runs").map_or(5, |runs| runs.parse().expect("a whole number"));
    let mut best = f64::INFINITY;
    let mut result = None;
    for _ in 0..runs {
        let begin = ProcessTime::now();
        let this = run(case);
        best = best.min(begin.elapsed().as_secs_f64());
        result = Some(this);
    }
    let Some(result) = result else { return };
    let delivered: u64 = result.flows.iter().map(|f| f.forward.delivered_data).sum();
    println!(
        "{:<28} {:>9} data packets {:>6.1} M hops/s {:>6.0} ns/packet {:>5.2} events/packet \
         {:>5.1} % used  hash {:016x}",
        case.name,
        delivered,
        result.cost.hops as f64 / best / 1e6,
        best * 1e9 / delivered as f64,
        result.cost.events as f64 / delivered as f64,
        result.system.forward.utilisation * 100.0,
        result.hash,
    );
}

fn main() {
    // `--profile` does one short run, for profilers that slow it down a hundredfold.
    if std::env::args().any(|a| a == "--profile") {
        run(&case("2 flows, RTT 100 ms", 2, 100, 100, 10));
        return;
    }
    report(&case("2 flows, RTT 25 ms", 2, 100, 25, 300));
    report(&case("2 flows, RTT 100 ms", 2, 100, 100, 300));
    report(&case("2 flows, RTT 200 ms", 2, 100, 200, 300));
    report(&case("14 flows, RTT 100 ms", 14, 100, 100, 300));
    report(&case("100 flows, RTT 100 ms", 100, 100, 100, 300));
    report(&case("2 flows, 1 Gbit/s", 2, 1_000, 100, 30));
    report(&case("2 flows, 10 Gbit/s", 2, 10_000, 100, 6));
    report(&Case { check: true, ..case("2 flows, checked", 2, 100, 100, 60) });
}
