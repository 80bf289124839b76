//! Compares the sockets with plain UDP, the kernel's TCP, QUIC (quinn) and a minimal datagram
//! program.
//!
//! Each figure comes from one process that runs both ends on one core, between two network
//! namespaces. Peers take turns in rounds, and ratios are computed within a round, so other work on
//! the machine affects all of them alike.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and starts threads")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

mod meter;
mod network;
mod peers;
mod table;
mod turn;
mod work;

use anyhow::Result;
use clap::Parser;
use udccp_testkit::CountingAllocator;

use crate::network::{Network, Path};
use crate::peers::Peer;
use crate::turn::Turn;
use crate::work::Work;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Measures the sockets of udccp beside their peers and prints tables in Markdown.
#[derive(Debug, Parser)]
#[command(name = "udccp-bench")]
struct Args {
    /// What to measure; without, all.
    #[arg(value_enum)]
    works: Vec<Work>,
    /// How often each peer has its turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each turn takes, in seconds.
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// How many connections are held at once, where there are many.
    #[arg(long, default_value_t = 1000, value_parser = connections)]
    connections: usize,
    /// Measures one peer once, in this process, and prints its figures as JSON.
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// The network between the ends, where one peer is measured.
    #[arg(long, value_enum, default_value_t = Path::Veth)]
    path: Path,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(s) if (0.01..=600.0).contains(&s) => Ok(s),
        _ => Err(String::from("is not a number of seconds from 0.01 to 600")),
    }
}

fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=10_000).contains(&n) => Ok(n),
        _ => Err(String::from("is not a number from 1 to 10,000")),
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (Some(peer), [work]) = (args.peer, args.works.as_slice()) else {
        let Args { rounds, seconds, connections, .. } = args;
        let turns = table::Turns { rounds, seconds, connections };
        return table::print(&mut std::io::stdout(), &args.works, turns);
    };
    let network = Network::new(args.path)?;
    let turn = Turn { network, seconds: args.seconds, connections: args.connections };
    println!("{}", serde_json::to_string(&work.measure(peer, &turn)?)?);
    Ok(())
}
