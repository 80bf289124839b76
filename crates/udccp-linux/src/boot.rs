//! Boots a guest, waits for its end, and cleans up.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpid, getppid};
use tempfile::TempDir;
use udccp_testbed::{Observations, Plan};

use crate::answer::{ANSWER, Answer, EVENTS, PLAN};
use crate::error::LinuxError;
use crate::kernel::{Kernel, last_lines};
use crate::reservation::{self, CpuReservation};

/// Prefix of the folders that guests share with their host; the host's process id follows.
const PREFIX: &str = "udccp-linux-";
/// Wall-clock time at which the guest starts: fixed, so that runs are equal.
const START_NS: u64 = 1_500_000_000_000_000_000;
/// The file with the guest's console output.
const CONSOLE: &str = "console";
/// The folder, as seen by the guest's process on the host.
const HERE: &str = "/proc/self/cwd";
/// Console lines to show in an error.
const CONSOLE_LINES: usize = 15;
/// Prefix of the argument that names the guest's processor, if it has one.
const ON_PROCESSOR: &str = "processor=";
/// Interval at which to check whether the guest has ended.
const LOOK: Duration = Duration::from_millis(5);

/// The configuration of a guest.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) kernel: Kernel,
    /// The program `udccp`, which is also the guest's init.
    pub(crate) program: PathBuf,
    pub(crate) memory_mib: u64,
    /// The seed of all randomness in the kernel.
    pub(crate) seed: u64,
    /// Kernel initcalls to skip.
    pub(crate) without: &'static [&'static str],
    /// Wall-clock time limit, after which it is killed.
    pub(crate) deadline: Duration,
    /// Additional arguments for the kernel's command line.
    pub(crate) more: Vec<String>,
    /// Folder to which plan, answer, packets and console are copied.
    pub(crate) keep: Option<PathBuf>,
}

/// A completed run. Its folder exists as long as this value.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) observations: Observations,
    pub(crate) folder: TempDir,
    /// Processor time of the guest.
    pub(crate) wall: Duration,
}

/// Running guests, for [`stop_all`]: process group and folder.
static RUNNING: Mutex<Vec<(i32, PathBuf)>> = Mutex::new(Vec::new());

/// Kills every guest of this process and removes its folder. To be called when a signal ends the
/// process. If the process is killed instead, its guests die with it, and the next run removes
/// their folders.
pub fn stop_all() {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for (group, folder) in running.drain(..) {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        let _ = fs::remove_dir_all(folder);
    }
}

/// Removes the folders of processes that have ended, and returns them.
pub fn sweep() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return Vec::new() };
    let stale = |entry: &fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse().ok());
        owner.is_some_and(is_gone)
    };
    let stale = entries.flatten().filter(stale).map(|entry| entry.path());
    stale.filter(|folder| fs::remove_dir_all(folder).is_ok()).collect()
}

/// Whether a process has ended; zombies count as ended.
fn is_gone(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    matches!(state, Some('Z' | 'X') | None)
}

/// Executes another program (the guest, or a build tool) that dies with this process's parent. Used
/// by the hidden command `udccp linux-boot`. Returns only on failure.
pub fn boot(mut arguments: Vec<OsString>) -> std::io::Error {
    let word = arguments.first().and_then(|word| word.to_str()?.strip_prefix(ON_PROCESSOR));
    let processor: Option<usize> = word.and_then(|number| number.parse().ok());
    if processor.is_some() {
        arguments.remove(0);
    }
    if arguments.is_empty() {
        return std::io::Error::other("no kernel");
    }
    let parent = getppid();
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGKILL) {
        return error.into();
    }
    if getppid() != parent {
        return std::io::Error::other("the parent is gone");
    }
    // Without address randomisation: the guest's memory layout, and so the size of its tables,
    // depends on the addresses of its process.
    let persona = personality::get().map(|now| now | Persona::ADDR_NO_RANDOMIZE);
    if let Err(error) = persona.and_then(personality::set) {
        return error.into();
    }
    if let Some(processor) = processor {
        // Failure only makes the guest slower.
        let _ = reservation::pin_to(processor);
    }
    let kernel = arguments.remove(0);
    Command::new(kernel).args(arguments).exec()
}

/// A guest with a task other than running a plan: its init is `program` with these arguments. It
/// mounts what it needs, writes its results to the folder, and powers the machine off.
#[derive(Clone, Debug)]
pub struct GuestTask {
    /// The guest's kernel.
    pub kernel: Kernel,
    /// The guest's init.
    pub program: PathBuf,
    /// Its arguments; the path of the folder, as a guest mounts it, is appended.
    pub words: Vec<String>,
    /// The seed of all randomness in the kernel.
    pub seed: u64,
    /// Wall-clock time limit, after which it is killed.
    pub deadline: Duration,
}

impl GuestTask {
    /// Boots a guest in a new folder with these files, and waits for its end. The folder exists as
    /// long as the returned value.
    ///
    /// # Errors
    /// The guest does not end in time, or is killed.
    pub fn run(&self, files: &[(&str, Vec<u8>)]) -> Result<TempDir, LinuxError> {
        let guest = Guest {
            kernel: self.kernel.clone(),
            program: self.program.clone(),
            memory_mib: 512,
            seed: self.seed,
            without: &[],
            deadline: self.deadline,
            more: Vec::new(),
            keep: None,
        };
        let folder = new_folder()?;
        for (name, bytes) in files {
            let file = folder.path().join(name);
            fs::write(&file, bytes).map_err(LinuxError::file(&file))?;
        }
        let (status, _, console) = guest.run(folder.path(), &self.words)?;
        let what = match status {
            None => format!("did not end within {} s and was killed", self.deadline.as_secs()),
            Some(status) => match status.signal() {
                Some(signal) => format!("was killed by signal {signal}"),
                None => return Ok(folder),
            },
        };
        Err(LinuxError::Guest { what, console })
    }
}

fn new_folder() -> Result<TempDir, LinuxError> {
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", getpid()))
        .tempdir()
        .map_err(LinuxError::io("a folder for the guest"))
}

impl Guest {
    /// Boots the guest with a folder and a command for its init, and waits for its end. Returns its
    /// exit status, how long it took, and the end of its console output.
    fn run(
        &self,
        path: &Path,
        words: &[String],
    ) -> Result<(Option<std::process::ExitStatus>, Duration, String), LinuxError> {
        // A path without characters that are special on a kernel's command line.
        let program = path.join("udccp");
        std::os::unix::fs::symlink(&self.program, &program).map_err(LinuxError::file(&program))?;
        let console = path.join(CONSOLE);
        #[expect(clippy::disallowed_methods, reason = "the guest is killed by the host's clock")]
        let begun = Instant::now();
        let reservation = CpuReservation::take();
        let child = self.spawn(path, &console, words, reservation.as_ref())?;
        let status = wait(child, path, begun + self.deadline)?;
        let output = fs::read(&console).unwrap_or_default();
        let console = last_lines(&String::from_utf8_lossy(&output), CONSOLE_LINES);
        Ok((status, begun.elapsed(), console))
    }

    /// Runs a plan.
    pub(crate) fn run_plan(&self, plan: &Plan) -> Result<Ended, LinuxError> {
        let folder = new_folder()?;
        let path = folder.path();
        let file = path.join(PLAN);
        let text = serde_json::to_vec(plan).map_err(std::io::Error::from);
        text.and_then(|text| fs::write(&file, text)).map_err(LinuxError::file(&file))?;
        let (status, wall, console) = self.run(path, &["linux-init".into()])?;
        self.keep(path)?;
        let answer = fs::read(path.join(ANSWER)).ok();
        let answer = answer.and_then(|text| serde_json::from_slice(&text).ok());
        let what = match (answer, status) {
            (Some(Answer::Done(observations)), _) => {
                return Ok(Ended { observations: *observations, folder, wall });
            }
            (Some(Answer::Failed { what, hint }), _) => {
                let console = hint.unwrap_or(console);
                return Err(LinuxError::Guest { what: format!("says: {what}"), console });
            }
            (None, None) => {
                format!("did not end within {} s and was killed", self.deadline.as_secs())
            }
            (None, Some(status)) => match status.signal() {
                Some(signal) => format!("was killed by signal {signal}"),
                None => format!("ended without an answer ({status})"),
            },
        };
        Err(LinuxError::Guest { what, console })
    }

    /// Copies the result files, if requested.
    fn keep(&self, folder: &Path) -> Result<(), LinuxError> {
        let Some(keep) = &self.keep else { return Ok(()) };
        fs::create_dir_all(keep).map_err(LinuxError::file(keep))?;
        for name in [PLAN, ANSWER, EVENTS, CONSOLE] {
            let (from, to) = (folder.join(name), keep.join(name));
            if from.exists() {
                fs::copy(&from, &to).map_err(LinuxError::file(&to))?;
            }
        }
        Ok(())
    }

    fn spawn(
        &self,
        folder: &Path,
        console: &Path,
        words: &[String],
        reservation: Option<&CpuReservation>,
    ) -> Result<Child, LinuxError> {
        let log = File::create(console).map_err(LinuxError::file(console))?;
        let errors = log.try_clone().map_err(LinuxError::file(console))?;
        let mut command = Command::new(&self.program);
        command.arg("linux-boot");
        command.args(
            reservation.map(|reservation| format!("{ON_PROCESSOR}{}", reservation.processor())),
        );
        command.arg(&self.kernel.binary).args(self.arguments(words));
        command.current_dir(folder);
        command.process_group(0).stdin(Stdio::null()).stdout(log).stderr(errors);
        // The guest's programs must not depend on the user's environment.
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", folder);
        if let Some(temporary) = std::env::var_os("TMPDIR") {
            command.env("TMPDIR", temporary);
        }
        command.spawn().map_err(LinuxError::io("cannot start the guest"))
    }

    /// The kernel's command line. It seeds the kernel's random generator, so it must not contain
    /// names that differ between runs: the folder is given as the process's working directory.
    fn arguments(&self, words: &[String]) -> Vec<String> {
        let mut all = vec![
            format!("mem={}M", self.memory_mib),
            "time-travel=inf-cpu".into(),
            format!("time-travel-start={START_NS}"),
            "root=/dev/root".into(),
            "rootfstype=hostfs".into(),
            "rootflags=/".into(),
            "ro".into(),
            "uml_dir=.".into(),
            "umid=guest".into(),
            "con=null".into(),
            "con0=null,fd:1".into(),
            "ssl=null".into(),
            "noreboot".into(),
            "loglevel=4".into(),
            format!("udccp.seed={}", self.seed),
        ];
        if !self.without.is_empty() {
            all.push(format!("initcall_blacklist={}", self.without.join(",")));
        }
        all.extend(self.more.iter().cloned());
        all.extend([format!("init={HERE}/udccp"), "--".into()]);
        all.extend(words.iter().cloned());
        all.push(HERE.into());
        all
    }
}

/// Waits for the guest to end; `None` if it had to be killed.
#[expect(clippy::disallowed_methods, reason = "the guest is killed by the host's clock")]
fn wait(
    mut child: Child,
    folder: &Path,
    deadline: Instant,
) -> Result<Option<std::process::ExitStatus>, LinuxError> {
    let group = i32::try_from(child.id()).unwrap_or(i32::MAX);
    let list = || RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    list().push((group, folder.to_owned()));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(Some(status)),
            Ok(None) if Instant::now() >= deadline => break Ok(None),
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => break Err(LinuxError::io("waiting for the guest")(error)),
        }
    };
    // Kill what it started too; nothing else is in its process group.
    let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    let _ = child.wait();
    list().retain(|(running, _)| *running != group);
    status
}
