//! Runs one scenario with one seed in the guest.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use udccp_scenario::schema::Scenario;
use udccp_scenario::{Record, TimingRecord, record_of};
use udccp_testbed::{Built, DccpStack, Plan, PlanOptions};

use crate::boot::Guest;
use crate::error::LinuxError;
use crate::kernel::{Kernel, missing_tools};

/// Names as backends: with the kernel's DCCP, and with ours in that kernel.
pub const IDS: [&str; 2] = ["linux", "linux-udccp"];
/// Initcalls to skip if a userspace DCCP needs the protocol for itself.
const KERNEL_DCCP: &[&str] = &["dccp_init", "dccp_v4_init", "dccp_v6_init"];
/// Wall-clock time limit for a guest to boot and set up.
const BOOT: Duration = Duration::from_secs(60);
/// Most wall-clock seconds per second of the scenario.
const SLOWEST: u64 = 30;

/// The backend's name for the implementation of the DCCP flows.
pub const fn id(dccp: DccpStack) -> &'static str {
    match dccp {
        DccpStack::Linux => IDS[0],
        DccpStack::OursUdp | DccpStack::OursRaw => IDS[1],
    }
}

/// The backend.
#[derive(Clone, Debug)]
pub struct Linux {
    /// The guest's kernel.
    pub kernel: Kernel,
    /// The program `udccp`, which also runs in the guest.
    pub program: PathBuf,
    /// Which implementation runs the DCCP flows.
    pub dccp: DccpStack,
    /// Wall-clock time limit for a guest; if absent, one that is long enough.
    pub deadline: Option<Duration>,
    /// Additional arguments for the kernel's command line (`tcp_cubic.hystart=0`).
    pub arguments: Vec<String>,
    /// Folder to which plan, answer, recorded packets and console of the guest are copied.
    pub keep: Option<PathBuf>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct GuestRun {
    /// The results.
    pub record: Record,
    /// Why the run is invalid, if it is: the guest's kernel was short of memory, or lost packets
    /// that the network did not lose.
    pub invalid: Option<String>,
    /// Where the guest differs from the scenario, each as a clause.
    pub departures: Vec<String>,
    /// Wall-clock time on the host, from boot to end.
    pub wall: Duration,
    /// Release of the guest's kernel.
    pub release: String,
}

impl Linux {
    /// Runs a scenario. `name` is the scenario's name in the record.
    ///
    /// The result depends only on scenario, seed, kernel and program, except for `cost.cpu_s`.
    ///
    /// # Errors
    /// A tool is missing, the scenario needs something that Linux lacks, or the guest fails or
    /// hangs.
    pub fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<GuestRun, LinuxError> {
        let built = build_plan(scenario, seed, self.dccp)?;
        need_tools()?;
        let seconds = scenario.time.duration.as_nanos() / 1_000_000_000 + 1;
        let guest = Guest {
            kernel: self.kernel.clone(),
            program: self.program.clone(),
            memory_mib: built.memory_mib,
            seed,
            without: if self.dccp == DccpStack::Linux { &[] } else { KERNEL_DCCP },
            deadline: self.deadline.unwrap_or(BOOT + Duration::from_secs(SLOWEST * seconds)),
            more: self.arguments.clone(),
            keep: self.keep.clone(),
        };
        let ended = guest.run_plan(&built.plan)?;
        let events = ended.folder.path().join(crate::answer::EVENTS);
        let file = File::open(&events).map_err(LinuxError::file(&events))?;
        let result = udccp_testbed::result(scenario, seed, &built.links, &ended.observations, file)
            .map_err(|error| LinuxError::Guest {
                what: format!("left no complete record: {error}"),
                console: String::new(),
            })?;
        let record = record_of(name, scenario, seed, result, ended.wall.as_secs_f64());
        let backend = id(self.dccp).to_owned();
        let invalid = ended.observations.invalid_reason();
        // Virtual time is always exact, so a valid run has no timing record.
        let timing = invalid.clone().map(|why| TimingRecord {
            packets: record.cost.packets,
            valid: false,
            why: Some(why),
            ..TimingRecord::default()
        });
        let record = Record { backend, timing, ..record };
        let mut departures = built.departures;
        let warnings = ended.observations.agents.iter().flat_map(|agent| {
            agent.warnings.iter().map(|warning| format!("flow \"{}\": {warning}", agent.flow))
        });
        departures.extend(warnings);
        Ok(GuestRun {
            record,
            invalid,
            departures,
            wall: ended.wall,
            release: ended.observations.release,
        })
    }
}

/// Checks that Linux supports everything that a scenario needs, without using this machine.
///
/// # Errors
/// Everything that is missing.
pub fn check_supported(scenario: &Scenario, seed: u64, dccp: DccpStack) -> Result<(), LinuxError> {
    build_plan(scenario, seed, dccp).map(drop)
}

fn build_plan(scenario: &Scenario, seed: u64, dccp: DccpStack) -> Result<Built, LinuxError> {
    let options = PlanOptions { dccp, real_time: false };
    udccp_testbed::plan(scenario, seed, options).map_err(LinuxError::Scenario)
}

fn need_tools() -> Result<(), LinuxError> {
    let missing = missing_tools(false);
    let Some((name, package)) = missing.first() else { return Ok(()) };
    Err(LinuxError::Missing {
        what: format!("the guest needs the program `{name}` of this machine"),
        hint: format!("apt-get install {package}"),
    })
}

/// Boots a kernel and checks that it has what scenarios need.
///
/// # Errors
/// It does not boot, or lacks something.
pub fn check_kernel(kernel: &Kernel, program: PathBuf) -> Result<String, LinuxError> {
    need_tools()?;
    let guest = Guest {
        kernel: kernel.clone(),
        program,
        memory_mib: 160,
        seed: 1,
        without: &[],
        deadline: BOOT,
        more: Vec::new(),
        keep: None,
    };
    let ended = guest.run_plan(&Plan::trial())?;
    let observations = ended.observations;
    let lacks =
        |what: &str| LinuxError::Guest { what: format!("has no {what}"), console: String::new() };
    if !observations.has_dccp {
        return Err(lacks("DCCP"));
    }
    for needed in ["reno", "bic", "cubic", "vegas", "westwood", "bbr"] {
        if !observations.congestion.split_whitespace().any(|name| name == needed) {
            return Err(lacks(&format!("TCP {needed}")));
        }
    }
    Ok(observations.release)
}
