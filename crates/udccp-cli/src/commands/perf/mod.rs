//! `udccp perf`: throughput, loss, jitter and round-trip time between two machines.
//!
//! A control connection (service code `SC:pfct`) agrees on the test and carries the results. Each
//! stream is a separate connection (`SC:pfda`), whose messages identify the test.

mod client;
mod control;
mod flow;
mod grid;
mod messages;
mod meter;
mod report;
mod reporter;
mod server;
mod spec;
mod stream;
mod text;

use std::time::Duration;

use udccp::ServiceCode;

use super::net::{NetArgs, seconds};
use super::numbers::whole;
use crate::exit::{CliResult, Exit};

/// Default DCCP port of the server.
const DEFAULT_PORT: u16 = 5011;
/// Service code of control connections, `SC:pfct`.
const CONTROL: ServiceCode = ServiceCode(u32::from_be_bytes(*b"pfct"));
/// Service code of streams, `SC:pfda`.
const STREAM: ServiceCode = ServiceCode(u32::from_be_bytes(*b"pfda"));

const EXAMPLES: &str = "\
Examples:
  udccp perf server                          wait for clients, any number of them
  udccp perf client 192.0.2.1                send for 10 s, report every second
  udccp perf client 192.0.2.1 -R -t 30       let the server send for 30 s
  udccp perf client 192.0.2.1 --bidir -P 4   four connections, both directions
  udccp perf client 192.0.2.1 -b 20M -l 500  20 Mbit/s in messages of 500 bytes
  udccp perf client 192.0.2.1 --json | jq .end.forward";

/// Flags of `udccp perf`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, clap::Subcommand)]
enum Side {
    /// Wait for clients
    Server(ServerArgs),
    /// Run a test against a server
    Client(ClientArgs),
}

/// Flags of `udccp perf server`.
#[derive(Debug, clap::Args)]
struct ServerArgs {
    /// DCCP port
    #[arg(short, long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    #[arg(value_parser = whole(0..=u16::MAX))]
    port: u16,
    /// Serve one test and exit
    #[arg(short = '1', long)]
    one_off: bool,
    /// Print one JSON object per test
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    net: NetArgs,
}

/// Flags of `udccp perf client`.
#[derive(Debug, clap::Args)]
struct ClientArgs {
    /// Name or address of the server
    host: String,
    /// DCCP port of the server
    #[arg(short, long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    #[arg(value_parser = whole(0..=u16::MAX))]
    port: u16,
    /// Seconds to measure; 0: until stopped
    #[arg(short, long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    time: Duration,
    /// Seconds between reports; 0: no reports
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Target rate of each stream, such as 20M, 1.5G or "20 Mbit/s" [default: as fast as possible]
    #[arg(short, long, value_name = "RATE", value_parser = spec::rate)]
    bitrate: Option<u64>,
    /// Bytes of a message [default: what fits into one packet, at most 1400]
    #[arg(short, long, value_name = "BYTES", value_parser = whole(0..=usize::MAX))]
    length: Option<usize>,
    /// Parallel streams, each with its own connection
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1,
          value_parser = whole::<u16>(1..=1000))]
    parallel: u16,
    /// Let the server send
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Send in both directions
    #[arg(long)]
    bidir: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Print one JSON object per line: start, each interval, end
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
    /// Give up after this many seconds without a connection
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    #[command(flatten)]
    net: NetArgs,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    // One thread: the packets of all streams go through one lock and usually one core anyway, and
    // passing them between threads would only add cost.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match args.side {
        Side::Server(args) => runtime.block_on(server::run(&args)),
        Side::Client(args) => runtime.block_on(client::run(&args)),
    }
}

/// The clock for jitter and rates.
#[expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}
