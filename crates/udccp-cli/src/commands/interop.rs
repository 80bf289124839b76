//! `udccp interop`: our DCCP against that of the Linux kernel.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use udccp_interop::{CELLS, Cell, FAILED, Judged, judge, matrix, page};
use udccp_linux::{Errand, Kernel, cache_folder};

use super::linux::failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::{interrupt, output};

const EXAMPLES: &str = "\
Examples:
  udccp interop                                every cell; a line for each that is not good
  udccp interop --only ipv4-clean --keep out   some, and their captures
  udccp interop -o docs/reference/interop.md   the page of the documentation

Needs the kernel that `udccp linux --setup` builds, and tshark. Exit code 9: a cell is not good.";

/// Flags of `udccp interop`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only cells whose names contain one of these texts
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Write the table to this file, as Markdown
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Keep captures and reports in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Run nothing: judge what is in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    judge: Option<PathBuf>,
    /// Guests at once
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Where the kernel is kept ($XDG_CACHE_HOME/udccp/linux where absent)
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// A guest takes so many cells before the next one boots.
const CELLS_OF_A_GUEST: usize = 12;
/// Wall-clock time for a guest.
const DEADLINE: Duration = Duration::from_secs(3600);

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome<Exit> {
    let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|o| name.contains(o));
    let cells: Vec<Cell> = matrix().into_iter().filter(|c| wanted(&c.to_string())).collect();
    if cells.is_empty() {
        let failure = Failure::new(Exit::Usage, "no cell has such a name");
        return Err(failure.hint("for example --only ours-linux-ccid2-ipv4-clean-client-close"));
    }
    let scratch = tempfile::tempdir()?;
    let (folder, about) = match &args.judge {
        Some(folder) => (folder.clone(), "Judged from files of an earlier run.".into()),
        None => {
            let folder = args.keep.clone().unwrap_or_else(|| scratch.path().to_owned());
            fs::create_dir_all(&folder)?;
            let kernel = play(&args, &cells, &folder)?;
            (folder, about(&kernel))
        }
    };
    let all = judge(&cells, &folder).map_err(|e| {
        Failure::new(Exit::Unsupported, e.to_string()).hint("apt-get install tshark")
    })?;
    if let Some(out) = &args.out {
        fs::write(out, page(&all, &about))?;
    }
    report(&all, cells.len())
}

fn about(kernel: &Kernel) -> String {
    format!(
        "Made by `make interop` (`udccp interop`) with Linux {} and udccp {}, in User-Mode Linux \
         and virtual time; see [raw IP](../guides/raw-ip.md). Client, router and server are \
         network namespaces; the path has 10 Mbit/s and 20 ms each way (netem). A cell is good \
         where tshark finds no malformed packet and no wrong checksum in what passed the client's \
         interface, the packets tell the story, it ends in the Reset that it should end in, the \
         messages arrive undamaged, and both programs are told the right end.",
        kernel.version,
        env!("CARGO_PKG_VERSION"),
    )
}

/// Runs the cells in guests, some at once, and collects what they leave.
fn play(args: &Args, cells: &[Cell], folder: &Path) -> Outcome<Kernel> {
    let cache = match &args.cache {
        Some(cache) => cache.clone(),
        None => cache_folder().map_err(failure)?,
    };
    let kernel = Kernel::find(&cache).map_err(failure)?;
    interrupt::on_interrupt(udccp_linux::stop_all)?;
    let errand = Errand {
        kernel: kernel.clone(),
        program: env::current_exe()?,
        words: vec!["interop-init".into()],
        seed: 1,
        deadline: DEADLINE,
    };
    let jobs =
        args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    // The long transfers come last in the matrix; they go first, one a guest.
    let (long, short): (Vec<Cell>, Vec<Cell>) =
        cells.iter().partition(|cell| cell.story == udccp_interop::Story::Bulk);
    let parts = long.chunks(1).chain(short.chunks(CELLS_OF_A_GUEST));
    let todo = Mutex::new(parts.map(<[Cell]>::to_vec).collect::<Vec<_>>().into_iter());
    let next = || todo.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        let work = || {
            while let Some(part) = next() {
                one(&errand, &part, folder)?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| match worker.join() {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::new(Exit::Failure, "a worker panicked")),
        });
        ended.collect::<Outcome<()>>()
    })?;
    Ok(kernel)
}

/// One guest.
fn one(errand: &Errand, part: &[Cell], folder: &Path) -> Outcome<()> {
    let names = serde_json::to_vec(part).map_err(std::io::Error::from)?;
    let left = errand.run(&[(CELLS, names)]).map_err(failure)?;
    if let Ok(why) = fs::read_to_string(left.path().join(FAILED)) {
        return Err(Failure::new(Exit::Failure, format!("the guest says: {why}")));
    }
    for name in part.iter().flat_map(Cell::files) {
        fs::copy(left.path().join(&name), folder.join(&name))?;
    }
    output::note(&format!("{} to {}", part[0], part[part.len() - 1]));
    Ok(())
}

fn report(all: &[Judged], cells: usize) -> Outcome<Exit> {
    let bad: Vec<&Judged> = all.iter().filter(|j| !j.faults.is_empty()).collect();
    for judged in &bad {
        output::line(&format!("{}: {}", judged.played.cell, judged.faults.join("; ")))?;
    }
    output::line(&format!("{} of {cells} cells as they should be", all.len() - bad.len()))?;
    let good = bad.is_empty() && all.len() == cells;
    Ok(if good { Exit::Success } else { Exit::CheckFailed })
}

/// `udccp interop-init FOLDER`: the first program of a guest.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The folder that the guest shares with its host, by its path there
    folder: String,
    /// What the kernel adds of its own
    rest: Vec<String>,
}

/// Runs the hidden command. It ends with the guest.
pub(crate) fn init(args: &Init) -> Outcome<Exit> {
    udccp_linux::in_guest(&args.folder, |shared| match shared {
        Ok(shared) => udccp_interop::serve(shared),
        Err(fault) => output::note(&fault.to_string()),
    });
    Ok(Exit::Failure)
}
