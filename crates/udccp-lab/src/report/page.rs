//! The page of one experiment.

use core::fmt::Write as _;

use udccp_scenario::VERSION;
use udccp_scenario::protocol::title_of;

use super::claims::claims;
use super::figures::figure;
use super::html::{counted, document, escape, grouped};
use super::summary;
use super::table_header::axis_name;
use super::tables::table;
use super::variants::variants;
use crate::analysis::{Analysis, Other};

/// The whole page. `all` are the experiments of the report, which may answer this one's questions.
pub(super) fn page(analysis: &Analysis<'_>, all: &[Analysis<'_>]) -> String {
    let experiment = analysis.experiment;
    let mut main = summary::numbers(analysis);
    main.push_str(&super::answers::html(analysis, all));
    main.push_str(&super::score::html(analysis));
    let tables = analysis.tables.iter().enumerate().filter(|(_, t)| t.table.is_printed);
    let tables: Vec<_> = tables.collect();
    if !tables.is_empty() {
        main.push_str("<h2 id=\"tables\">Tables</h2>\n");
    }
    for (i, (place, result)) in tables.into_iter().enumerate() {
        main.push_str(&table(result, &analysis.others_of(place), i + 1));
    }
    if !experiment.figures.is_empty() {
        main.push_str("<h2 id=\"figures\">Figures</h2>\n");
    }
    for drawn in &experiment.figures {
        main.push_str(&figure(analysis, drawn));
    }
    main.push_str(&claims(analysis));
    main.push_str(&runs(analysis));
    main.push_str(&assumptions(analysis));
    main.push_str(&variants(analysis));
    main.push_str(&reproduction_commands(analysis));
    let body = format!(
        "<div class=\"page\">\n{}{}<main>\n{main}</main>\n</div>\n",
        summary::header(analysis),
        contents(analysis, &main)
    );
    document(&format!("{} – udccp lab", experiment.id), &body)
}

/// The id and the title of a table or figure.
type Entry<'a> = (&'a str, &'a str);

/// Links to the existing sections, including tables and figures.
fn contents(analysis: &Analysis<'_>, main: &str) -> String {
    let experiment = analysis.experiment;
    let printed = experiment.tables.iter().filter(|t| t.is_printed);
    let tables: Vec<_> = printed.map(|t| (t.id.as_str(), t.title.as_str())).collect();
    let figures = experiment.figures.iter().map(|f| (f.id.as_str(), f.title.as_str())).collect();
    let parts: [(&str, &str, Vec<Entry<'_>>); 10] = [
        ("answers", "Answers", Vec::new()),
        ("score", "Score", Vec::new()),
        ("tables", "Tables", tables),
        ("figures", "Figures", figures),
        ("claims", "Claims", Vec::new()),
        ("own-claims", "Claims of this project", Vec::new()),
        ("runs", "Runs", Vec::new()),
        ("assumptions", "Assumptions", Vec::new()),
        ("variants", "Variants", Vec::new()),
        ("again", "Repeat it", Vec::new()),
    ];
    let mut out = String::from("<nav class=\"toc\" aria-label=\"Contents\">\n<ul>\n");
    for (id, title, below) in parts {
        if !main.contains(&format!("<h2 id=\"{id}\"")) {
            continue;
        }
        let _ = write!(out, "<li><a href=\"#{id}\">{title}</a>");
        if !below.is_empty() {
            out.push_str("\n<ul>\n");
            for (id, title) in below {
                let (id, title) = (escape(id), escape(title));
                let _ = writeln!(out, "<li><a href=\"#{id}\">{title}</a></li>");
            }
            out.push_str("</ul>\n");
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n</nav>\n");
    out
}

/// What was run: the file without its cases, and its cases.
fn runs(analysis: &Analysis<'_>) -> String {
    let parts = &analysis.experiment.parts;
    if parts.iter().all(|p| p.id.is_none()) {
        return String::new();
    }
    let mut out = String::from(
        "<h2 id=\"runs\">Runs</h2>\n<div class=\"scroll\"><table class=\"text\">\n\
         <thead><tr>\
         <th scope=\"col\">case</th><th scope=\"col\">at</th><th scope=\"col\">runs of each \
         point</th></tr></thead>\n<tbody>\n",
    );
    for part in parts {
        let name = part.id.as_deref().unwrap_or("the file itself");
        let axes: Vec<String> = part
            .grid
            .axes
            .iter()
            .map(|axis| {
                let labels: Vec<String> =
                    axis.labels().iter().map(|l| title_of(l).to_owned()).collect();
                format!("{}: {}", axis_name(&axis.name), labels.join(", "))
            })
            .collect();
        let axes = if axes.is_empty() { "one point".to_owned() } else { axes.join("; ") };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}<small>{}</small></th><td data-label=\"at\">{}</td>\
             <td data-label=\"runs of each point\">{}</td></tr>",
            escape(name),
            escape(&part.says),
            escape(&axes),
            part.grid.runs
        );
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn assumptions(analysis: &Analysis<'_>) -> String {
    let given = &analysis.experiment.assumptions;
    if given.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2 id=\"assumptions\">Assumptions</h2>\n<p class=\"what\">\
         What the study leaves open, what was chosen here, \
         and why.</p>\n<div class=\"scroll\"><table class=\"text\">\n<thead><tr>\
         <th scope=\"col\">open</th><th scope=\"col\">choice</th><th \
         scope=\"col\">reason</th></tr></thead>\n<tbody>\n",
    );
    for a in given {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td data-label=\"choice\">{}</td>\
             <td data-label=\"reason\">{}</td></tr>",
            escape(&a.about),
            escape(&a.choice),
            escape(&a.reason)
        );
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Which numbers come from kept runs.
fn kept(analysis: &Analysis<'_>) -> String {
    let of = |other: &Other<'_>| {
        let kept = &other.results.kept;
        let mut versions: Vec<&str> = kept.iter().map(|(_, r)| r.version.as_str()).collect();
        versions.sort_unstable();
        versions.dedup();
        (!kept.is_empty()).then(|| {
            format!(
                "<p>{} of {} came with the experiment's file, made with version <code>{}</code>; \
                 your own runs replace them.</p>\n",
                counted(kept.len(), "run"),
                escape(&other.title),
                escape(&versions.join(", "))
            )
        })
    };
    analysis.others.iter().filter_map(of).collect()
}

/// The commands to reproduce this page.
fn reproduction_commands(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let flows = analysis.results.runs.first().map(|(_, r)| &r.flows);
    let packets: u64 = analysis.results.packets();
    let events = analysis.results.events();
    let words = experiment.narrowed.arguments();
    let mut out = String::from("<h2 id=\"again\">Repeat it</h2>\n");
    let _ = writeln!(
        out,
        "<pre class=\"cmd\">udccp lab run {id}{words}\n{others}udccp lab report {id}{words}</pre>\n\
         <p>Seed {seed}; run <i>n</i> of every cell has seed {seed} × 1000 + <i>n</i>, which draws \
         the starting phases of its flows. The same seed gives the same packets at the same \
         nanosecond, on any number of cores. Version <code>{VERSION}</code>. These runs had \
         {packets} packets in {events} events.</p>",
        id = escape(&experiment.id),
        words = escape(&words),
        others = analysis
            .others
            .iter()
            .map(|o| format!(
                "udccp lab run {}{} --backend {}\n",
                escape(&experiment.id),
                escape(&words),
                escape(&o.results.backend)
            ))
            .collect::<String>(),
        seed = experiment.grid.seed,
        packets = grouped(packets),
        events = grouped(events),
    );
    out.push_str(&kept(analysis));
    if let Some(flows) = flows {
        let names: Vec<String> =
            flows.iter().map(|f| format!("{} ({})", f.name, title_of(&f.protocol))).collect();
        let _ = writeln!(out, "<p>Flows of the first run: {}.</p>", escape(&names.join(", ")));
    }
    let _ = writeln!(
        out,
        "<details><summary>The experiment file, <code>{}</code></summary>\n<pre>{}</pre></details>",
        escape(&experiment.path.display().to_string()),
        escape(experiment.text())
    );
    out
}
