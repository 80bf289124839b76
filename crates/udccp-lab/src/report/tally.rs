//! A result in numbers: how many cells agree, how many claims hold.

use super::tables::measure;
use crate::analysis::{Agreement, Analysis, Judgement};

/// What is counted of an experiment.
pub(super) struct Tally {
    /// What cells are compared with.
    pub measure: String,
    /// Cells that have something to be compared with and a value of ours.
    pub compared: usize,
    /// Those of them that agree.
    pub close: usize,
    /// Those that differ and ask for a reason.
    pub off: usize,
    /// Those for which a run supports one.
    pub explained: usize,
    /// Claims.
    pub claims: usize,
    /// Claims that hold on our numbers.
    pub hold: usize,
    /// Claims about cells that the paper has numbers for.
    pub judged_on_paper: usize,
    /// Claims that hold on those.
    pub hold_on_paper: usize,
}

impl Tally {
    pub(super) fn of(analysis: &Analysis<'_>) -> Self {
        let cells = || analysis.cells();
        let off = || cells().filter(|c| c.needs_reason());
        let holds = |verdict: &Judgement| verdict.holds == Some(true);
        let claims = || analysis.claims.iter();
        let compared = analysis.tables.iter().map(|t| t.table);
        let compared = compared.filter(|t| t.reference.is_some() || t.against.is_some());
        let mut measures = compared.map(measure);
        let first = measures.next();
        let measure = first.filter(|first| measures.all(|m| m == *first));
        Self {
            measure: measure.unwrap_or("the published value").to_owned(),
            compared: cells().filter(|c| c.is_compared()).count(),
            close: cells().filter(|c| c.agreement == Agreement::Close).count(),
            off: off().count(),
            explained: off().filter(|c| c.is_explained()).count(),
            claims: claims().count(),
            hold: claims().filter(|c| holds(&c.ours)).count(),
            judged_on_paper: claims().filter(|c| c.published.holds.is_some()).count(),
            hold_on_paper: claims().filter(|c| holds(&c.published)).count(),
        }
    }

    /// The result in one line; what was not compared or claimed is not in it.
    pub(super) fn line(&self) -> String {
        let mut parts = Vec::new();
        if self.compared > 0 {
            let (close, compared) = (self.close, self.compared);
            let measure = &self.measure;
            parts.push(format!("{close} of {compared} cells agree with {measure}"));
        }
        if self.claims > 0 {
            parts.push(format!("{} of {} claims hold", self.hold, self.claims));
        }
        parts.join("; ")
    }
}
