//! Weights from another point than the weighted one, and usage of rates averaged over runs.

mod common;

use common::made_up::{flow, label, record, results};
use udccp_lab::Task;
use udccp_lab::analysis::Analysis;

/// The usage of the CCID 2 flow with these weights, at 25 and 50 ms beside NewReno, in decibels.
/// Of its two runs there, it has 10 Mbit/s in one and 40 in the other. Among its own kind it has
/// 25 Mbit/s at 25 ms and 50 at 50 ms.
fn usage(weights: &str) -> Vec<(f64, usize)> {
    let table = format!(
        "[[table]]\nid = \"nru\"\nmetric = \"nru-of-mean\"\nof = \"goodput\"\n\
         weights = {{ case = \"self\", axis = \"protocol\"{weights} }}\nrows = \"second\"\n\
         columns = \"rtt\"\nwhere = {{ flow = \"first\" }}\n"
    );
    let experiment = common::read(&format!("{}{}\n{table}", common::SMALL, common::SELF));
    let of = |task: &Task| {
        let rate = match (task.case.is_some(), label(task, "rtt")) {
            (true, "25 ms") => 25.0,
            (true, _) => 50.0,
            (false, _) => [10.0, 40.0][task.run as usize - 1],
        };
        record(vec![flow("first", rate, rate), flow("second", rate, rate)])
    };
    let analysis = Analysis::of(&experiment, results(&experiment, "", of));
    let table = analysis.tables.iter().find(|t| t.table.id == "nru").expect("the table");
    let newreno = |c: &&udccp_lab::analysis::Cell| c.labels.iter().any(|(_, l)| l == "tcp/newreno");
    let cells = table.cells().filter(newreno);
    cells.map(|c| (c.ours.mean.expect("a value"), c.ours.n)).collect()
}

fn near(found: &[(f64, usize)], expected: [f64; 2], runs: usize) {
    assert_eq!(found.len(), 2, "{found:?}");
    for ((mean, n), expected) in found.iter().zip(expected) {
        assert!((mean - expected).abs() < 1e-9 && *n == runs, "{found:?}, not {expected}");
    }
}

fn db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

#[test]
fn weights_are_of_the_same_point() {
    near(&usage(""), [db(20.0 / 25.0), db(20.0 / 50.0)], 2);
}

#[test]
fn weights_can_be_of_one_point_for_all() {
    near(&usage(", at = { rtt = \"25 ms\" }"), [db(20.0 / 25.0); 2], 2);
}

#[test]
fn rates_can_be_averaged_before_they_are_weighted() {
    near(&usage(", averaged = true"), [db(25.0 / 25.0), db(25.0 / 50.0)], 1);
}
