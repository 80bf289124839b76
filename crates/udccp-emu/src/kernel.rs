//! Uses this machine's kernel as the path instead of the emulator's links, for comparison: `tbf`,
//! `netem` and queues between namespaces, as in the studies' testbeds.

use std::fs;
use std::thread;

use udccp_agent::OurTransport;
use udccp_scenario::schema::Scenario;
use udccp_scenario::{Record, TimingRecord, record_of};
use udccp_testbed::{
    Built, DccpStack, Error as TestbedError, Observations, PlanOptions, RunContext,
};

use crate::error::EmuError;
use crate::options::{EmuOptions, Emulation};
use crate::sys;
use crate::timing::RATE_ERROR_PERCENT;

/// A run only shows how fast this machine is if one program used more than this of a processor, or
/// all programs together more than this of all processors.
const BUSY_PERCENT: f64 = 80.0;

/// Runs a scenario over the kernel's own queues.
pub(crate) fn emulate(
    name: &str,
    scenario: &Scenario,
    seed: u64,
    options: &EmuOptions<'_>,
) -> Result<Emulation, EmuError> {
    let dccp = match options.dccp {
        OurTransport::UdpEncap => DccpStack::OursUdp,
        OurTransport::Raw => DccpStack::OursRaw,
    };
    let plan_options = PlanOptions { dccp, real_time: true };
    let built = udccp_testbed::plan(scenario, seed, plan_options).map_err(EmuError::NotForTc)?;
    let begun = cpu_time::ProcessTime::now();
    let (observations, packets) = in_a_thread(|| observe(&built, options))?;
    let result = udccp_testbed::result(scenario, seed, &built.links, &observations, &packets[..])?;
    let timing = timing(&observations, &built, (packets.len() / 32) as u64);
    let invalid = timing.why.clone();
    let cpu_s = begun.elapsed().as_secs_f64();
    let backend = options.path.backend_id().to_owned();
    let record = record_of(name, scenario, seed, result, cpu_s);
    let record = Record { timing: Some(timing), backend, ..record };
    let mut notes = built.departures;
    let warnings = observations.agents.iter().flat_map(|agent| {
        agent.warnings.iter().map(|warning| format!("flow \"{}\": {warning}", agent.flow))
    });
    notes.extend(warnings);
    notes.dedup();
    Ok(Emulation { record, invalid, notes })
}

/// Runs a job that moves between namespaces in a temporary thread.
fn in_a_thread<T: Send>(job: impl FnOnce() -> Result<T, EmuError> + Send) -> Result<T, EmuError> {
    let gone = || EmuError::System {
        what: "the thread of the run",
        error: std::io::Error::other("it panicked"),
    };
    thread::scope(|scope| scope.spawn(job).join()).map_err(|_| gone())?
}

fn observe(built: &Built, options: &EmuOptions<'_>) -> Result<(Observations, Vec<u8>), EmuError> {
    udccp_testbed::enter_empty_namespace()?;
    let lacks = udccp_testbed::missing_features(&built.plan)?;
    if !lacks.is_empty() {
        return Err(EmuError::KernelLacks { release: release(), lacks });
    }
    let mut packets = Vec::new();
    let mut report_line = |_: &str| ();
    // As over the emulator's own links: a host that waits for other programs of this machine is not
    // realistic.
    let _ = sys::run_first(1);
    let context = RunContext {
        program: &options.program,
        owns_kernel: false,
        events: &mut packets,
        report_line: &mut report_line,
    };
    let observations = udccp_testbed::run(&built.plan, context)?;
    Ok((observations, packets))
}

/// Timing record. When the kernel forwards packets is not observed, but its links' rates are.
fn timing(observations: &Observations, built: &Built, packets: u64) -> TimingRecord {
    let error = observations.rate_error_percent(&built.links);
    let too_slow = error.filter(|error| *error > RATE_ERROR_PERCENT).map(|error| {
        format!("the rate error is {error:.2} % (at most {RATE_ERROR_PERCENT} % is allowed)")
    });
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let why = too_slow
        .or_else(|| observations.invalid_reason())
        .or_else(|| too_busy(&observations.busy_percent, processors));
    TimingRecord {
        rate_error_percent: error,
        packets,
        valid: why.is_none(),
        why,
        ..TimingRecord::default()
    }
}

/// Programs that use all their processor time would send more on a faster machine; the kernel's
/// forwarding also counts as their time.
fn too_busy(agents: &[f64], processors: usize) -> Option<String> {
    let most = agents.iter().copied().fold(0.0, f64::max);
    let all = agents.iter().sum::<f64>() / processors as f64;
    let busy = most.max(all);
    (busy > BUSY_PERCENT).then(|| {
        format!(
            "the programs used {busy:.0} % of a processor (at most {BUSY_PERCENT} % is allowed)"
        )
    })
}

pub(crate) fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

impl From<TestbedError> for EmuError {
    fn from(error: TestbedError) -> Self {
        Self::Testbed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_with_saturated_programs_are_invalid() {
        assert_eq!(too_busy(&[3.0, 79.0], 2), None);
        assert!(too_busy(&[3.0, 97.0], 2).unwrap().contains("used 97 % of a processor"));
        assert!(too_busy(&[70.0; 3], 2).unwrap().contains("used 105 % of a processor"));
        assert_eq!(too_busy(&[70.0; 3], 4), None);
    }
}
