//! Runs the peers in turns and prints their figures as tables.

use std::io::{self, Write};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::meter::Measured;
use crate::network::Path;
use crate::peers::Peer;
use crate::work::Work;

/// The extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    /// Number of turns per peer.
    pub(crate) rounds: u32,
    /// Length of a turn.
    pub(crate) seconds: f64,
    /// Number of connections for loads with many.
    pub(crate) connections: usize,
}

/// A table: a load, its path and its peers. Ratios are relative to `peers[0]` and to quinn.
struct Table {
    work: Work,
    path: Path,
    title: &'static str,
    each: &'static str,
    peers: &'static [Peer],
}

const TABLES: [Table; 7] = [
    Table {
        work: Work::Bulk,
        path: Path::Veth,
        title: "Messages of 1,200 bytes, merged packets cross whole",
        each: "ns a message",
        peers: &[
            Peer::Floor,
            Peer::Tcp,
            Peer::Udp,
            Peer::Udccp,
            Peer::UdccpBlocking,
            Peer::UdccpCcid3,
            Peer::UdccpCubic,
            Peer::UdccpBbr,
            Peer::Quinn,
        ],
    },
    Table {
        work: Work::Bulk,
        path: Path::VethSegmented,
        title: "The same, the kernel cuts merged packets into datagrams",
        each: "ns a message",
        peers: &[Peer::Floor, Peer::Tcp, Peer::Udccp, Peer::UdccpBlocking, Peer::Quinn],
    },
    Table {
        work: Work::Ping,
        path: Path::Veth,
        title: "A message of 100 bytes and its answer",
        each: "ns a round trip",
        peers: &[Peer::Udp, Peer::UdpTokio, Peer::Udccp, Peer::UdccpBlocking, Peer::Quinn],
    },
    Table {
        work: Work::Questions,
        path: Path::Veth,
        title: "The same on 100 connections at once",
        each: "ns a round trip",
        peers: &[Peer::Tcp, Peer::Udccp, Peer::Quinn],
    },
    Table {
        work: Work::Handshakes,
        path: Path::Veth,
        title: "Connections made and closed, 32 at once",
        each: "ns a connection",
        peers: &[Peer::Tcp, Peer::Udccp, Peer::Quinn],
    },
    Table {
        work: Work::Many,
        path: Path::Veth,
        title: "Many connections, 100 messages of 200 bytes a second each",
        each: "ns a message",
        peers: &[Peer::Udccp, Peer::Quinn],
    },
    Table {
        work: Work::Idle,
        path: Path::Veth,
        title: "One end of a connection that does nothing",
        each: "",
        peers: &[Peer::Udccp, Peer::Quinn],
    },
];

/// Measures these loads, or all of them if none is given.
///
/// # Errors
/// A turn failed, or the output's reader is gone.
pub(crate) fn print(out: &mut impl Write, works: &[Work], turns: Turns) -> Result<()> {
    let Turns { rounds, seconds, connections } = turns;
    writeln!(out, "{rounds} interleaved rounds of {seconds} s on {}.", std::env::consts::ARCH)?;
    writeln!(out, "Processor time is of both ends. Many connections are {connections}.\n")?;
    for table in TABLES.iter().filter(|t| works.is_empty() || works.contains(&t.work)) {
        writeln!(out, "### {}\n", table.title)?;
        match table.path.check() {
            Ok(()) => table.measure(turns)?.print(out, table)?,
            Err(why) => writeln!(out, "Not measured: {why}.")?,
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The results of a table's peers, round by round.
struct Rounds(Vec<Vec<Measured>>);

impl Table {
    fn measure(&self, turns: Turns) -> Result<Rounds> {
        let round = || self.peers.iter().map(|&peer| self.turn(peer, turns)).collect();
        (0..turns.rounds).map(|_| round()).collect::<Result<_>>().map(Rounds)
    }

    /// Runs one turn in a separate process.
    fn turn(&self, peer: Peer, turns: Turns) -> Result<Measured> {
        let word = |value: clap::builder::PossibleValue| value.get_name().to_owned();
        let named = |value: Option<_>| value.map(word).unwrap_or_default();
        let done = Command::new(std::env::current_exe()?)
            .arg(named(self.work.to_possible_value()))
            .args(["--peer", &named(peer.to_possible_value())])
            .args(["--path", &named(self.path.to_possible_value())])
            .args(["--seconds", &turns.seconds.to_string()])
            .args(["--connections", &turns.connections.to_string()])
            .output()?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            bail!("{peer:?} at {:?}: {}", self.work, said.trim());
        }
        serde_json::from_slice(&done.stdout).context("reading the figures of a turn")
    }
}

impl Rounds {
    /// One figure of a peer from each round.
    fn of(&self, peer: usize, figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
        self.0.iter().map(|round| figure(&round[peer])).collect()
    }

    /// A peer's cost divided by another's: the median of the rounds' ratios.
    fn ratio(&self, peer: usize, other: usize) -> f64 {
        let each = |round: &Vec<Measured>| round[peer].each_ns() / round[other].each_ns();
        median(self.0.iter().map(each).collect())
    }

    fn print(&self, out: &mut impl Write, table: &Table) -> io::Result<()> {
        match table.work {
            Work::Idle => self.print_memory(out, table),
            _ => self.print_cost(out, table),
        }
    }

    fn print_memory(&self, out: &mut impl Write, table: &Table) -> io::Result<()> {
        writeln!(out, "| | bytes held of the heap | allocations made |\n|---|---:|---:|")?;
        for (n, peer) in table.peers.iter().enumerate() {
            let of = |figure: fn((f64, f64)) -> f64| {
                median(self.of(n, |m| m.heap.map_or(f64::NAN, figure)))
            };
            writeln!(out, "| {} | {:.0} | {:.1} |", peer.label(), of(|h| h.0), of(|h| h.1))?;
        }
        Ok(())
    }

    fn print_cost(&self, out: &mut impl Write, table: &Table) -> io::Result<()> {
        let quinn = table.peers.iter().position(|&p| p == Peer::Quinn);
        let has_times = table.work == Work::Ping;
        let (heads, rules) = match has_times {
            true => (" p50, µs | p99, µs |", "---:|---:|"),
            false => (" lost |", "---:|"),
        };
        let first = table.peers[0].label();
        writeln!(
            out,
            "| | {}, median | best | times {} | times quinn |{heads}",
            table.each,
            short(first)
        )?;
        writeln!(out, "|---|---:|---:|---:|---:|{rules}")?;
        for (n, peer) in table.peers.iter().enumerate() {
            let each = self.of(n, Measured::each_ns);
            let best = each.iter().copied().fold(f64::INFINITY, f64::min);
            let to_quinn = quinn.map_or(f64::NAN, |quinn| self.ratio(n, quinn));
            let rest = match has_times {
                true => {
                    let of = |figure: fn((f64, f64)) -> f64| {
                        median(self.of(n, |m| m.percentiles_us.map_or(f64::NAN, figure)))
                    };
                    format!(" {:.1} | {:.1} |", of(|t| t.0), of(|t| t.1))
                }
                false => {
                    let share = |m: &Measured| m.lost as f64 / (m.lost + m.count).max(1) as f64;
                    format!(" {:.2} % |", 100.0 * median(self.of(n, share)))
                }
            };
            writeln!(
                out,
                "| {} | {:.0} | {best:.0} | {:.2} | {to_quinn:.2} |{rest}",
                peer.label(),
                median(each),
                self.ratio(n, 0),
            )?;
        }
        Ok(())
    }
}

/// The start of a label, before its explanation.
fn short(label: &str) -> &str {
    label.split([':', ',']).next().unwrap_or(label).trim_matches('*')
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    match n % 2 {
        0 if n > 0 => (values[n / 2 - 1] + values[n / 2]) / 2.0,
        _ => values.get(n / 2).copied().unwrap_or(f64::NAN),
    }
}
