//! The index page: published studies first, then this project's questions, then the validation of
//! the simulator; and a legend of protocols.

use core::fmt::Write as _;

use udccp_scenario::VERSION;
use udccp_scenario::backend_title;
use udccp_scenario::protocol::PROTOCOLS;

use super::About;
use super::figures::thumbnail;
use super::html::{counted, document, escape, grouped};
use super::style::{Style, style_of};
use super::summary::not_run;
use super::svg::marker;
use super::tally::Tally;
use crate::analysis::Analysis;

/// The sections of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Studies,
    Questions,
    Fidelity,
}

impl Part {
    fn of(analysis: &Analysis<'_>) -> Self {
        let experiment = analysis.experiment;
        let is_held_against = experiment.tables.iter().any(|t| t.against.is_some());
        if experiment.study.is_some() {
            Self::Studies
        } else if is_held_against || !experiment.backends.is_empty() {
            Self::Fidelity
        } else {
            Self::Questions
        }
    }

    /// Its heading, and the text below it.
    fn title(self) -> [&'static str; 3] {
        match self {
            Self::Studies => [
                "studies",
                "Published studies, run again",
                "Every table next to the published numbers, every claim checked against both.",
            ],
            Self::Questions => [
                "questions",
                "Questions of our own",
                "Open questions of the studies, and newer ones.",
            ],
            Self::Fidelity => [
                "fidelity",
                "Fidelity of the simulation",
                "The same experiments on real kernels and in real time.",
            ],
        }
    }
}

/// The whole page.
pub(super) fn index(analyses: &[Analysis<'_>], about: &About) -> String {
    let mut body = format!(
        "<div class=\"index\">\n<header>\n<p class=\"crumb\">udccp lab</p>\n\
         <h1>DCCP beside TCP and UDP: studies and experiments</h1>\n<p class=\"asks\">{}</p>\n\
         <p class=\"by\">{}</p>\n</header>\n<main>\n",
        total(analyses),
        version_line(about)
    );
    for part in [Part::Studies, Part::Questions, Part::Fidelity] {
        let mut here: Vec<&Analysis<'_>> =
            analyses.iter().filter(|a| Part::of(a) == part).collect();
        here.sort_by_key(|a| &a.experiment.id);
        if here.is_empty() {
            continue;
        }
        let [id, title, says] = part.title();
        let _ = writeln!(body, "<h2 id=\"{id}\">{title}</h2>\n<p class=\"what\">{says}</p>");
        body.push_str("<div class=\"cards\">\n");
        here.into_iter().for_each(|analysis| body.push_str(&card(analysis)));
        body.push_str("</div>\n");
    }
    body.push_str(&protocols());
    body.push_str("</main>\n</div>\n");
    document("udccp lab", &body)
}

/// A summary of everything in one line.
fn total(analyses: &[Analysis<'_>]) -> String {
    let studies = analyses.iter().filter(|a| a.experiment.study.is_some()).count();
    let runs: usize = analyses
        .iter()
        .map(|a| {
            a.results.runs.len() + a.others.iter().map(|o| o.results.runs.len()).sum::<usize>()
        })
        .sum();
    let tallies: Vec<Tally> = analyses.iter().map(Tally::of).collect();
    let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let mut parts = Vec::new();
    if studies > 0 {
        parts.push(if studies == 1 { "1 study".to_owned() } else { format!("{studies} studies") });
    }
    if analyses.len() > studies {
        parts.push(counted(analyses.len() - studies, "further experiment"));
    }
    let plural = if runs == 1 { "" } else { "s" };
    parts.push(format!("{} run{plural}", grouped(runs as u64)));
    let mut line = parts.join(", ");
    let compared = sum(|t| t.compared);
    if compared > 0 {
        let _ = write!(line, "; {} of {compared} compared values agree", sum(|t| t.close));
    }
    let judged = sum(|t| t.study.judged + t.own.judged);
    if judged > 0 {
        let hold = sum(|t| t.study.hold + t.own.hold);
        let _ = write!(line, "; {hold} of {judged} claims hold");
    }
    let early = sum(|t| t.early + t.early_claims());
    if early > 0 {
        let _ = write!(line, "; {early} values and claims not judged yet");
    }
    line + "."
}

/// Version, date and machine.
fn version_line(about: &About) -> String {
    let version = format!("Version <code>{VERSION}</code>");
    let text = [about.date.as_str(), about.machine.as_str()];
    let text = text.into_iter().filter(|w| !w.is_empty()).map(escape);
    core::iter::once(version).chain(text).collect::<Vec<_>>().join(" · ")
}

fn card(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let by = experiment.study.as_ref().map_or_else(String::new, |study| {
        let (authors, published) = (escape(&study.authors), escape(&study.published));
        format!("<p class=\"by\">{authors} · {published}</p>")
    });
    let says = experiment.summary.as_ref().map_or(&experiment.asks, |summary| &summary.finds);
    let tally = Tally::of(analysis);
    format!(
        "<a class=\"card\" href=\"{}.html\">\n{}<div>\n<h3>{}</h3>\n{by}<p>{}</p>\n{}\
         <p class=\"result\">{}</p>\n</div>\n</a>\n",
        escape(&experiment.id),
        thumbnail(analysis),
        escape(experiment.heading()),
        escape(says),
        tally.bar(),
        escape(&result(analysis, &tally)),
    )
}

fn result(analysis: &Analysis<'_>, tally: &Tally) -> String {
    let (done, planned) = (analysis.results.runs.len(), analysis.results.planned);
    let mut parts = Vec::new();
    if done == 0 {
        parts.push("not run yet".to_owned());
    } else {
        parts.extend(Some(tally.line()).filter(|line| !line.is_empty()));
        parts.push(format!("{done} of {planned} runs"));
    }
    parts.extend(not_run(analysis).iter().map(|id| format!("not run: {}", backend_title(id))));
    parts.join("; ")
}

fn protocols() -> String {
    let mut out = String::from(
        "<h2 id=\"protocols\">Protocols</h2>\n<p class=\"what\">Each has the same colour and the \
         same mark in every figure.</p>\n<dl class=\"protocols\">\n",
    );
    for p in PROTOCOLS {
        let Style { colour, marker: mark } = style_of(p);
        let _ = writeln!(
            out,
            "<div><dt><svg viewBox=\"0 0 28 14\" width=\"28\" height=\"14\" aria-hidden=\"true\">\
             <path d=\"M0 7H28\" stroke=\"{}\" stroke-width=\"2\"/>{}</svg>{}</dt>\
             <dd><code>{}</code> {}</dd></div>",
            colour,
            marker(mark, 14.0, 7.0, 4.5, colour, false),
            escape(p.title),
            escape(p.name),
            escape(p.about)
        );
    }
    out.push_str("</dl>\n");
    out
}
