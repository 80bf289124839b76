//! One scenario and one seed, run in simulation.

use std::fs::{self, File};
use std::path::Path;

use udccp_base::{Duration, Seed};
use udccp_metrics::{Measured, Undefined, jain, jain_over_time, loss_percent, throughput_mbps};
use udccp_sim::{Capture, CaptureFile, FlowResult, FlowSample, RunConfig, RunResult, SimError};

use crate::network::network;
use crate::record::{CostRecord, FlowRecord, QueueDelayRecord, Record, SeriesRecord, SystemRecord};
use crate::schema::{Flow, SCHEMA, Scenario};
use crate::version::VERSION;

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A flow's settings contradict each other.
    #[error("flow \"{flow}\": {why}")]
    Flow {
        /// The flow.
        flow: String,
        /// What is wrong.
        why: String,
    },
    /// The simulator stopped.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// Captures cannot be written there.
    #[error("cannot write captures to {folder}: {error}")]
    Folder {
        /// The folder.
        folder: String,
        /// Why not.
        #[source]
        error: std::io::Error,
    },
}

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions<'a> {
    /// Check the simulator's invariants at every step (slower).
    pub check: bool,
    /// Write a capture of every observation point to this folder.
    pub pcap: Option<&'a Path>,
    /// Keep at most this many bytes of each captured packet.
    pub snaplen: Option<u32>,
}

/// Runs a scenario. `name` is what the record calls it.
///
/// A pure function of scenario and seed, but for `cost.cpu_s`.
///
/// # Errors
/// Flow settings that contradict each other, a folder that cannot be written, a defect of the
/// simulator.
pub fn run(
    name: &str,
    scenario: &Scenario,
    seed: u64,
    options: RunOptions<'_>,
) -> Result<Record, RunError> {
    let network = network(scenario, Seed(seed))?;
    let measure = &scenario.time.measure;
    let config = RunConfig {
        duration: scenario.time.duration,
        measure: measure.from..measure.to,
        interval: measure.every,
        seed: Seed(seed),
        check: options.check,
        capture: options.pcap.map(|folder| capture(folder, options.snaplen)).transpose()?,
    };
    let begun = cpu_time::ThreadTime::now();
    let result = network.run(config)?;
    let cpu_s = begun.elapsed().as_secs_f64();
    Ok(record(name, scenario, seed, &result, cpu_s))
}

fn capture(folder: &Path, snaplen: Option<u32>) -> Result<Capture<'_>, RunError> {
    let cannot = |error| RunError::Folder { folder: folder.display().to_string(), error };
    fs::create_dir_all(folder).map_err(cannot)?;
    let capture = Capture::new(move |point| {
        let file = File::create(folder.join(format!("{point}.pcap")))?;
        Ok(Some(Box::new(file) as CaptureFile))
    });
    Ok(match snaplen {
        Some(bytes) => capture.with_snaplen(bytes),
        None => capture,
    })
}

fn record(name: &str, scenario: &Scenario, seed: u64, result: &RunResult, cpu_s: f64) -> Record {
    let measure = &scenario.time.measure;
    let mut record = Record {
        schema: SCHEMA,
        scenario: name.to_owned(),
        seed,
        version: VERSION.to_owned(),
        measured_s: [measure.from.as_secs_f64(), measure.to.as_secs_f64()],
        event_hash: format!("{:016x}", result.hash),
        ..Record::default()
    };
    for (flow, found) in scenario.flows.iter().zip(&result.flows) {
        let flow = flow_record(&mut record, flow, found);
        record.flows.push(flow);
    }
    record.system = system_record(&mut record, scenario, result);
    let (events, packets) = (result.cost.events, result.cost.packets);
    record.cost = CostRecord { cpu_s, events, packets };
    record
}

fn flow_record(record: &mut Record, flow: &Flow, found: &FlowResult) -> FlowRecord {
    let window = &found.measured;
    let span_s = window.span.as_secs_f64();
    let mut keep = |key: &str, value| record.keep(format!("flows.{}.{key}", found.name), value);
    let sent = window.sent.packets;
    FlowRecord {
        name: found.name.clone(),
        protocol: flow.protocol.name.to_owned(),
        start_s: found.start.as_secs_f64(),
        throughput_mbps: keep("throughput_mbps", throughput_mbps(window.delivered.bytes, span_s)),
        goodput_mbps: keep("goodput_mbps", throughput_mbps(window.goodput_bytes, span_s)),
        loss_percent: keep("loss_percent", loss_percent(sent, sent - window.dropped.min(sent))),
        delay_ms: keep("delay_ms", milliseconds(window.delay.mean())),
        jitter_ms: keep("jitter_ms", milliseconds(window.jitter.rfc3550)),
        packets_sent: found.forward.sent.packets,
        packets_delivered: found.forward.delivered.packets,
        goodput_bytes: found.goodput_bytes,
        congestion_events: found.last_probe.congestion_events,
        timeouts: found.last_probe.timeouts,
        retransmits: found.last_probe.retransmits,
        series: SeriesRecord {
            t_s: found.series.iter().map(|s| s.end.as_secs_f64()).collect(),
            throughput_mbps: found.series.iter().map(|s| s.throughput().as_mbps()).collect(),
            goodput_mbps: found.series.iter().map(|s| s.goodput().as_mbps()).collect(),
            cwnd_packets: found.series.iter().map(|s| s.probe.cwnd_packets).collect(),
        },
    }
}

fn milliseconds(value: Option<Duration>) -> Measured {
    value.map(Duration::as_millis_f64).ok_or(Undefined::NoSamples)
}

fn system_record(record: &mut Record, scenario: &Scenario, result: &RunResult) -> SystemRecord {
    let means = |rate: fn(&FlowResult) -> f64| result.flows.iter().map(rate).collect::<Vec<_>>();
    let wire = jain_of_series(scenario, result, |s| s.throughput().as_mbps());
    let payload = jain_of_series(scenario, result, |s| s.goodput().as_mbps());
    let forward = &result.system.forward;
    let quantile = |q| milliseconds(forward.measured.queue_delay.quantile(q));
    let mut keep = |key: &str, value| record.keep(format!("system.{key}"), value);
    SystemRecord {
        jain: keep("jain", wire),
        jain_goodput: keep("jain_goodput", payload),
        jain_of_means: keep("jain_of_means", jain(&means(|f| f.measured.throughput().as_mbps()))),
        utilisation_percent: Some(100.0 * forward.utilisation),
        queue_delay_ms: QueueDelayRecord {
            p50: keep("queue_delay_ms.p50", quantile(0.50)),
            p95: keep("queue_delay_ms.p95", quantile(0.95)),
            p99: keep("queue_delay_ms.p99", quantile(0.99)),
        },
        packets_dropped: forward.whole.dropped_total().packets,
    }
}

/// Mean over the measured intervals of Jain's index of the flows' rates.
fn jain_of_series(
    scenario: &Scenario,
    result: &RunResult,
    rate: impl Fn(&FlowSample) -> f64,
) -> Measured {
    let measure = &scenario.time.measure;
    let inside = |s: &&FlowSample| s.end > measure.from && s.end <= measure.to;
    let series: Vec<Vec<f64>> =
        result.flows.iter().map(|f| f.series.iter().filter(inside).map(&rate).collect()).collect();
    let slices: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
    jain_over_time(&slices).mean()
}
