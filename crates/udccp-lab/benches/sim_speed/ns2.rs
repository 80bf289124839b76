//! Runs the same scenario in ns-2 if it is installed (Debian: `apt-get install ns2`).

use std::path::Path;
use std::process::Command;

use crate::case::Case;

/// Clock ticks per second in `/proc`.
const TICKS: f64 = 100.0;

/// The result of ns-2 for a case.
pub(crate) enum Attempt {
    /// Data packets over the bottleneck per second of processor time.
    PerSecond(f64),
    /// ns-2 ended early, with this output.
    Ended(String),
    /// ns-2 is not installed.
    Absent,
}

pub(crate) fn run(case: &Case) -> Attempt {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/sim_speed/ns2.tcl");
    let numbers = [case.mbps, case.rtt_ms, case.seconds, case.flows].map(|n| n.to_string());
    let kinds = case.mix.protocols.map(|protocol| match protocol {
        "dccp/ccid2" => "ccid2",
        "tcp/newreno" => "reno",
        _ => "cubic",
    });
    let before = children_seconds();
    let done = Command::new("ns").arg(script).args(&numbers).args(kinds).output();
    let spent = children_seconds().zip(before).map(|(after, before)| after - before);
    let (Ok(done), Some(spent)) = (done, spent) else { return Attempt::Absent };
    let said = String::from_utf8_lossy(&done.stdout);
    let delivered = said.lines().find_map(|line| line.strip_prefix("delivered ")?.parse().ok());
    match delivered {
        Some(packets) if done.status.success() => {
            let packets: f64 = packets;
            Attempt::PerSecond(packets / spent.max(1.0 / TICKS))
        }
        _ => {
            let last = said.lines().rfind(|line| !line.starts_with("cmd ")).unwrap_or("");
            Attempt::Ended(format!("{last} ({})", done.status))
        }
    }
}

/// Processor time of all finished child processes in seconds; `None` without `/proc`.
fn children_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may contain spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / TICKS)
}
