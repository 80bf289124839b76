//! The index page: every experiment with its result in one line, and the look of each protocol.

use core::fmt::Write as _;

use super::html::{document, escape};
use super::svg::marker;
use super::tally::Tally;
use crate::analysis::Analysis;
use crate::protocol::PROTOCOLS;
use crate::version::VERSION;

/// The whole page.
pub(super) fn index(analyses: &[Analysis<'_>]) -> String {
    let mut body = format!(
        "<header>\n<p class=\"crumb\">udccp lab</p>\n<h1>Published studies, simulated again</h1>\n\
         <p class=\"by\">Every table beside the published numbers, every claim judged on both. \
         Version <code>{VERSION}</code>.</p>\n</header>\n<main>\n"
    );
    for analysis in analyses {
        body.push_str(&card(analysis));
    }
    body.push_str("<h2>Protocols</h2>\n");
    body.push_str("<p class=\"what\">One colour and one mark each, in every figure.</p>\n");
    body.push_str("<dl class=\"protocols\">\n");
    for p in PROTOCOLS {
        let _ = writeln!(
            body,
            "<dt><svg viewBox=\"0 0 28 14\" width=\"28\" height=\"14\" aria-hidden=\"true\">\
             <path d=\"M0 7H28\" stroke=\"{}\" stroke-width=\"2\"/>{}</svg>{}</dt>\
             <dd><code>{}</code> {}</dd>",
            p.colour,
            marker(p.marker, 14.0, 7.0, 4.5, p.colour, false),
            escape(p.title),
            escape(p.name),
            escape(p.about)
        );
    }
    body.push_str("</dl>\n</main>\n");
    document("udccp lab", &body)
}

fn card(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let title = experiment.study.as_ref().map_or(experiment.id.as_str(), |s| s.title.as_str());
    let (done, planned) = (analysis.results.runs.len(), analysis.results.planned);
    let result = if done == 0 {
        "not run yet".to_owned()
    } else {
        let line = Tally::of(analysis).line();
        let line = if line.is_empty() { line } else { format!("{line}; ") };
        format!("{line}{done} of {planned} runs")
    };
    format!(
        "<a class=\"card\" href=\"{id}.html\"><h2>{}</h2><p>{}</p>\
         <p class=\"result\">{result}</p></a>\n",
        escape(title),
        escape(&experiment.asks),
        id = escape(&experiment.id),
    )
}
