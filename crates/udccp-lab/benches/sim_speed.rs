//! Speed of the whole simulation: packets delivered per second of one core, memory, and how the
//! cost
//! of a packet moves with the window. The peer is the same simulator, links and recorders carrying
//! the same packets with no protocol at all, in the same process.
//!
//! `cargo bench -p udccp-lab --bench sim_speed`; `-- --quick` runs a tenth of the time.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::Path;

use bytes::Bytes;
use udccp_base::{
    DataRate, Datagram, Duration, Ecn, Instant, Machine, Message, Payload, Probe, Seed,
    SendOutcome, Transport,
};
use udccp_lab::document::Override;
use udccp_lab::schema::{Experiment, Scenario};
use udccp_lab::{Record, RunOptions};
use udccp_sim::{
    ConstantRate, Dumbbell, DumbbellConfig, PairAddresses, PairConfig, QueueLimit, RunConfig,
};

/// What one run cost.
struct Cost {
    delivered: u64,
    events: u64,
    cpu_s: f64,
}

impl Cost {
    fn of(record: &Record) -> Self {
        let delivered = record.flows.iter().map(|f| f.packets_delivered).sum();
        Self { delivered, events: record.cost.events, cpu_s: record.cost.cpu_s }
    }

    fn per_second(&self) -> f64 {
        self.delivered as f64 / self.cpu_s
    }

    fn print(&self, name: &str) {
        let Self { delivered, events, cpu_s } = self;
        println!(
            "{name:44} {delivered:>9} packets {cpu_s:>7.3} s  {:>6.2} M packets/s  {:>5.0} \
             ns/packet  {:>4.1} events/packet",
            self.per_second() / 1e6,
            cpu_s * 1e9 / *delivered as f64,
            *events as f64 / *delivered as f64,
        );
    }
}

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-flows.toml");
    let experiment = Experiment::load(&path).expect("the scenario of this repository");
    println!(
        "two flows over 100 Mbit/s, {}, queue 1 BDP; best of 3",
        if quick { "60 s" } else { "300 s" }
    );

    let pair = |second: &str, rtt: &str| {
        let scenario = scenario(&experiment, second, rtt, quick);
        let runs = (0..3).map(|_| {
            let run = udccp_lab::run(&experiment.id, &scenario, 1, RunOptions::default());
            Cost::of(&run.expect("a run of this repository's scenario"))
        });
        best(runs)
    };
    let reference = pair("tcp/cubic", "100 ms");
    reference.print("CCID 2 and CUBIC, RTT 100 ms");
    match peak_mib() {
        Some(mib) => {
            println!("{:44} {mib:>9.1} MiB (goal: 64)", "peak memory of the process so far")
        }
        None => println!("peak memory: /proc/self/status cannot be read here"),
    }
    for rtt in ["25 ms", "200 ms"] {
        pair("tcp/cubic", rtt).print(&format!("CCID 2 and CUBIC, RTT {rtt}"));
    }
    for rtt in ["25 ms", "100 ms", "200 ms"] {
        pair("tcp/newreno", rtt).print(&format!("CCID 2 and NewReno, RTT {rtt}"));
    }
    pair("dccp/ccid2", "100 ms").print("CCID 2 and CCID 2, RTT 100 ms");

    let duration = Duration::from_secs(if quick { 60 } else { 300 });
    let bare = best((0..3).map(|_| bare(duration)));
    bare.print("no protocol (two constant rates), RTT 100 ms");
    let ratio = bare.per_second() / reference.per_second();
    println!("a delivered packet costs {ratio:.2} times as much with its protocols as without");
}

fn best(runs: impl Iterator<Item = Cost>) -> Cost {
    runs.min_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s)).expect("at least one run")
}

fn scenario(experiment: &Experiment, second: &str, rtt: &str, quick: bool) -> Scenario {
    let mut set =
        vec![format!("flow.second.protocol={second}"), format!("topology.bottleneck.rtt={rtt}")];
    if quick {
        set.push("time.duration=60 s".to_owned());
        set.push("time.measure.from=35 s".to_owned());
        set.push("time.measure.to=60 s".to_owned());
    }
    let changes: Vec<Override> =
        set.iter().map(|s| Override::parse(s).expect("a right change")).collect();
    experiment.scenario_with(&Vec::new(), &changes).expect("a right scenario")
}

/// Most memory that the process ever held, in MiB.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

/// The simulator alone: the same number of packets over the same links.
fn bare(duration: Duration) -> Cost {
    let rate = DataRate::from_mbps(100);
    let rtt = Duration::from_millis(100);
    let mut network = Dumbbell::new(DumbbellConfig::symmetric(rate, rtt, QueueLimit::Packets(833)));
    for name in ["first", "second"] {
        let at = network.next_addresses();
        let source = ConstantRate::new(DataRate::from_mbps(49), 1500);
        let (sender, receiver) = (Bare::new(at), Bare::new(at));
        let pair = PairConfig::new(name, Box::new(sender), Box::new(receiver), Box::new(source));
        network.add_pair(pair);
    }
    let begun = cpu_time::ThreadTime::now();
    let result = network.run(RunConfig { check: false, ..RunConfig::new(duration, Seed(1)) });
    let result = result.expect("a run without protocols");
    let delivered = result.flows.iter().map(|f| f.forward.delivered.packets).sum();
    Cost { delivered, events: result.cost.events, cpu_s: begun.elapsed().as_secs_f64() }
}

/// Sends every message as one packet without a header; hands out what arrives.
#[derive(Debug)]
struct Bare {
    at: PairAddresses,
    waiting: std::collections::VecDeque<Payload>,
    arrived: std::collections::VecDeque<Payload>,
}

impl Bare {
    fn new(at: PairAddresses) -> Self {
        Self { at, waiting: Default::default(), arrived: Default::default() }
    }
}

impl Machine for Bare {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram) {
        self.arrived.push_back(datagram.payload);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<Datagram> {
        let payload = self.waiting.pop_front()?;
        Some(Datagram {
            src: (self.at.sender, 0).into(),
            dst: (self.at.receiver, 0).into(),
            protocol: 253,
            ecn: Ecn::NotEct,
            header: Bytes::new(),
            payload,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl Transport for Bare {
    fn open(&mut self, _: Instant) {}

    fn send(&mut self, _: Instant, message: Message) -> SendOutcome {
        self.waiting.push_back(message.payload);
        SendOutcome::Accepted
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn close(&mut self, _: Instant) {}

    fn poll_delivered(&mut self, _: Instant) -> Option<Payload> {
        self.arrived.pop_front()
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn max_payload(&self) -> usize {
        1480
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}
