//! Exports a report's figures and tables as JSON, for programs that draw their own.

use serde_json::{Value, json};
use udccp_scenario::Protocol;

use super::figures;
use super::style::style_of;
use super::svg::{Chart, Line, LinePoint, Shape, corners};
use crate::analysis::{Analysis, Cell, TableResult};
use crate::schema::Figure;

/// The charts of a figure as a list with one entry per panel; `None` without runs.
///
/// Colours, markers and dashes are those of the page. Lines of published values have `published`
/// set.
pub fn charts(analysis: &Analysis<'_>, figure: &Figure) -> Option<Value> {
    figures::charts(analysis, figure).map(|charts| charts.iter().map(chart).collect())
}

/// A protocol with its style. `outline` has the corners of its marker, with y downwards; it is
/// empty for the circle, the cross, the plus and the arch.
pub fn protocol(p: &Protocol) -> Value {
    let style = style_of(p);
    json!({
        "name": p.name,
        "short": p.short,
        "title": p.title,
        "about": p.about,
        "colour": style.colour,
        "marker": format!("{:?}", style.marker),
        "outline": corners(style.marker),
    })
}

/// The cells of a table as a list with one entry per value: labels, our mean with its 95 %
/// interval, the published value, and the comparison.
pub fn cells(table: &TableResult<'_>) -> Value {
    table.cells().map(cell).collect()
}

fn cell(cell: &Cell) -> Value {
    let labels = cell.labels.iter().map(|(key, label)| (key.clone(), label.clone().into()));
    let interval = cell.mean().and_then(|_| cell.spread.interval());
    json!({
        "labels": labels.collect::<serde_json::Map<_, _>>(),
        "metric": cell.shown.title(),
        "unit": cell.shown.unit,
        "mean": cell.mean(),
        "ci95_low": interval.map(|(low, _)| low),
        "ci95_high": interval.map(|(_, high)| high),
        "runs": cell.basis.runs,
        "runs_asked": cell.basis.asked,
        "shortened": cell.basis.shortened,
        "published": cell.published.and_then(|p| p.value),
        "difference": cell.mean().and_then(|_| cell.difference()),
        "verdict": cell.agreement.word(),
        "undefined": cell.undefined,
    })
}

fn chart(chart: &Chart) -> Value {
    json!({
        "description": chart.description,
        "panel": chart.panel,
        "x_name": chart.x_name,
        "y_name": chart.y_name,
        "x": [chart.x.min, chart.x.max],
        "x_is_log": chart.x.is_log,
        "x_ticks": chart.x_ticks,
        "y": [chart.y.min, chart.y.max],
        "y_is_log": chart.y.is_log,
        "level": chart.level,
        "shaded": chart.shaded.map(|(from, to)| (from, to, "measured")),
        "events": chart.events,
        "lines": chart.lines.iter().map(line).collect::<Vec<_>>(),
        "shapes": chart.shapes.iter().map(shape).collect::<Vec<_>>(),
    })
}

fn line(line: &Line) -> Value {
    let point = |p: &LinePoint| {
        let (low, high) = p.bar.unzip();
        json!([p.x, p.y, low, high])
    };
    json!({
        "label": line.label,
        "colour": line.colour,
        "dash": line.dashes(),
        "marker": line.marker.map(|m| format!("{m:?}")),
        "outline": line.marker.map(corners),
        "published": line.published,
        "points": line.points.iter().map(point).collect::<Vec<_>>(),
        "band": line.band,
    })
}

/// A bar, positioned by an x value and a shift in pixels of a chart 1040 wide.
fn shape(shape: &Shape) -> Value {
    json!({
        "x": shape.x,
        "shift_px": shape.shift_px,
        "half_px": shape.half_px,
        "low": shape.low,
        "high": shape.high,
        "interval": shape.interval,
        "colour": shape.colour,
        "is_hollow": shape.is_hollow,
        "title": shape.title,
    })
}
