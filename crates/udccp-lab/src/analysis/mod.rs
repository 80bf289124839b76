//! From stored runs to tables, verdicts on claims, and reasons of differences.

mod claim;
mod expected;
mod explanation;
mod results;
mod table;
mod value;
mod window;

pub use claim::{JudgedClaim, Judgement, judge};
pub use expected::{Convergence, Expected};
pub use explanation::{Reason, Support, explain};
pub use results::Results;
pub(crate) use table::in_words;
pub use table::{Agreement, Cell, Row, TableResult, tabulate};

use crate::schema::{Experiment, Table};

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
        let fill = |t: &'a Table| tabulate(experiment, t, &results, t.variant.as_deref());
        let mut tables: Vec<TableResult<'a>> = experiment.tables.iter().map(fill).collect();
        for table in tables.iter_mut().filter(|t| t.table.variant.is_none()) {
            explain(experiment, table, &results);
        }
        let claims = experiment.claims.iter().filter_map(|c| judge(c, &tables)).collect();
        Self { experiment, tables, claims, results }
    }

    /// The cells of the experiment as it stands, which are to be compared with the published.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        let plain = self.tables.iter().filter(|t| t.table.variant.is_none() && t.table.is_printed);
        plain.flat_map(TableResult::cells)
    }
}
