//! A value of the wrong type is refused at every key of a file. A key that is read only under
//! another name, or only if it is a table, would be silently ignored.

use std::path::{Path, PathBuf};

use udccp_lab::document::{self, Node, Value};
use udccp_lab::schema::{Experiment, Scenario};

/// An experiment with a part of each kind.
const EXPERIMENT: &str = r#"schema = 1
id = "pair"
asks = "Do the two share?"
quick_set = { "time.duration" = "40 s", "time.measure.to" = "40 s" }

[study]
title = "A study"
authors = "Two people"
published = "Somewhere 2008"

[summary]
says = "They do."
finds = "They do."
differs = "Nothing does."
figure = "over-rtt"

[names]
"tcp/newreno" = "Reno"

[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s", delay = "1 ms", jitter = "10 us" }
bottleneck = { rate = "10 Mbit/s", rtt = "$rtt", limit = "1.0 bdp", loss = "0.01 %" }
reverse = { rate = "5 Mbit/s" }

[[topology.change]]
at = "25 s"
link = "bottleneck"
rate = "5 Mbit/s"

[time]
duration = "60 s"
phase = "1 s"
measure = { from = "20 s", to = "60 s", every = "1 s" }

[[flow]]
name = "first"
protocol = "dccp/ccid2"
packet = "1500 B"
traffic = { kind = "constant-rate", rate = "1 Mbit/s", size = "1000 B" }
access = { rate = "50 Mbit/s" }
receiver_access = { rate = "50 Mbit/s" }
dccp = { send_buffer = "100 KiB" }

[[flow]]
name = "second"
protocol = "$second"
start = "5 s"
traffic = "bulk"
tcp = { delayed_ack = false }

[grid]
second = ["tcp/newreno", "tcp/cubic"]
rtt = ["25 ms", "50 ms"]
runs = 5
quick_runs = 1
seed = 2008

[[case]]
id = "alone"
says = "Without the first"
without = ["first"]
runs = 2
set = { "topology.bottleneck.loss" = "0 %" }
quick_set = { "time.duration" = "30 s", "time.measure.to" = "30 s" }

[case.grid]
second = ["tcp/newreno"]
rtt = ["25 ms"]

[[table]]
id = "fairness"
title = "Fairness"
says = "An index."
metric = "jain"
of = "goodput"
digits = 2
close = 0.05
rows = "second"
columns = "rtt"
where = { rtt = ["25 ms"] }

[table.reference]
file = "reference/000_table3_pair_jfi_ccid2_first.csv"
match = { second = "flow2", rtt = "rtt_ms" }
names = { "tcp/newreno" = "newreno", "tcp/cubic" = "cubic" }
value = "jfi"
stddev = "stddev"
runs = 5

[[table]]
id = "rates"
metrics = [{ metric = "goodput", unit = "kbit/s", name = "rate" }, { metric = "loss" }]
rows = ["second", "flow"]
columns = "rtt"

[[figure]]
id = "over-rtt"
title = "Against the round-trip time"
kind = "table"
table = "fairness"
x = "rtt"

[[figure]]
id = "over-time"
title = "Over time"
kind = "time"
metric = ["goodput", "cwnd"]
lines = "rtt"
at = { second = "tcp/cubic", flow = "first" }
run = 1
from = "10 s"
to = "50 s"

[[claim]]
id = "fair"
says = "fair with NewReno"
source = "section 1"
table = "fairness"
where = { second = ["tcp/newreno"] }
every = { above = 0.9 }

[[claim]]
says = "fairer than with CUBIC"
origin = "project"
table = "fairness"
greater = { second = "tcp/newreno" }
than = { second = "tcp/cubic", table = "fairness" }
by = 0.05

[[claim]]
says = "near each other"
table = "fairness"
near = { second = "tcp/newreno" }
to = { second = "tcp/cubic" }
within = "10 %"

[[claim]]
says = "it falls"
table = "fairness"
trend = "falls"
along = "rtt"
every_step = true

[[claim]]
says = "least at the shortest"
table = "fairness"
lowest = { rtt = ["25 ms"] }

[[variant]]
id = "no-loss"
says = "Nothing is lost"
where = { second = ["tcp/newreno"] }
runs = 2
quick_runs = 1
set = { "topology.bottleneck.loss" = "0 %" }

[[explanation]]
tables = ["fairness"]
where = { second = ["tcp/newreno"] }
variant = "no-loss"
says = "Losses do it."

[[assumption]]
about = "the loss"
choice = "one packet in ten thousand"
reason = "a guess"

[calibrate]
fit = ["fairness"]
test = ["rates"]

[[calibrate.knob]]
id = "queue"
about = "the queue"
source = "a guess"
value = [{ id = "one" }, { id = "half", set = { "topology.bottleneck.limit" = "0.5 bdp" } }]
"#;

/// The paths from the root to all values of a tree.
fn places(node: &Node, at: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    let inner: Vec<&Node> = match &node.value {
        Value::Table(entries) => entries.iter().map(|entry| &entry.node).collect(),
        Value::List(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    for (index, node) in inner.into_iter().enumerate() {
        at.push(index);
        found.push(at.clone());
        places(node, at, found);
        at.pop();
    }
}

/// The tree with a date, which no key accepts, at one place; and that place's name.
fn with_a_date(tree: &Node, place: &[usize]) -> (Node, String) {
    let mut tree = tree.clone();
    let mut node = &mut tree;
    let mut name = String::new();
    for &index in place {
        node = match &mut node.value {
            Value::Table(entries) => {
                name += &format!(".{}", entries[index].key);
                &mut entries[index].node
            }
            Value::List(items) => {
                name += &format!("[{index}]");
                &mut items[index]
            }
            _ => unreachable!("a place leads through tables and lists"),
        };
    }
    node.value = Value::Other("a date");
    (tree, name)
}

/// The places where a date is accepted.
fn accepted(tree: &Node, is_read: impl Fn(Node) -> bool) -> Vec<String> {
    assert!(is_read(tree.clone()), "the file itself is wrong");
    let mut found = Vec::new();
    places(tree, &mut Vec::new(), &mut found);
    let changed = found.iter().map(|place| with_a_date(tree, place));
    changed.filter_map(|(tree, name)| is_read(tree).then_some(name)).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_key_of_an_experiment_refuses_a_wrong_type() {
    let tree = document::parse("pair.toml", EXPERIMENT.to_owned()).expect("TOML");
    let path = root().join("experiments/pair.toml");
    let mut found = accepted(&tree, |tree| Experiment::from_node(tree, &path).is_ok());
    // `lab calibrate` reads the changes of set-ups.
    found.retain(|name| !name.contains(".set.topology"));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_key_of_the_included_scenarios_refuses_a_wrong_type() {
    for entry in std::fs::read_dir(root().join("scenarios")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let tree = document::load(&path).expect("TOML");
        let mut found = accepted(&tree, |tree| Scenario::read(&tree).is_ok());
        // The program reads these before the scenario.
        found.retain(|name| ![".schema", ".id", ".asks"].contains(&name.as_str()));
        assert_eq!(found, Vec::<String>::new(), "{}", path.display());
    }
}
