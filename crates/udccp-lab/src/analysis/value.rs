//! The value of a metric in one run.

use crate::record::Record;
use crate::schema::{Metric, Rates};

/// The value of a metric in one run, or why there is none.
pub(super) fn value(
    record: &Record,
    metric: Metric,
    rates: Rates,
    flow: Option<&str>,
) -> Result<f64, String> {
    let (path, value) = match (metric, flow) {
        (Metric::Jain, _) if rates == Rates::Goodput => {
            ("system.jain_goodput".to_owned(), record.system.jain_goodput)
        }
        (Metric::Jain, _) => ("system.jain".to_owned(), record.system.jain),
        (Metric::JainOfMeans, _) => {
            ("system.jain_of_means".to_owned(), record.system.jain_of_means)
        }
        (Metric::Utilisation, _) => {
            ("system.utilisation_percent".to_owned(), record.system.utilisation_percent)
        }
        (Metric::QueueDelay, _) => {
            ("system.queue_delay_ms.p95".to_owned(), record.system.queue_delay_ms.p95)
        }
        (metric, Some(flow)) => flow_value(record, metric, flow)?,
        (_, None) => return Err("this metric is a flow's".to_owned()),
    };
    let why = || record.undefined.get(&path).cloned().unwrap_or_else(|| "no value".to_owned());
    value.ok_or_else(why)
}

fn flow_value(
    record: &Record,
    metric: Metric,
    flow: &str,
) -> Result<(String, Option<f64>), String> {
    let found = record.flow(flow).ok_or_else(|| format!("there is no flow {flow}"))?;
    let (key, value) = match metric {
        Metric::Throughput => ("throughput_mbps", found.throughput_mbps),
        Metric::Goodput => ("goodput_mbps", found.goodput_mbps),
        Metric::Loss => ("loss_percent", found.loss_percent),
        Metric::Delay => ("delay_ms", found.delay_ms),
        _ => ("jitter_ms", found.jitter_ms),
    };
    Ok((format!("flows.{flow}.{key}"), value))
}
