//! The score of a table of shares: in how many cells the simulated share agrees with that of a real
//! kernel.

use udccp_base::Duration;
use udccp_scenario::{Record, SIM};

use super::basis::Basis;
use super::cell::{Cell, is_close};
use super::results::Results;
use super::table::TableResult;
use super::{Analysis, window};
use crate::schema::{Metric, MetricSpec, Published, Table, Window};

/// A share is steady if its mean over the runs changes by at most this from the first half of the
/// measured interval to the second, in percentage points.
pub const STEADY_POINTS: f64 = 5.0;

/// The result of comparing one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scored {
    /// Within the table's distance (`close`) of the kernel's share.
    Near,
    /// Further away, but in the 95 % interval of the kernel's runs.
    Inside,
    /// Neither.
    Off,
    /// One of the two is not steady, so the cell is not scored.
    Unsteady,
}

/// The cells of a table compared with another backend.
#[derive(Debug)]
pub struct Score<'a> {
    /// The table.
    pub table: &'a Table,
    /// The backend with whose shares the simulated ones are compared.
    pub backend: String,
    /// Whether the table's reference is this backend, and not another one.
    pub is_main: bool,
    /// The cells that have runs on both sides.
    pub cells: Vec<Scored>,
    /// How many cells the table has.
    pub planned: usize,
    /// The basis of the cell with the fewest runs, compared with those asked for.
    pub basis: Option<Basis>,
}

impl Score<'_> {
    /// How many cells have this result.
    pub fn count(&self, scored: Scored) -> usize {
        self.cells.iter().filter(|cell| **cell == scored).count()
    }

    /// Cells that agree.
    pub fn agree(&self) -> usize {
        self.count(Scored::Near) + self.count(Scored::Inside)
    }

    /// Number of scored cells: those that are steady.
    pub fn scored(&self) -> usize {
        self.cells.len() - self.count(Scored::Unsteady)
    }
}

/// The scores of all tables of shares whose reference is a backend, each with those of the other
/// backends that have runs.
pub fn scores<'a>(analysis: &Analysis<'a>) -> Vec<Score<'a>> {
    let mut found = Vec::new();
    for (i, simulated) in analysis.tables.iter().enumerate() {
        let table = simulated.table;
        let is_of_shares = table.shown.iter().all(|shown| shown.metric == Metric::Share);
        let Some(against) = table.against.as_deref().filter(|id| is_of_shares && *id != SIM) else {
            continue;
        };
        for other in &analysis.others {
            let Some(real) = other.tables.get(i) else { continue };
            let of = [(simulated, &analysis.results), (real, &other.results)];
            let Some(score) = score(table, of, other.results.backend == against) else { continue };
            found.push(score);
        }
    }
    found
}

fn score<'a>(
    table: &'a Table,
    [(simulated, own), (real, others)]: [(&TableResult<'a>, &Results); 2],
    is_main: bool,
) -> Option<Score<'a>> {
    let mut score = Score {
        table,
        backend: others.backend.clone(),
        is_main,
        cells: Vec::new(),
        planned: simulated.cells().count(),
        basis: None,
    };
    for cell in simulated.cells() {
        let Some(theirs) = real.cells().find(|c| c.labels == cell.labels) else { continue };
        let (Ok(ours), Ok(measure)) = (cell.ours.mean, theirs.ours.mean) else { continue };
        let weaker = cell.basis.weaker(theirs.basis);
        score.basis = Some(score.basis.map_or(weaker, |basis: Basis| basis.weaker(weaker)));
        let inside = |(low, high)| (low..=high).contains(&ours);
        score.cells.push(if !(is_steady(cell, own) && is_steady(theirs, others)) {
            Scored::Unsteady
        } else if is_close(ours, &Published::value(Some(measure)), &cell.shown) {
            Scored::Near
        } else if theirs.spread.interval().is_some_and(inside) {
            Scored::Inside
        } else {
            Scored::Off
        });
    }
    (!score.cells.is_empty()).then_some(score)
}

/// Whether the share of a cell is the same in both halves of its measured interval.
fn is_steady(cell: &Cell, results: &Results) -> bool {
    let (case, point) = &cell.place;
    let Some(flow) = cell.labels.iter().find(|(key, _)| key == crate::schema::FLOW_KEY) else {
        return false;
    };
    let changes: Vec<f64> = results
        .at(case.as_deref(), None, point)
        .filter_map(|record| change(record, &cell.shown, &flow.1))
        .collect();
    let mean = changes.iter().sum::<f64>() / changes.len().max(1) as f64;
    !changes.is_empty() && mean.abs() <= STEADY_POINTS
}

/// Change from the first half of the measured interval to the second, in percentage points.
fn change(record: &Record, shown: &MetricSpec, flow: &str) -> Option<f64> {
    let [from, to] = record.measured_s;
    let middle = (from + to) / 2.0;
    let share = |from: f64, to: f64| {
        let stretch =
            Window { from: Duration::from_secs_f64(from), to: Duration::from_secs_f64(to) };
        window::share(record, shown.rates, flow, stretch).ok()
    };
    Some(share(middle, to)? - share(from, middle)?)
}
