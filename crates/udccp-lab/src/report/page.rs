//! The page of one experiment.

use core::fmt::Write as _;

use super::figures::figure;
use super::head::axis_name;
use super::html::{counted, document, escape, grouped};
use super::tables::{table, under_variants};
use super::tally::Tally;
use crate::analysis::{Agreement, Analysis, Judgement};
use crate::protocol::title_of;
use crate::version::VERSION;

/// The whole page.
pub(super) fn page(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let mut body = header(analysis);
    body.push_str("<main>\n");
    body.push_str(&in_short(analysis));
    body.push_str("<h2>Tables</h2>\n");
    let printed = analysis.tables.iter().enumerate().filter(|(_, t)| t.table.is_printed);
    for (i, (place, result)) in printed.enumerate() {
        body.push_str(&table(result, &analysis.others_of(place), i + 1));
    }
    if !experiment.figures.is_empty() {
        body.push_str("<h2>Figures</h2>\n");
    }
    for drawn in &experiment.figures {
        body.push_str(&figure(analysis, drawn));
    }
    body.push_str(&claims(analysis));
    body.push_str(&runs(analysis));
    body.push_str(&assumptions(analysis));
    body.push_str(&variants(analysis));
    body.push_str(&again(analysis));
    body.push_str("</main>\n");
    document(&format!("{} – udccp lab", experiment.id), &body)
}

fn header(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let mut out =
        String::from("<header>\n<p class=\"crumb\"><a href=\"index.html\">udccp lab</a></p>\n");
    let title = experiment.study.as_ref().map_or(experiment.id.as_str(), |s| s.title.as_str());
    let _ = writeln!(out, "<h1>{}</h1>", escape(title));
    if let Some(study) = &experiment.study {
        let _ = writeln!(
            out,
            "<p class=\"by\">{}. {}. Simulated again with the protocol code of this project.</p>",
            escape(&study.authors),
            escape(&study.published)
        );
    }
    let _ = writeln!(out, "<p class=\"asks\">{}</p>\n</header>", escape(&experiment.asks));
    out
}

/// The result in numbers, before the details.
fn in_short(analysis: &Analysis<'_>) -> String {
    let tally = Tally::of(analysis);
    let Tally { compared, close, off, explained, claims, .. } = tally;
    let (done, planned) = (analysis.results.runs.len(), analysis.results.planned);
    let several = !analysis.others.is_empty();
    let mut out = String::from("<section class=\"short\">\n");
    let mut tile = |value: String, says: String| {
        let _ = writeln!(out, "<div class=\"tile\"><b>{value}</b><span>{says}</span></div>");
    };
    if compared > 0 {
        let of = if several { " of the simulation" } else { "" };
        let says = format!("cells{of} agree with {}", tally.measure);
        tile(format!("{close} of {compared}"), says);
    }
    for other in &analysis.others {
        let compared = other.cells().filter(|c| c.is_compared()).count();
        let close = other.cells().filter(|c| c.agreement == Agreement::Close).count();
        if compared > 0 {
            tile(
                format!("{close} of {compared}"),
                format!("cells of {} agree with it", other.title),
            );
        }
    }
    if off > 0 {
        let says = "cells that differ are explained by a run; the rest is said to be unexplained";
        tile(format!("{explained} of {off}"), says.to_owned());
    }
    if claims > 0 {
        tile(
            format!("{} of {claims}", tally.hold),
            (if several { "claims hold in the simulation" } else { "claims hold on our numbers" })
                .to_owned(),
        );
    }
    if tally.judged_on_paper > 0 {
        let (judged, hold) = (tally.judged_on_paper, tally.hold_on_paper);
        let says = match claims - judged {
            0 => "claims hold on the paper's own numbers".to_owned(),
            n => format!("claims hold on the paper's own numbers; it has none for {n} more"),
        };
        tile(format!("{hold} of {judged}"), says);
    }
    tile(
        format!("{done} of {planned}"),
        format!("runs, {} packets simulated", grouped(analysis.results.packets())),
    );
    for other in &analysis.others {
        let done = other.results.runs.len();
        tile(format!("{done} of {planned}"), format!("runs: {}", other.title));
    }
    out.push_str("</section>\n");
    out.push_str(&warnings(analysis));
    out
}

/// What a reader has to know of the runs before the numbers.
fn warnings(analysis: &Analysis<'_>) -> String {
    let mut out = String::new();
    let (done, planned) = (analysis.results.runs.len(), analysis.results.planned);
    for other in analysis.others.iter().filter(|o| o.results.invalid > 0) {
        let _ = writeln!(
            out,
            "<p class=\"warn\">{} of {} did not keep time and {} left out of every number: \
             <code>udccp lab run {} --backend {}</code> tries again.</p>",
            counted(other.results.invalid, "run"),
            escape(&other.title),
            if other.results.invalid == 1 { "is" } else { "are" },
            escape(&analysis.experiment.id),
            escape(&other.results.backend)
        );
    }
    let narrowed = &analysis.experiment.narrowed;
    if !narrowed.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"warn\">Not the file as it stands, but what is left of it by \
             <code>{}</code>.</p>",
            escape(narrowed.words().trim())
        );
    }
    let shortened = analysis.results.shortened();
    if shortened > 0 {
        let _ = writeln!(
            out,
            "<p class=\"warn\">{} of {done} runs are shorter than the file asks for, for a first \
             look (<code>--quick</code>).</p>",
            shortened
        );
    }
    if done < planned {
        out.push_str(
            "<p class=\"warn\">Not all runs are there yet: intervals are wider than they will be, \
             and empty cells say so. <code>udccp lab run</code> goes on where it stopped.</p>\n",
        );
    }
    out
}

fn claims(analysis: &Analysis<'_>) -> String {
    if analysis.claims.is_empty() {
        return String::new();
    }
    let has_paper = analysis.claims.iter().any(|c| c.published.holds.is_some());
    let has_study = analysis.experiment.study.is_some();
    let (how, column) = match (has_paper, has_study) {
        (true, _) => (
            " and, by the same rule, on the paper's own.",
            "<th scope=\"col\">the paper's own numbers</th>",
        ),
        (false, true) => ("; the paper gives no numbers for these.", ""),
        (false, false) => (".", ""),
    };
    let others = analysis.others.iter();
    let others: String =
        others.map(|o| format!("<th scope=\"col\">{}</th>", escape(&o.title))).collect();
    let ours = analysis.ours();
    let mut out = format!(
        "<h2>Claims</h2>\n<p class=\"what\">Each sentence is judged on our numbers{how}</p>\n\
         <div class=\"scroll\"><table class=\"claims\">\n<thead><tr>\
         <th scope=\"col\">claim</th><th scope=\"col\">{ours}</th>{others}{column}</tr></thead>\n\
         <tbody>\n",
    );
    for (i, judged) in analysis.claims.iter().enumerate() {
        let others: String = analysis
            .others
            .iter()
            .map(|o| o.claims.get(i).map_or("<td></td>".into(), |c| verdict(&o.title, &c.ours)))
            .collect();
        let source = &judged.claim.source;
        let source = if source.is_empty() {
            String::new()
        } else {
            format!("<small>{}</small>", escape(source))
        };
        let paper = if has_paper {
            verdict("the paper's own numbers", &judged.published)
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}{source}</th>{}{others}{paper}</tr>",
            escape(&judged.claim.says),
            verdict(ours, &judged.ours),
        );
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn verdict(whose: &str, judgement: &Judgement) -> String {
    let (class, word) = match judgement.holds {
        Some(true) => ("close", "✓ holds"),
        Some(false) => ("differs", "✗ fails"),
        None => ("missing", "– no numbers"),
    };
    let doubt = if judgement.in_doubt {
        "<small>An interval reaches across the bound: more runs could turn this.</small>"
    } else {
        ""
    };
    let evidence = escape(&judgement.evidence);
    format!(
        "<td class=\"{class}\" data-label=\"{}\"><b>{word}</b><small>{evidence}</small>\
         {doubt}</td>",
        escape(whose)
    )
}

/// What was run: the file as it stands, and its cases.
fn runs(analysis: &Analysis<'_>) -> String {
    let parts = &analysis.experiment.parts;
    if parts.iter().all(|p| p.id.is_none()) {
        return String::new();
    }
    let mut out = String::from(
        "<h2>What was run</h2>\n<div class=\"scroll\"><table class=\"text\">\n<thead><tr>\
         <th scope=\"col\">case</th><th scope=\"col\">at</th><th scope=\"col\">runs of each \
         point</th></tr></thead>\n<tbody>\n",
    );
    for part in parts {
        let name = part.id.as_deref().unwrap_or("the file as it stands");
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
        "<h2>Assumptions</h2>\n<p class=\"what\">What the study leaves open, what was chosen here, \
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

fn variants(analysis: &Analysis<'_>) -> String {
    let variants = &analysis.experiment.variants;
    if variants.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>Variants</h2>\n<p class=\"what\">The same experiment with one thing changed, run to \
         test reasons for differences.</p>\n<dl class=\"variants\">\n",
    );
    for variant in variants {
        let runs =
            analysis.results.runs.iter().filter(|(t, _)| t.variant.as_ref() == Some(&variant.id));
        let _ = writeln!(
            out,
            "<dt><code>{}</code></dt><dd>{} <small>{}</small></dd>",
            escape(&variant.id),
            escape(&variant.says),
            counted(runs.count(), "run")
        );
    }
    out.push_str("</dl>\n");
    out.push_str(&under_variants(analysis));
    out
}

/// How to get this page again.
fn again(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let flows = analysis.results.runs.first().map(|(_, r)| &r.flows);
    let packets: u64 = analysis.results.packets();
    let events = analysis.results.events();
    let words = experiment.narrowed.words();
    let mut out = String::from("<h2>Do it again</h2>\n");
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
