//! Why ours and the published values differ: a sentence counts as far as the runs of a variant
//! support it.

use udccp_metrics::Summary;

use super::results::Results;
use super::spread::Spread;
use super::table::{TableResult, is_close, tabulate};
use crate::schema::{Experiment, MetricSpec};

/// A reason given for the difference of one cell.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The sentence.
    pub says: String,
    /// The variant whose runs were looked at.
    pub variant: String,
    /// What these runs found.
    pub found: Summary,
    /// How far they lie apart.
    pub spread: Spread,
    /// How far they support the sentence; `None` where there are too few such runs.
    pub support: Option<Support>,
}

/// How far a variant's runs support a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The variant is as close to the published value as counts as agreement.
    Full,
    /// The variant closes at least half of the difference.
    Part,
    /// The variant does neither.
    No,
}

impl Support {
    /// Whether the reason may be given as one.
    pub fn counts(self) -> bool {
        self != Self::No
    }
}

/// Adds to every cell that needs one the reasons that the file gives, each judged by its runs.
pub fn explain(experiment: &Experiment, table: &mut TableResult<'_>, results: &Results) {
    for given in experiment.explanations.iter().filter(|e| e.tables.contains(&table.table.id)) {
        let variant = tabulate(experiment, table.table, results, Some(&given.variant));
        let found: Vec<_> = variant
            .cells()
            .map(|c| (c.labels.clone(), c.basis, c.ours.clone(), c.spread))
            .collect();
        for cell in table.rows.iter_mut().flat_map(|r| &mut r.cells).flatten() {
            if !cell.needs_reason() || !given.filter.matches(&cell.labels) {
                continue;
            }
            let here = found.iter().find(|(labels, ..)| *labels == cell.labels);
            let Some((_, basis, summary, spread)) = here else { continue };
            let published = cell.published.and_then(|p| p.value);
            cell.reasons.push(Reason {
                says: given.says.clone(),
                variant: given.variant.clone(),
                found: summary.clone(),
                spread: *spread,
                support: support(cell.difference(), summary, published, &cell.shown)
                    .filter(|_| basis.is_enough()),
            });
        }
    }
}

fn support(
    difference: Option<f64>,
    found: &Summary,
    published: Option<f64>,
    shown: &MetricSpec,
) -> Option<Support> {
    let (mean, published) = (found.mean.ok()?, published?);
    let (left, difference) = ((mean - published).abs(), difference?.abs());
    if is_close(mean, published, shown) {
        return Some(Support::Full);
    }
    Some(if left <= difference / 2.0 { Support::Part } else { Support::No })
}
