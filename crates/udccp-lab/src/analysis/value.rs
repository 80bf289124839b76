//! The value of a metric in one run.

use udccp_metrics::{THRESHOLD_DB, mean, normalised};
use udccp_scenario::{FlowRecord, Record};

use super::expected::{Convergence, Expected};
use super::window;
use crate::schema::{Metric, MetricSpec, Rates, group_of};

/// The value of a metric in one run, in the metric's own unit, or why there is none. `expected` is
/// what flows get among their own kind, for metrics that compare with it.
pub(super) fn value(
    record: &Record,
    shown: &MetricSpec,
    flow: Option<&str>,
    expected: Option<&Expected>,
) -> Result<f64, String> {
    if shown.metric.needs_weights() {
        let expected = expected.ok_or("no weights are given")?;
        let convergence = Convergence {
            epoch_s: shown.epoch.map_or(0.0, |e| e.as_secs_f64()),
            threshold_db: shown.level.unwrap_or(THRESHOLD_DB),
        };
        return expected.value(record, shown.metric, flow, convergence);
    }
    if let Some(value) = window::value(record, shown, flow) {
        return value;
    }
    if let Some(group) = shown.group.as_deref().filter(|_| shown.metric.needs_group()) {
        return of_group(record, shown, group);
    }
    if let (Metric::Share, Some(flow)) = (shown.metric, flow) {
        return share(record, shown.rates, flow);
    }
    whole(record, shown.metric, shown.rates, flow)
}

/// The rate of a flow as a share of all flows' rates, in percent.
fn share(record: &Record, rates: Rates, flow: &str) -> Result<f64, String> {
    let own = record.flow(flow).ok_or_else(|| format!("there is no flow {flow}"))?;
    let all: Option<Vec<f64>> = record.flows.iter().map(|flow| rate(flow, rates)).collect();
    let all = all.ok_or("a flow has no rate")?;
    let own = rate(own, rates).ok_or("the flow has no rate")?;
    window::share_of(own, all.iter().sum())
}

fn rate(flow: &FlowRecord, rates: Rates) -> Option<f64> {
    match rates {
        Rates::Throughput => flow.throughput_mbps,
        Rates::Goodput => flow.goodput_mbps,
    }
}

/// The rate of a group of flows, divided by an equal share of all.
fn of_group(record: &Record, shown: &MetricSpec, group: &str) -> Result<f64, String> {
    let rate = |flow| rate(flow, shown.rates);
    let all: Option<Vec<(&str, f64)>> =
        record.flows.iter().map(|f| Some((group_of(&f.name), rate(f)?))).collect();
    let all = all.ok_or("a flow has no rate")?;
    let rates: Vec<f64> = all.iter().map(|(_, rate)| *rate).collect();
    let own: Vec<f64> = all.iter().filter(|(of, _)| *of == group).map(|(_, rate)| *rate).collect();
    let normalised = normalised(&own, &rates).map_err(|why| why.to_string())?;
    let value = match shown.metric {
        Metric::NormalisedLeast => normalised.into_iter().reduce(f64::min),
        Metric::NormalisedMost => normalised.into_iter().reduce(f64::max),
        _ => mean(&normalised).ok(),
    };
    value.ok_or_else(|| format!("there is no flow of {group}"))
}

/// The value over the measured interval.
fn whole(record: &Record, metric: Metric, rates: Rates, flow: Option<&str>) -> Result<f64, String> {
    let (path, value) = match flow {
        Some(name) => {
            let found = record.flow(name).ok_or_else(|| format!("there is no flow {name}"))?;
            let (key, value) = flow_value(found, metric)
                .ok_or("this metric is for the whole network, not for one flow")?;
            (format!("flows.{name}.{key}"), value)
        }
        None => {
            let (key, value) = system_value(record, metric, rates)
                .ok_or("this metric is for one flow, not for the whole network")?;
            (format!("system.{key}"), value)
        }
    };
    let absent = match metric {
        Metric::JitterPerNumber => "only ns-2 numbers packets this way",
        _ => "no value",
    };
    let why = || record.undefined.get(&path).cloned().unwrap_or_else(|| absent.to_owned());
    value.ok_or_else(why)
}

type Found = Option<(&'static str, Option<f64>)>;

fn system_value(record: &Record, metric: Metric, rates: Rates) -> Found {
    let system = &record.system;
    let (queue, goodput) = (&system.queue_delay_ms, rates == Rates::Goodput);
    Some(match metric {
        Metric::Jain if goodput => ("jain_goodput", system.jain_goodput),
        Metric::Jain => ("jain", system.jain),
        Metric::JainOfMeans if goodput => ("jain_goodput_of_means", system.jain_goodput_of_means),
        Metric::JainOfMeans => ("jain_of_means", system.jain_of_means),
        Metric::MaxMin => ("max_min_ratio", system.max_min_ratio),
        Metric::Epsilon => ("epsilon", system.epsilon),
        Metric::LogUtility => ("log_utility", system.log_utility),
        Metric::Utilisation => ("utilisation_percent", system.utilisation_percent),
        Metric::QueueDelayP50 => ("queue_delay_ms.p50", queue.p50),
        Metric::QueueDelay => ("queue_delay_ms.p95", queue.p95),
        Metric::QueueDelayP99 => ("queue_delay_ms.p99", queue.p99),
        _ => return None,
    })
}

fn flow_value(flow: &FlowRecord, metric: Metric) -> Found {
    Some(match metric {
        Metric::Throughput => ("throughput_mbps", flow.throughput_mbps),
        Metric::Goodput => ("goodput_mbps", flow.goodput_mbps),
        Metric::RouterThroughput => ("router_throughput_mbps", flow.router_throughput_mbps),
        Metric::RouterBothWays => ("router_both_ways_mbps", flow.router_both_ways_mbps),
        Metric::GoodputRatio => ("goodput_ratio_percent", flow.goodput_ratio_percent),
        Metric::Smoothness => ("smoothness", flow.smoothness),
        Metric::Loss => ("loss_percent", flow.loss_percent),
        Metric::LossOnAllLinks => ("loss_on_all_links_percent", flow.loss_on_all_links_percent),
        Metric::LossEvents => ("loss_event_percent", flow.loss_event_percent),
        Metric::EquationRatio => ("equation_ratio", flow.equation_ratio),
        Metric::EquationRatioOfEvents => {
            ("equation_ratio_of_events", flow.equation_ratio_of_events)
        }
        Metric::Delay => ("delay_ms", flow.delay_ms),
        Metric::DelayBothWays => ("delay_both_ways_ms", flow.delay_both_ways_ms),
        Metric::DelayP95 => ("delay_quantiles_ms.p95", flow.delay_quantiles_ms.p95),
        Metric::DelayP99 => ("delay_quantiles_ms.p99", flow.delay_quantiles_ms.p99),
        Metric::Jitter => ("jitter_ms", flow.jitter_ms),
        Metric::JitterTransit => ("jitter_transit_ms", flow.jitter_transit_ms),
        Metric::JitterArrivalGap => ("jitter_arrival_gap_ms", flow.jitter_arrival_gap_ms),
        Metric::JitterPerNumber => ("jitter_per_number_ms", flow.jitter_per_number_ms),
        _ => return None,
    })
}
