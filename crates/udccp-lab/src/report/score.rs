//! The score of the tables of shares, for pages, terminals and Markdown.

use core::fmt::Write as _;

use udccp_scenario::backend_title;

use super::html::escape;
use crate::analysis::{Analysis, Basis, STEADY_POINTS, Score, Scored, scores};

/// The columns of a score.
const HEAD: [&str; 7] = [
    "table",
    "compared with",
    "agree",
    "within the distance",
    "inside the interval",
    "not steady",
    "runs",
];

/// Describes the rule.
fn rule(score: &Score<'_>) -> String {
    let close = score.table.shown.first().map(|shown| shown.close.text(&shown.unit));
    format!(
        "A cell agrees if the simulated share is within {} of the kernel's (of the smaller of the \
         two flows' shares), or inside the 95 % interval of the kernel's runs. A cell is scored if \
         it is steady on both sides: from the first half of the measured interval to the second, \
         the share changes by at most {STEADY_POINTS} points on the mean over the runs.",
        close.unwrap_or_default()
    )
}

/// One line per table and backend: first the tables' references with their sum, then the others.
fn lines(scores: &[Score<'_>]) -> Vec<[String; 7]> {
    let (main, beside): (Vec<_>, Vec<_>) = scores.iter().partition(|s| s.is_main);
    let mut lines: Vec<[String; 7]> = main.iter().map(|score| line(score)).collect();
    if main.len() > 1 {
        lines.push(sum("all of these", &main));
    }
    lines.extend(beside.iter().map(|score| line(score)));
    lines
}

fn line(score: &Score<'_>) -> [String; 7] {
    let title = backend_title(&score.backend);
    let with = if score.is_main { title.to_owned() } else { format!("{title} (beside)") };
    numbers(&score.table.title, with, &[score])
}

fn sum(title: &str, scores: &[&Score<'_>]) -> [String; 7] {
    numbers(title, String::new(), scores)
}

fn numbers(title: &str, with: String, scores: &[&Score<'_>]) -> [String; 7] {
    let total = |of: &dyn Fn(&Score<'_>) -> usize| scores.iter().map(|s| of(s)).sum::<usize>();
    let (agree, scored) = (total(&|s| s.agree()), total(&|s| s.scored()));
    let percent = if scored == 0 { 0.0 } else { 100.0 * agree as f64 / scored as f64 };
    let cells = total(&|s| s.cells.len());
    let basis = scores.iter().filter_map(|s| s.basis).reduce(Basis::weaker);
    [
        title.to_owned(),
        with,
        format!("{agree} of {scored} ({percent:.0} %)"),
        total(&|s| s.count(Scored::Near)).to_string(),
        total(&|s| s.count(Scored::Inside)).to_string(),
        total(&|s| s.count(Scored::Unsteady)).to_string(),
        format!(
            "{cells} of {} cells{}",
            total(&|s| s.planned),
            basis.map_or_else(String::new, |basis| format!(", {}", basis.text()))
        ),
    ]
}

/// The score as a section of a page; empty if there is none.
pub(super) fn html(analysis: &Analysis<'_>) -> String {
    let scores = scores(analysis);
    let Some(first) = scores.first() else { return String::new() };
    let mut out = format!(
        "<h2 id=\"score\">Score</h2>\n<p class=\"what\">{}</p>\n<div class=\"scroll\">\
         <table class=\"text\">\n<thead><tr>",
        escape(&rule(first))
    );
    for word in HEAD {
        let _ = write!(out, "<th scope=\"col\">{word}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for [title, rest @ ..] in lines(&scores) {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&title));
        for (word, label) in rest.iter().zip(&HEAD[1..]) {
            let _ = write!(out, "<td data-label=\"{label}\">{}</td>", escape(word));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// The score as Markdown; empty if there is none.
pub(super) fn markdown(analysis: &Analysis<'_>) -> String {
    let scores = scores(analysis);
    let Some(first) = scores.first() else { return String::new() };
    let mut out = format!("### Score\n\n{}\n\n", rule(first));
    let _ = writeln!(out, "| {} |\n|---|---|---:|---:|---:|---:|---|", HEAD.join(" | "));
    for line in lines(&scores) {
        let _ = writeln!(out, "| {} |", line.join(" | "));
    }
    out.push('\n');
    out
}

/// The score for a terminal; empty if there is none.
pub(super) fn text(analysis: &Analysis<'_>) -> String {
    let scores = scores(analysis);
    let mut out = String::new();
    for [title, with, agree, near, inside, unsteady, runs] in lines(&scores) {
        let with = if with.is_empty() { String::new() } else { format!(", compared with {with}") };
        let _ = writeln!(
            out,
            "score: {title}{with}: {agree} agree, {near} within the distance and {inside} inside \
             the interval; {unsteady} not steady ({runs})"
        );
    }
    out
}
