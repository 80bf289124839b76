//! The figures of an experiment: a table drawn against its columns, or flows over time.

use core::fmt::Write as _;

use udccp_base::{DataRate, DataSize, Duration};
use udccp_metrics::jain_over_time;

use super::html::{counted, escape};
use super::svg::{Chart, Line, LinePoint, Scale, Size, marker};
use crate::analysis::{Analysis, Cell, Row, TableResult};
use crate::protocol::{self, Marker, title_of};
use crate::record::Record;
use crate::schema::{Figure, FigureKind, Filter, Metric};

/// Colour of what belongs to no protocol.
const PLAIN: &str = "#6b6b6b";

/// A figure with its heading, legend and caption.
pub(super) fn figure(analysis: &Analysis<'_>, figure: &Figure) -> String {
    let drawn = match &figure.kind {
        FigureKind::Table { table } => table_figure(analysis, table),
        FigureKind::Time { case, metric, at, run } => {
            time_figure(analysis, case.as_deref(), *metric, at, *run)
        }
    };
    let mut out = format!("<figure id=\"{}\">\n<h3>{}</h3>\n", figure.id, escape(&figure.title));
    match drawn {
        Some((chart, caption)) => {
            out.push_str(&legend(&chart.lines));
            out.push_str(&chart.draw(Size::Wide));
            out.push_str(&narrow(&chart));
            let _ = writeln!(out, "<figcaption>{caption}</figcaption>");
        }
        None => out.push_str("<p class=\"missing\">No runs yet: nothing to draw.</p>\n"),
    }
    out.push_str("</figure>\n");
    out
}

/// The phone's drawing, without the hover points that fingers do not find.
fn narrow(chart: &Chart) -> String {
    let mut small = chart.clone();
    for line in small.lines.iter_mut().filter(|l| l.marker.is_none()) {
        line.points.iter_mut().for_each(|p| p.title = None);
    }
    small.draw(Size::Narrow)
}

fn legend(lines: &[Line]) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for line in lines {
        let dash = if line.published { " stroke-dasharray=\"4 3\"" } else { "" };
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

fn table_figure(analysis: &Analysis<'_>, id: &str) -> Option<(Chart, String)> {
    let table = analysis.tables.iter().find(|t| t.table.id == id)?;
    let places = places(&table.columns);
    let mut lines = Vec::new();
    for published in [false, true] {
        lines.extend(table.rows.iter().map(|r| row_line(table, r, &places, published)));
    }
    lines.retain(|l| !l.points.is_empty());
    let all = || lines.iter().flat_map(|l| &l.points);
    let values =
        || all().flat_map(|p| [p.y, p.bar.map_or(p.y, |b| b.0), p.bar.map_or(p.y, |b| b.1)]);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    if !low.is_finite() {
        return None;
    }
    let is_jain = matches!(table.table.metric, Metric::Jain | Metric::JainOfMeans);
    let y = if is_jain {
        // The index of two flows lies in 0.5..=1: the figure shows where in that range.
        Scale::new((low.max(0.0) * 10.0 - 0.2).floor() / 10.0, 1.0)
    } else {
        Scale::rounded(low.min(0.0), high, 6)
    };
    let (first, last) = (places.first()?.0, places.last()?.0);
    let margin = (last - first).max(1.0) * 0.06;
    let unit = table.table.metric.unit();
    let name = table.table.metric.title();
    let chart = Chart {
        description: format!("{} against {}", table.table.title, table.table.columns),
        x_name: axis_title(&table.table.columns, &places),
        y_name: if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") },
        x: Scale::new(first - margin, last + margin),
        x_ticks: Some(ticks(&places)),
        y,
        shaded: None,
        lines,
    };
    let runs = table.cells().map(|c| c.ours.n).max().unwrap_or(0);
    let caption = format!(
        "Filled marks and bars: mean of {} and its 95 % interval. Hollow marks: published means\
         {}. Marks at one x are set apart so that bars stay readable.",
        counted(runs, "run"),
        if table.cells().any(|c| c.published.is_some_and(|p| p.stddev.is_some())) {
            ", with the published standard deviation as bars"
        } else {
            ""
        }
    );
    Some((chart, caption))
}

fn row_line(table: &TableResult<'_>, row: &Row, places: &[(f64, String)], published: bool) -> Line {
    let look = row.protocol;
    let mut points = Vec::new();
    for (cell, (x, label)) in row.cells.iter().zip(places) {
        let found = if published { published_point(cell) } else { our_point(cell) };
        let Some((y, bar, words)) = found else { continue };
        let digits = table.table.metric.digits();
        let (who, unit) = (row.title(), table.table.metric.unit());
        let title = format!("{who}, {label}: {y:.digits$} {unit}{words}");
        points.push(LinePoint { x: *x, y, bar, title: Some(title) });
    }
    let suffix = if published { ", published" } else { ", ours" };
    let flow = row
        .flow
        .as_ref()
        .map_or_else(String::new, |f| format!(", {f} flow with {}", title_of(&row.label)));
    Line {
        label: format!("{}{flow}{suffix}", row.title()),
        colour: look.map_or(PLAIN, |p| p.colour).to_owned(),
        marker: Some(look.map_or(Marker::Circle, |p| p.marker)),
        published,
        points,
    }
}

type Point = (f64, Option<(f64, f64)>, String);

fn our_point(cell: &Cell) -> Option<Point> {
    let mean = cell.ours.mean.ok()?;
    let words = cell.ours.ci95.map_or_else(|_| String::new(), |h| format!(" ± {h:.2}"));
    Some((mean, cell.ours.interval(), format!("{words} (ours, {})", counted(cell.ours.n, "run"))))
}

fn published_point(cell: &Cell) -> Option<Point> {
    let published = cell.published?;
    let bar = published.stddev.map(|s| (published.value - s, published.value + s));
    let words = published.stddev.map_or_else(String::new, |s| format!(", sd {s}"));
    Some((published.value, bar, format!(" (published{words})")))
}

/// Where the columns stand: at their quantity in ms, Mbit/s or kB, else evenly.
fn places(columns: &[String]) -> Vec<(f64, String)> {
    let number = |label: &String| {
        let time = label.parse::<Duration>().ok().map(Duration::as_millis_f64);
        let rate = || label.parse::<DataRate>().ok().map(DataRate::as_mbps);
        let size = || label.parse::<DataSize>().ok().map(|s| s.bytes() as f64 / 1000.0);
        time.or_else(rate).or_else(size)
    };
    let numbers: Option<Vec<f64>> = columns.iter().map(number).collect();
    let even = || (0..columns.len()).map(|i| i as f64).collect();
    let places: Vec<f64> = numbers.unwrap_or_else(even);
    places.into_iter().zip(columns.iter().cloned()).collect()
}

/// The unit that all labels share, as in `25 ms` and `50 ms`.
fn common_unit(places: &[(f64, String)]) -> Option<&str> {
    let unit = |label: &'_ str| label.find(' ').map(|i| i + 1);
    let first = places.first()?.1.as_str();
    let shared = &first[unit(first)?..];
    let same = |(_, l): &(f64, String)| unit(l).is_some_and(|i| l[i..] == *shared);
    places.iter().all(same).then_some(shared)
}

/// Ticks without the unit that they share: the axis has it.
fn ticks(places: &[(f64, String)]) -> Vec<(f64, String)> {
    let Some(unit) = common_unit(places) else { return places.to_vec() };
    let bare = |label: &str| label.trim_end_matches(unit).trim_end().to_owned();
    places.iter().map(|(x, label)| (*x, bare(label))).collect()
}

/// An axis in words where it is well known, with the unit that its labels share.
fn axis_title(axis: &str, places: &[(f64, String)]) -> String {
    let name = if axis == "rtt" { "round-trip time" } else { axis };
    common_unit(places).map_or_else(|| name.to_owned(), |unit| format!("{name}, {unit}"))
}

/// An axis in a heading.
pub(super) fn axis_name(axis: &str) -> &str {
    if axis == "rtt" { "RTT" } else { axis }
}

fn time_figure(
    analysis: &Analysis<'_>,
    case: Option<&str>,
    metric: Metric,
    at: &Filter,
    run: u64,
) -> Option<(Chart, String)> {
    let here = |t: &crate::Task| {
        t.case.as_deref() == case && t.variant.is_none() && at.matches(&t.point) && t.run == run
    };
    let (task, record) = analysis.results.runs.iter().find(|(t, _)| here(t))?;
    let lines = match metric {
        Metric::Jain => vec![jain_line(record)],
        _ => record.flows.iter().map(|f| flow_line(f, metric)).collect(),
    };
    let end = lines.iter().flat_map(|l| &l.points).map(|p| p.x).fold(0.0, f64::max);
    let high = lines.iter().flat_map(|l| &l.points).map(|p| p.y).fold(0.0, f64::max);
    let [from, to] = record.measured_s;
    let (y_name, y) = match metric {
        Metric::Jain => ("Jain fairness index".to_owned(), Scale::new(0.5, 1.0)),
        _ => (format!("{}, Mbit/s", metric.title()), Scale::rounded(0.0, high, 6)),
    };
    let chart = Chart {
        description: format!("{y_name} over time of run {run}"),
        x_name: "time, s".to_owned(),
        y_name,
        x: Scale::new(0.0, end),
        x_ticks: None,
        y,
        shaded: Some((from, to, "measured".to_owned())),
        lines,
    };
    let caption = format!(
        "One run (seed {}), means over intervals of {}. The shaded time is measured.",
        task.seed, task.scenario.time.measure.every
    );
    Some((chart, caption))
}

fn flow_line(flow: &crate::FlowRecord, metric: Metric) -> Line {
    let values = match metric {
        Metric::Goodput => &flow.series.goodput_mbps,
        _ => &flow.series.throughput_mbps,
    };
    let name = title_of(&flow.protocol);
    let points = flow.series.t_s.iter().zip(values).map(|(t, v)| LinePoint {
        x: *t,
        y: *v,
        bar: None,
        title: Some(format!("{name}, {t:.0} s: {v:.1} Mbit/s")),
    });
    Line {
        label: format!("{name} ({} flow)", flow.name),
        colour: protocol::find(&flow.protocol).map_or(PLAIN, |p| p.colour).to_owned(),
        marker: None,
        published: false,
        points: points.collect(),
    }
}

fn jain_line(record: &Record) -> Line {
    let series: Vec<&[f64]> =
        record.flows.iter().map(|f| f.series.goodput_mbps.as_slice()).collect();
    let times = record.flows.first().map(|f| f.series.t_s.as_slice()).unwrap_or_default();
    let values = jain_over_time(&series).values;
    let points = times.iter().zip(values).filter_map(|(t, j)| {
        let y = j.ok()?;
        let title = Some(format!("{t:.0} s: {y:.2}"));
        Some(LinePoint { x: *t, y, bar: None, title })
    });
    Line {
        label: "Jain fairness index of each interval".to_owned(),
        colour: PLAIN.to_owned(),
        marker: None,
        published: false,
        points: points.collect(),
    }
}
