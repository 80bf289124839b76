//! Writes the documentation page.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::judge::Verdict;
use crate::plan::{Condition, MatrixEntry, Stack, TestCase};

/// Known departures of Linux that the judge accepts.
const DEPARTURES: &str = include_str!("departures.md");

/// The page in Markdown: a table of the matrix, one of the long transfers, and the failures with
/// their reasons. `about` describes the environment of the runs.
pub fn page(all: &[Verdict], about: &str) -> String {
    let mut text = String::from("# Interoperability with Linux\n\n");
    text.push_str(about);
    text.push_str("\n\n");
    matrix(&mut text, all);
    long_transfers(&mut text, all);
    traceroute(&mut text, all);
    text.push_str(DEPARTURES);
    let_pass(&mut text, all);
    reasons(&mut text, all);
    text
}

fn name(stack: Stack) -> &'static str {
    match stack {
        Stack::Ours => "udccp",
        Stack::Linux => "Linux",
    }
}

/// How many of an entry's runs were good.
fn mark(all: &[Verdict], found: impl Fn(&Verdict) -> bool) -> String {
    let runs: Vec<&Verdict> = all.iter().filter(|j| found(j)).collect();
    let good = runs.iter().filter(|j| j.failures.is_empty()).count();
    match runs.first() {
        None => "not run".into(),
        Some(_) if good == runs.len() => format!("{good} of {good}"),
        Some(first) => format!("**[{good} of {}](#{})**", runs.len(), first.result.entry),
    }
}

fn matrix(text: &mut String, all: &[Verdict]) {
    let columns: Vec<(Stack, u8, bool)> = [Stack::Ours, Stack::Linux]
        .into_iter()
        .flat_map(|client| [2, 3].map(|ccid| (client, ccid)))
        .flat_map(|(client, ccid)| [false, true].map(|v6| (client, ccid, v6)))
        .collect();
    text.push_str("| path | what happens |");
    for (client, ccid, v6) in &columns {
        let server = if *client == Stack::Ours { Stack::Linux } else { Stack::Ours };
        let ip = if *v6 { "IPv6" } else { "IPv4" };
        let _ = write!(text, " {} to {}, CCID {ccid}, {ip} |", name(*client), name(server));
    }
    text.push('\n');
    text.push_str(&"|---".repeat(columns.len() + 2));
    text.push_str("|\n");
    let rows = Condition::ALL.into_iter().flat_map(|condition| {
        let more: &[TestCase] = match condition {
            Condition::Clean => &[TestCase::PartialChecksum, TestCase::BothWays],
            _ => &[],
        };
        let all = TestCase::EVERYWHERE.into_iter().chain(more.iter().copied());
        all.map(move |case| (condition, case)).collect::<Vec<_>>()
    });
    for (condition, case) in rows {
        let _ = write!(text, "| {} | {} |", condition.title(), case.title());
        for &(client, ccid, v6) in &columns {
            let here = |j: &Verdict| {
                let entry = j.result.entry;
                (entry.client, entry.ccid, entry.v6) == (client, ccid, v6)
                    && (entry.condition, entry.case) == (condition, case)
            };
            let _ = write!(text, " {} |", mark(all, here));
        }
        text.push('\n');
    }
    text.push('\n');
}

fn long_transfers(text: &mut String, all: &[Verdict]) {
    let long = || all.iter().filter(|j| j.result.entry.case == TestCase::Bulk);
    if long().next().is_none() {
        return;
    }
    text.push_str("## 60 s of transfer\n\n");
    text.push_str(
        "Goodput from the fifth second on in Mbit/s, the lowest of all seeds. With each ",
    );
    text.push_str("seed it\nmust be at least 90 % of Linux to Linux.\n\n");
    text.push_str("| sender | receiver | CCID 2 | CCID 3 |\n|---|---|---|---|\n");
    for client in [Stack::Linux, Stack::Ours] {
        for server in [Stack::Linux, Stack::Ours] {
            let _ = write!(text, "| {} | {} |", name(client), name(server));
            for ccid in [2, 3] {
                let found = || {
                    long().filter(|j| {
                        let entry = j.result.entry;
                        (entry.client, entry.server, entry.ccid) == (client, server, ccid)
                    })
                };
                let rates = found().map(|j| j.result.server.goodput.unwrap_or(0.0));
                let rate = rates.reduce(f64::min);
                let rate = rate.map_or("not run".into(), |rate| format!("{:.2}", rate / 1e6));
                let good = found().all(|j| j.failures.is_empty());
                let _ = write!(text, " {} |", if good { rate } else { format!("**{rate}**") });
            }
            text.push('\n');
        }
    }
    text.push('\n');
}

/// Lists the runs in which known errors of Linux were accepted.
fn let_pass(text: &mut String, all: &[Verdict]) {
    let passed: Vec<&Verdict> = all.iter().filter(|j| !j.let_pass.is_empty()).collect();
    if passed.is_empty() {
        return;
    }
    text.push_str("In these runs, a Linux receiver keeps its first loss (see above), as the ");
    text.push_str("capture shows. They count as good:\n\n");
    for verdict in passed {
        let says = verdict.let_pass.join("; ");
        let _ =
            writeln!(text, "- {}, seed {}:\n  {says}", verdict.result.entry, verdict.result.number);
    }
    text.push('\n');
}

fn traceroute(text: &mut String, all: &[Verdict]) {
    let [ipv4, ipv6] = [false, true].map(|v6| {
        mark(all, |j| (j.result.entry.case, j.result.entry.v6) == (TestCase::Traceroute, v6))
    });
    text.push_str("## traceroute\n\n`traceroute -D` on the Linux host finds the router, then our ");
    text.push_str("listener. The listener does not serve\ntraceroute's service code, so it ");
    text.push_str("answers the Request with a Reset (8, Bad Service Code).\n");
    let _ = writeln!(text, "Over IPv4: {ipv4}; over IPv6: {ipv6}.\n");
}

/// The number of entries, and how many of them are good.
pub fn summary(all: &[Verdict]) -> String {
    let mut entries: BTreeMap<MatrixEntry, bool> = BTreeMap::new();
    for verdict in all {
        *entries.entry(verdict.result.entry).or_insert(true) &= verdict.failures.is_empty();
    }
    let good_runs = all.iter().filter(|j| j.failures.is_empty()).count();
    let good_cells = entries.values().filter(|good| **good).count();
    format!(
        "{good_cells} of {} cells are good with every seed: {good_runs} of {} runs.",
        entries.len(),
        all.len(),
    )
}

fn reasons(text: &mut String, all: &[Verdict]) {
    let _ = writeln!(text, "{}", summary(all));
    let bad: Vec<&Verdict> = all.iter().filter(|j| !j.failures.is_empty()).collect();
    if bad.is_empty() {
        return;
    }
    text.push_str("\n## Failures\n");
    let mut last = None;
    for verdict in bad {
        if last.replace(verdict.result.entry) != Some(verdict.result.entry) {
            let _ = writeln!(text, "\n### {}\n", verdict.result.entry);
        }
        for failure in &verdict.failures {
            let _ = writeln!(text, "- seed {}: {failure}", verdict.result.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PeerReport;
    use crate::plan::matrix;
    use crate::run::TrialResult;

    fn verdict(entry: MatrixEntry, number: u8, failures: &[&str]) -> Verdict {
        let result = TrialResult {
            entry,
            number,
            client: PeerReport::default(),
            server: PeerReport::default(),
        };
        let failures = failures.iter().map(|failure| (*failure).to_owned()).collect();
        Verdict {
            result,
            failures,
            let_pass: Vec::new(),
            packets: [BTreeMap::new(), BTreeMap::new()],
        }
    }

    #[test]
    fn cell_fails_if_it_fails_with_any_seed() {
        let entries = matrix();
        let mut all: Vec<Verdict> =
            entries[..2].iter().flat_map(|c| (1..=5).map(|n| verdict(*c, n, &[]))).collect();
        assert_eq!(summary(&all), "2 of 2 cells are good with every seed: 10 of 10 runs.");
        all[3].failures.push("no Close of the client".into());
        assert_eq!(summary(&all), "1 of 2 cells are good with every seed: 9 of 10 runs.");
        let text = page(&all, "");
        let row = text.lines().find(|line| line.starts_with("| clean | client closes |"));
        assert!(row.unwrap().contains(&format!("| **[4 of 5](#{})** |", entries[0])), "{text}");
        let row = text.lines().find(|line| line.starts_with("| clean | server closes |"));
        assert!(row.unwrap().contains("| 5 of 5 |"), "{text}");
        assert!(text.contains("- seed 4: no Close of the client"), "{text}");
    }
}
