//! Values of a part of a run, from its series.

use udccp_metrics::{jain_over_time, mean, recovery_time};
use udccp_scenario::{FlowRecord, Record};

use crate::schema::{Metric, MetricSpec, Rates, Window};

/// The share of the rate before a change at which a flow counts as recovered, by default.
const RECOVERED: f64 = 0.9;

/// The value of a metric over a part of the run; `None` if the metric covers the measured interval.
pub(super) fn value(
    record: &Record,
    shown: &MetricSpec,
    flow: Option<&str>,
) -> Option<Result<f64, String>> {
    if shown.metric == Metric::Recovery {
        return Some(recovery(record, shown, flow));
    }
    let window = shown.window?;
    Some(match (shown.metric, flow) {
        (Metric::Jain, _) => jain(record, shown.rates, window),
        (Metric::Share, Some(name)) => share(record, shown.rates, name, window),
        (metric, Some(name)) => match record.flow(name) {
            None => Err(format!("there is no flow {name}")),
            Some(flow) => mean(&within(flow, metric, window)).map_err(|why| why.to_string()),
        },
        (metric, None) => Err(format!("{} has no value for an interval", metric.word())),
    })
}

/// The samples of a flow whose intervals end within a window.
pub(crate) fn within(flow: &FlowRecord, metric: Metric, window: Window) -> Vec<f64> {
    let (from, to) = (window.from.as_secs_f64(), window.to.as_secs_f64());
    let series = match metric {
        Metric::Throughput => &flow.series.throughput_mbps,
        _ => &flow.series.goodput_mbps,
    };
    let inside = |t: f64| t > from + 1e-9 && t <= to + 1e-9;
    flow.series.t_s.iter().zip(series).filter(|(t, _)| inside(**t)).map(|(_, v)| *v).collect()
}

/// The metric whose series contains these rates.
fn metric_of(rates: Rates) -> Metric {
    match rates {
        Rates::Throughput => Metric::Throughput,
        Rates::Goodput => Metric::Goodput,
    }
}

/// The share of a flow in all rates within a window, in percent.
pub(super) fn share(
    record: &Record,
    rates: Rates,
    flow: &str,
    window: Window,
) -> Result<f64, String> {
    let metric = metric_of(rates);
    let sum = |flow: &FlowRecord| within(flow, metric, window).iter().sum::<f64>();
    let own = record.flow(flow).ok_or_else(|| format!("there is no flow {flow}"))?;
    share_of(sum(own), record.flows.iter().map(sum).sum())
}

/// A part as a percentage of the whole.
pub(super) fn share_of(own: f64, all: f64) -> Result<f64, String> {
    if all > 0.0 { Ok(100.0 * own / all) } else { Err("all flows are silent".to_owned()) }
}

fn jain(record: &Record, rates: Rates, window: Window) -> Result<f64, String> {
    let metric = metric_of(rates);
    let series: Vec<Vec<f64>> = record.flows.iter().map(|f| within(f, metric, window)).collect();
    let slices: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
    jain_over_time(&slices).mean().map_err(|why| why.to_string())
}

/// Seconds from the change until the flow's rate is back at its share of the rate in the window
/// before.
fn recovery(record: &Record, shown: &MetricSpec, flow: Option<&str>) -> Result<f64, String> {
    let flow = flow.and_then(|name| record.flow(name)).ok_or("there is no such flow")?;
    let (Some(window), Some(epoch)) = (shown.window, shown.epoch) else {
        return Err("recovery-time needs `epoch`, `from` and `to`".to_owned());
    };
    let metric = match shown.rates {
        Rates::Throughput => Metric::Throughput,
        Rates::Goodput => Metric::Goodput,
    };
    let before = mean(&within(flow, metric, window)).map_err(|why| why.to_string())?;
    let series = match shown.rates {
        Rates::Throughput => &flow.series.throughput_mbps,
        Rates::Goodput => &flow.series.goodput_mbps,
    };
    let level = before * shown.level.unwrap_or(RECOVERED);
    recovery_time(series, &flow.series.t_s, epoch.as_secs_f64(), level)
        .map_err(|why| why.to_string())
}
