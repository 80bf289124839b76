//! Groups of flows whose number is an axis: tables have the flows of each point.

mod common;

use common::made_up::{flow, record, results};
use udccp_lab::analysis::Analysis;
use udccp_lab::schema::Experiment;
use udccp_lab::{Selection, Task};

const GROUPS: &str = r#"
[[table]]
id = "rates"
metric = "goodput"
rows = ["n", "flow"]
"#;

/// The rows of a table of a group, of `counts` flows, and one more flow, with changes from outside.
fn rows(counts: &str, set: &[&str]) -> Vec<String> {
    let grid = common::SMALL.find("[grid]").expect("a grid");
    let scenario = common::SMALL[..grid]
        .replace("$rtt", "25 ms")
        .replace("$second", "tcp/newreno")
        .replacen("name = \"first\"", "name = \"first\"\ncount = \"$n\"", 1);
    let text = format!("{scenario}[grid]\nn = {counts}\n{GROUPS}");
    let root = udccp_lab::document::parse("groups.toml", text).expect("TOML");
    let experiment = Experiment::from_node(root, std::path::Path::new("groups.toml"));
    let mut experiment = experiment.unwrap_or_else(|errors| panic!("{errors}"));
    let set = set.iter().map(|change| (*change).to_owned()).collect();
    experiment.narrow(&Selection { set, ..Selection::default() }).expect("a change");
    let run =
        |task: &Task| record(task.scenario.flows.iter().map(|f| flow(&f.name, 1.0, 1.0)).collect());
    let analysis = Analysis::of(&experiment, results(&experiment, "sim", run));
    let table = &analysis.tables[0];
    assert!(table.cells().all(|cell| cell.ours.n == 1), "each row has runs");
    let words = |row: &udccp_lab::analysis::Row| {
        row.labels.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    };
    table.rows.iter().map(words).collect()
}

#[test]
fn every_flow_of_every_point_has_a_row() {
    let three = ["3 first-1", "3 first-2", "3 first-3", "3 second"];
    let one = ["1 first-1", "1 second"];
    assert_eq!(rows("[1, 3]", &[]), [&one[..], &three].concat());
    assert_eq!(rows("[1, 3]", &["n=3"]), three);
    assert_eq!(rows("[3, 1]", &[]), [&three[..], &one].concat());
}

#[test]
fn flows_that_a_command_line_adds_have_rows() {
    let rows = rows("[1]", &["flow.second.count=2", "topology.bottleneck.rate=4 Mbit/s"]);
    assert_eq!(rows, ["1 first-1", "1 second-1", "1 second-2"]);
}
