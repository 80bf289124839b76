//! Writes the top of a page: the subject, one sentence per finding, missing runs, and the result in
//! numbers.

use core::fmt::Write as _;

use udccp_scenario::{SIM, backend_title};

use super::html::{counted, escape, grouped};
use super::tally::Tally;
use crate::analysis::{Agreement, Analysis};

/// Title, authors, question and findings.
pub(super) fn header(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let mut out =
        String::from("<header>\n<p class=\"crumb\"><a href=\"index.html\">udccp lab</a></p>\n");
    let _ = writeln!(out, "<h1>{}</h1>", escape(experiment.heading()));
    if let Some(study) = &experiment.study {
        let _ = writeln!(
            out,
            "<p class=\"by\">{}. {}. Repeated with the protocol code of this project.</p>",
            escape(&study.authors),
            escape(&study.published)
        );
    }
    let _ = writeln!(out, "<p class=\"asks\">{}</p>", escape(&experiment.asks));
    if let Some(summary) = &experiment.summary {
        out.push_str("<dl class=\"story\">\n");
        let mut say = |title: &str, text: &str| {
            let _ = writeln!(out, "<div><dt>{title}</dt><dd>{}</dd></div>", escape(text));
        };
        if let Some(says) = &summary.says {
            say("What the study says", says);
        }
        say("What we find", &summary.finds);
        if let Some(differs) = &summary.differs {
            say("Where we differ, and why", differs);
        }
        out.push_str("</dl>\n");
    }
    out.push_str("</header>\n");
    out
}

/// The result in numbers, before the details.
pub(super) fn numbers(analysis: &Analysis<'_>) -> String {
    let tally = Tally::of(analysis);
    let (done, planned) = (analysis.results.runs.len(), analysis.results.planned);
    let several = !analysis.others.is_empty();
    let mut out = warnings(analysis, &tally);
    out.push_str("<section class=\"short\">\n");
    let mut tile = |value: String, says: String| {
        let _ = writeln!(out, "<div class=\"tile\"><b>{value}</b><span>{says}</span></div>");
    };
    let Tally { compared, close, off, explained, .. } = tally;
    if compared > 0 {
        let of = if several { " of the simulation" } else { "" };
        let says = format!("cells{of} agree with {}", tally.measure);
        tile(format!("{close} of {compared}"), says);
    }
    if tally.unscored > 0 {
        let says = "more cells agree but do not count, because one flow fills its link or neither \
                    has a value";
        tile(tally.unscored.to_string(), says.to_owned());
    }
    for other in &analysis.others {
        let compared = other.cells().filter(|c| c.is_compared()).count();
        let close = other.cells().filter(|c| c.agreement == Agreement::Close).count();
        if compared > 0 {
            let says = format!("cells of {} agree with it", other.title);
            tile(format!("{close} of {compared}"), says);
        }
    }
    if off > 0 {
        let says = "cells that differ are explained by a run, with one set-up for each table; the \
                    others are unexplained";
        tile(format!("{explained} of {off}"), says.to_owned());
    }
    let on = if several { "in the simulation" } else { "on our numbers" };
    if tally.study.judged > 0 {
        let says = format!("{} hold {on}", tally.claims);
        tile(format!("{} of {}", tally.study.hold, tally.study.judged), says);
    }
    if tally.judged_on_paper > 0 {
        let says = "claims hold on the paper's own numbers".to_owned();
        tile(format!("{} of {}", tally.hold_on_paper, tally.judged_on_paper), says);
    }
    if tally.own.judged > 0 {
        let says = format!("claims of this project hold {on}");
        tile(format!("{} of {}", tally.own.hold, tally.own.judged), says);
    }
    let packets = grouped(analysis.results.packets());
    tile(format!("{done} of {planned}"), format!("runs, {packets} packets simulated"));
    for other in &analysis.others {
        let (done, kept) = (other.results.runs.len(), other.results.kept.len());
        if done > 0 || kept == 0 {
            tile(format!("{done} of {planned}"), format!("runs: {}", other.title));
        }
        if kept > 0 {
            tile(format!("{kept} of {planned}"), format!("kept runs: {}", other.title));
        }
    }
    out.push_str("</section>\n");
    out.push_str(&tally.bar());
    out
}

/// Warnings about the runs that a reader needs before the numbers.
fn warnings(analysis: &Analysis<'_>, tally: &Tally) -> String {
    let experiment = analysis.experiment;
    let mut out = String::new();
    let mut warn = |text: String| {
        let _ = writeln!(out, "<p class=\"warn\">{text}</p>");
    };
    let command = format!("udccp lab run {}{}", experiment.id, experiment.narrowed.arguments());
    let command = escape(&command);
    if analysis.results.runs.is_empty() {
        warn(format!("No runs yet. Start <code>{command}</code>."));
    } else if let Some(basis) = tally.basis {
        warn(format!(
            "These are first numbers, not results ({}): values and claims are judged only \
             with as many runs, and as long ones, as the file asks for. <code>{command}</code> \
             does the missing runs.",
            basis.text()
        ));
    } else if analysis.results.runs.len() < analysis.results.planned {
        warn(format!(
            "Some runs are still missing, and their cells are empty. <code>{command}</code> \
             resumes where it stopped."
        ));
    }
    for id in not_run(analysis) {
        warn(format!(
            "Not run: {}. <code>{command} --backend {id}</code> adds the missing values.",
            escape(backend_title(id))
        ));
    }
    for other in analysis.others.iter().filter(|o| !o.results.invalid.is_empty()) {
        let invalid = &other.results.invalid;
        warn(format!(
            "{} of {} {} not valid, and left out of every number: {}. \
             <code>{command} --backend {}</code> tries again.",
            counted(invalid.len(), "run"),
            escape(&other.title),
            if invalid.len() == 1 { "is" } else { "are" },
            escape(&reasons(invalid)),
            escape(&other.results.backend)
        ));
    }
    let narrowed = &experiment.narrowed;
    if !narrowed.is_empty() {
        warn(format!(
            "Only a part of the file, selected by <code>{}</code>.",
            escape(narrowed.arguments().trim())
        ));
    }
    out
}

/// The distinct reasons, with their counts if there are several.
fn reasons(all: &[String]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for why in all {
        match counts.iter_mut().find(|(known, _)| known == why) {
            Some((_, n)) => *n += 1,
            None => counts.push((why, 1)),
        }
    }
    match counts.as_slice() {
        [(why, _)] => (*why).to_owned(),
        several => {
            let text = several.iter().map(|(why, n)| format!("{why} ({})", counted(*n, "run")));
            text.collect::<Vec<_>>().join("; ")
        }
    }
}

/// Backends that the experiment is made for and that have no run.
pub(super) fn not_run<'a>(analysis: &'a Analysis<'_>) -> Vec<&'a str> {
    let experiment = analysis.experiment;
    let mut meant: Vec<&str> = experiment.backends.clone();
    for id in experiment.tables.iter().filter_map(|t| t.against.as_deref()) {
        if id != SIM && !meant.contains(&id) {
            meant.push(id);
        }
    }
    let has_runs = |id: &&str| analysis.others.iter().any(|o| o.results.backend == **id);
    meant.into_iter().filter(|id| !has_runs(id)).collect()
}
