//! From stored runs to tables, verdicts on claims, and reasons of differences.

mod claim;
mod explanation;
mod results;
mod table;

pub use claim::{JudgedClaim, Judgement, judge};
pub use explanation::{Reason, Support, explain};
pub use results::Results;
pub use table::{Agreement, Cell, Row, TableResult, tabulate};

use crate::schema::Experiment;

/// Everything that a report says about an experiment.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its tables, in the order of the file.
    pub tables: Vec<TableResult<'a>>,
    /// Its claims, in the order of the file.
    pub claims: Vec<JudgedClaim<'a>>,
    /// The stored runs.
    pub results: Results,
}

impl<'a> Analysis<'a> {
    /// Analyses the runs that are there.
    pub fn of(experiment: &'a Experiment, results: Results) -> Self {
        let mut tables: Vec<TableResult<'a>> =
            experiment.tables.iter().map(|t| tabulate(experiment, t, &results, None)).collect();
        for table in &mut tables {
            explain(experiment, table, &results);
        }
        let claims = experiment.claims.iter().filter_map(|c| judge(c, &tables)).collect();
        Self { experiment, tables, claims, results }
    }
}
