//! The command line as types. Each command's flags live beside its code.

use clap::{Parser, Subcommand};

use crate::commands::{agent, cat, decode, doctor, lab, perf, sim};
#[cfg(target_os = "linux")]
use crate::commands::{emu, interop, linux};
use crate::exit;

/// DCCP in userspace, and the laboratory that measures it against TCP and UDP.
#[derive(Debug, Parser)]
#[command(name = "udccp", version, after_long_help = exit::HELP, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in the order in which `--help` lists them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Experiments: run a published study again, or a new one, and report it
    Lab(lab::Args),
    /// Run one scenario file in simulation
    Sim(sim::Args),
    /// Run one scenario file in real time, between this machine's TCP and our DCCP
    #[cfg(target_os = "linux")]
    Emu(emu::Args),
    /// Run one scenario file in a real Linux kernel with DCCP, in virtual time
    #[cfg(target_os = "linux")]
    Linux(linux::Args),
    /// Measure throughput, loss, jitter and round-trip time between two machines
    Perf(perf::Args),
    /// Send standard input to a peer, and what the peer sends to standard output
    Cat(cat::Args),
    /// Print the DCCP packets of a capture file as text
    Decode(decode::Args),
    /// Say what this machine can do, and how to get the rest
    Doctor(doctor::Args),
    /// Play one end of a flow for `udccp emu` and `udccp linux`
    #[command(hide = true)]
    Agent(agent::Args),
    /// The first program of a guest of `udccp linux`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    LinuxInit(linux::Init),
    /// Our DCCP against that of the Linux kernel, in a guest of `udccp linux`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Interop(interop::Args),
    /// The first program of a guest of `udccp interop`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    InteropInit(interop::Init),
    /// Becomes a guest of `udccp linux`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    LinuxBoot(linux::Boot),
}
