//! The command line as types. Each command's flags are in the command's module.

use clap::{ArgAction, CommandFactory, Parser, Subcommand};

#[cfg(target_os = "linux")]
use crate::commands::{agent, emu, interop, linux, ns2, old_program};
use crate::commands::{cat, completions, decode, doctor, guide, lab, man, perf, sim};
use crate::{about, exit};

/// DCCP in userspace, and the laboratory that measures it against TCP and UDP.
#[derive(Debug, Parser)]
#[command(name = "udccp", version, long_version = about::long_version())]
#[command(after_long_help = exit::HELP, max_term_width = 100)]
pub(crate) struct Cli {
    /// Log events of sockets and connections to standard error; -vv logs more. RUST_LOG selects in
    /// detail
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line without hidden commands, for completions and manual pages.
pub(crate) fn shown() -> clap::Command {
    let all = Cli::command();
    let shown: Vec<_> = all.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    let args: Vec<_> = all.get_arguments().cloned().collect();
    let about = all.get_about().cloned().unwrap_or_default();
    clap::Command::new("udccp")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .after_long_help(exit::HELP)
        .args(args)
        .subcommands(shown)
        .subcommand_required(true)
}

/// The commands, in the order in which `--help` lists them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run and report experiments: published studies or your own
    Lab(lab::Args),
    /// Run one scenario file in simulation
    Sim(sim::Args),
    /// Run one scenario file in real time, between this machine's TCP and our DCCP
    #[cfg(target_os = "linux")]
    Emu(emu::Args),
    /// Run one scenario file in a real Linux kernel with DCCP, in virtual time
    #[cfg(target_os = "linux")]
    Linux(linux::Args),
    /// Run one scenario file in the network simulator ns-2
    #[cfg(target_os = "linux")]
    Ns2(ns2::Args),
    /// Measure throughput, loss, jitter and round-trip time between two machines
    Perf(perf::Args),
    /// Send standard input to a peer, and write the peer's data to standard output
    Cat(cat::Args),
    /// Run a program that opens SOCK_DCCP, on a kernel without DCCP
    #[cfg(target_os = "linux")]
    Run(old_program::Args),
    /// Test our DCCP against that of the Linux kernel, in guests of `udccp linux`
    #[cfg(target_os = "linux")]
    Interop(interop::Args),
    /// Print the DCCP packets of a capture file as text
    Decode(decode::Args),
    /// Check what this machine supports, and say how to get what is missing
    Doctor(doctor::Args),
    /// Print completions of commands and flags for a shell
    Completions(completions::Args),
    /// Print a guide from the documentation
    Guide(guide::Args),
    /// Write the manual pages
    Man(man::Args),
    /// Run one end of a flow for `udccp emu` and `udccp linux`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Agent(agent::Args),
    /// Own DCCP for the programs of `udccp run`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Broker(old_program::BrokerArgs),
    /// The first program of a guest of `udccp linux`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    LinuxInit(linux::Init),
    /// The first program of a guest of `udccp interop`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    InteropInit(interop::Init),
    /// Become a guest of `udccp linux`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    LinuxBoot(linux::Boot),
}
