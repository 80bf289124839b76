//! Compares the rates of flows with their rates among flows of their own kind, or alone.

use std::collections::BTreeMap;

use udccp_metrics::{
    FlowNru, Measured, SystemNru, convergence_time, harm_more_is_better, mean, settling_time,
    usage_of_mean, weight,
};
use udccp_scenario::{FlowRecord, Record};

use crate::schema::{Metric, Rates};

/// The expected rate of each protocol: its mean over the flows and runs of another case. The
/// weights in equation (14) of "Revisiting inter-flow fairness" are the inverse of these.
#[derive(Clone, Debug)]
pub struct Expected {
    rates: Rates,
    mbps: BTreeMap<String, Measured>,
}

/// From when, and from what usage on, flows count as converged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convergence {
    /// The epoch `t_e` in seconds from the start of the run.
    pub epoch_s: f64,
    /// The threshold `U_c` in decibels.
    pub threshold_db: f64,
}

impl Expected {
    /// The expected rates from the runs of the other case at one point: `times` their mean rates.
    pub fn of<'a>(runs: impl Iterator<Item = &'a Record>, rates: Rates, times: f64) -> Self {
        let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for flow in runs.flat_map(|r| &r.flows) {
            let rate = mean_rate(flow, rates);
            found.entry(flow.protocol.clone()).or_default().extend(rate);
        }
        let expected = |values: &[f64]| mean(values).map(|mbps| times * mbps);
        let mbps = found.into_iter().map(|(protocol, found)| (protocol, expected(&found)));
        Self { rates, mbps: mbps.collect() }
    }

    /// The expected rate of a protocol in Mbit/s.
    fn mbps(&self, protocol: &str) -> Result<f64, String> {
        let found = self.mbps.get(protocol).copied();
        let found = found.ok_or_else(|| format!("no run defines the expected rate of {protocol}"));
        found?.map_err(|why| format!("{protocol} with its own kind: {why}"))
    }

    fn weight(&self, flow: &FlowRecord) -> Result<f64, String> {
        weight(self.mbps(&flow.protocol)?).map_err(|why| format!("{}: {why}", flow.name))
    }

    /// `U_n(t)` of a flow over the measured intervals.
    fn usage(&self, record: &Record, flow: &FlowRecord) -> Result<FlowNru, String> {
        let inside = measured(record, flow);
        let rates: Vec<f64> = inside.iter().map(|i| series(flow, self.rates)[*i]).collect();
        let every_s = match flow.series.t_s.as_slice() {
            [first, second, ..] => second - first,
            _ => record.measured_s[1] - record.measured_s[0],
        };
        let least = flow.packet_bytes as f64 * 8.0 / 1e6 / every_s;
        FlowNru::new(&rates, self.weight(flow)?, least)
            .map_err(|why| format!("{}: {why}", flow.name))
    }

    fn usages(&self, record: &Record) -> Result<Vec<FlowNru>, String> {
        record.flows.iter().map(|f| self.usage(record, f)).collect()
    }

    fn of_mean(&self, flow: &FlowRecord) -> Result<f64, String> {
        let rate = mean_rate(flow, self.rates).ok_or("no mean rate")?;
        usage_of_mean(rate, self.weight(flow)?).map_err(|why| format!("{}: {why}", flow.name))
    }

    /// The value in one run of a metric that needs weights, or why there is none.
    ///
    /// # Errors
    /// The reason in words: there is no self-run of a protocol, no flow has its fair share, or the
    /// event never happens.
    pub fn value(
        &self,
        record: &Record,
        metric: Metric,
        flow: Option<&str>,
        convergence: Convergence,
    ) -> Result<f64, String> {
        if let Some(name) = flow {
            let flow = record.flow(name).ok_or_else(|| format!("there is no flow {name}"))?;
            return self.flow_value(record, metric, flow);
        }
        if matches!(metric, Metric::Convergence | Metric::Settling) {
            return self.time(record, metric, convergence);
        }
        let tuple = match metric {
            Metric::NruFairOfMeans | Metric::NruUnfairOfMeans | Metric::NruVariationOfMeans => {
                let usages: Result<Vec<f64>, String> =
                    record.flows.iter().map(|f| self.of_mean(f)).collect();
                SystemNru::of_means(&usages?)
            }
            _ => SystemNru::new(&self.usages(record)?),
        };
        let value = match metric {
            Metric::NruFair | Metric::NruFairOfMeans => tuple.fair,
            Metric::NruUnfair | Metric::NruUnfairOfMeans => tuple.unfair,
            Metric::NruStability => tuple.stability,
            Metric::NruVariationOfMeans => tuple.variation,
            _ => tuple.mean,
        };
        value.map_err(|why| why.to_string())
    }

    fn flow_value(
        &self,
        record: &Record,
        metric: Metric,
        flow: &FlowRecord,
    ) -> Result<f64, String> {
        let value = match metric {
            Metric::NruOfMean => return self.of_mean(flow),
            Metric::Harm => {
                let rate = mean_rate(flow, self.rates).ok_or("no mean rate")?;
                harm_more_is_better(self.mbps(&flow.protocol)?, rate)
            }
            _ => self.usage(record, flow)?.mean(),
        };
        value.map_err(|why| why.to_string())
    }

    fn time(&self, record: &Record, metric: Metric, at: Convergence) -> Result<f64, String> {
        let usages = self.usages(record)?;
        let Some(first) = record.flows.first() else { return Err("no flows".to_owned()) };
        let times: Vec<f64> =
            measured(record, first).iter().map(|i| first.series.t_s[*i]).collect();
        let flows: Vec<&[f64]> = usages.iter().map(|u| u.values.as_slice()).collect();
        let time = match metric {
            Metric::Settling => settling_time(&flows, &times, at.epoch_s, at.threshold_db),
            _ => convergence_time(&flows, &times, at.epoch_s, at.threshold_db),
        };
        time.map_err(|why| why.to_string())
    }
}

fn mean_rate(flow: &FlowRecord, rates: Rates) -> Option<f64> {
    match rates {
        Rates::Throughput => flow.throughput_mbps,
        Rates::Goodput => flow.goodput_mbps,
    }
}

fn series(flow: &FlowRecord, rates: Rates) -> &[f64] {
    match rates {
        Rates::Throughput => &flow.series.throughput_mbps,
        Rates::Goodput => &flow.series.goodput_mbps,
    }
}

/// The intervals of the measured part of the run.
fn measured(record: &Record, flow: &FlowRecord) -> Vec<usize> {
    let [from, to] = record.measured_s;
    // Ends are sums of interval lengths; a nanosecond is more than their rounding error.
    let inside = |t: f64| t > from + 1e-9 && t <= to + 1e-9;
    let times = flow.series.t_s.iter().enumerate();
    times.filter(|(_, t)| inside(**t)).map(|(i, _)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use udccp_scenario::SeriesRecord;

    fn flow(name: &str, protocol: &str, rates: &[f64]) -> FlowRecord {
        FlowRecord {
            name: name.to_owned(),
            protocol: protocol.to_owned(),
            packet_bytes: 1500,
            goodput_mbps: mean(rates).ok(),
            series: SeriesRecord {
                t_s: (1..=rates.len()).map(|t| t as f64).collect(),
                goodput_mbps: rates.to_vec(),
                ..SeriesRecord::default()
            },
            ..FlowRecord::default()
        }
    }

    fn run(flows: Vec<FlowRecord>) -> Record {
        let end = flows[0].series.t_s.len() as f64;
        Record { flows, measured_s: [0.0, end], ..Record::default() }
    }

    const AT: Convergence = Convergence { epoch_s: 0.0, threshold_db: -0.46 };

    /// Self-runs: the old protocol gets 40 and 60 in two runs, the new one 80.
    fn expected() -> Expected {
        expected_times(1.0)
    }

    fn expected_times(times: f64) -> Expected {
        let runs = [
            run(vec![flow("a", "old", &[40.0]), flow("b", "old", &[40.0])]),
            run(vec![flow("a", "old", &[60.0]), flow("b", "old", &[60.0])]),
            run(vec![flow("a", "new", &[80.0])]),
        ];
        Expected::of(runs.iter(), Rates::Goodput, times)
    }

    #[test]
    fn weights_are_means_over_the_flows_and_runs_of_a_protocol() {
        let pair = run(vec![flow("first", "old", &[25.0]), flow("second", "new", &[80.0])]);
        let value = |metric, flow| expected().value(&pair, metric, flow, AT);
        assert!((value(Metric::Nru, Some("first")).unwrap() + 3.0103).abs() < 1e-4);
        assert_eq!(value(Metric::NruFair, None), Ok(0.0));
        assert!((value(Metric::NruUnfair, None).unwrap() + 3.0103).abs() < 1e-4);
        assert_eq!(value(Metric::Harm, Some("first")), Ok(0.5));
        assert_eq!(value(Metric::NruOfMean, Some("second")), Ok(0.0));
    }

    #[test]
    fn eight_times_the_weights_are_nine_decibels() {
        let pair = run(vec![flow("first", "old", &[50.0]), flow("second", "new", &[80.0])]);
        let value = |metric| expected_times(8.0).value(&pair, metric, None, AT);
        assert!((value(Metric::NruUnfair).unwrap() + 9.0309).abs() < 1e-4);
        assert!(value(Metric::NruFair).is_err(), "neither has eight times its share");
    }

    #[test]
    fn nru_varies_from_flow_to_flow() {
        let pair = run(vec![flow("first", "old", &[100.0]), flow("second", "new", &[40.0])]);
        let value = |metric| expected().value(&pair, metric, None, AT);
        let why = value(Metric::NruVariationOfMeans).unwrap_err();
        assert!(why.contains("zero"), "3 and -3 dB: {why}");
        let pair = run(vec![flow("first", "old", &[50.0]), flow("second", "new", &[40.0])]);
        let variation = expected().value(&pair, Metric::NruVariationOfMeans, None, AT).unwrap();
        assert!((variation - 2.0_f64.sqrt()).abs() < 1e-9, "0 and -3 dB: {variation}");
    }

    #[test]
    fn convergence_asks_for_all_flows_at_once() {
        let pair = run(vec![
            flow("first", "old", &[50.0, 50.0, 20.0, 50.0]),
            flow("second", "new", &[10.0, 70.0, 80.0, 75.0]),
        ]);
        let value = |metric| expected().value(&pair, metric, None, AT);
        assert_eq!(value(Metric::Convergence), Ok(4.0));
        assert_eq!(value(Metric::Settling), Ok(4.0));
        let soon = Convergence { epoch_s: 0.0, threshold_db: -1.0 };
        assert_eq!(expected().value(&pair, Metric::Convergence, None, soon), Ok(2.0));
    }

    #[test]
    fn a_missing_self_run_is_named() {
        let pair = run(vec![flow("first", "other", &[25.0])]);
        let why = expected().value(&pair, Metric::NruFair, None, AT).unwrap_err();
        assert_eq!(why, "no run defines the expected rate of other");
    }
}
