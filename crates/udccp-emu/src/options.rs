//! What an emulated run is given, and what it returns.

use std::path::PathBuf;

use udccp_agent::OurTransport;
use udccp_scenario::{Record, RunOptions};
use udccp_sim::IpVersion;

/// The emulator's name as a backend.
pub const ID: &str = "emu";
/// The name of the emulator with [`Path::Netem`].
pub const NETEM_ID: &str = "emu-netem";

/// Options of an emulated run.
#[derive(Clone, Debug)]
pub struct EmuOptions<'a> {
    /// Captures.
    pub run: RunOptions<'a>,
    /// The program `udccp`, whose agents run the flows.
    pub program: PathBuf,
    /// How packets of our DCCP travel.
    pub dccp: OurTransport,
    /// The hosts' IP version; with [`Path::Netem`] only IPv4.
    pub ip: IpVersion,
    /// What implements the path.
    pub path: Path,
}

/// What implements the path between hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// The simulator's links, run in real time.
    #[default]
    Own,
    /// `tbf`, `netem` and queues of this machine's kernel. There are no captures.
    Netem,
}

impl Path {
    /// The name of the emulator with this path as a backend.
    pub(crate) const fn backend_id(self) -> &'static str {
        match self {
            Self::Own => ID,
            Self::Netem => NETEM_ID,
        }
    }
}

/// An emulated run.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// The results.
    pub record: Record,
    /// Why the run is not a valid measurement, if it is not.
    pub invalid: Option<String>,
    /// What agents could not do as requested, and problems during the run.
    pub notes: Vec<String>,
}
