//! One scenario and one seed in the guest.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use udccp_scenario::schema::Scenario;
use udccp_scenario::{Record, TimingRecord, record_of};
use udccp_testbed::{Built, DccpStack, Plan, PlanOptions};

use crate::boot::Guest;
use crate::error::LinuxError;
use crate::kernel::{Kernel, missing_tools};

/// What of the kernel does not start where a userspace DCCP has the protocol for itself.
const KERNEL_DCCP: &[&str] = &["dccp_init", "dccp_v4_init", "dccp_v6_init"];
/// Wall-clock time for a guest to boot and set up.
const BOOT: Duration = Duration::from_secs(60);
/// Wall-clock seconds that a second of the scenario may take.
const SLOWEST: u64 = 30;

/// The backend.
#[derive(Clone, Debug)]
pub struct Linux {
    /// The guest's kernel.
    pub kernel: Kernel,
    /// The program `udccp`, which plays in the guest too.
    pub program: PathBuf,
    /// Which code plays the DCCP flows.
    pub dccp: DccpStack,
    /// Wall-clock time after which a guest is killed; long enough where absent.
    pub deadline: Option<Duration>,
    /// Further words of the kernel's command line (`tcp_cubic.hystart=0`).
    pub arguments: Vec<String>,
    /// Where plan, answer, recorded packets and console of the guest are copied to.
    pub keep: Option<PathBuf>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct GuestRun {
    /// What was found.
    pub record: Record,
    /// Why it is no measurement, where it is none: the guest's kernel was short of memory, or lost
    /// packets that the network did not.
    pub invalid: Option<String>,
    /// Where the guest differs from what the scenario says; each a clause.
    pub departures: Vec<String>,
    /// How long it took by the host's clock, from boot to end.
    pub wall: Duration,
    /// Release of the guest's kernel.
    pub release: String,
}

impl Linux {
    /// Runs a scenario. `name` is what the record calls it.
    ///
    /// A pure function of scenario, seed, kernel and program, but for `cost.cpu_s`.
    ///
    /// # Errors
    /// A tool is missing, the scenario has what Linux has not, the guest fails or hangs.
    pub fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<GuestRun, LinuxError> {
        let built = built(scenario, seed, self.dccp)?;
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
        let ended = guest.play(&built.plan)?;
        let events = ended.folder.path().join(crate::answer::EVENTS);
        let file = File::open(&events).map_err(LinuxError::file(&events))?;
        let result = udccp_testbed::result(scenario, seed, &built.links, &ended.played, file)
            .map_err(|error| LinuxError::Guest {
                what: format!("left no complete record: {error}"),
                console: String::new(),
            })?;
        let record = record_of(name, scenario, seed, &result, ended.wall.as_secs_f64());
        let backend = crate::backend::id(self.dccp).to_owned();
        let invalid = ended.played.invalid_reason();
        // Virtual time is always kept, so a valid record says nothing of it.
        let timing = invalid.clone().map(|why| TimingRecord {
            packets: record.cost.packets,
            valid: false,
            why: Some(why),
            ..TimingRecord::default()
        });
        let record = Record { backend, timing, ..record };
        let mut departures = built.departures;
        let warnings = ended.played.agents.iter().flat_map(|agent| {
            agent.warnings.iter().map(|warning| format!("flow \"{}\": {warning}", agent.flow))
        });
        departures.extend(warnings);
        Ok(GuestRun {
            record,
            invalid,
            departures,
            wall: ended.wall,
            release: ended.played.release,
        })
    }
}

/// Whether Linux has all that a scenario asks for; needs nothing of this machine.
///
/// # Errors
/// All that it has not.
pub fn fits(scenario: &Scenario, seed: u64, dccp: DccpStack) -> Result<(), LinuxError> {
    built(scenario, seed, dccp).map(drop)
}

fn built(scenario: &Scenario, seed: u64, dccp: DccpStack) -> Result<Built, LinuxError> {
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

/// Boots a kernel and looks whether it has what scenarios need.
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
    let ended = guest.play(&Plan::trial())?;
    let played = ended.played;
    let lacks =
        |what: &str| LinuxError::Guest { what: format!("has no {what}"), console: String::new() };
    if !played.has_dccp {
        return Err(lacks("DCCP"));
    }
    for needed in ["reno", "bic", "cubic", "vegas", "westwood", "bbr"] {
        if !played.congestion.split_whitespace().any(|name| name == needed) {
            return Err(lacks(&format!("TCP {needed}")));
        }
    }
    Ok(played.release)
}
