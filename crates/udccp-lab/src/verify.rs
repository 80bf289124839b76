//! Compares runs with committed results. The same seed gives the same events on every machine, so
//! the comparison is exact.

use serde::{Deserialize, Serialize};
use udccp_scenario::Record;

use crate::campaign::label;
use crate::plan::Task;

/// The result of one run, equal on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedRun {
    /// The run in words: `case up, rtt 25 ms, run 3`.
    pub run: String,
    /// Its seed.
    pub seed: u64,
    /// Hash over all events.
    pub event_hash: String,
    /// Goodput of each flow in Mbit/s with three digits, to show what a different hash means.
    pub goodput_mbps: String,
}

impl ExpectedRun {
    /// The result of a run.
    pub fn of(task: &Task, record: &Record) -> Self {
        let of_flow = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.3}"));
        let rates: Vec<String> = record.flows.iter().map(|f| of_flow(f.goodput_mbps)).collect();
        Self {
            run: label(task),
            seed: task.seed,
            event_hash: record.event_hash.clone(),
            goodput_mbps: rates.join(" "),
        }
    }
}

/// Parses the CSV of [`to_csv`].
///
/// # Errors
/// The text is not such a table, with the line.
pub fn from_csv(text: &str) -> Result<Vec<ExpectedRun>, csv::Error> {
    csv::Reader::from_reader(text.as_bytes()).into_deserialize().collect()
}

/// Formats the runs as CSV, one per line.
///
/// # Errors
/// Does not occur for a table in memory.
pub fn to_csv(runs: &[ExpectedRun]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for run in runs {
        writer.serialize(run)?;
    }
    let bytes = writer.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The comparison of found and expected runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Runs with the same events.
    pub equal: usize,
    /// Runs with different events: expected and found.
    pub different: Vec<(ExpectedRun, ExpectedRun)>,
    /// Expected runs that were not found.
    pub missing: Vec<ExpectedRun>,
    /// Found runs that are not expected.
    pub unexpected: Vec<ExpectedRun>,
}

impl Comparison {
    /// Compares runs by name and seed, in any order.
    pub fn of(expected: Vec<ExpectedRun>, found: Vec<ExpectedRun>) -> Self {
        let mut comparison = Self::default();
        let mut found: Vec<Option<ExpectedRun>> = found.into_iter().map(Some).collect();
        for wanted in expected {
            let same = |run: &&mut Option<ExpectedRun>| {
                run.as_ref().is_some_and(|run| run.run == wanted.run && run.seed == wanted.seed)
            };
            match found.iter_mut().find(same).and_then(Option::take) {
                Some(run) if run.event_hash == wanted.event_hash => comparison.equal += 1,
                Some(run) => comparison.different.push((wanted, run)),
                None => comparison.missing.push(wanted),
            }
        }
        comparison.unexpected = found.into_iter().flatten().collect();
        comparison
    }

    /// Whether all runs are as expected, without missing or additional ones.
    pub fn is_equal(&self) -> bool {
        self.different.is_empty() && self.missing.is_empty() && self.unexpected.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, hash: &str) -> ExpectedRun {
        ExpectedRun {
            run: name.to_owned(),
            seed: 1001,
            event_hash: hash.to_owned(),
            goodput_mbps: "1.000 -".to_owned(),
        }
    }

    #[test]
    fn tables_round_trip() {
        let runs = vec![run("rtt 25 ms, run 1", "00ab"), run("rtt 50 ms, run 1", "00cd")];
        let csv = to_csv(&runs).expect("a table");
        assert_eq!(from_csv(&csv).expect("the same table"), runs);
        assert!(from_csv("run,seed\nrtt 25 ms,x\n").is_err());
    }

    #[test]
    fn every_kind_of_difference_is_reported() {
        let expected = vec![run("a", "1"), run("b", "1"), run("c", "1")];
        let found = vec![run("d", "1"), run("b", "2"), run("a", "1")];
        let comparison = Comparison::of(expected, found);
        assert_eq!(comparison.equal, 1);
        assert_eq!(comparison.different, [(run("b", "1"), run("b", "2"))]);
        assert_eq!(comparison.missing, [run("c", "1")]);
        assert_eq!(comparison.unexpected, [run("d", "1")]);
        assert!(!comparison.is_equal());
        let is_equal = |expected, found| Comparison::of(expected, found).is_equal();
        let a = || vec![run("a", "1")];
        assert!(is_equal(a(), a()));
        assert!(!is_equal(a(), vec![]) && !is_equal(vec![], a()));
        assert!(!is_equal(a(), vec![run("a", "2")]));
    }

    #[test]
    fn the_same_label_with_another_seed_is_another_run() {
        let other = ExpectedRun { seed: 2001, ..run("a", "1") };
        let comparison = Comparison::of(vec![run("a", "1")], vec![other.clone()]);
        assert_eq!((comparison.missing.len(), &comparison.unexpected[..]), (1, &[other][..]));
    }
}
