//! Runs a scenario with a seed in simulation.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use udccp_base::Seed;
use udccp_cc::Algorithm;
use udccp_sim::{Capture, CaptureFile, RunConfig};

use crate::diagnostic::suggestion;
use crate::measure::record_of;
use crate::network::{SimulatedHosts, network};
use crate::record::Record;
use crate::run_error::RunError;
use crate::schema::Scenario;

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions<'a> {
    /// Check the simulator's invariants at every step (slower).
    pub check: bool,
    /// Write a capture of every observation point to this folder; `None`: no captures.
    pub pcap: Option<&'a Path>,
    /// Capture at most this many bytes of each packet; `None`: all.
    pub snaplen: Option<u32>,
    /// Set by another thread to end the run without a record.
    pub stop: Option<&'a AtomicBool>,
    /// Window algorithms by name of flow, which replace those of its protocol (a TCP or CCID 2).
    /// The record depends on them too.
    pub algorithms: &'a [(String, Algorithm)],
}

/// Runs a scenario; `name` is its name in the record.
///
/// The result depends only on scenario and seed, except for `cost.cpu_s`.
///
/// # Errors
/// Settings of a flow contradict each other, a folder cannot be written, or the simulator has a
/// bug.
pub fn run(
    name: &str,
    scenario: &Scenario,
    seed: u64,
    options: RunOptions<'_>,
) -> Result<Record, RunError> {
    check_algorithms(scenario, options.algorithms)?;
    let mut hosts = SimulatedHosts::new(options.algorithms);
    let network = network(scenario, Seed(seed), &mut hosts)?;
    let config = run_config(scenario, seed, options)?;
    let begun = cpu_time::ThreadTime::now();
    let result = network.run(config)?;
    let cpu_s = begun.elapsed().as_secs_f64();
    Ok(record_of(name, scenario, seed, result, cpu_s))
}

/// A misspelt name would leave the flow's own algorithm in use without notice.
fn check_algorithms(scenario: &Scenario, own: &[(String, Algorithm)]) -> Result<(), RunError> {
    let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    match own.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => Err(RunError::Flow {
            flow: name.clone(),
            why: format!("there is no such flow; {}", suggestion(name, "flows", &names)),
        }),
    }
}

/// The configuration with which any backend runs the network of a scenario.
///
/// # Errors
/// The folder for captures cannot be created.
pub fn run_config<'a>(
    scenario: &Scenario,
    seed: u64,
    options: RunOptions<'a>,
) -> Result<RunConfig<'a>, RunError> {
    let measure = &scenario.time.measure;
    Ok(RunConfig {
        duration: scenario.time.duration,
        measure: measure.from..measure.to,
        interval: measure.every,
        seed: Seed(seed),
        check: options.check,
        capture: options.pcap.map(|folder| capture(folder, options.snaplen)).transpose()?,
        stop: options.stop,
    })
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
