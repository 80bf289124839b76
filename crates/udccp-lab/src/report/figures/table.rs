//! Tables as figures: lines, bars or ranges against one of their keys, ours and published.

use core::fmt::Write as _;

use udccp_scenario::{SIM, backend_title};

use super::super::cell_text::as_published;
use super::super::html::counted;
use super::super::svg::{Chart, Line, LinePoint, Scale, Shape};
use super::line_style::{LineStyle, line_styles};
use super::place::{axis_title, places, ticks};
use super::{Drawing, flow_text, name_panel, share_scale, share_scale_of_all};
use crate::analysis::{Analysis, Basis, Cell, TableResult, label_text};
use crate::schema::{
    FLOW_KEY, METRIC_KEY, Metric, MetricSpec, Names, Point, TableFigure, TableForm,
};

/// Cells that differ only in the key on the x axis (and, for a range, in the metric).
struct Group<'c> {
    labels: Point,
    cells: Vec<&'c Cell>,
}

pub(super) fn draw(analysis: &Analysis<'_>, figure: &TableFigure) -> Option<Drawing> {
    let place = analysis.tables.iter().position(|t| t.table.id == figure.table)?;
    let table = &analysis.tables[place];
    let others = analysis.others_of(place);
    let several = table.table.shown.len() > 1 && figure.form != TableForm::Ranges;
    let drawn = table.table.shown.iter().filter(|s| figure.filter.allows(METRIC_KEY, &s.name));
    let key = figure.panels.clone().or_else(|| {
        (several && drawn.count() > 1 && figure.x != METRIC_KEY).then(|| METRIC_KEY.to_owned())
    });
    let panels: Vec<Option<(String, String)>> = match &key {
        Some(key) => table.table.labels(key).into_iter().map(|l| Some((key.clone(), l))).collect(),
        None => vec![None],
    };
    let mut all = vec![((!others.is_empty()).then(|| backend_title(SIM)), table)];
    all.extend(others.into_iter().map(|(title, table)| (Some(title), table)));
    let mut charts: Vec<Chart> = Vec::new();
    for panel in &panels {
        let mut here = Vec::new();
        for (title, table) in &all {
            let Some(mut chart) = chart(table, figure, panel.as_ref()) else { continue };
            name_panel(&mut chart, *title);
            here.push(chart);
        }
        share_scale(&mut here);
        charts.extend(here);
    }
    let scales = share_scale_of_all(&mut charts);
    (!charts.is_empty()).then(|| Drawing { charts, caption: caption(table, figure) + scales })
}

fn caption(table: &TableResult<'_>, figure: &TableFigure) -> String {
    let drawn = || table.cells().filter(|c| figure.filter.allows_all(&c.labels));
    let runs = drawn().map(Cell::runs).max().unwrap_or(0);
    let early = drawn().filter(|c| c.is_early()).map(|c| c.basis).reduce(Basis::weaker);
    let ours = early.map_or_else(|| counted(runs, "run"), Basis::text);
    let has_interval = drawn().any(|c| c.spread.interval().is_some());
    let has_published =
        table.table.against.is_none() && table.cells().any(|c| c.published.is_some());
    let mut caption = match figure.form {
        TableForm::Lines if has_interval => {
            format!("Filled marks and bars: mean and its 95 % interval ({ours}).")
        }
        TableForm::Lines => format!("Filled marks: mean ({ours})."),
        TableForm::Bars if has_interval => {
            format!("Bars: mean; whiskers: its 95 % interval ({ours}).")
        }
        TableForm::Bars => format!("Bars: mean ({ours})."),
        TableForm::Ranges => {
            let title = |name: &String| {
                let shown = table.table.shown.iter().find(|s| s.name == *name);
                shown.map_or_else(String::new, |s| s.title().to_owned())
            };
            let ends: Vec<String> = figure.range.iter().map(title).collect();
            let (first, last) = (ends.first().cloned(), ends.last().cloned());
            let middle = match ends.as_slice() {
                [_, middle, _] => format!(", with a mark at {middle}"),
                _ => String::new(),
            };
            format!(
                "Filled bars from {} (top) to {} (bottom){middle}: means of {ours}. If one of the \
                 two has no value, a dash marks the other.",
                first.unwrap_or_default(),
                last.unwrap_or_default()
            )
        }
    };
    if has_published {
        let what = if figure.form == TableForm::Lines { "marks" } else { "bars" };
        let _ = write!(caption, " Hollow {what}: published");
        let has_spread = table.cells().any(|c| c.published.is_some_and(|p| p.stddev.is_some()));
        if has_spread && figure.form == TableForm::Lines {
            caption.push_str(" means, with the published standard deviation as bars");
        }
        caption.push('.');
    }
    caption
}

fn chart(
    table: &TableResult<'_>,
    figure: &TableFigure,
    panel: Option<&(String, String)>,
) -> Option<Chart> {
    let groups = groups(table, figure, panel);
    let labels: Vec<String> = table.table.labels(&figure.x);
    let used =
        |l: &String| groups.iter().flat_map(|g| &g.cells).any(|c| label(c, &figure.x) == Some(l));
    let labels: Vec<String> = labels.into_iter().filter(used).collect();
    let places = match figure.form {
        TableForm::Bars => labels.iter().enumerate().map(|(i, l)| (i as f64, l.clone())).collect(),
        _ => places(&labels),
    };
    let mut places: Vec<(f64, String)> = places;
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shown = groups.iter().flat_map(|g| &g.cells).map(|c| &c.shown).next()?;
    let several = groups.iter().flat_map(|g| &g.cells).any(|c| c.shown.name != shown.name);
    let protocols: Vec<_> = groups.iter().map(Group::protocol).collect();
    let looks = line_styles(&protocols);
    let given = table.names();
    let names: Vec<String> = groups.iter().map(|g| g.name(&groups, given)).collect();
    let (mut lines, mut shapes) = (Vec::new(), Vec::new());
    // A table's reference has a separate panel.
    let both: &[bool] = if table.table.against.is_some() { &[false] } else { &[false, true] };
    for &published in both {
        for (i, (group, look)) in groups.iter().zip(&looks).enumerate() {
            let slot = Slot { index: i, of: groups.len(), published, name: &names[i], look };
            match figure.form {
                TableForm::Lines => lines.push(group.line(&slot, figure, &places)),
                TableForm::Bars => shapes.extend(group.bars(&slot, figure, &places)),
                TableForm::Ranges => {
                    shapes.extend(group.ranges(&slot, figure, &places));
                    lines.extend(group.middles(&slot, figure, &places));
                }
            }
        }
    }
    lines.retain(|l| !l.points.is_empty());
    if lines.is_empty() || figure.form == TableForm::Bars {
        lines = groups.iter().zip(&looks).zip(&names).map(|((_, l), n)| l.legend(n)).collect();
    }
    let first = places.iter().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let last = places.iter().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
    let margin = match figure.form {
        TableForm::Bars => 0.6,
        _ => (last - first).max(1.0) * 0.06,
    };
    let y = y_scale(&lines, &shapes, shown)?;
    Some(Chart {
        description: format!("{} against {}", table.table.title, figure.x),
        panel: panel.map(|(key, l)| panel_name(table, key, l)),
        x_name: axis_title(&figure.x, &places),
        y_name: match figure.form {
            TableForm::Ranges => with_unit(&table.table.title, &shown.unit),
            // Lines of several metrics share the axis, whose title is the table's.
            _ if several => with_unit(&table.table.title, &shown.unit),
            _ => shown.title_and_unit(),
        },
        x: Scale::new(first - margin, last + margin),
        x_ticks: Some(ticks(&places)),
        y,
        y_print: (shown.digits, shown.unit.clone()),
        level: (y.min < 0.0 && y.max > 0.0).then_some(0.0),
        shaded: None,
        events: Vec::new(),
        lines,
        shapes,
    })
}

fn with_unit(title: &str, unit: &str) -> String {
    if unit.is_empty() { title.to_owned() } else { format!("{title}, {unit}") }
}

fn panel_name(table: &TableResult<'_>, key: &str, label: &str) -> String {
    let shown = table.table.shown.iter().find(|s| key == METRIC_KEY && s.name == label);
    let names = table.names();
    shown.map_or_else(|| label_text(names, key, label), |s| s.title().to_owned())
}

/// A scale that contains every mark and bar.
fn y_scale(lines: &[Line], shapes: &[Shape], shown: &MetricSpec) -> Option<Scale> {
    let of_lines = lines.iter().flat_map(|l| &l.points).flat_map(|p| {
        let (low, high) = p.bar.unwrap_or((p.y, p.y));
        [p.y, low, high]
    });
    let of_shapes = shapes.iter().flat_map(|s| {
        let (low, high) = s.interval.unwrap_or((s.low, s.high));
        [s.low, s.high, low, high]
    });
    let marks = lines.iter().flat_map(|l| &l.points).map(|p| p.y);
    let is_never_negative =
        marks.chain(shapes.iter().flat_map(|s| [s.low, s.high])).all(|v| v >= 0.0);
    let all: Vec<f64> = of_lines.chain(of_shapes).filter(|v| v.is_finite()).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !low.is_finite() {
        return None;
    }
    Some(match shown.metric {
        // An index of few flows is far above zero, so the scale starts near its lowest value.
        Metric::Jain | Metric::JainOfMeans if shapes.is_empty() => {
            Scale::new(((low.max(0.0) * 10.0 - 0.2).floor() / 10.0).max(0.0), 1.0)
        }
        // With few runs an interval can extend below zero, where no value is possible.
        _ if is_never_negative => Scale::rounded(0.0, high.max(0.0), 6),
        _ => Scale::rounded(low.min(0.0), high.max(0.0), 6),
    })
}

fn label<'c>(cell: &'c Cell, key: &str) -> Option<&'c String> {
    cell.labels.iter().find(|(k, _)| k == key).map(|(_, l)| l)
}

fn groups<'c>(
    table: &'c TableResult<'_>,
    figure: &TableFigure,
    panel: Option<&(String, String)>,
) -> Vec<Group<'c>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let is_range = figure.form == TableForm::Ranges;
    for cell in table.cells().filter(|c| figure.filter.allows_all(&c.labels)) {
        if panel.is_some_and(|p| !cell.labels.contains(p)) {
            continue;
        }
        let told = |(key, _): &&(String, String)| {
            *key != figure.x
                && panel.is_none_or(|(panel, _)| panel != key)
                && !(is_range && key == METRIC_KEY)
        };
        let labels: Point = cell.labels.iter().filter(told).cloned().collect();
        match groups.iter_mut().find(|g| g.labels == labels) {
            Some(group) => group.cells.push(cell),
            None => groups.push(Group { labels, cells: vec![cell] }),
        }
    }
    groups
}

/// The position of a group among the others, and whose numbers are drawn.
struct Slot<'a> {
    index: usize,
    of: usize,
    published: bool,
    name: &'a str,
    look: &'a LineStyle,
}

impl Slot<'_> {
    /// Horizontal shift, so that bars at the same x are side by side: ours, then published.
    fn shift_px(&self) -> f64 {
        let slots = (self.of * 2) as f64;
        let mine = (self.index * 2 + usize::from(self.published)) as f64;
        (mine - (slots - 1.0) / 2.0) * self.width_px()
    }

    fn width_px(&self) -> f64 {
        (64.0 / (self.of * 2) as f64).clamp(3.0, 10.0)
    }
}

impl Group<'_> {
    /// The protocol of all its cells.
    fn protocol(&self) -> Option<&'static udccp_scenario::Protocol> {
        let first = self.cells.first()?.protocol?;
        self.cells.iter().all(|c| c.protocol == Some(first)).then_some(first)
    }

    /// What distinguishes it from the other groups.
    fn name(&self, all: &[Self], names: &Names) -> String {
        let varies = |key: &str| {
            let of = |g: &Self| g.labels.iter().find(|(k, _)| k == key).map(|(_, l)| l.clone());
            all.iter().any(|g| of(g) != of(self))
        };
        let word = |(key, label): &(String, String)| match (key.as_str(), self.protocol()) {
            (FLOW_KEY, Some(p)) => flow_text(names, p.title, label),
            (METRIC_KEY, _) => {
                self.cells.first().map_or(label.as_str(), |c| c.shown.title()).to_owned()
            }
            _ => label_text(names, key, label),
        };
        let text: Vec<String> = self.labels.iter().filter(|(k, _)| varies(k)).map(word).collect();
        if text.is_empty() { "ours".to_owned() } else { text.join(", ") }
    }

    fn line(&self, slot: &Slot<'_>, figure: &TableFigure, places: &[(f64, String)]) -> Line {
        let mut points = Vec::new();
        for (x, at) in places {
            let cell = self.cells.iter().find(|c| label(c, &figure.x) == Some(at));
            let Some(cell) = cell else { continue };
            let Some((y, bar, text)) = value(cell, slot.published) else { continue };
            let title = format!("{}, {at}: {text}", slot.name);
            points.push(LinePoint { x: *x, y, bar, title: Some(title) });
        }
        slot.look.line(slot.name, slot.published, points)
    }

    fn bars(&self, slot: &Slot<'_>, figure: &TableFigure, places: &[(f64, String)]) -> Vec<Shape> {
        let line = self.line(slot, figure, places);
        let shape = |p: LinePoint| Shape {
            x: p.x,
            shift_px: slot.shift_px(),
            half_px: slot.width_px() / 2.0,
            low: p.y.min(0.0),
            high: p.y.max(0.0),
            interval: p.bar,
            colour: slot.look.colour.clone(),
            is_hollow: slot.published,
            title: p.title.unwrap_or_default(),
        };
        line.points.into_iter().map(shape).collect()
    }

    /// The cell of a metric at a place.
    fn at(&self, figure: &TableFigure, at: &String, metric: &String) -> Option<&Cell> {
        let here = |c: &&&Cell| label(c, &figure.x) == Some(at) && c.shown.name == *metric;
        self.cells.iter().find(here).copied()
    }

    fn ranges(
        &self,
        slot: &Slot<'_>,
        figure: &TableFigure,
        places: &[(f64, String)],
    ) -> Vec<Shape> {
        let mut shapes = Vec::new();
        for (x, at) in places {
            let of = |m: &String| value(self.at(figure, at, m)?, slot.published).map(|v| v.0);
            let known: Vec<f64> = figure.range.iter().filter_map(of).collect();
            let low = known.iter().copied().fold(f64::INFINITY, f64::min);
            let high = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if !low.is_finite() {
                continue;
            }
            let text: Vec<String> = figure
                .range
                .iter()
                .filter_map(|m| {
                    let cell = self.at(figure, at, m)?;
                    let text = value(cell, slot.published).map_or("no value".into(), |v| v.2);
                    Some(format!("{} {text}", cell.shown.title()))
                })
                .collect();
            shapes.push(Shape {
                x: *x,
                shift_px: slot.shift_px(),
                half_px: slot.width_px() / 2.0,
                low,
                high,
                interval: None,
                colour: slot.look.colour.clone(),
                is_hollow: slot.published,
                title: format!("{}, {at}: {}", slot.name, text.join("; ")),
            });
        }
        shapes
    }

    /// The middle values of ranges, joined by a line.
    fn middles(
        &self,
        slot: &Slot<'_>,
        figure: &TableFigure,
        places: &[(f64, String)],
    ) -> Option<Line> {
        let metric = figure.range.get(1).filter(|_| figure.range.len() > 2)?;
        let mut points = Vec::new();
        for (x, at) in places {
            let cell = self.at(figure, at, metric);
            let Some((y, _, text)) = cell.and_then(|c| value(c, slot.published)) else { continue };
            let title = format!("{}, {at}: {text}", slot.name);
            points.push(LinePoint { x: *x, y, bar: None, title: Some(title) });
        }
        Some(slot.look.line(slot.name, slot.published, points))
    }
}

impl LineStyle {
    fn line(&self, name: &str, published: bool, points: Vec<LinePoint>) -> Line {
        let suffix = match (published, name) {
            (true, "ours") => "published".to_owned(),
            (true, _) => format!("{name}, published"),
            (false, _) => name.to_owned(),
        };
        Line {
            label: suffix,
            colour: self.colour.clone(),
            dash: self.dash,
            marker: Some(self.marker),
            published,
            points,
            band: Vec::new(),
        }
    }

    /// A line that appears only in the legend.
    fn legend(&self, name: &str) -> Line {
        Line { marker: None, ..self.line(name, false, Vec::new()) }
    }
}

type Value = (f64, Option<(f64, f64)>, String);

/// The value to draw, its bar, and both as text.
fn value(cell: &Cell, published: bool) -> Option<Value> {
    let shown = &cell.shown;
    let unit = if shown.unit.is_empty() { String::new() } else { format!(" {}", shown.unit) };
    if published {
        let found = cell.published?;
        let value = found.value?;
        let bar = found.stddev.map(|s| (value - s, value + s));
        let sd = found.stddev.map_or_else(String::new, |s| format!(", sd {}", shown.print(s)));
        return Some((value, bar, format!("{}{unit} (published{sd})", as_published(value, shown))));
    }
    let mean = cell.mean()?;
    let runs = match cell.spread.interval() {
        _ if cell.is_early() => format!(", {}", cell.basis.text()),
        Some(_) => format!(", {}", counted(cell.ours.n, "run")),
        None if cell.ours.n == 1 => ", 1 run".to_owned(),
        None => String::new(),
    };
    let text = format!("{}{unit} (ours{runs})", cell.ours_text("± "));
    Some((mean, cell.spread.interval(), text))
}
