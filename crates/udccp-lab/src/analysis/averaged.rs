//! The rates of flows, averaged over the runs of a point: what a study's table of means has.

use udccp_metrics::mean;
use udccp_scenario::{FlowRecord, Record};

/// The first run with each flow's rates replaced by their means over all runs; `None` without
/// runs. Only the mean rates are of all runs.
pub(super) fn averaged<'a>(runs: impl Iterator<Item = &'a Record>) -> Option<Record> {
    let runs: Vec<&Record> = runs.collect();
    let mut all = (*runs.first()?).clone();
    for flow in &mut all.flows {
        let of = |rate: fn(&FlowRecord) -> Option<f64>| {
            let found = runs.iter().filter_map(|run| rate(run.flow(&flow.name)?));
            mean(&found.collect::<Vec<_>>()).ok()
        };
        let (goodput, throughput) = (of(|f| f.goodput_mbps), of(|f| f.throughput_mbps));
        (flow.goodput_mbps, flow.throughput_mbps) = (goodput, throughput);
    }
    Some(all)
}
