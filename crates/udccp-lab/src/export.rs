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
    case: Option<&'a str>,
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
            case: task.case.as_deref(),
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
const COLUMNS: &str = "case,variant,run,seed,flow,protocol,throughput_mbps,goodput_mbps,\
loss_percent,delay_ms,jitter_ms,packets_sent,packets_delivered,jain,jain_goodput,\
utilisation_percent,event_hash";

/// The axes of all runs: cases have axes of their own.
fn axes(results: &Results) -> Vec<&str> {
    let mut axes: Vec<&str> = Vec::new();
    for (axis, _) in results.runs.iter().flat_map(|(task, _)| &task.point) {
        if !axes.contains(&axis.as_str()) {
            axes.push(axis);
        }
    }
    axes
}

/// One line for each flow of each run; a value that does not exist is an empty field, and so is an
/// axis that a case does not have.
pub fn csv(results: &Results) -> String {
    let mut out = String::new();
    let axes = axes(results);
    axes.iter().for_each(|axis| out.push_str(&format!("{axis},")));
    let _ = writeln!(out, "{COLUMNS}");
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    for (task, record) in &results.runs {
        let label = |axis: &&str| task.point.iter().find(|(a, _)| a == axis).map(|(_, l)| l);
        let point: String = axes
            .iter()
            .map(|axis| format!("{},", label(axis).map_or("", String::as_str)))
            .collect();
        let case = task.case.as_deref().unwrap_or_default();
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
                "{point}{case},{variant},{},{},{},{},{},{},{},{},{},{},{}",
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
