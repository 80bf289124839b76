//! The four mixes that measure the speed of simulation: CCID 2 alone, TCP NewReno alone, TCP CUBIC
//! alone, CCID 3 alone. Two bulk flows over a dumbbell of 100 Mbit/s and 100 ms with a queue of one
//! BDP, unless the command line sets other values.
//!
//! `cargo bench -p udccp-scenario --bench mixes` prints a line per mix, for its fastest run.
//! Options select mixes and values, for example
//! `-- --mix ccid2 --seconds 40 --flows 100 --mbps 10000 --runs 1`. With `--scenario` it prints the
//! scenario of each mix, for other programs, and runs nothing.
//! `scripts/instructions.sh` counts the instructions of such runs.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use udccp_scenario::schema::Scenario;
use udccp_scenario::{Record, RunOptions, document, run};

/// Name on the command line, and protocol.
const MIXES: [(&str, &str); 4] = [
    ("ccid2", "dccp/ccid2"),
    ("newreno", "tcp/newreno"),
    ("cubic", "tcp/cubic"),
    ("ccid3", "dccp/ccid3"),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |key: &str| {
        let at = arguments.iter().position(|a| a == key)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let number = |key: &str, usual: u64| {
        value(key).map_or(usual, |v| v.parse().unwrap_or_else(|_| panic!("{key}: a whole number")))
    };
    let (flows, mbps) = (number("--flows", 2), number("--mbps", 100));
    let (seconds, runs) = (number("--seconds", 40), number("--runs", 3));
    for (name, protocol) in MIXES {
        if value("--mix").is_none_or(|mix| mix == name) {
            let text = scenario_text(protocol, flows, mbps, seconds);
            if arguments.iter().any(|a| a == "--scenario") {
                println!("{text}");
                continue;
            }
            let scenario = scenario(text);
            let records = (0..runs).map(|_| one_run(&scenario));
            let best = records.min_by(|a, b| a.cost.cpu_s.total_cmp(&b.cost.cpu_s));
            print(name, &best.expect("at least one run"));
        }
    }
}

fn one_run(scenario: &Scenario) -> Record {
    run("mix", scenario, 1, RunOptions::default()).expect("a run of the benchmark's scenario")
}

fn print(name: &str, record: &Record) {
    let delivered: u64 = record.flows.iter().map(|f| f.packets_delivered).sum();
    let cost = &record.cost;
    println!(
        "{name} delivered {delivered} events {} cpu_s {:.4} million_per_s {:.3} hash {}",
        cost.events,
        cost.cpu_s,
        delivered as f64 / cost.cpu_s / 1e6,
        record.event_hash,
    );
}

/// Access links are ten times as fast as the bottleneck, and no buffer of a host limits a window.
fn scenario_text(protocol: &str, flows: u64, mbps: u64, seconds: u64) -> String {
    let access = mbps * 10;
    let mut text = format!(
        "schema = 1\n[topology]\nshape = \"dumbbell\"\n\
         access = {{ rate = \"{access} Mbit/s\", delay = \"0 ms\" }}\n\
         bottleneck = {{ rate = \"{mbps} Mbit/s\", rtt = \"100 ms\", \
         queue = \"drop-tail\", limit = \"1.0 bdp\" }}\n\
         [time]\nduration = \"{seconds} s\"\nphase = \"1 s\"\n\
         measure = {{ from = \"0 s\", to = \"{seconds} s\", every = \"1 s\" }}\n"
    );
    // With an explicit buffer, each segment is acknowledged until the window is open.
    let buffers = match mbps {
        ..1_000 => "",
        _ => "tcp = { receive_buffer = \"512 MB\", send_buffer = \"1 GB\" }\n",
    };
    for flow in 0..flows {
        text += &format!(
            "[[flow]]\nname = \"f{flow}\"\nprotocol = \"{protocol}\"\nstart = \"0 s\"\n\
             traffic = \"bulk\"\n{buffers}"
        );
    }
    text
}

fn scenario(text: String) -> Scenario {
    let root = document::parse("benchmark", text).unwrap_or_else(|faults| panic!("{faults}"));
    Scenario::read(&root).unwrap_or_else(|faults| panic!("{faults}"))
}
