//! A result in numbers: how many cells agree, how many claims hold, how much is not judged yet.

use super::html::counted;
use super::tables::measure;
use crate::analysis::{Agreement, Analysis, Basis, Cell, JudgedClaim, Judgement};

/// What is counted of an experiment.
pub(super) struct Tally {
    /// What cells are compared with.
    pub measure: String,
    /// Cells that have something to be compared with and enough runs.
    pub compared: usize,
    /// Those of them that agree.
    pub close: usize,
    /// Cells that agree and are not compared: one flow fills its link, or neither has a value.
    pub unscored: usize,
    /// Those that differ, with the published value inside our interval.
    pub inside: usize,
    /// Those that differ and ask for a reason.
    pub off: usize,
    /// Those for which a run supports one.
    pub explained: usize,
    /// Cells that have something to be compared with and too few runs.
    pub early: usize,
    /// Cells that have something to be compared with and no run.
    pub missing: usize,
    /// The weakest of all cells with too few runs.
    pub basis: Option<Basis>,
    /// What the next are called.
    pub claims: &'static str,
    /// Claims of the study, or of another publication.
    pub study: Claims,
    /// Claims of this project.
    pub own: Claims,
    /// Claims about cells that the paper has numbers for.
    pub judged_on_paper: usize,
    /// Claims that hold on those.
    pub hold_on_paper: usize,
}

/// What is counted of claims.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claims {
    /// Claims that are judged.
    pub judged: usize,
    /// Claims that hold.
    pub hold: usize,
    /// Claims that have too few runs.
    pub early: usize,
}

impl Claims {
    fn of<'j>(judged: impl Iterator<Item = &'j Judgement>) -> Self {
        let mut claims = Self::default();
        for judgement in judged {
            claims.judged += usize::from(judgement.holds.is_some());
            claims.hold += usize::from(judgement.holds == Some(true));
            claims.early += usize::from(judgement.early.is_some());
        }
        claims
    }
}

impl Tally {
    pub(super) fn of(analysis: &Analysis<'_>) -> Self {
        let cells = || analysis.cells();
        let off = || cells().filter(|c| c.needs_reason());
        let claims = || analysis.claims.iter();
        let is_own = |c: &&JudgedClaim<'_>| c.claim.is_own();
        let compared = analysis.tables.iter().map(|t| t.table);
        let compared = compared.filter(|t| t.reference.is_some() || t.against.is_some());
        let mut measures = compared.map(measure);
        let first = measures.next();
        let measure = first.filter(|first| measures.all(|m| m == *first));
        let bases = cells().filter(|c| c.is_early()).map(|c| c.basis);
        Self {
            measure: measure.unwrap_or("the published value").to_owned(),
            compared: cells().filter(|c| c.is_compared()).count(),
            close: count(cells(), Agreement::Close),
            unscored: cells().filter(|c| c.is_unscored()).count(),
            inside: count(cells(), Agreement::InInterval),
            off: off().count(),
            explained: off().filter(|c| c.is_explained()).count(),
            early: count(cells(), Agreement::Unjudged),
            missing: cells()
                .filter(|c| c.agreement == Agreement::Missing && c.published.is_some())
                .count(),
            basis: bases.chain(claims().filter_map(|c| c.ours.early)).reduce(Basis::weaker),
            claims: match analysis.experiment.study {
                Some(_) => "claims of the study",
                None => "claims",
            },
            study: Claims::of(claims().filter(|c| !is_own(c)).map(|c| &c.ours)),
            own: Claims::of(claims().filter(is_own).map(|c| &c.ours)),
            judged_on_paper: claims().filter(|c| c.published.holds.is_some()).count(),
            hold_on_paper: claims().filter(|c| c.published.holds == Some(true)).count(),
        }
    }

    /// Claims that have too few runs.
    pub(super) fn early_claims(&self) -> usize {
        self.study.early + self.own.early
    }

    /// The result in one line; what was not compared or claimed is not in it.
    pub(super) fn line(&self) -> String {
        let mut parts = Vec::new();
        if self.compared > 0 {
            let (close, compared) = (self.close, self.compared);
            let measure = &self.measure;
            parts.push(format!("{close} of {compared} cells agree with {measure}"));
        }
        if self.unscored > 0 {
            parts.push(format!("{} more agree and do not count", self.unscored));
        }
        let claims = [(self.study, self.claims), (self.own, "claims of our own")];
        for (claims, what) in claims.into_iter().filter(|(claims, _)| claims.judged > 0) {
            parts.push(format!("{} of {} {what} hold", claims.hold, claims.judged));
        }
        parts.extend(self.early_words());
        parts.join("; ")
    }

    /// The cells as a bar: how many agree, differ, and are not judged yet; empty where none is
    /// judged.
    pub(super) fn bar(&self) -> String {
        if self.close + self.off + self.unscored == 0 {
            return String::new();
        }
        let parts = [
            ("close", self.close, "agree"),
            ("inside", self.inside, "differ, with the published inside our interval"),
            ("differs", self.off.saturating_sub(self.inside), "differ"),
            ("alone", self.unscored, "agree and do not count"),
            ("early", self.early, "not judged yet"),
            ("missing", self.missing, "not run yet"),
        ];
        let parts: Vec<_> = parts.into_iter().filter(|(_, n, _)| *n > 0).collect();
        let words: Vec<String> = parts.iter().map(|(_, n, word)| format!("{n} {word}")).collect();
        let words = words.join(", ");
        let spans = parts
            .iter()
            .map(|(class, n, _)| format!("<span class=\"{class}\" style=\"flex:{n}\"></span>"));
        let spans: String = spans.collect();
        format!(
            "<div class=\"bar\" role=\"img\" aria-label=\"{words}\" title=\"{words}\">\
             {spans}</div>\n"
        )
    }

    /// What is not judged yet, and why.
    pub(super) fn early_words(&self) -> Option<String> {
        let basis = self.basis?.words();
        let mut parts = Vec::new();
        if self.early > 0 {
            parts.push(counted(self.early, "cell"));
        }
        if self.early_claims() > 0 {
            parts.push(counted(self.early_claims(), "claim"));
        }
        let what = if parts.is_empty() { "the numbers".to_owned() } else { parts.join(" and ") };
        Some(format!("{what} not judged yet ({basis})"))
    }
}

fn count<'c>(cells: impl Iterator<Item = &'c Cell>, agreement: Agreement) -> usize {
    cells.filter(|c| c.agreement == agreement).count()
}
