//! The claims of a page, with their verdicts and the deciding comparisons.

use core::fmt::Write as _;

use super::html::escape;
use crate::analysis::{Analysis, Check, JudgedClaim, Judgement};
use crate::schema::Origin;

/// All claims; those of the study are separate from this project's.
pub(super) fn claims(analysis: &Analysis<'_>) -> String {
    let has_study = analysis.experiment.study.is_some();
    let has_paper = analysis.claims.iter().any(|c| c.published.holds.is_some());
    let mut out = String::new();
    for is_own in [false, true] {
        let meant = |c: &&JudgedClaim<'_>| c.claim.is_own() == is_own;
        if !analysis.claims.iter().any(|c| meant(&c)) {
            continue;
        }
        let id = if is_own { "own-claims" } else { "claims" };
        let (title, how) = match (is_own, has_study, has_paper) {
            (true, ..) => (
                "What this project claims",
                "Claims that no publication makes. They are counted separately and checked \
                 against our numbers.",
            ),
            (false, true, true) => (
                "What the study claims",
                "The same rule checks each sentence against our numbers and the paper's own.",
            ),
            (false, true, false) => (
                "What the study claims",
                "Each sentence is checked against our numbers; the paper gives none for these.",
            ),
            (false, false, _) => ("Claims", "Each sentence is checked against our numbers."),
        };
        let _ = writeln!(out, "<h2 id=\"{id}\">{title}</h2>\n<p class=\"what\">{how}</p>");
        out.push_str("<ol class=\"claims\">\n");
        for (i, judged) in analysis.claims.iter().enumerate().filter(|(_, c)| meant(c)) {
            out.push_str(&claim(analysis, judged, i));
        }
        out.push_str("</ol>\n");
    }
    out
}

fn claim(analysis: &Analysis<'_>, judged: &JudgedClaim<'_>, index: usize) -> String {
    let mut out =
        format!("<li id=\"claim-{}\">\n<p><b>{}</b>", index + 1, escape(&judged.claim.says));
    if !judged.claim.source.is_empty() {
        let _ = write!(out, " <small>{}</small>", escape(&judged.claim.source));
    }
    if judged.claim.origin == Origin::AfterRuns {
        out.push_str(" <small>written after first runs</small>");
    }
    out.push_str("</p>\n");
    out.push_str(&paragraph(analysis.ours(), &judged.ours));
    for other in &analysis.others {
        if let Some(JudgedClaim { ours, .. }) = other.claims.get(index)
            && (ours.holds.is_some() || ours.early.is_some())
        {
            out.push_str(&paragraph(&other.title, ours));
        }
    }
    if judged.published.holds.is_some() {
        out.push_str(&paragraph("the paper\u{2019}s own numbers", &judged.published));
    }
    out.push_str("</li>\n");
    out
}

/// The verdict of the runs on a claim.
pub(super) struct Verdict {
    /// Its CSS class.
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) text: &'static str,
}

impl Verdict {
    pub(super) fn of(judgement: &Judgement) -> Self {
        let (class, sign, text) = match (judgement.holds, judgement.early) {
            (Some(true), _) => ("close", "✓", "holds"),
            (Some(false), _) => ("differs", "✗", "fails"),
            (None, Some(_)) => ("early", "?", "not judged yet"),
            (None, None) => ("missing", "–", "no numbers"),
        };
        Self { class, sign, text }
    }
}

fn paragraph(whose: &str, judgement: &Judgement) -> String {
    let Verdict { class, sign, text } = Verdict::of(judgement);
    let mut out = format!(
        "<div class=\"verdict\"><p><span class=\"chip {class}\">{sign} {text}</span> {}",
        escape(whose)
    );
    if let Some(basis) = judgement.early {
        let _ = write!(out, ": {}", basis.text());
    }
    let (failing, asked) = (judgement.checks.len(), judgement.asked);
    match (judgement.holds, judgement.checks.as_slice()) {
        (Some(true), [closest]) => {
            let of = if asked > 1 { format!("closest of {asked}: ") } else { String::new() };
            let _ = write!(out, ": {of}{}", escape(&closest.text()));
        }
        (Some(false), _) if asked > 1 => {
            let _ = write!(out, ": {failing} of {asked} comparisons fail");
        }
        _ => {}
    }
    if judgement.in_doubt {
        out.push_str("; an interval crosses the bound: more runs could change the verdict");
    }
    out.push_str("</p>\n");
    if judgement.holds == Some(false) {
        out.push_str(&failed_checks_table(&judgement.checks));
    }
    out.push_str("</div>\n");
    out
}

/// The comparisons that fail.
fn failed_checks_table(checks: &[Check]) -> String {
    let mut out = String::from(
        "<div class=\"scroll\"><table class=\"mini\"><thead><tr><th scope=\"col\">where</th>\
         <th scope=\"col\">found</th><th scope=\"col\">required</th></tr></thead><tbody>\n",
    );
    for check in checks {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&check.place),
            escape(&check.found),
            escape(&check.asked)
        );
    }
    out.push_str("</tbody></table></div>\n");
    out
}
