//! Turns stored runs into tables, verdicts on claims, and explanations of differences.

mod agreeing_backend;
mod averaged;
mod basis;
mod cell;
mod claim;
mod expected;
mod explanation;
mod labels;
mod reason;
mod results;
mod score;
mod spread;
mod table;
mod value;
mod window;

pub use basis::Basis;
pub use cell::{Agreement, Cell};
pub use claim::{Check, ClaimCount, JudgedClaim, Judgement, count_by_origin, judge};
pub use expected::{Convergence, Expected};
pub use explanation::explain;
pub(crate) use labels::{fixed, label_text, own_name};
pub use reason::{Reason, Support};
pub use results::{Results, ResultsError};
pub use score::{STEADY_POINTS, Score, Scored, scores};
pub use spread::{Bounds, Spread};
pub use table::{Row, TableResult, tabulate};
pub(crate) use window::within;

use udccp_scenario::{SIM, backend_title};

use crate::schema::{Experiment, Table};

/// The content of a report about an experiment.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its tables, in the order of the file.
    pub tables: Vec<TableResult<'a>>,
    /// Its claims, in the order of the file.
    pub claims: Vec<JudgedClaim<'a>>,
    /// The stored runs of the simulator.
    pub results: Results,
    /// The tables, claims and runs of every other backend that has runs.
    pub others: Vec<Other<'a>>,
}

/// The results of a backend other than the simulator.
#[derive(Debug)]
pub struct Other<'a> {
    /// The name of its numbers.
    pub title: String,
    /// The tables, in the order of the file.
    pub tables: Vec<TableResult<'a>>,
    /// The claims, in the order of the file.
    pub claims: Vec<JudgedClaim<'a>>,
    /// Its stored runs.
    pub results: Results,
}

impl<'a> Analysis<'a> {
    /// Analyses the runs that exist.
    pub fn of(experiment: &'a Experiment, mut results: Results) -> Self {
        let filled = |results: &Results| {
            let fill = |t: &'a Table| tabulate(experiment, t, results, t.variant.as_deref());
            experiment.tables.iter().map(fill).collect::<Vec<_>>()
        };
        let others = core::mem::take(&mut results.others);
        let mut all: Vec<(&str, Vec<TableResult<'a>>)> = vec![(SIM, filled(&results))];
        all.extend(others.iter().map(|o| (o.backend.as_str(), filled(o))));
        compare(&mut all);
        let mut all = all.into_iter().map(|(_, tables)| tables);
        let mut tables = all.next().unwrap_or_default();
        for table in tables.iter_mut().filter(|t| t.table.variant.is_none()) {
            explain(experiment, table, &results);
        }
        let judged = |tables: &[TableResult<'a>], needs_all| {
            experiment.claims.iter().filter_map(|c| judge(c, tables, needs_all)).collect::<Vec<_>>()
        };
        let claims = judged(&tables, true);
        let of: Vec<Vec<TableResult<'a>>> = all.collect();
        let titles = others.iter().map(|o| backend_title(&o.backend));
        let beside: Vec<_> = titles.zip(of.iter().map(Vec::as_slice)).collect();
        agreeing_backend::set_agreeing_backends(&mut tables, &beside);
        let others = others.into_iter().zip(of).map(|(results, tables)| Other {
            title: backend_title(&results.backend).to_owned(),
            claims: judged(&tables, false),
            tables,
            results,
        });
        let others = others.collect();
        Self { experiment, tables, claims, results, others }
    }

    /// The cells of the experiment without variants, which are compared with the published values.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        compared(&self.tables)
    }

    /// The name of the simulator's numbers: `ours` if there are no others.
    pub fn ours(&self) -> &'static str {
        if self.others.is_empty() { "ours" } else { "simulated" }
    }

    /// The other backends that have runs of a table, by its place in the file.
    pub(crate) fn others_of(&self, table: usize) -> Vec<(&str, &TableResult<'a>)> {
        let others =
            self.others.iter().filter_map(|o| Some((o.title.as_str(), o.tables.get(table)?)));
        others.filter(|(_, table)| table.cells().any(|c| c.runs() > 0)).collect()
    }
}

impl Other<'_> {
    /// As [`Analysis::cells`].
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        compared(&self.tables)
    }
}

fn compared<'c>(tables: &'c [TableResult<'_>]) -> impl Iterator<Item = &'c Cell> {
    let plain = tables.iter().filter(|t| t.table.variant.is_none() && t.table.is_printed);
    plain.flat_map(TableResult::cells)
}

/// If a table is compared with a backend, the others are compared with the results of that one.
fn compare(all: &mut [(&str, Vec<TableResult<'_>>)]) {
    let tables = all.first().map_or(0, |(_, tables)| tables.len());
    for i in 0..tables {
        let Some(against) = all[0].1[i].table.against.clone() else { continue };
        let found = all.iter().find(|(id, _)| *id == against);
        let Some(measure) = found.map(|(_, tables)| tables[i].means()) else { continue };
        for (_, tables) in all.iter_mut().filter(|(id, _)| *id != against) {
            tables[i].compare_with(&measure);
        }
    }
}
