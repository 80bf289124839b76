//! The figures of an experiment: tables drawn against one of their keys, runs over time, computed
//! curves.

mod change;
mod curve;
mod look;
mod place;
mod table;
mod time;

use core::fmt::Write as _;

use super::html::escape;
use super::svg::{Chart, Line, Scale, Size, marker};
use crate::analysis::Analysis;
use crate::schema::{Figure, FigureKind};

/// What a figure is made of: one chart, or several panels.
struct Drawn {
    charts: Vec<Chart>,
    caption: String,
}

/// A figure with its heading, legend and caption.
pub(super) fn figure(analysis: &Analysis<'_>, figure: &Figure) -> String {
    let drawn = match &figure.kind {
        FigureKind::Table(figure) => table::draw(analysis, figure),
        FigureKind::Time(figure) => time::draw(analysis, figure),
        FigureKind::Curve(curve) => Some(curve::draw(curve)),
    };
    let (id, title) = (escape(&figure.id), escape(&figure.title));
    let mut out = format!("<figure id=\"{id}\">\n<h3>{title}</h3>\n");
    if let Some(says) = &figure.says {
        let _ = writeln!(out, "<p>{}</p>", escape(says));
    }
    match drawn {
        Some(Drawn { charts, caption }) => {
            out.push_str(&body(&charts));
            let _ = writeln!(out, "<figcaption>{caption}</figcaption>");
        }
        None => out.push_str("<p class=\"missing\">No runs yet: nothing to draw.</p>\n"),
    }
    out.push_str("</figure>\n");
    out
}

/// One scale for all panels of a quantity, so that heights compare.
fn share_scale(charts: &mut [Chart]) {
    let all: Vec<(String, Scale)> = charts.iter().map(|c| (c.y_name.clone(), c.y)).collect();
    for chart in charts {
        let same = || all.iter().filter(|(name, _)| *name == chart.y_name).map(|(_, y)| y);
        let low = same().map(|y| y.min).fold(f64::INFINITY, f64::min);
        let high = same().map(|y| y.max).fold(f64::NEG_INFINITY, f64::max);
        chart.y = Scale::new(low, high);
    }
}

/// Says whose numbers a panel shows.
fn name_panel(chart: &mut Chart, backend: Option<&str>) {
    if let Some(title) = backend {
        let words = chart.panel.take().map(|panel| format!("{panel}, {title}"));
        chart.panel = Some(words.unwrap_or_else(|| title.to_owned()));
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
    out.push_str("<div class=\"panels\">\n");
    charts.iter().for_each(|c| out.push_str(&c.draw(Size::Panel)));
    out.push_str("</div>\n");
    out
}

/// What the lines are. Where they are labelled at their ends, the wide drawing needs no more than
/// what is hollow.
fn legend(lines: &[Line], labels_ends: bool) -> String {
    if lines.len() < 2 {
        return String::new();
    }
    let class = if labels_ends { "legend repeated" } else { "legend" };
    let mut out = format!("<ul class=\"{class}\">");
    for line in lines {
        let dash = match line.dashes() {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        let mark = line
            .marker
            .map_or_else(String::new, |m| marker(m, 14.0, 7.0, 4.5, &line.colour, line.published));
        let _ = write!(
            out,
            "<li><svg viewBox=\"0 0 28 14\" width=\"28\" height=\"14\" aria-hidden=\"true\">\
             <path d=\"M0 7H28\" stroke=\"{}\" stroke-width=\"2\"{dash}/>{mark}</svg>{}</li>",
            line.colour,
            escape(&line.label)
        );
    }
    out.push_str("</ul>\n");
    out
}
