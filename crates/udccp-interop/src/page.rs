//! The page of the documentation.

use std::fmt::Write;

use crate::judge::Judged;
use crate::plan::{Condition, Stack, Story};

/// What the judge lets pass, because it is known of Linux and does no harm here.
const DEPARTURES: &str = include_str!("departures.md");

/// Markdown: a table of the matrix, one of the long transfers, and what went wrong with its reason.
/// `about` says what it was run on, and how.
pub fn page(all: &[Judged], about: &str) -> String {
    let mut text = String::from("# Interoperability with Linux\n\n");
    text.push_str(about);
    text.push_str("\n\n");
    matrix(&mut text, all);
    long_transfers(&mut text, all);
    traceroute(&mut text, all);
    text.push_str(DEPARTURES);
    reasons(&mut text, all);
    text
}

fn name(stack: Stack) -> &'static str {
    match stack {
        Stack::Ours => "udccp",
        Stack::Linux => "Linux",
    }
}

fn mark(all: &[Judged], found: impl Fn(&Judged) -> bool) -> String {
    match all.iter().find(|j| found(j)) {
        None => "not run".into(),
        Some(judged) if judged.faults.is_empty() => "yes".into(),
        Some(judged) => format!("**[no](#{})**", judged.played.cell),
    }
}

fn matrix(text: &mut String, all: &[Judged]) {
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
        let more: &[Story] = match condition {
            Condition::Clean => &[Story::PartialChecksum, Story::BothWays],
            _ => &[],
        };
        let all = Story::EVERYWHERE.into_iter().chain(more.iter().copied());
        all.map(move |story| (condition, story)).collect::<Vec<_>>()
    });
    for (condition, story) in rows {
        let _ = write!(text, "| {} | {} |", condition.title(), story.title());
        for &(client, ccid, v6) in &columns {
            let here = |j: &Judged| {
                let cell = j.played.cell;
                (cell.client, cell.ccid, cell.v6) == (client, ccid, v6)
                    && (cell.condition, cell.story) == (condition, story)
            };
            let _ = write!(text, " {} |", mark(all, here));
        }
        text.push('\n');
    }
    text.push('\n');
}

fn long_transfers(text: &mut String, all: &[Judged]) {
    let long = || all.iter().filter(|j| j.played.cell.story == Story::Bulk);
    if long().next().is_none() {
        return;
    }
    text.push_str("## 60 s of transfer\n\n");
    text.push_str("Goodput from the fifth second on, in Mbit/s; it has to be 90 % of Linux to ");
    text.push_str("Linux or more.\n\n| sender | receiver | CCID 2 | CCID 3 |\n|---|---|---|---|\n");
    for client in [Stack::Linux, Stack::Ours] {
        for server in [Stack::Linux, Stack::Ours] {
            let _ = write!(text, "| {} | {} |", name(client), name(server));
            for ccid in [2, 3] {
                let found = long().find(|j| {
                    let cell = j.played.cell;
                    (cell.client, cell.server, cell.ccid) == (client, server, ccid)
                });
                let rate = found.and_then(|j| j.played.server.goodput);
                let rate = rate.map_or("not run".into(), |rate| format!("{:.2}", rate / 1e6));
                let good = found.is_none_or(|j| j.faults.is_empty());
                let _ = write!(text, " {} |", if good { rate } else { format!("**{rate}**") });
            }
            text.push('\n');
        }
    }
    text.push('\n');
}

fn traceroute(text: &mut String, all: &[Judged]) {
    let [ipv4, ipv6] = [false, true].map(|v6| {
        mark(all, |j| (j.played.cell.story, j.played.cell.v6) == (Story::Traceroute, v6))
    });
    text.push_str("## traceroute\n\n`traceroute -D` on the Linux host finds the router, then our ");
    text.push_str("listener: it does not serve traceroute's service code, so it answers the ");
    text.push_str("Request with a Reset (8, Bad Service Code). ");
    let _ = writeln!(text, "Over IPv4: {ipv4}; over IPv6: {ipv6}.\n");
}

fn reasons(text: &mut String, all: &[Judged]) {
    let bad: Vec<&Judged> = all.iter().filter(|j| !j.faults.is_empty()).collect();
    let _ = writeln!(text, "{} cells, {} as they should be.", all.len(), all.len() - bad.len());
    if bad.is_empty() {
        return;
    }
    text.push_str("\n## What is not as it should be\n\n");
    for judged in bad {
        let _ = writeln!(text, "### {}\n", judged.played.cell);
        for fault in &judged.faults {
            let _ = writeln!(text, "- {fault}");
        }
        text.push('\n');
    }
}
