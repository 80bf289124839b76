//! `udccp linux`: one scenario file, one run in a real Linux kernel.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use udccp_linux::{DccpStack, Kernel, Linux, LinuxError, Setup, cache_folder, check_kernel};

use super::numbers::whole;
use super::scenario::{self, Choice};
use crate::exit::{CliResult, Exit, Failure};
use crate::{interrupt, output};

/// Flags of `udccp linux`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Option<Choice>,
    /// Build the guest's kernel, boot it, and exit
    #[arg(long, conflicts_with = "scenario")]
    setup: bool,
    /// DCCP implementation: the guest's kernel, or this program over UDP or raw IP
    #[arg(long, value_enum, default_value_t, value_name = "STACK")]
    dccp: Dccp,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Kill a guest that has not ended after this many seconds of real time
    #[arg(long, value_name = "SECONDS", value_parser = whole(0..=u64::MAX))]
    deadline: Option<u64>,
    /// Add a word to the kernel's command line, such as tcp_cubic.hystart=0
    #[arg(long, value_name = "WORD")]
    kernel_arg: Vec<String>,
    /// Copy plan, answer, recorded packets and console of the guest to this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Folder of the kernel [default: $XDG_CACHE_HOME/udccp/linux]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// With --setup: a tar file with the source of Linux 6.1, instead of Debian's package
    #[arg(long, value_name = "FILE", requires = "setup")]
    source: Option<PathBuf>,
    /// With --setup: compile with this many processes [default: one per processor]
    #[arg(long, value_name = "N", requires = "setup", value_parser = whole::<usize>(1..=1024))]
    jobs: Option<usize>,
    /// With --setup: install no packages, but report which are missing
    #[arg(long, requires = "setup")]
    no_install: bool,
}

const EXAMPLES: &str = "\
Examples:
  udccp linux --setup
  udccp linux two-flows-short
  udccp linux two-flows-short --dccp udccp --json
  udccp linux bhatti-2008 --set second=tcp/cubic --set rtt=\"50 ms\" --seed 7";

/// Which implementation runs the DCCP flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Dccp {
    /// The DCCP of the guest's kernel (CCID 2 and 3)
    #[default]
    Linux,
    /// This program's sockets, over UDP
    Udccp,
    /// The same as IP protocol 33
    UdccpRaw,
}

impl Dccp {
    const fn stack(self) -> DccpStack {
        match self {
            Self::Linux => DccpStack::Linux,
            Self::Udccp => DccpStack::OursUdp,
            Self::UdccpRaw => DccpStack::OursRaw,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let cache = match &args.cache {
        Some(cache) => cache.clone(),
        None => cache_folder().map_err(failure)?,
    };
    let program = env::current_exe()?;
    interrupt::on_interrupt(udccp_linux::stop_all)?;
    for folder in udccp_linux::sweep() {
        output::note(&format!("removed {}, left by a killed run", folder.display()));
    }
    if args.setup {
        return set_up(args, &cache, program);
    }
    let Some(choice) = &args.choice else {
        return Err(Failure::new(Exit::Usage, "which scenario?").hint("or --setup"));
    };
    let chosen = choice.load()?;
    // Report errors that need no guest first.
    udccp_linux::check_supported(&chosen.scenario, chosen.seed, args.dccp.stack())
        .map_err(failure)?;
    let kernel = Kernel::find(&cache).map_err(failure)?;
    let deadline = args.deadline.map(Duration::from_secs);
    let linux = Linux {
        kernel,
        program,
        dccp: args.dccp.stack(),
        deadline,
        arguments: args.kernel_arg,
        keep: args.keep,
    };
    let outcome =
        linux.run(&chosen.experiment.id, &chosen.scenario, chosen.seed).map_err(failure)?;
    for departure in &outcome.departures {
        output::note(&format!("note: {departure}"));
    }
    if args.json {
        output::json(&outcome.record)?;
    } else {
        output::line(scenario::summary(&chosen, &outcome.record).trim_end())?;
        let wall = outcome.wall.as_secs_f64();
        let release = &outcome.release;
        output::line(&format!("Linux {release} in virtual time; {wall:.1} s of real time"))?;
    }
    let Some(why) = &outcome.invalid else { return Ok(Exit::Success) };
    Err(Failure::new(Exit::CheckFailed, format!("the run is invalid: {why}"))
        .hint("use smaller buffers, fewer flows, or a lower rate"))
}

/// The backend for campaigns.
pub(crate) fn backend(id: &str) -> CliResult<Linux> {
    let kernel = cache_folder().and_then(|cache| Kernel::find(&cache)).map_err(failure)?;
    for folder in udccp_linux::sweep() {
        output::note(&format!("removed {}, left by a killed run", folder.display()));
    }
    let stacks = [DccpStack::Linux, DccpStack::OursUdp];
    Ok(Linux {
        kernel,
        program: env::current_exe()?,
        dccp: stacks.into_iter().find(|stack| udccp_linux::id(*stack) == id).unwrap_or_default(),
        deadline: None,
        arguments: Vec::new(),
        keep: None,
    })
}

fn set_up(args: Args, cache: &Path, program: PathBuf) -> CliResult<Exit> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let setup = Setup {
        cache: cache.to_owned(),
        program: program.clone(),
        source: args.source,
        jobs: args.jobs.unwrap_or(processors),
        install: !args.no_install,
    };
    let check = |kernel: &Kernel| check_kernel(kernel, program.clone()).map(drop);
    let kernel = setup.run(&output::note, &check).map_err(failure)?;
    let path = kernel.binary.display();
    output::line(&format!("Linux {} is ready: {path}", kernel.version))?;
    Ok(Exit::Success)
}

/// Converts an error of the guest.
pub(super) fn failure(error: LinuxError) -> Failure {
    let exit = match error {
        LinuxError::Missing { .. } => Exit::Unsupported,
        LinuxError::Scenario(_) => Exit::BadInput,
        _ => Exit::Failure,
    };
    let failure = Failure::new(exit, error.to_string());
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// `udccp linux-init FOLDER`: a guest's init.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The folder that the guest shares with its host, by its path there
    folder: String,
    /// What the kernel adds of its own (`console=tty0`)
    rest: Vec<String>,
}

/// Runs the hidden command, which ends with the guest.
pub(crate) fn init(args: &Init) -> CliResult<Exit> {
    udccp_linux::init(&args.folder);
    Ok(Exit::Failure)
}

/// `udccp linux-boot KERNEL ARGUMENTS...`: becomes the guest.
#[derive(Debug, clap::Args)]
pub(crate) struct Boot {
    /// The kernel and its command line
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    line: Vec<OsString>,
}

/// Runs the hidden command.
pub(crate) fn boot(args: Boot) -> CliResult<Exit> {
    Err(Failure::new(Exit::Failure, udccp_linux::boot(args.line).to_string()))
}
