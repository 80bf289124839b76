//! `udccp emu`: one scenario file in real time, between programs on separate hosts.

use udccp_agent::OurTransport;
use udccp_emu::{EmuError, EmuOptions, Emulation, Emulator, IpVersion, Path, TestbedError};
use udccp_scenario::{RunError, RunOptions};

use super::capture::CaptureArgs;
use super::scenario::{self, Choice};
use crate::exit::{CliResult, Exit, Failure};
use crate::interrupt::on_interrupt;
use crate::output;

/// Flags of `udccp emu`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Transport of our DCCP packets
    #[arg(long, value_enum, default_value_t = Carrier::Udp)]
    dccp: Carrier,
    /// Give hosts IPv6 addresses; IP headers then have 40 bytes instead of 20
    #[arg(long)]
    ipv6: bool,
    /// Implementation of the path
    #[arg(long, value_enum, default_value_t = Route::Own)]
    path: Route,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    capture: CaptureArgs,
}

/// Transport of our DCCP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Carrier {
    /// In UDP datagrams (RFC 6773)
    Udp,
    /// As IP protocol 33, as in simulation
    Raw,
}

/// Implementation of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Route {
    /// The simulator's links, in real time
    Own,
    /// This machine's kernel: tbf, netem and queues between namespaces
    Netem,
}

const EXAMPLES: &str = "\
The network of the scenario runs in real time between network namespaces with TUN devices. TCP is
that of this machine's kernel, and DCCP that of this program. Each flow end has its own process.

Examples:
  udccp emu emulated
  udccp emu emulated --set flow.second.protocol=tcp/newreno --json
  udccp emu emulated --ipv6 --dccp raw --pcap out/

A run that fell behind real time is printed and marked as invalid. Its exit code is 9.
It needs root, or user namespaces and a /dev/net/tun that can be opened: see udccp doctor.";

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let path = match args.path {
        Route::Own => Path::Own,
        Route::Netem => Path::Netem,
    };
    let flags = [("--ipv6", args.ipv6), ("--pcap", args.capture.pcap.is_some())];
    if let (Path::Netem, Some((flag, _))) = (path, flags.into_iter().find(|(_, is_set)| *is_set)) {
        return Err(Failure::new(Exit::Usage, format!("{flag} does not work with --path netem"))
            .hint(format!("leave out {flag} or --path netem")));
    }
    let chosen = args.choice.load()?;
    // Must happen before there are threads.
    acquire(path)?;
    on_interrupt(|| output::note("interrupted; everything was removed"))?;
    let options = EmuOptions {
        run: RunOptions {
            check: false,
            pcap: args.capture.pcap.as_deref(),
            snaplen: args.capture.snaplen.0,
            stop: None,
            algorithms: &[],
        },
        program: std::env::current_exe()?,
        dccp: match args.dccp {
            Carrier::Udp => OurTransport::UdpEncap,
            Carrier::Raw => OurTransport::Raw,
        },
        path,
        ip: if args.ipv6 { IpVersion::V6 } else { IpVersion::V4 },
    };
    let emulation =
        udccp_emu::emulate(&chosen.experiment.id, &chosen.scenario, chosen.seed, &options)
            .map_err(failure)?;
    emulation.notes.iter().for_each(|note| output::note(&format!("note: {note}")));
    if args.json {
        output::json(&emulation.record)?;
    } else {
        output::line(scenario::summary(&chosen, &emulation.record).trim_end())?;
    }
    verdict(&emulation)
}

/// The exit code. If the run is invalid, also prints the reason to standard error.
fn verdict(emulation: &Emulation) -> CliResult<Exit> {
    match &emulation.invalid {
        None => Ok(Exit::Success),
        Some(why) => Err(Failure::new(Exit::CheckFailed, format!("the run is invalid: {why}"))
            .hint("stop other programs on this machine, or use a lower rate")),
    }
}

/// Acquires the privileges that this kind of path needs.
fn acquire(path: Path) -> CliResult<()> {
    let done = match path {
        Path::Own => udccp_emu::acquire(),
        Path::Netem => udccp_emu::acquire_namespaces(),
    };
    done.map(drop).map_err(failure)
}

/// The backend for campaigns.
pub(super) fn backend(path: Path) -> CliResult<Emulator> {
    // Must happen before there are threads.
    acquire(path)?;
    Ok(Emulator::new(std::env::current_exe()?, path))
}

/// Converts an error of the emulator.
pub(super) fn failure(error: EmuError) -> Failure {
    let exit = match &error {
        error if let Some(code) = error.agent_code() => Exit::of_code(code),
        EmuError::Testbed(TestbedError::Holes(_)) => Exit::CheckFailed,
        error if error.is_of_machine() => Exit::Unsupported,
        error if error.is_of_scenario() => Exit::BadInput,
        EmuError::Run(RunError::Flow { .. }) => Exit::BadInput,
        _ => Exit::Failure,
    };
    let failure = Failure::new(exit, error.to_string());
    match error.advice() {
        Some(advice) => failure.hint(advice),
        None => failure,
    }
}
