//! The guest's init.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sys::prctl;
use nix::sys::reboot::{RebootMode, reboot};
use udccp_testbed::{Error as TestbedError, Observations, Plan, RunContext, SCHEMA};

use crate::answer::{ANSWER, Answer, EVENTS, PLAN};

/// Mount point of the host's folder in the guest.
const SHARED: &str = "/run/udccp";

/// Runs as the init of a guest: mounts the usual file systems and `folder` (a path of the host),
/// runs the job with the latter's mount point, and powers the machine off. Does not return.
pub fn in_guest(folder: &str, job: impl FnOnce(Result<&Path, TestbedError>)) {
    job(file_systems(folder).map(|()| Path::new(SHARED)));
    nix::unistd::sync();
    let Err(error) = reboot(RebootMode::RB_POWER_OFF);
    report_line(&format!("cannot power off: {error}"));
}

/// Runs the plan in `folder` (a path of the host) and writes the answer there, as a guest's init.
pub fn init(folder: &str) {
    in_guest(folder, |shared| {
        let answer = match shared.and_then(run) {
            Ok(observations) => Answer::Done(Box::new(observations)),
            Err(error) => {
                let hint = error.hint().map(str::to_owned);
                Answer::Failed { what: error.to_string(), hint }
            }
        };
        if let Answer::Failed { what, .. } = &answer {
            report_line(what);
        }
        let text = serde_json::to_vec(&answer).unwrap_or_default();
        if let Err(error) = fs::write(Path::new(SHARED).join(ANSWER), text) {
            report_line(&format!("cannot write the answer: {error}"));
        }
    });
}

/// Prints a line on the console.
fn report_line(what: &str) {
    let _ = writeln!(std::io::stderr(), "udccp: {what}");
}

/// Mounts the usual file systems and the host's folder.
fn file_systems(folder: &str) -> Result<(), TestbedError> {
    let put = |source: &str, at: &str, kind: &str, data: Option<&str>| {
        mount(Some(source), at, Some(kind), MsFlags::empty(), data)
            .map_err(|e| TestbedError::Kernel(format!("cannot mount {kind} at {at}: {e}")))
    };
    put("proc", "/proc", "proc", None)?;
    put("sys", "/sys", "sysfs", None)?;
    put("dev", "/dev", "devtmpfs", None)?;
    put("run", "/run", "tmpfs", None)?;
    fs::create_dir_all(SHARED)?;
    put("none", SHARED, "hostfs", Some(folder))
}

fn run(shared: &Path) -> Result<Observations, TestbedError> {
    let text = fs::read(shared.join(PLAN))?;
    let plan: Plan = serde_json::from_slice(&text)
        .map_err(|e| TestbedError::Kernel(format!("cannot read the plan: {e}")))?;
    if plan.schema != SCHEMA {
        return Err(TestbedError::Kernel(format!("a plan of version {}", plan.schema)));
    }
    let mut events = File::create(shared.join(EVENTS))?;
    let program = Path::new("/proc/self/exe");
    // All hosts share one kernel. A timer with slack may expire together with another one, usually
    // that of the bottleneck; a program would then wake up exactly when a packet leaves the
    // bottleneck.
    prctl::set_timerslack(1).map_err(std::io::Error::from)?;
    let context = RunContext {
        program,
        owns_kernel: true,
        events: &mut events,
        report_line: &mut report_line,
    };
    udccp_testbed::run(&plan, context)
}
