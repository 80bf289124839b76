//! Judges a matrix entry from its capture, decoded by tshark, and from the output of both programs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;

use udccp_netns::RoutedPair;
use udccp_wire::{PacketType, ResetCode};

use crate::plan::{Condition, Stack, TestCase, Trial};
use crate::run::{TrialResult, capture_file, report_file};

/// A run with its verdict.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The reports of the run.
    pub result: TrialResult,
    /// What went wrong; empty if the run is good.
    pub failures: Vec<String>,
    /// What went wrong because of a known error of Linux, as the capture shows.
    pub let_pass: Vec<String>,
    /// Packets of each side by type, client first.
    pub packets: [BTreeMap<u8, u64>; 2],
}

/// A packet as decoded by tshark.
struct Seen {
    is_clients: bool,
    ty: Option<PacketType>,
    reset: Option<u8>,
    is_wrong: bool,
    /// Types of its options.
    options: Vec<u8>,
    /// The inverse of the Loss Event Rate that it reports; the largest number means no loss.
    loss_event_rate: Option<u32>,
}

/// The value of the Loss Event Rate option before the first loss (RFC 4342 section 8.5).
const NO_LOSS: u32 = u32::MAX;

/// Reads the files of a run in `folder` and judges it, except for the goodput of long transfers
/// ([`compare_goodputs`]). `None` if it was not run.
///
/// # Errors
/// tshark is missing or fails, or a report cannot be read.
pub fn judge(trial: &Trial, folder: &Path) -> io::Result<Option<Verdict>> {
    let text = match std::fs::read(folder.join(report_file(trial))) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let result: TrialResult = serde_json::from_slice(&text)?;
    Ok(Some(verdict(result, &tshark(&folder.join(capture_file(trial)))?)))
}

fn tshark(capture: &Path) -> io::Result<Vec<Seen>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", "dccp", "-T", "fields", "-E", "occurrence=a"]);
    command.args(["-o", "dccp.check_checksum:TRUE"]);
    let fields = ["dccp.srcport", "dccp.type", "dccp.reset_code", "dccp.checksum.status"];
    let more = ["_ws.malformed", "dccp.option_type", "dccp.ccid3_loss_event_rate"];
    for field in fields.into_iter().chain(more) {
        command.args(["-e", field]);
    }
    let output = command.output().map_err(|e| io::Error::new(e.kind(), format!("tshark: {e}")))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("tshark: {}", errors.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(Seen::read).collect())
}

impl Seen {
    fn read(line: &str) -> Self {
        let mut fields = line.split('\t');
        // A packet inside an ICMP error may add a second value.
        let first = |field: &str| field.split(',').next().and_then(|f| f.parse::<u32>().ok());
        let mut number = || fields.next().and_then(first);
        let (port, ty, reset, checksum) = (number(), number(), number(), number());
        let is_malformed = fields.next().is_some_and(|f| !f.is_empty());
        let options = fields.next().unwrap_or_default().split(',');
        let loss_event_rate = fields.next().and_then(first);
        Self {
            is_clients: port.is_some_and(|port| port > 10_000),
            ty: ty.and_then(|ty| PacketType::from_number(ty as u8)),
            reset: reset.map(|code| code as u8),
            // 0 means "bad"; truncated packets are "unverified".
            is_wrong: is_malformed || checksum == Some(0),
            options: options.filter_map(|o| o.parse().ok()).collect(),
            loss_event_rate,
        }
    }
}

/// Collects the failures of a run.
struct Bench<'a> {
    result: &'a TrialResult,
    packets: &'a [Seen],
    failures: Vec<String>,
    let_pass: Vec<String>,
}

fn verdict(result: TrialResult, packets: &[Seen]) -> Verdict {
    let mut bench = Bench { result: &result, packets, failures: Vec::new(), let_pass: Vec::new() };
    bench.well_formed();
    match result.entry.case {
        TestCase::BadService | TestCase::Refused | TestCase::NoCommonCcid => bench.refusal(),
        TestCase::Traceroute => bench.traceroute(),
        case => {
            bench.handshake();
            bench.data();
            bench.ccid();
            match case {
                TestCase::ServerClose => bench.server_closes(),
                TestCase::Abort => bench.aborts(),
                _ => bench.client_closes(),
            }
        }
    }
    let (failures, let_pass) = (bench.failures, bench.let_pass);
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    for seen in packets {
        if let Some(ty) = seen.ty {
            *counts[usize::from(!seen.is_clients)].entry(ty.number()).or_default() += 1;
        }
    }
    Verdict { result, failures, let_pass, packets: counts }
}

impl Bench<'_> {
    fn expect(&mut self, holds: bool, failure: impl Into<String>) {
        if !holds {
            self.failures.push(failure.into());
        }
    }

    /// Like `expect`, if a known error of Linux, which the capture shows, is an excuse.
    fn expect_or_let_pass(&mut self, holds: bool, says: impl Into<String>) {
        if !holds {
            self.let_pass.push(says.into());
        }
    }

    /// Whether this side is a Linux receiver that reports a Loss Event Rate of 1/2 or more from its
    /// first loss to the end, as described in departures.md. The throughput equation then allows
    /// the sender at most one packet per second (RFC 5348 section 3.1, with a round-trip time of 40
    /// ms).
    fn keeps_its_first_loss(&self, by_client: bool) -> bool {
        const AT_LEAST_HALF: u32 = 2;
        let entry = self.result.entry;
        let stack = if by_client { entry.client } else { entry.server };
        let of_side = self.packets.iter().filter(|p| p.is_clients == by_client);
        let rates = of_side.filter_map(|p| p.loss_event_rate).filter(|rate| *rate != NO_LOSS);
        let rates: Vec<u32> = rates.collect();
        entry.ccid == 3
            && stack == Stack::Linux
            && rates.len() >= 2
            && rates.iter().all(|rate| *rate <= AT_LEAST_HALF)
    }

    fn is_clean(&self) -> bool {
        self.result.entry.condition == Condition::Clean
    }

    fn has(&self, is_clients: bool, ty: PacketType) -> bool {
        self.packets.iter().any(|p| p.is_clients == is_clients && p.ty == Some(ty))
    }

    fn well_formed(&mut self) {
        let wrong = self.packets.iter().filter(|p| p.is_wrong || p.ty.is_none()).count();
        self.expect(wrong == 0, format!("{wrong} packets malformed or with a wrong checksum"));
    }

    fn handshake(&mut self) {
        let (client, server) = (&self.result.client, &self.result.server);
        let refusal = client.refusal.clone().unwrap_or_default();
        let both = client.connected && server.connected;
        self.expect(both, format!("no connection: {refusal}"));
        if self.is_clean() {
            let first: Vec<_> = self.packets.iter().take(3).map(|p| p.ty).collect();
            let confirms =
                matches!(first.get(2), Some(Some(PacketType::Ack | PacketType::DataAck)));
            let opens = first.starts_with(&[Some(PacketType::Request), Some(PacketType::Response)]);
            self.expect(opens && confirms, "the handshake is not Request, Response, Ack");
        }
    }

    /// Checks that data arrive, except for the path's losses. The kernel delivers duplicates twice.
    fn data(&mut self) {
        let TrialResult { entry, client, server, .. } = self.result;
        let least = match entry.condition {
            // An abort drops queued data.
            _ if entry.case == TestCase::Abort => 0.1,
            // Slow start may overflow the queue.
            Condition::Clean => 0.94,
            Condition::Lossy => 0.92,
            Condition::Rough => 0.85,
        };
        let mut directions = vec![(client, server, false)];
        if entry.case == TestCase::BothWays {
            directions.push((server, client, true));
        }
        for (from, to, by_client) in directions {
            let sent = from.sent;
            let enough = sent > 0 && to.received as f64 >= least * sent as f64;
            let says = format!("{} of {sent} messages arrived", to.received);
            if self.keeps_its_first_loss(by_client) {
                self.expect_or_let_pass(enough, says);
            } else {
                self.expect(enough, says);
            }
            self.expect(to.damaged == 0, format!("{} messages damaged", to.damaged));
        }
    }

    /// Checks that acknowledgements fit the CCID (RFC 4341 section 6, RFC 4342 section 8). CCID 2
    /// needs Ack Vectors; CCID 3 may have them too, in addition to its own options.
    fn ccid(&mut self) {
        const ACK_VECTORS: [u8; 2] = [38, 39];
        const LOSS_EVENT_RATE: u8 = 192;
        let ccid = self.result.entry.ccid;
        let both = self.result.entry.case == TestCase::BothWays;
        for (is_clients, side) in [(false, "server"), (true, "client")] {
            if is_clients && !both {
                continue;
            }
            let of_side = self.packets.iter().filter(|p| p.is_clients == is_clients);
            let options: Vec<u8> = of_side.flat_map(|p| p.options.iter().copied()).collect();
            let vectors = options.iter().any(|o| ACK_VECTORS.contains(o));
            let rates = options.contains(&LOSS_EVENT_RATE);
            let as_asked = if ccid == 2 { vectors && !rates } else { rates };
            self.expect(as_asked, format!("the {side} does not acknowledge as CCID {ccid} does"));
        }
    }

    /// Expects answers of the router and the server: traceroute's service code is not served.
    fn traceroute(&mut self) {
        let TrialResult { entry, client, .. } = self.result;
        let [_, server] = RoutedPair::addresses(entry.v6);
        let way = format!("{} {server}", RoutedPair::gateway(entry.v6));
        let found = client.refusal.clone().unwrap_or_else(|| client.end.clone());
        self.expect(found == way, format!("traceroute finds {found}, not {way}"));
        self.resets(false, &[ResetCode::BadServiceCode]);
    }

    /// Checks that every Reset of a side has one of these codes and, over a clean path, that there
    /// is one.
    fn resets(&mut self, is_clients: bool, codes: &[ResetCode]) {
        self.no_other_resets(is_clients, codes);
        if !codes.is_empty() && self.is_clean() {
            let side = if is_clients { "client" } else { "server" };
            self.expect(self.any_reset(is_clients), format!("no Reset of the {side}"));
        }
    }

    fn no_other_resets(&mut self, is_clients: bool, codes: &[ResetCode]) {
        let of_side = self.packets.iter().filter(|p| p.is_clients == is_clients);
        let found: Vec<u8> = of_side.filter_map(|p| p.reset).collect();
        let side = if is_clients { "client" } else { "server" };
        let allowed = |code: &u8| codes.iter().any(|c| c.number() == *code);
        for code in found.iter().filter(|code| !allowed(code)) {
            let name = ResetCode::from_number(*code);
            self.failures.push(format!("the {side} sends Reset {code} ({name})"));
        }
    }

    fn client_closes(&mut self) {
        let end_reported = (self.result.client.end.clone(), self.result.server.end.clone());
        let end = format!("the client's end: {}", end_reported.0);
        if end_reported.0.ends_with("unsent") && self.keeps_its_first_loss(false) {
            self.expect_or_let_pass(false, end);
        } else {
            self.expect(end_reported.0 == "closed", end);
        }
        self.expect(end_reported.1 == "closed", format!("the server's end: {}", end_reported.1));
        self.expect(self.has(true, PacketType::Close), "no Close of the client");
        self.answers_to_close();
        self.resets(true, &[]);
    }

    /// Resets of a server that answered the Close: the answer itself, and answers to packets that
    /// were still in flight or to a repeated Close.
    fn answers_to_close(&mut self) {
        let mut resets = self.packets.iter().filter(|p| !p.is_clients).filter_map(|p| p.reset);
        let first = resets.next();
        let is_closed = first == Some(ResetCode::Closed.number());
        if self.is_clean() {
            self.expect(is_closed, format!("the first Reset of the server: {first:?}"));
        }
        self.resets(false, &[ResetCode::Closed, ResetCode::NoConnection]);
    }

    fn server_closes(&mut self) {
        let end_reported = self.result.server.end.clone();
        self.expect(end_reported == "closed", format!("the server's end: {end_reported}"));
        let told = self.result.client.end.clone();
        self.expect(
            ["closed", "EPIPE"].contains(&told.as_str()),
            format!("the client's end: {told}"),
        );
        if self.is_clean() {
            self.expect(self.has(false, PacketType::CloseReq), "no CloseReq of the server");
        }
        self.expect(self.has(true, PacketType::Close), "no Close of the client");
        self.answers_to_close();
        // Linux forgets a connection once it has answered CloseReq; RFC 4340 section 8.3 requires
        // it to wait in CLOSING. Packets that arrive before the Reset are then answered with this
        // code.
        let forgets: &[_] = match self.result.entry.client {
            Stack::Linux => &[ResetCode::NoConnection],
            Stack::Ours => &[],
        };
        self.no_other_resets(true, forgets);
    }

    fn aborts(&mut self) {
        let end_reported = self.result.server.end.clone();
        self.expect(end_reported != "closed", "the server reports an orderly end");
        // A client that has forgotten its connection answers packets still in flight (RFC 4340
        // section 8.5, step 2). Ours remembers the connection for a while and does not answer.
        let codes: &[_] = match self.result.entry.client {
            Stack::Linux => &[ResetCode::Aborted, ResetCode::NoConnection],
            Stack::Ours => &[ResetCode::Aborted],
        };
        self.resets(true, codes);
        self.resets(false, &[]);
    }

    fn refusal(&mut self) {
        let TrialResult { entry, client, .. } = self.result;
        self.expect(!client.connected, "the connection is made");
        let says = client.refusal.clone().unwrap_or_default();
        let (codes, words): (&[ResetCode], &[&str]) = match (entry.case, entry.server) {
            (TestCase::BadService, _) => {
                (&[ResetCode::BadServiceCode], &["service code", "EBADRQC"])
            }
            (TestCase::Refused, Stack::Ours) => {
                (&[ResetCode::ConnectionRefused], &["refused", "ECONNREFUSED"])
            }
            (TestCase::Refused, Stack::Linux) => {
                (&[ResetCode::NoConnection], &["refused", "ECONNREFUSED"])
            }
            _ => self.nothing_in_common(),
        };
        let tells = words.iter().any(|word| says.contains(word));
        self.expect(tells, format!("the client says: {says}"));
        // Either side may be the one that detects that no CCID is in common.
        let by_client = entry.case == TestCase::NoCommonCcid && self.any_reset(true);
        self.resets(by_client, codes);
        if !by_client {
            self.resets(true, &[]);
        }
    }

    /// The Resets that RFC 4340 section 6.6.9 allows the side that finds no common CCID, and the
    /// client's errors for them.
    fn nothing_in_common(&self) -> (&'static [ResetCode], &'static [&'static str]) {
        let entry = self.result.entry;
        let by_client = self.any_reset(true);
        let finder = if by_client { entry.client } else { entry.server };
        let codes: &[ResetCode] = match finder {
            Stack::Ours => &[ResetCode::OptionError, ResetCode::MandatoryError],
            // A Linux server gives up before it has determined the reason.
            Stack::Linux => {
                &[ResetCode::OptionError, ResetCode::MandatoryError, ResetCode::TooBusy]
            }
        };
        let words: &[&str] = match (entry.client, by_client) {
            (Stack::Ours, _) => &["does not offer CCID", "OptionError", "Mandatory", "TooBusy"],
            // It resets the connection without telling its program, which waits until its time
            // limit.
            (Stack::Linux, true) => &["EINPROGRESS"],
            (Stack::Linux, false) => &["EILSEQ", "EOPNOTSUPP", "ECOMM", "EUSERS"],
        };
        (codes, words)
    }

    fn any_reset(&self, is_clients: bool) -> bool {
        self.packets.iter().any(|p| p.is_clients == is_clients && p.reset.is_some())
    }
}

/// Checks long transfers: at most 10 % slower than Linux to Linux with the same seed number.
pub fn compare_goodputs(all: &mut [Verdict]) {
    let rate = |j: &Verdict| j.result.server.goodput;
    let which = |j: &Verdict| (j.result.entry.ccid, j.result.number);
    let base: BTreeMap<(u8, u8), f64> = all
        .iter()
        .filter(|j| j.result.entry.client == Stack::Linux && j.result.entry.server == Stack::Linux)
        .filter_map(|j| Some((which(j), rate(j)?)))
        .collect();
    for verdict in all.iter_mut().filter(|j| j.result.entry.case == TestCase::Bulk) {
        let Some(linux) = base.get(&which(verdict)) else { continue };
        let ratio = rate(verdict).unwrap_or(0.0) / linux;
        if ratio < 0.9 {
            verdict.failures.push(format!("goodput is {:.0} % of Linux to Linux", ratio * 100.0));
        }
    }
}
