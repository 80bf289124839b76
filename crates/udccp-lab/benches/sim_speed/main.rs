//! Speed of whole simulations: data packets delivered per second on one core, memory per flow, and
//! how both change with the number of flows and with the window. The baseline is the same simulator
//! with the same links, recorders and packets but without a protocol, in the same process.
//!
//! If ns-2 is installed, it runs the same scenarios, and the last column is the ratio of packets
//! per second to ns-2.
//!
//! Run it with `cargo bench -p udccp-lab --bench sim_speed`. `-- --quick` simulates a fifth of the
//! time, once; `-- --only "CCID 2 + CUBIC" --seconds 10 --runs 1` selects rows by a part of their
//! names; `-- --no-ns2` omits ns-2.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

mod bare;
mod case;
mod cost;
mod ns2;

use case::{Case, MIXES, Mix};
use cost::Cost;
use ns2::Attempt;
use udccp_base::Duration;

/// Command line options.
struct Options {
    /// Only rows whose names contain this.
    only: Option<String>,
    /// Simulated seconds, instead of each row's default.
    seconds: Option<u64>,
    runs: u64,
    quick: bool,
    ns2: bool,
}

impl Options {
    fn read() -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        let value = |key: &str| {
            let at = arguments.iter().position(|a| a == key)?;
            arguments.get(at + 1).cloned()
        };
        let number = |key: &str| value(key).map(|v| v.parse().expect("a whole number"));
        let quick = arguments.iter().any(|a| a == "--quick");
        let runs = number("--runs").unwrap_or(if quick { 1 } else { 3 });
        let ns2 = !arguments.iter().any(|a| a == "--no-ns2");
        Self { only: value("--only"), seconds: number("--seconds"), runs, quick, ns2 }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|part| name.contains(part.as_str()))
    }

    /// Runs the case in ns-2 and formats the ratio.
    fn beside_ns2(&self, case: &Case, cost: &Cost) -> String {
        if !self.ns2 {
            return String::new();
        }
        match ns2::run(case) {
            Attempt::PerSecond(rate) => {
                format!("ns-2 {:.2} M/s, {:.1} x", rate / 1e6, cost.per_second() / rate)
            }
            Attempt::Ended(words) => format!("ns-2 ended: {words}"),
            Attempt::Absent => "ns-2 is not here (apt-get install ns2)".to_owned(),
        }
    }

    /// Runs and prints a row if it is selected.
    fn row(&self, mut case: Case) -> Option<Cost> {
        let name = case.name();
        if !self.wants(&name) {
            return None;
        }
        case.seconds = self.seconds.unwrap_or(if self.quick {
            case.seconds.div_ceil(5)
        } else {
            case.seconds
        });
        let cost = case.run(self.runs);
        let heap_kib = cost.heap_bytes as f64 / 1024.0;
        println!(
            "{name} {:>6} {:>9} {:>7.3} {:>6.2} {:>6.0} {:>5.1} {:>9.0} {:>7.0}  {}",
            case.bdp_packets(),
            cost.delivered,
            cost.cpu_s,
            cost.per_second() / 1e6,
            cost.ns_per_packet(),
            cost.events_per_packet(),
            heap_kib / case.flows as f64,
            cost.heap_bytes as f64 / (2 * case.bdp_packets()) as f64,
            self.beside_ns2(&case, &cost),
        );
        Some(cost)
    }
}

fn main() {
    let options = Options::read();
    println!(
        "{:47} {:>6} {:>9} {:>7} {:>6} {:>6} {:>5} {:>9} {:>7}",
        "bulk flows, queue of one BDP",
        "BDP",
        "delivered",
        "cpu s",
        "M/s",
        "ns",
        "ev",
        "KiB/flow",
        "B/place"
    );
    let mut reference = None;
    for mix in MIXES {
        let by_rtt = [25, 100, 200].map(|rtt_ms| options.row(two(mix, 100, rtt_ms, 100)));
        reference = reference.or(by_rtt[1]);
        let many = [14, 100].map(|flows| options.row(Case { flows, ..two(mix, 100, 100, 100) }));
        let fast = [(1000, 30), (10_000, 8)].map(|(mbps, s)| options.row(two(mix, mbps, 100, s)));
        growth(by_rtt, many, fast);
    }
    if let Some(mib) = cost::peak_mib() {
        println!("peak memory of the process: {mib:.1} MiB");
    }
    if options.wants("no protocol") {
        no_protocol(&options, reference);
    }
}

fn two(mix: Mix, mbps: u64, rtt_ms: u64, seconds: u64) -> Case {
    Case { mix, flows: 2, mbps, rtt_ms, seconds }
}

/// How the cost of a packet changes with the window, the number of flows and the rate.
fn growth(by_rtt: [Option<Cost>; 3], many: [Option<Cost>; 2], fast: [Option<Cost>; 2]) {
    let [Some(short), Some(base), Some(long)] = by_rtt else { return };
    let times = |cost: Option<Cost>, base: Cost| {
        cost.map_or(f64::NAN, |cost| cost.ns_per_packet() / base.ns_per_packet())
    };
    println!(
        "    cost of a packet: 8 times the window {:.2} x, 50 times the flows {:.2} x, \
         100 times the rate {:.2} x",
        times(Some(long), short),
        times(many[1], base),
        times(fast[1], base),
    );
}

fn no_protocol(options: &Options, reference: Option<Cost>) {
    let seconds = options.seconds.unwrap_or(if options.quick { 20 } else { 100 });
    let bare = cost::best((0..options.runs).map(|_| bare::run(Duration::from_secs(seconds))));
    println!(
        "no protocol (two constant rates, 100 Mbit/s, 100 ms): {:.2} M packets/s, {:.0} ns, \
         {:.1} events",
        bare.per_second() / 1e6,
        bare.ns_per_packet(),
        bare.events_per_packet(),
    );
    if let Some(reference) = reference {
        let ratio = reference.ns_per_packet() / bare.ns_per_packet();
        println!("a delivered packet costs {ratio:.2} times as much with its protocols as without");
    }
}
