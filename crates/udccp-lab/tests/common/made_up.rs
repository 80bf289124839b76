//! Made-up results of runs.

use udccp_lab::analysis::Results;
use udccp_lab::schema::Experiment;
use udccp_lab::{FlowRecord, PlanOptions, Record, SeriesRecord, SystemRecord, Task, plan};

/// A flow whose rate changes halfway through the measured interval from 3 to 7 s.
pub(crate) fn flow(name: &str, from: f64, to: f64) -> FlowRecord {
    let rates = vec![from, from, to, to];
    let mean = (from + to) / 2.0;
    FlowRecord {
        name: name.to_owned(),
        protocol: "dccp/ccid2".to_owned(),
        throughput_mbps: Some(mean),
        goodput_mbps: Some(mean),
        series: SeriesRecord {
            t_s: vec![4.0, 5.0, 6.0, 7.0],
            throughput_mbps: rates.clone(),
            goodput_mbps: rates,
            ..SeriesRecord::default()
        },
        ..FlowRecord::default()
    }
}

pub(crate) fn record(flows: Vec<FlowRecord>) -> Record {
    let system = SystemRecord { utilisation_percent: Some(99.5), ..SystemRecord::default() };
    Record { measured_s: [3.0, 7.0], flows, system, ..Record::default() }
}

pub(crate) fn results(
    experiment: &Experiment,
    backend: &str,
    of: impl Fn(&Task) -> Record,
) -> Results {
    let tasks = plan(experiment, PlanOptions::default()).expect("a plan");
    let planned = tasks.len();
    let runs = tasks.into_iter().map(|task| {
        let record = of(&task);
        (task, record)
    });
    let backend = backend.to_owned();
    Results { runs: runs.collect(), planned, backend, ..Results::default() }
}

pub(crate) fn label<'t>(task: &'t Task, axis: &str) -> &'t str {
    task.point.iter().find(|(a, _)| a == axis).map(|(_, l)| l.as_str()).expect("an axis")
}

/// A run of two flows with this fairness index.
pub(crate) fn fairness(index: f64) -> Record {
    let mut record = record(vec![flow("first", 50.0, 50.0), flow("second", 50.0, 50.0)]);
    record.system.jain = Some(index);
    record
}
