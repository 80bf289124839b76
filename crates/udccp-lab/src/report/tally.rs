//! A result in numbers: how many cells agree, how many claims hold, what is not judged yet.

use super::cell_text::measure;
use super::html::counted;
use crate::analysis::{Agreement, Analysis, Basis, Cell, JudgedClaim, Judgement};

/// Counts of an experiment.
pub(super) struct Tally {
    /// The reference of the cells.
    pub measure: String,
    /// Cells with a reference and enough runs.
    pub compared: usize,
    /// Of these, cells that agree.
    pub close: usize,
    /// Cells that agree and are not scored: one flow fills its link, or neither has a value.
    pub unscored: usize,
    /// Cells that differ with the published value inside our interval.
    pub inside: usize,
    /// Cells that differ and need a reason.
    pub off: usize,
    /// Of these, cells for which a run supports a reason.
    pub explained: usize,
    /// Cells with a reference and too few runs.
    pub early: usize,
    /// Cells with a reference and no run.
    pub missing: usize,
    /// The weakest basis of the cells with too few runs.
    pub basis: Option<Basis>,
    /// The word for the following claims.
    pub claims: &'static str,
    /// Claims of the study or another publication.
    pub study: Claims,
    /// Claims of this project.
    pub own: Claims,
    /// Claims about cells for which the paper has numbers.
    pub judged_on_paper: usize,
    /// Of these, claims that hold for the paper's numbers.
    pub hold_on_paper: usize,
}

/// Counts of claims.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claims {
    /// Claims that have been judged.
    pub judged: usize,
    /// Claims that hold.
    pub hold: usize,
    /// Claims with too few runs.
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

    /// Claims with too few runs.
    pub(super) fn early_claims(&self) -> usize {
        self.study.early + self.own.early
    }

    /// The result in one line, without what was not compared or claimed.
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
        parts.extend(self.unjudged_text());
        parts.join("; ")
    }

    /// The cells as a bar of those that agree, differ, and are not judged yet; empty if none is
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
        let text: Vec<String> = parts.iter().map(|(_, n, word)| format!("{n} {word}")).collect();
        let text = text.join(", ");
        let spans = parts
            .iter()
            .map(|(class, n, _)| format!("<span class=\"{class}\" style=\"flex:{n}\"></span>"));
        let spans: String = spans.collect();
        format!(
            "<div class=\"bar\" role=\"img\" aria-label=\"{text}\" title=\"{text}\">\
             {spans}</div>\n"
        )
    }

    /// What is not judged yet, and why.
    pub(super) fn unjudged_text(&self) -> Option<String> {
        let basis = self.basis?.text();
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
