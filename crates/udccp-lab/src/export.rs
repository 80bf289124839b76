//! Stored runs for other programs: one line of CSV a flow of a run, or the records as JSON.

use core::fmt::Write as _;

use serde::Serialize;

use crate::analysis::Results;
use crate::plan::Task;
use crate::record::Record;

/// A run with what tells it from the others.
#[derive(Serialize)]
struct Exported<'a> {
    key: &'a str,
    variant: Option<&'a str>,
    point: std::collections::BTreeMap<&'a str, &'a str>,
    run: u64,
    #[serde(flatten)]
    record: &'a Record,
}

/// All runs as one JSON list.
pub fn json(results: &Results) -> serde_json::Result<String> {
    let exported = |(task, record): &'_ (Task, Record)| -> serde_json::Result<String> {
        serde_json::to_string(&Exported {
            key: &task.key,
            variant: task.variant.as_deref(),
            point: task.point.iter().map(|(a, l)| (a.as_str(), l.as_str())).collect(),
            run: task.run,
            record,
        })
    };
    let runs: serde_json::Result<Vec<String>> = results.runs.iter().map(exported).collect();
    Ok(format!("[{}]", runs?.join(",\n")))
}

/// Columns that every experiment has, after those of its axes.
const COLUMNS: &str = "variant,run,seed,flow,protocol,throughput_mbps,goodput_mbps,loss_percent,\
delay_ms,jitter_ms,packets_sent,packets_delivered,jain,jain_goodput,utilisation_percent,event_hash";

/// One line for each flow of each run; a value that does not exist is an empty field.
pub fn csv(results: &Results) -> String {
    let mut out = String::new();
    if let Some((task, _)) = results.runs.first() {
        task.point.iter().for_each(|(axis, _)| out.push_str(&format!("{axis},")));
    }
    let _ = writeln!(out, "{COLUMNS}");
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    for (task, record) in &results.runs {
        let point: String = task.point.iter().map(|(_, label)| format!("{label},")).collect();
        let variant = task.variant.as_deref().unwrap_or_default();
        for flow in &record.flows {
            let numbers = [
                flow.throughput_mbps,
                flow.goodput_mbps,
                flow.loss_percent,
                flow.delay_ms,
                flow.jitter_ms,
            ];
            let _ = writeln!(
                out,
                "{point}{variant},{},{},{},{},{},{},{},{},{},{},{}",
                task.run,
                task.seed,
                flow.name,
                flow.protocol,
                numbers.map(number).join(","),
                flow.packets_sent,
                flow.packets_delivered,
                number(record.system.jain),
                number(record.system.jain_goodput),
                number(record.system.utilisation_percent),
                record.event_hash
            );
        }
    }
    out
}
