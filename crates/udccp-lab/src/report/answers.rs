//! Answers to the open questions of a study: each sentence with its claims and their verdicts.

use core::fmt::Write as _;

use super::claims::Verdict;
use super::html::escape;
use crate::analysis::{Analysis, JudgedClaim};
use crate::schema::{Answer, Sentence};

/// The answer's paragraphs: the page's own answer or, for a study, those of all experiments in the
/// report that answer one of its questions.
pub(super) fn html(analysis: &Analysis<'_>, all: &[Analysis<'_>]) -> String {
    let experiment = analysis.experiment;
    let others = all.iter().filter(|other| other.experiment.id != experiment.id);
    let mut out = String::new();
    for from in core::iter::once(analysis).chain(others) {
        let is_own = from.experiment.id == experiment.id;
        if let Some(answer) = from.experiment.answer.as_ref()
            && (is_own || answer.study == experiment.id)
        {
            let page = format!("{}.html", from.experiment.id);
            out.push_str(&paragraph(from, answer, if is_own { "" } else { &page }));
        }
    }
    match out.is_empty() {
        true => out,
        false => format!(
            "<h2 id=\"answers\">{}</h2>\n<p class=\"what\">Each sign links to a claim behind the \
             sentence, and shows whether these runs confirm it.</p>\n{out}",
            if experiment.study.is_some() { "Open questions of the study" } else { "The answer" }
        ),
    }
}

/// The same answer as Markdown, followed by a list of its claims.
pub(super) fn markdown(analysis: &Analysis<'_>) -> String {
    let Some(answer) = &analysis.experiment.answer else { return String::new() };
    let mut out = format!("### {}\n\n", answer.question);
    let says: Vec<&str> = answer.sentences.iter().map(|s| s.says.as_str()).collect();
    let _ = writeln!(out, "{}\n", says.join(" "));
    for (_, judged) in answer.sentences.iter().flat_map(|s| claims(analysis, s)) {
        let _ = writeln!(out, "- {}: {}", Verdict::of(&judged.ours).text, judged.claim.says);
    }
    out.push('\n');
    out
}

fn paragraph(from: &Analysis<'_>, answer: &Answer, page: &str) -> String {
    let mut out = format!("<section class=\"answer\">\n<h3>{}</h3>\n<p>", escape(&answer.question));
    for sentence in &answer.sentences {
        out.push_str(&escape(&sentence.says));
        for (index, judged) in claims(from, sentence) {
            let Verdict { class, sign, text } = Verdict::of(&judged.ours);
            let _ = write!(
                out,
                " <a class=\"chip {class}\" href=\"{page}#claim-{number}\" \
                 title=\"{text}: {}\">{sign} {number}</a>",
                escape(&judged.claim.says),
                number = index + 1,
            );
        }
        out.push(' ');
    }
    let own = match page {
        "" => String::new(),
        page => format!(
            "\n<p class=\"what\">From <a href=\"{page}\">{}</a></p>",
            escape(from.experiment.heading())
        ),
    };
    let _ = writeln!(out, "</p>{own}\n</section>");
    out
}

/// The claims of a sentence, each with its number on its page.
fn claims<'s>(
    from: &'s Analysis<'_>,
    sentence: &'s Sentence,
) -> impl Iterator<Item = (usize, &'s JudgedClaim<'s>)> {
    let judged = from.claims.iter().enumerate();
    judged.filter(|(_, j)| j.claim.id.as_ref().is_some_and(|id| sentence.claims.contains(id)))
}
