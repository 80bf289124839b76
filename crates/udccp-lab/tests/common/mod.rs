//! A small experiment for tests: a few seconds over a slow path, at four points.

#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod made_up;

use std::path::{Path, PathBuf};

use udccp_lab::schema::{Experiment, Scenario};
use udccp_lab::{Record, RunOptions, document};
use udccp_scenario::FlowRecord;

/// A case with two flows of one protocol, for weights.
pub(crate) const SELF: &str = r#"
[[case]]
id = "self"
set = { "flow.first.protocol" = "$protocol", "flow.second.protocol" = "$protocol" }
[case.grid]
protocol = ["tcp/newreno", "tcp/cubic", "dccp/ccid2"]
rtt = ["25 ms", "50 ms"]
"#;

/// Two flows over 5 Mbit/s for eight seconds.
pub(crate) const SMALL: &str = r#"schema = 1
id = "small"
asks = "Do tests see what campaigns do?"

[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s" }
bottleneck = { rate = "5 Mbit/s", rtt = "$rtt", limit = "1.0 bdp" }

[time]
duration = "8 s"
phase = "1 s"
measure = { from = "3 s", to = "8 s" }

[[flow]]
name = "first"
protocol = "dccp/ccid2"
traffic = "bulk"

[[flow]]
name = "second"
protocol = "$second"
start = "1 s"
traffic = "bulk"

[grid]
second = ["tcp/newreno", "tcp/cubic"]
rtt = ["25 ms", "50 ms"]
runs = 2
seed = 3

[[variant]]
id = "every-ack"
says = "TCP acknowledges every segment"
where = { second = ["tcp/newreno"] }
set = { "flow.second.tcp.delayed_ack" = false }

[[table]]
id = "fairness"
title = "Fairness of the pair"
metric = "jain"
rows = "second"
columns = "rtt"

[table.reference]
file = "reference/000_table3_pair_jfi_ccid2_first.csv"
match = { second = "flow2", rtt = "rtt_ms" }
names = { "tcp/newreno" = "newreno", "tcp/cubic" = "cubic" }
value = "jfi"
stddev = "stddev"

[[table]]
id = "rates"
metric = "goodput"
rows = "second"
columns = "rtt"

[[figure]]
id = "against"
title = "Fairness against RTT"
kind = "table"
table = "fairness"

[[figure]]
id = "time"
title = "One run"
kind = "time"
at = { second = "tcp/cubic", rtt = "50 ms" }

[[claim]]
says = "fair with NewReno"
table = "fairness"
where = { second = ["tcp/newreno"] }
every = { above = 0.9 }

[[claim]]
says = "fairer with NewReno than with CUBIC"
table = "fairness"
greater = { second = "tcp/newreno" }
than = { second = "tcp/cubic" }

[[claim]]
says = "less fair as the RTT grows"
table = "fairness"
trend = "falls"

[[explanation]]
tables = ["fairness"]
where = { second = ["tcp/newreno"] }
variant = "every-ack"
says = "The study's receivers may have acknowledged every segment."

[[assumption]]
about = "packet size"
choice = "1500 bytes"
reason = "the MTU is given"
"#;

/// The experiment, as if its file were in `experiments/`.
pub(crate) fn small() -> Experiment {
    read(SMALL)
}

/// The same with another text.
pub(crate) fn read(text: &str) -> Experiment {
    let root = document::parse("small.toml", text.to_owned()).expect("TOML");
    Experiment::from_node(root, &path()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The path that its file would have.
pub(crate) fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/small.toml")
}

/// One bulk flow per protocol for this many seconds, measured from the tenth second on.
pub(crate) fn bulk_flows(bottleneck: &str, seconds: u64, protocols: &[&str]) -> Record {
    let mut text = format!(
        r#"schema = 1
id = "bulk-flows"
asks = "What do these protocols make of this path?"
[topology]
shape = "dumbbell"
access = {{ rate = "1 Gbit/s", jitter = "100 us" }}
bottleneck = {{ {bottleneck} }}
[time]
duration = "{seconds} s"
phase = "1 s"
measure = {{ from = "10 s", to = "{seconds} s", every = "1 s" }}
"#
    );
    for (i, protocol) in protocols.iter().enumerate() {
        text += &format!("[[flow]]\nname = \"f{i}\"\nprotocol = \"{protocol}\"\n");
        text += "traffic = \"bulk\"\n";
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/bulk-flows.toml");
    let root = document::parse("bulk-flows.toml", text).expect("TOML");
    let experiment = Experiment::from_node(root, &path).unwrap_or_else(|f| panic!("{f}"));
    let scenario = experiment.scenario_with(&Vec::new(), &[]).unwrap_or_else(|f| panic!("{f}"));
    udccp_lab::run("bulk-flows", &scenario, 7, RunOptions::default()).expect("a run")
}

/// Runs this scenario with checks.
pub(crate) fn scenario(text: String) -> Record {
    let tree = document::parse("scenario.toml", text).expect("TOML");
    let scenario = Scenario::read(&tree).unwrap_or_else(|errors| panic!("{errors}"));
    let options = RunOptions { check: true, ..RunOptions::default() };
    udccp_lab::run("scenario", &scenario, 1, options).expect("a run")
}

/// One flow for 30 s from a host with this access link, measured from 10 s on. `flow` has all of
/// its table except the name.
pub(crate) fn one_flow(access: &str, bottleneck: &str, flow: &str) -> FlowRecord {
    let text = format!(
        r#"
[topology]
shape = "dumbbell"
access = {{ {access} }}
bottleneck = {{ {bottleneck} }}
[time]
duration = "30 s"
measure = {{ from = "10 s", to = "30 s", every = "100 ms" }}
[[flow]]
name = "only"
{flow}
"#
    );
    scenario(text).flows.remove(0)
}
