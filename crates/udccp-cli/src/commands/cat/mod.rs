//! `udccp cat`: sends standard input to the peer, and writes the peer's data to standard output.

mod input;
mod report;
mod transfer;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{Options, ServiceCode};

use super::net::{NetArgs, first_that_works, seconds, service};
use super::numbers::whole;
use crate::exit::{CliResult, Exit, Failure};
use crate::interrupt::on_interrupt;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  udccp cat -l 5004 > copy                 wait for a peer and store its data
  udccp cat 192.0.2.1 5004 < file          send a file
  udccp cat -l 5004 < a > b                both directions at once: send a, receive b
  udccp cat --lines localhost 5004         one message per line, to type by hand
  tail -f log | udccp cat --lines H 5004   each line at once; otherwise a message waits until full

Each message is one DCCP packet and keeps its boundaries. DCCP does not retransmit: what the network
loses is lost. Congestion control and the peer's receive queue slow down the sender before anything
needs to be lost. If messages were lost, the report at the end shows it, and the exit code is 3. An
empty message marks the end of the data; when both sides have sent theirs, the connection is closed.
With --json the report on standard error is one JSON object.";

/// Flags of `udccp cat`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Wait for a peer instead of connecting to one
    #[arg(short, long)]
    listen: bool,
    /// Host to connect to (not with -l)
    #[arg(value_name = "HOST", required_unless_present = "listen")]
    first: Option<String>,
    /// DCCP port
    #[arg(value_name = "PORT", required_unless_present = "listen")]
    #[arg(value_parser = whole(0..=u16::MAX))]
    second: Option<u16>,
    /// Bytes of standard input in one message [default: what fits into one packet, at most 1400]
    #[arg(short, long, value_name = "BYTES", conflicts_with = "lines")]
    #[arg(value_parser = whole(0..=usize::MAX))]
    size: Option<usize>,
    /// Send each line as one message, with its newline; the default on a terminal
    #[arg(long)]
    lines: bool,
    /// Send nothing, and do not read standard input
    #[arg(short, long)]
    recv_only: bool,
    /// Service code, on both sides
    #[arg(long, value_name = "CODE", default_value = "SC:ucat", value_parser = service)]
    service: ServiceCode,
    /// Give up after this many seconds without a connection
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Print no report
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    net: NetArgs,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let open = Arc::new(OnceLock::<Connection>::new());
    let interrupted = Arc::clone(&open);
    on_interrupt(move || {
        // A normal close would tell the peer that the data are complete, so abort.
        match interrupted.get() {
            Some(connection) => {
                connection.abort();
                output::note("interrupted; the connection is reset");
            }
            None => output::note("interrupted"),
        }
    })?;
    let (connection, role) = if args.listen {
        (wait_for_peer(&args)?, Role::Server)
    } else {
        (call(&args)?, Role::Client)
    };
    let _ = open.set(connection.clone());
    let framing = input::Framing::choose(args.lines, args.size, connection.max_message_size())?;
    let done = transfer::run(&connection, role, framing, args.recv_only)?;
    if args.json {
        output::note(&serde_json::to_string(&done).map_err(std::io::Error::from)?);
    } else if !args.quiet {
        output::note(&done.to_string());
    }
    Ok(if done.lost_anything() { Exit::MessagesLost } else { Exit::Success })
}

/// The side of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

fn options(args: &Args) -> Options {
    args.net.options().send_queue(1 << 20, 1024).recv_queue(2 << 20, 2048)
}

fn wait_for_peer(args: &Args) -> CliResult<Connection> {
    let port = listen_port(args)?;
    let listener = first_that_works(&args.net.listen_at(port), |&addr| {
        Endpoint::bind_with(addr, &args.net.endpoint_options())?.listen(
            port,
            [args.service],
            &options(args).backlog(1),
        )
    })?;
    if port == 0 {
        let carrier = args.net.carrier(listener.local_addr());
        output::note(&format!("listening on DCCP port {} over {carrier}", listener.port()));
    }
    accept(&listener, args)
}

/// `-l PORT`: the only positional argument is the port.
fn listen_port(args: &Args) -> CliResult<u16> {
    let usage =
        |message: String| Err(Failure::new(Exit::Usage, message).hint("write: udccp cat -l PORT"));
    match (&args.first, args.second) {
        (Some(port), None) => match port.parse() {
            Ok(port) => Ok(port),
            Err(_) => usage(format!("\"{port}\" is not a port number")),
        },
        (None, _) => usage("-l needs a port".into()),
        (Some(_), Some(_)) => {
            usage("-l takes a port but no host; use --bind for an address".into())
        }
    }
}

fn accept(listener: &Listener, args: &Args) -> CliResult<Connection> {
    match listener.accept_within(args.timeout) {
        Ok(connection) => Ok(connection),
        Err(udccp::Error::TimedOut) => {
            Err(Failure::new(Exit::Unreachable, "no peer connected within the time allowed")
                .hint("start the peer first, or allow more time with --timeout"))
        }
        Err(e) => Err(e.into()),
    }
}

fn call(args: &Args) -> CliResult<Connection> {
    let (Some(host), Some(port)) = (&args.first, args.second) else {
        return Err(Failure::new(Exit::Usage, "a host and a port are needed"));
    };
    let all = args.net.resolve(host, port)?;
    first_that_works(&all, |peer| {
        let endpoint = Endpoint::bind_with(args.net.client_at(peer), &args.net.endpoint_options())?;
        match endpoint.connect(*peer, args.service, &options(args), args.timeout) {
            Err(udccp::Error::TimedOut) => Err(udccp::Error::NoAnswer { peer: *peer }),
            other => other,
        }
    })
}
