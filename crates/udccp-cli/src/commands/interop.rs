//! `udccp interop`: our DCCP against that of the Linux kernel.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use udccp_interop::{
    FAILED, MatrixEntry, SEEDS, Stack, TRIAL, TestCase, Trial, Verdict, compare_goodputs, judge,
    matrix, page, summary,
};
use udccp_linux::{GuestTask, Kernel, cache_folder, tool};

use super::linux::failure;
use super::numbers::whole;
use crate::exit::{CliResult, Exit, Failure};
use crate::{interrupt, output};

const EXAMPLES: &str = "\
Examples:
  udccp interop                                all test cases; prints those that fail
  udccp interop --only ipv4-clean --keep out   some of them, and keep their captures
  udccp interop -o docs/reference/interop.md   the page of the documentation

Each test case runs five times, each time in its own guest with a seed derived from its name, so
runs do not affect each other. Needs the kernel that `udccp linux --setup` builds, tshark, nft and
traceroute. Exit code 9: a run failed.";

/// Flags of `udccp interop`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only test cases whose names contain one of these texts
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Write the table to this file, as Markdown
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Keep captures and reports in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Run nothing: judge the captures and reports in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    judge: Option<PathBuf>,
    /// Seeds for each test case
    #[arg(long, value_name = "N", default_value_t = SEEDS)]
    #[arg(value_parser = whole(1..=u8::MAX))]
    seeds: u8,
    /// Guests that run at once
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=1024))]
    jobs: Option<usize>,
    /// Folder of the kernel [default: $XDG_CACHE_HOME/udccp/linux]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// The file next to kept captures and reports that describes their environment.
const ABOUT: &str = "about.md";
/// Wall-clock time limit for a guest.
const DEADLINE: Duration = Duration::from_secs(3600);

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|o| name.contains(o));
    let entries: Vec<MatrixEntry> =
        matrix().into_iter().filter(|c| wanted(&c.to_string())).collect();
    if entries.is_empty() {
        let failure = Failure::new(Exit::Usage, "no test case has such a name");
        return Err(failure.hint("for example --only ours-linux-ccid2-ipv4-clean-client-close"));
    }
    let missing = missing(&entries, args.judge.is_none(), |program| tool(program).is_some());
    if !missing.is_empty() {
        let (programs, packages): (Vec<&str>, Vec<&str>) = missing.into_iter().unzip();
        let message = format!("the matrix needs these programs: {}", programs.join(", "));
        let hint = format!("apt-get install {}", packages.join(" "));
        return Err(Failure::new(Exit::Unsupported, message).hint(hint));
    }
    let with_seeds =
        |&entry: &MatrixEntry| (1..=args.seeds).map(move |number| Trial { entry, number });
    let trials: Vec<Trial> = entries.iter().flat_map(with_seeds).collect();
    let (mut all, about) = match &args.judge {
        Some(folder) => {
            let verdict = trials.iter().filter_map(|trial| judge(trial, folder).transpose());
            // The kept file describes what the results were made with.
            let about = fs::read_to_string(folder.join(ABOUT)).unwrap_or_default();
            (verdict.collect::<Result<_, _>>()?, about)
        }
        None => {
            let (verdict, kernel) = run_trials(&args, &trials)?;
            (verdict, about(&kernel))
        }
    };
    compare_goodputs(&mut all);
    if let Some(keep) = &args.keep {
        fs::write(keep.join(ABOUT), &about)?;
    }
    if let Some(out) = &args.out {
        fs::write(out, page(&all, &about))?;
    }
    report(&all, trials.len())
}

/// Programs that the entries need and this machine lacks, each with its Debian package. `ip` and
/// `tc` are checked where the guest starts.
fn missing(
    entries: &[MatrixEntry],
    runs_trials: bool,
    is_there: impl Fn(&str) -> bool,
) -> Vec<(&'static str, &'static str)> {
    // Needed to suppress the kernel's DCCP on hosts that run ours.
    let filters = |entry: &MatrixEntry| entry.client == Stack::Ours || entry.server == Stack::Ours;
    let traces = |entry: &MatrixEntry| entry.case == TestCase::Traceroute;
    let needed = [
        (true, "tshark", "tshark"),
        (runs_trials && entries.iter().any(filters), "nft", "nftables"),
        (runs_trials && entries.iter().any(traces), "traceroute", "traceroute"),
    ];
    let lacks = |(is_needed, program, _): &(bool, &str, &str)| *is_needed && !is_there(program);
    needed.into_iter().filter(lacks).map(|(_, program, package)| (program, package)).collect()
}

fn about(kernel: &Kernel) -> String {
    format!(
        "Made by `make interop` (`udccp interop`) with Linux {} and udccp {}, in User-Mode\n\
         Linux and virtual time; see [raw IP](../guides/raw-ip.md). Client, router and server\n\
         are network namespaces; the path has 10 Mbit/s and 20 ms each way (netem). Each entry\n\
         is run with {SEEDS} seeds, each time in its own guest. A seed depends only on the\n\
         names of the entry and of the seed, so a run is the same whatever runs before it or\n\
         next to it.\n\
         \n\
         The table has the number of good runs. A run is good if tshark finds no malformed\n\
         packet and no wrong checksum at the client's interface, the packets are those that\n\
         the test case expects, the connection ends with the right Reset, the messages arrive\n\
         undamaged, and both programs see the right end of the connection.",
        kernel.version,
        env!("CARGO_PKG_VERSION"),
    )
}

/// Runs every trial in a separate guest, some in parallel, and judges the results.
fn run_trials(args: &Args, trials: &[Trial]) -> CliResult<(Vec<Verdict>, Kernel)> {
    let cache = match &args.cache {
        Some(cache) => cache.clone(),
        None => cache_folder().map_err(failure)?,
    };
    let kernel = Kernel::find(&cache).map_err(failure)?;
    interrupt::on_interrupt(udccp_linux::stop_all)?;
    if let Some(keep) = &args.keep {
        fs::create_dir_all(keep)?;
    }
    let task = GuestTask {
        kernel: kernel.clone(),
        program: env::current_exe()?,
        words: vec!["interop-init".into()],
        seed: 0,
        deadline: DEADLINE,
    };
    let jobs =
        args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    // Long transfers are last in the matrix; start them first.
    let (long, short): (Vec<Trial>, Vec<Trial>) =
        trials.iter().partition(|trial| trial.entry.case == TestCase::Bulk);
    let todo = Mutex::new(long.into_iter().chain(short));
    let next = || todo.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    let verdict = std::thread::scope(|scope| {
        let work = || {
            let mut verdict = Vec::new();
            while let Some(trial) = next() {
                verdict.push(one(&task, &trial, args.keep.as_deref())?);
            }
            Ok(verdict)
        };
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| match worker.join() {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::new(Exit::Failure, "a worker panicked")),
        });
        ended.collect::<CliResult<Vec<Vec<Verdict>>>>()
    })?;
    let mut verdict = verdict.concat();
    let place = |j: &Verdict| trials.iter().position(|t| (t.entry, t.number) == j.result.which());
    verdict.sort_by_key(place);
    Ok((verdict, kernel))
}

/// Runs one guest and judges its results.
fn one(task: &GuestTask, trial: &Trial, keep: Option<&Path>) -> CliResult<Verdict> {
    let task = GuestTask { seed: trial.seed(), ..task.clone() };
    let order = serde_json::to_vec(trial).map_err(std::io::Error::from)?;
    let left = task.run(&[(TRIAL, order)]).map_err(failure)?;
    if let Ok(why) = fs::read_to_string(left.path().join(FAILED)) {
        return Err(Failure::new(Exit::Failure, format!("the guest failed: {why}")));
    }
    let verdict = judge(trial, left.path())?;
    let verdict = verdict.ok_or_else(|| {
        Failure::new(Exit::Failure, format!("the guest left no report of {trial}"))
    })?;
    if let Some(keep) = keep {
        for name in trial.files() {
            fs::copy(left.path().join(&name), keep.join(&name))?;
        }
    }
    output::note(&trial.to_string());
    Ok(verdict)
}

fn report(all: &[Verdict], trials: usize) -> CliResult<Exit> {
    let bad: Vec<&Verdict> = all.iter().filter(|j| !j.failures.is_empty()).collect();
    for verdict in &bad {
        let (entry, number) = verdict.result.which();
        output::line(&format!("{entry}, seed {number}: {}", verdict.failures.join("; ")))?;
    }
    output::line(&summary(all))?;
    if all.len() < trials {
        output::note(&format!("{} of {trials} runs are missing", trials - all.len()));
    }
    let good = bad.is_empty() && all.len() == trials;
    Ok(if good { Exit::Success } else { Exit::CheckFailed })
}

/// `udccp interop-init FOLDER`: a guest's init.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The folder that the guest shares with its host, by its path there
    folder: String,
    /// What the kernel adds of its own
    rest: Vec<String>,
}

/// Runs the hidden command, which ends with the guest.
pub(crate) fn init(args: &Init) -> CliResult<Exit> {
    udccp_linux::in_guest(&args.folder, |shared| match shared {
        Ok(shared) => udccp_interop::serve(shared),
        Err(error) => output::note(&error.to_string()),
    });
    Ok(Exit::Failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interop_without_nftables_names_the_package() {
        let all = matrix();
        let without_nft = |program: &str| program != "nft";
        assert_eq!(missing(&all, true, without_nft), [("nft", "nftables")]);
        assert_eq!(missing(&all, false, without_nft), []);
        let all_packages: Vec<_> =
            missing(&all, true, |_| false).into_iter().map(|(_, package)| package).collect();
        assert_eq!(all_packages, ["tshark", "nftables", "traceroute"]);
        let kernels: Vec<MatrixEntry> = all
            .into_iter()
            .filter(|c| (c.client, c.server) == (Stack::Linux, Stack::Linux))
            .collect();
        assert_eq!(missing(&kernels, true, without_nft), []);
    }
}
