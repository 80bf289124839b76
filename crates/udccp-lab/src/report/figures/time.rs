//! Runs over time, with one line per flow or per value of an axis, of one run or the mean of all.

use udccp_base::Duration;
use udccp_metrics::{Summary, jain};
use udccp_scenario::Record;
use udccp_scenario::protocol::{self, Protocol};
use udccp_scenario::{SIM, backend_title};

use super::super::html::counted;
use super::super::svg::{Chart, DASHES, Line, LinePoint, Scale};
use super::line_style::{LineStyle, line_styles};
use super::{Drawing, change, flow_text, name_panel, share_scale, share_scale_of_all};
use crate::analysis::{Analysis, Basis, Results, Spread, label_text, own_name};
use crate::plan::Task;
use crate::schema::{
    CASE_AXIS, FLOW_KEY, METRIC_KEY, Metric, Names, Point, Rates, TimeFigure, TimeMetric,
};

/// Colours of backends, in order.
const BACKEND_COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#117733", "#aa4499"];

/// One line before it is drawn.
struct Series {
    label: String,
    protocol: Option<&'static Protocol>,
    points: Vec<LinePoint>,
    band: Vec<(f64, f64, f64)>,
}

pub(super) fn draw(analysis: &Analysis<'_>, figure: &TimeFigure) -> Option<Drawing> {
    let panels = match &figure.panels {
        Some(key) => figure.labels(key).into_iter().map(|l| Some((key.clone(), l))).collect(),
        None => vec![None],
    };
    let mut charts = Vec::new();
    let mut first = None;
    let backends = backends(analysis, figure);
    for panel in &panels {
        let mut here: Vec<(Option<&str>, Chart)> = Vec::new();
        for (title, results) in &backends {
            let runs = runs(results, figure, panel.as_ref());
            first = first.or_else(|| runs.first().copied());
            here.extend(chart(figure, panel.as_ref(), &runs).map(|chart| (*title, chart)));
        }
        let mut here = combine_charts(here);
        share_scale(&mut here);
        charts.extend(here);
    }
    let (task, _) = first?;
    if charts.is_empty() {
        return None;
    }
    let scales = share_scale_of_all(&mut charts);
    let n = analysis.results.runs.iter().filter(|(t, _)| is_run(figure, t)).count();
    let early = early(analysis, figure);
    let beyond = beyond_the_link(figure, task, &charts);
    Some(Drawing { charts, caption: caption(figure, task, n, early) + beyond + scales })
}

/// The weakest basis among the points whose mean is drawn, if one has too few runs.
fn early(analysis: &Analysis<'_>, figure: &TimeFigure) -> Option<Basis> {
    let experiment = analysis.experiment;
    let tasks = analysis.results.runs.iter().map(|(t, _)| t).filter(|t| is_run(figure, t));
    let first = tasks.filter(|t| t.run == 1);
    let of = |task: &Task| {
        let part = experiment.part(task.case.as_deref())?;
        Some(Basis::at(experiment, &analysis.results, part, None, &task.point))
    };
    first.filter_map(of).filter(|basis| !basis.is_enough()).reduce(Basis::weaker)
}

/// A note if a flow's rate exceeds the link's rate.
fn beyond_the_link(figure: &TimeFigure, task: &Task, charts: &[Chart]) -> &'static str {
    if !task.scenario.changes.is_empty() {
        return "";
    }
    let rates = task.scenario.topology.hops().map(|(link, _)| link.rate.as_mbps());
    let rate = rates.fold(f64::INFINITY, f64::min) * figure.factor(TimeMetric::Goodput);
    let goodput = charts.iter().filter(|c| c.y_name.starts_with(TimeMetric::Goodput.title()));
    let mut values = goodput.flat_map(|c| &c.lines).flat_map(|l| &l.points).map(|p| p.y);
    if values.any(|y| y > rate * 1.01) {
        return " Goodput is what the application reads. Data that waits behind a lost packet is \
                read all at once when that packet arrives, so an interval can have more than the \
                link carries.";
    }
    ""
}

/// Combines the charts of several backends: into one chart if each has one line, otherwise as
/// panels.
fn combine_charts(charts: Vec<(Option<&str>, Chart)>) -> Vec<Chart> {
    let is_one_each = charts.len() > 1 && charts.iter().all(|(_, c)| c.lines.len() == 1);
    if !is_one_each {
        let named = charts.into_iter().map(|(title, mut chart)| {
            name_panel(&mut chart, title);
            chart
        });
        return named.collect();
    }
    let mut charts = charts.into_iter();
    let Some((title, mut all)) = charts.next() else { return Vec::new() };
    if all.panel.is_none() {
        all.panel = all.lines.first().map(|line| line.label.clone());
    }
    name_line(&mut all, title, 0);
    for (i, (title, mut other)) in charts.enumerate() {
        name_line(&mut other, title, i + 1);
        all.y = Scale::new(all.y.min.min(other.y.min), all.y.max.max(other.y.max));
        all.x = Scale::new(all.x.min.min(other.x.min), all.x.max.max(other.x.max));
        all.lines.append(&mut other.lines);
    }
    vec![all]
}

/// Names a line after its backend, which then has the same style in all panels.
fn name_line(chart: &mut Chart, title: Option<&str>, index: usize) {
    for line in &mut chart.lines {
        line.label = title.unwrap_or_default().to_owned();
        line.colour = BACKEND_COLOURS[index % BACKEND_COLOURS.len()].to_owned();
        line.dash = index % DASHES.len();
    }
}

/// The backends with runs to draw, with their names if there are several.
fn backends<'a>(
    analysis: &'a Analysis<'_>,
    figure: &TimeFigure,
) -> Vec<(Option<&'a str>, &'a Results)> {
    let is_there = |results: &Results| results.runs.iter().any(|(t, _)| is_run(figure, t));
    let others = analysis.others.iter().filter(|o| is_there(&o.results));
    let others: Vec<_> = others.map(|o| (Some(o.title.as_str()), &o.results)).collect();
    if others.is_empty() {
        return vec![(None, &analysis.results)];
    }
    let mut all = vec![(Some(backend_title(SIM)), &analysis.results)];
    all.extend(others);
    all
}

fn caption(figure: &TimeFigure, task: &Task, drawn: usize, early: Option<Basis>) -> String {
    let every = task.scenario.time.measure.every;
    let of = match figure.run {
        Some(_) => format!("One run (seed {})", task.seed),
        None => format!(
            "Mean over runs ({}) with its 95 % interval as a band",
            early.map_or_else(
                || format!("{} in all lines", counted(drawn, "run")),
                |basis| format!("{} of each point", basis.text())
            )
        ),
    };
    let shortened = if task.shortened { " Runs are shortened for a first look." } else { "" };
    let values = values_text(&figure.metrics, every);
    format!("{of}. {values}. The shaded interval is measured.{shortened}")
}

/// Describes the values of a figure with these metrics.
fn values_text(metrics: &[TimeMetric], every: Duration) -> String {
    let of_interval = metrics.iter().filter(|m| m.is_of_interval()).count();
    match of_interval {
        0 => format!("Values are those at the ends of intervals of {every}"),
        n if n == metrics.len() => format!("Values are means over intervals of {every}"),
        _ => format!("Rates are means over intervals of {every}, other values those at their ends"),
    }
}

fn is_run(figure: &TimeFigure, task: &Task) -> bool {
    task.variant.is_none()
        && figure.view.cases.contains(&task.case)
        && figure.at.allows_all(&labels(figure, task))
        && figure.run.is_none_or(|run| task.run == run)
}

/// A task's point, with its case if the figure combines several.
fn labels(figure: &TimeFigure, task: &Task) -> Point {
    let mut labels = task.point.clone();
    if figure.view.cases.len() > 1 {
        labels.extend(task.case.iter().map(|id| (CASE_AXIS.to_owned(), id.clone())));
    }
    labels
}

/// The runs of a panel.
fn runs<'a>(
    results: &'a Results,
    figure: &TimeFigure,
    panel: Option<&(String, String)>,
) -> Vec<(&'a Task, &'a Record)> {
    let here = |task: &Task| {
        let labels = labels(figure, task);
        let told = |(key, _): &&(String, String)| key != FLOW_KEY && key != METRIC_KEY;
        is_run(figure, task) && panel.filter(told).is_none_or(|p| labels.contains(p))
    };
    results.runs.iter().filter(|(t, _)| here(t)).map(|(t, r)| (t, r)).collect()
}

fn chart(
    figure: &TimeFigure,
    panel: Option<&(String, String)>,
    runs: &[(&Task, &Record)],
) -> Option<Chart> {
    let metric = panel
        .filter(|(key, _)| key == METRIC_KEY)
        .and_then(|(_, word)| figure.metrics.iter().find(|m| m.word() == word).copied());
    let metric = metric.or_else(|| figure.metrics.first().copied())?;
    let series = all_series(figure, metric, panel, runs);
    let series: Vec<Series> = series.into_iter().filter(|s| !s.points.is_empty()).collect();
    let protocols: Vec<_> = series.iter().map(|s| s.protocol).collect();
    let looks = line_styles(&protocols);
    let lines: Vec<Line> = series.into_iter().zip(looks).map(|(s, look)| s.line(look)).collect();
    let points = || lines.iter().flat_map(|l| &l.points);
    let end = points().map(|p| p.x).fold(f64::NEG_INFINITY, f64::max);
    let high = points().map(|p| p.y).fold(0.0, f64::max);
    let low = points().map(|p| p.y).fold(f64::INFINITY, f64::min);
    let (task, record) = runs.first()?;
    if !end.is_finite() {
        return None;
    }
    let begin = figure.window.map_or(0.0, |w| w.from.as_secs_f64());
    let [from, to] = record.measured_s;
    let unit = figure.unit.clone().filter(|_| !metric.unit().is_empty());
    let unit = unit.unwrap_or_else(|| metric.unit().to_owned());
    let y = match metric {
        TimeMetric::Jain => Scale::new(((low * 10.0).floor() / 10.0).clamp(0.0, 0.5), 1.0),
        _ => Scale::rounded(0.0, high, 6),
    };
    let y_name = [metric.title(), &unit].into_iter().filter(|w| !w.is_empty());
    let y_name = y_name.collect::<Vec<_>>().join(", ");
    Some(Chart {
        description: format!("{y_name} over time"),
        panel: panel
            .filter(|(k, _)| k != METRIC_KEY)
            .map(|(k, l)| label_text(&figure.view.names, k, l)),
        x_name: "time, s".to_owned(),
        y_name,
        x: Scale::new(begin, end),
        x_ticks: None,
        y,
        y_print: (if metric == TimeMetric::Jain { 2 } else { 1 }, unit),
        level: None,
        shaded: (to > begin && from < end).then_some((from, to)),
        events: if figure.events {
            events(&figure.view.names, task, begin, end)
        } else {
            Vec::new()
        },
        lines,
        shapes: Vec::new(),
    })
}

/// Starts and stops of flows and changes of links, within the plotted time.
fn events(names: &Names, task: &Task, begin: f64, end: f64) -> Vec<(f64, String)> {
    let mut events = change::events(&task.scenario);
    for flow in &task.scenario.flows {
        let title = flow.protocol.title;
        let name = own_name(names, &flow.name, title).unwrap_or(title);
        events.push((flow.start.as_secs_f64(), format!("{name} starts")));
        events.extend(flow.stop.map(|s| (s.as_secs_f64(), format!("{name} stops"))));
    }
    events.retain(|(at, _)| *at > begin + 0.5 && *at < end);
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Simultaneous events share one line.
    let mut joined: Vec<(f64, String)> = Vec::new();
    for (at, text) in events {
        match joined.last_mut() {
            Some((last, all)) if (*last - at).abs() < 1e-9 => *all = format!("{all}, {text}"),
            _ => joined.push((at, text)),
        }
    }
    joined
}

fn all_series(
    figure: &TimeFigure,
    metric: TimeMetric,
    panel: Option<&(String, String)>,
    runs: &[(&Task, &Record)],
) -> Vec<Series> {
    let flow_of_panel = panel.filter(|(key, _)| key == FLOW_KEY).map(|(_, flow)| flow.clone());
    let flows = match flow_of_panel {
        Some(flow) => vec![flow],
        None => figure.labels(FLOW_KEY),
    };
    let by_flow = figure.lines.as_deref() == Some(FLOW_KEY) && metric.is_per_flow();
    if by_flow {
        return flows
            .iter()
            .map(|flow| series(figure, metric, Some(flow), runs, flow_label(figure, runs, flow)))
            .collect();
    }
    let flow = metric.is_per_flow().then(|| flows.first().cloned()).flatten();
    let Some(key) = figure.lines.as_ref().filter(|k| *k != FLOW_KEY) else {
        let label = metric.title().to_owned();
        return vec![series(figure, metric, flow.as_deref(), runs, label)];
    };
    let line = |label: &String| {
        let at = (key.clone(), label.clone());
        let runs: Vec<_> =
            runs.iter().filter(|(t, _)| labels(figure, t).contains(&at)).copied().collect();
        let label_words = label_text(&figure.view.names, key, label);
        let mut line = series(figure, metric, flow.as_deref(), &runs, label_words);
        line.protocol = protocol::find(label).or(line.protocol);
        line
    };
    figure.labels(key).iter().map(line).collect()
}

/// A flow by its protocol and name.
fn flow_label(figure: &TimeFigure, runs: &[(&Task, &Record)], flow: &str) -> String {
    let names = &figure.view.names;
    let found = runs.iter().find_map(|(_, r)| r.flow(flow));
    found.map_or_else(
        || names.of(flow).unwrap_or(flow).to_owned(),
        |f| flow_text(names, protocol::title_of(&f.protocol), flow),
    )
}

fn series(
    figure: &TimeFigure,
    metric: TimeMetric,
    flow: Option<&str>,
    runs: &[(&Task, &Record)],
    label: String,
) -> Series {
    let protocol = flow.and_then(|f| {
        let (_, record) = runs.first()?;
        protocol::find(&record.flow(f)?.protocol)
    });
    let times: &[f64] =
        runs.first().and_then(|(_, r)| r.flows.first()).map_or(&[], |f| &f.series.t_s);
    let all: Vec<Vec<Option<f64>>> =
        runs.iter().map(|(_, r)| values(r, metric, figure.rates, flow)).collect();
    let factor = figure.factor(metric);
    let inside = |t: f64| {
        figure
            .window
            .is_none_or(|w| t >= w.from.as_secs_f64() - 1e-9 && t <= w.to.as_secs_f64() + 1e-9)
    };
    let bounds = match metric {
        TimeMetric::Jain => {
            Metric::Jain.bounds(runs.first().map_or(0, |(_, record)| record.flows.len()))
        }
        _ => (0.0, f64::INFINITY),
    };
    let (mut points, mut band) = (Vec::new(), Vec::new());
    for (i, t) in times.iter().enumerate().filter(|(_, t)| inside(**t)) {
        let here: Vec<f64> = all.iter().filter_map(|v| *v.get(i)?).map(|v| v * factor).collect();
        let summary = Summary::of(&here);
        let Ok(mean) = summary.mean else { continue };
        points.push(LinePoint::bare(*t, mean));
        if figure.run.is_none()
            && let Some((low, high)) = Spread::of(&summary, bounds).interval()
        {
            band.push((*t, low, high));
        }
    }
    Series { label, protocol, points, band }
}

/// The values of one run, one per interval.
fn values(
    record: &Record,
    metric: TimeMetric,
    rates: Rates,
    flow: Option<&str>,
) -> Vec<Option<f64>> {
    let some = |series: &[f64]| series.iter().copied().map(Some).collect();
    let found = flow.and_then(|f| record.flow(f)).map(|f| &f.series);
    match (metric, found) {
        (TimeMetric::Throughput, Some(series)) => some(&series.throughput_mbps),
        (TimeMetric::Goodput, Some(series)) => some(&series.goodput_mbps),
        (TimeMetric::Cwnd, Some(series)) => series.cwnd_packets.clone(),
        (TimeMetric::Srtt, Some(series)) => series.srtt_ms.clone(),
        (TimeMetric::AllowedRate, Some(series)) => series.allowed_rate_mbps.clone(),
        (TimeMetric::LossEventRate, Some(series)) => series.loss_event_percent.clone(),
        (TimeMetric::Jain, _) => {
            let rate = |f: &udccp_scenario::FlowRecord, i: usize| {
                let series = match rates {
                    Rates::Throughput => &f.series.throughput_mbps,
                    Rates::Goodput => &f.series.goodput_mbps,
                };
                series.get(i).copied()
            };
            let n = record.flows.first().map_or(0, |f| f.series.t_s.len());
            let at = |i: usize| {
                let shares: Option<Vec<f64>> = record.flows.iter().map(|f| rate(f, i)).collect();
                jain(&shares?).ok()
            };
            (0..n).map(at).collect()
        }
        (_, None) => Vec::new(),
    }
}

impl Series {
    fn line(self, look: LineStyle) -> Line {
        Line {
            label: self.label,
            colour: look.colour,
            dash: look.dash,
            marker: None,
            published: false,
            points: self.points,
            band: self.band,
        }
    }
}
