//! The figures of an experiment: tables plotted against one of their keys, runs over time, computed
//! curves.

mod change;
mod curve;
mod line_style;
mod place;
mod table;
mod time;

use core::fmt::Write as _;

use super::csv;
use super::html::{escape, heading};
use super::svg::{Chart, Line, Scale, Size};
use crate::analysis::{Analysis, own_name};
use crate::schema::{Figure, FigureKind, Names};

/// The content of a figure: one chart, or several panels.
struct Drawing {
    charts: Vec<Chart>,
    caption: String,
}

/// A figure with its heading, legend and caption.
pub(super) fn figure(analysis: &Analysis<'_>, figure: &Figure) -> String {
    let drawn = draw(analysis, figure);
    let mut out = format!(
        "<figure data-csv=\"{}\">\n{}",
        escape(&figure.id),
        heading(&figure.id, &figure.title)
    );
    if let Some(says) = &figure.says {
        let _ = writeln!(out, "<p>{}</p>", escape(says));
    }
    match drawn {
        Some(Drawing { charts, caption }) => {
            out.push_str(&body(&charts));
            let _ = writeln!(out, "<figcaption>{caption}</figcaption>");
            out.push_str(&csv::hidden(&csv::charts(&charts)));
        }
        None => out.push_str("<p class=\"missing\">No runs yet: nothing to draw.</p>\n"),
    }
    out.push_str("</figure>\n");
    out
}

/// The charts of a figure; `None` without runs.
pub(super) fn charts(analysis: &Analysis<'_>, figure: &Figure) -> Option<Vec<Chart>> {
    draw(analysis, figure).map(|drawn| drawn.charts)
}

fn draw(analysis: &Analysis<'_>, figure: &Figure) -> Option<Drawing> {
    match &figure.kind {
        FigureKind::Table(figure) => table::draw(analysis, figure),
        FigureKind::Time(figure) => time::draw(analysis, figure),
        FigureKind::Curve(curve) => Some(curve::draw(curve)),
    }
}

/// A small drawing of the experiment's representative figure; empty without runs.
pub(super) fn thumbnail(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let asked = experiment.summary.as_ref().and_then(|s| s.figure.as_ref());
    // A computed curve does not represent runs.
    let is_of_runs = |f: &&Figure| !matches!(f.kind, FigureKind::Curve(_));
    let all = experiment.figures.iter().filter(is_of_runs);
    let chosen = all.clone().filter(|f| Some(&f.id) == asked).chain(all);
    // Nor do published lines alone.
    let has_ours = |c: &Chart| c.lines.iter().any(|l| !l.published && !l.points.is_empty());
    let drawn = chosen.filter_map(|f| draw(analysis, f));
    let mut charts = drawn.filter_map(|d| d.charts.into_iter().next());
    charts.find(|c| has_ours(c) || !c.shapes.is_empty()).map_or_else(String::new, |c| c.thumbnail())
}

/// Gives the panels of one label with different backends the same scale per quantity, so that
/// heights are comparable.
fn share_scale(charts: &mut [Chart]) {
    share_scale_within(f64::INFINITY, charts);
}

/// Gives all panels the same scale per quantity, unless one would become too flat. Returns a note
/// for the caption if scales differ.
fn share_scale_of_all(charts: &mut [Chart]) -> &'static str {
    match share_scale_within(10.0, charts) {
        true => "",
        false => " Each panel has its own scale.",
    }
}

/// Gives the panels of a quantity the same scale if their heights differ by at most `factor`.
/// Returns whether this applied to all.
fn share_scale_within(factor: f64, charts: &mut [Chart]) -> bool {
    let of = |c: &Chart| (c.y_name.clone(), c.y, height(c));
    let all: Vec<(String, Scale, f64)> = charts.iter().map(of).collect();
    let mut are_near = true;
    for chart in charts {
        let same = || all.iter().filter(|(name, ..)| *name == chart.y_name);
        let low = same().map(|(_, y, _)| y.min).fold(f64::INFINITY, f64::min);
        let high = same().map(|(_, y, _)| y.max).fold(f64::NEG_INFINITY, f64::max);
        // A panel of zeros is flat on any scale.
        let lengths = || same().map(|(_, _, height)| *height).filter(|height| *height > 0.0);
        let shortest = lengths().fold(f64::INFINITY, f64::min);
        if lengths().fold(0.0, f64::max) <= shortest * factor {
            chart.y = Scale::new(low, high);
        } else {
            are_near = false;
        }
    }
    are_near
}

/// The highest mark of a panel; its scale ends at a round number above it.
fn height(chart: &Chart) -> f64 {
    let marks = chart.lines.iter().flat_map(|l| &l.points).map(|p| p.y);
    let highest = marks.chain(chart.shapes.iter().map(|s| s.high)).fold(chart.y.min, f64::max);
    highest - chart.y.min
}

/// A flow's protocol and its name in the file.
fn flow_text(names: &Names, protocol: &str, flow: &str) -> String {
    match own_name(names, flow, protocol) {
        Some(name) => format!("{protocol} ({name})"),
        None => protocol.to_owned(),
    }
}

/// Names the source of a panel's numbers.
fn name_panel(chart: &mut Chart, backend: Option<&str>) {
    if let Some(title) = backend {
        let text = chart.panel.take().map(|panel| format!("{panel}, {title}"));
        chart.panel = Some(text.unwrap_or_else(|| title.to_owned()));
    }
}

fn body(charts: &[Chart]) -> String {
    if let [chart] = charts {
        return legend(&chart.lines, chart.labels_ends())
            + &chart.draw(Size::Wide)
            + &chart.draw(Size::Narrow);
    }
    let mut lines: Vec<Line> = Vec::new();
    for line in charts.iter().flat_map(|c| &c.lines) {
        if !lines.iter().any(|l| l.label == line.label && l.colour == line.colour) {
            lines.push(line.clone());
        }
    }
    let mut out = legend(&lines, false);
    // Two or four panels are arranged in pairs, others in threes, to fill the page.
    let in_pairs = matches!(charts.len(), 2 | 4);
    let (class, size) = if in_pairs { ("panels two", Size::Half) } else { ("panels", Size::Panel) };
    let _ = writeln!(out, "<div class=\"{class}\">");
    for chart in charts {
        out.push_str(&chart.draw(size));
        if in_pairs {
            out.push_str(&chart.draw(Size::Narrow));
        }
    }
    out.push_str("</div>\n");
    out
}

/// The legend of the lines. If lines are labelled at their ends, the wide drawing only needs an
/// explanation of hollow ones.
fn legend(lines: &[Line], labels_ends: bool) -> String {
    if lines.len() < 2 {
        return String::new();
    }
    let class = if labels_ends { "legend repeated" } else { "legend" };
    let mut out = format!("<ul class=\"{class}\">");
    for line in lines {
        let _ = write!(
            out,
            "<li><svg viewBox=\"0 0 30 14\" width=\"30\" height=\"14\" aria-hidden=\"true\">\
             {}</svg>{}</li>",
            line.sample(0.0, 7.0),
            escape(&line.label)
        );
    }
    out.push_str("</ul>\n");
    out
}
