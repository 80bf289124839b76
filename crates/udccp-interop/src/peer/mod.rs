//! One end of a connection, whatever DCCP it has: what the stories do with it.

mod linux;
mod ours;
mod traceroute;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::plan::{MatrixEntry, Stack, TestCase};

/// DCCP port of servers.
const PORT: u16 = 5004;
/// Service code that servers serve, and one that they do not.
const SERVICE: u32 = 42;
const OTHER_SERVICE: u32 = 99;
/// Messages of a story, and bytes in each.
const MESSAGES: u64 = 300;
const MESSAGE_BYTES: usize = 700;
/// Bytes in the messages of a long transfer.
const BULK_BYTES: usize = 1400;
const BULK_TIME: Duration = Duration::from_secs(60);
/// A call that waits longer has failed; time of the guest.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// A server that closes does so when nothing has come for this time: a CCID 3 sender whose receiver
/// is Linux may send a packet in several seconds for a while.
const SILENCE: Duration = Duration::from_secs(60);
/// The same of a client that closes, over a path that loses nothing.
const PAUSE: Duration = Duration::from_secs(5);
/// A client waits so long for the end of a server that closes.
const END: Duration = Duration::from_secs(900);
/// From the last message handed over to an abort.
const BEFORE_ABORT: Duration = Duration::from_secs(20);
/// How an end is told that did not come.
const SILENT: &str = "silence";
/// Checksum coverage of the story about it: headers, and two words of data.
const COVERAGE: u8 = 3;

/// What one end is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) port: u16,
    pub(crate) service: u32,
    pub(crate) ccid: u8,
    /// Checksum coverage of data: of what is sent, or the least that is taken.
    pub(crate) coverage: u8,
    pub(crate) is_bulk: bool,
}

/// What one end did and saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// The handshake was done.
    pub connected: bool,
    /// Why it was not, in the words of this end's sockets.
    pub refusal: Option<String>,
    /// Messages sent, and received.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Messages received whose bytes were not those sent.
    pub damaged: u64,
    /// How the connection ended, in the words of this end's sockets; `closed` in order. Of a
    /// `traceroute`, the hosts that it found.
    pub end: String,
    /// Data received per second, of a long transfer, in bit/s: from the first 5 s on.
    pub goodput: Option<f64>,
}

/// How a connection ended for its reader.
pub(crate) enum Read {
    Message(Vec<u8>),
    Closed,
    Lost(String),
    /// Nothing came for as long as one waits.
    Silence,
}

/// An open connection.
pub(crate) trait Connection: Send + Sync {
    /// Sends, waiting for room; an error once the connection ended.
    fn send(&self, message: &[u8]) -> Result<(), String>;
    /// The next message or the end.
    fn recv(&self) -> Read;
    /// How long `recv` waits from now on.
    fn set_patience(&mut self, patience: Duration);
    /// Closes in order; `Ok` where this end knows that all went well.
    fn close(self: Box<Self>) -> Result<(), String>;
    /// Ends at once.
    fn abort(self: Box<Self>);
    /// Another handle, to read with while one writes.
    fn handle(&self) -> Box<dyn Connection>;
}

/// A port that is served.
pub(crate) trait Listener: Send {
    /// The next connection, within [`PATIENCE`].
    fn accept(&self) -> Option<Box<dyn Connection>>;
}

impl Side {
    /// The ends of a cell, client first.
    pub(crate) fn of(entry: &MatrixEntry, addresses: [IpAddr; 2]) -> [Self; 2] {
        let side = |local, remote| Self {
            local,
            remote,
            port: PORT,
            service: SERVICE,
            ccid: entry.ccid,
            coverage: if entry.case == TestCase::PartialChecksum { COVERAGE } else { 0 },
            is_bulk: entry.case == TestCase::Bulk,
        };
        let mut client = side(addresses[0], addresses[1]);
        let mut server = side(addresses[1], addresses[0]);
        match entry.case {
            TestCase::BadService => client.service = OTHER_SERVICE,
            TestCase::Refused => client.port = PORT + 1,
            TestCase::NoCommonCcid => server.ccid = 5 - entry.ccid,
            _ => {}
        }
        if entry.case == TestCase::Refused {
            server.service = OTHER_SERVICE;
        }
        [client, server]
    }

    /// Opens the server's port.
    pub(crate) fn listen(&self, stack: Stack) -> Result<Box<dyn Listener>, String> {
        match stack {
            Stack::Ours => ours::listen(self),
            Stack::Linux => linux::listen(self),
        }
    }

    fn connect(&self, stack: Stack) -> Result<Box<dyn Connection>, String> {
        match stack {
            Stack::Ours => ours::connect(self),
            Stack::Linux => linux::connect(self),
        }
    }
}

/// A message that says its number, and so its bytes.
fn message(n: u64, len: usize) -> Vec<u8> {
    let mut bytes = n.to_be_bytes().to_vec();
    bytes.resize(len, n as u8);
    bytes
}

fn is_whole(bytes: &[u8]) -> bool {
    let number = bytes.first_chunk().map(|n| u64::from_be_bytes(*n));
    number.is_some_and(|n| bytes[8..].iter().all(|b| *b == n as u8))
}

/// The client's part.
pub(crate) fn client(case: TestCase, stack: Stack, side: &Side) -> PeerReport {
    let mut report = PeerReport::default();
    if case == TestCase::Traceroute {
        match traceroute::way(side) {
            Ok(hosts) => report.end = hosts,
            Err(why) => report.refusal = Some(why.to_string()),
        }
        return report;
    }
    let mut connection = match side.connect(stack) {
        Ok(connection) => connection,
        Err(why) => {
            report.refusal = Some(why);
            return report;
        }
    };
    report.connected = true;
    match case {
        TestCase::ServerClose => {
            connection.set_patience(END);
            let sent = send_until(&*connection, &mut report, MESSAGES);
            let read = drain(&*connection, &mut PeerReport::default());
            report.end = sent.err().unwrap_or(read);
        }
        TestCase::Abort => {
            let _ = send_until(&*connection, &mut report, MESSAGES);
            // Much of what was sent is to arrive before the end does.
            wait(BEFORE_ABORT);
            connection.abort();
            report.end = "aborted".into();
        }
        TestCase::BothWays => {
            connection.set_patience(PAUSE);
            let writer = connection.handle();
            let mut sent = PeerReport::default();
            std::thread::scope(|scope| {
                let sending = scope.spawn(|| send_until(&*writer, &mut sent, MESSAGES));
                let end = drain(&*connection, &mut report);
                let sent = sending.join().map_or("panicked".into(), closed);
                report.end = if end == SILENT { sent } else { end };
            });
            report.sent = sent.sent;
            drop(writer);
            if report.end == "closed" {
                report.end = closed(connection.close());
            }
        }
        TestCase::Bulk => {
            send_for(&*connection, &mut report, BULK_TIME);
            report.end = closed(connection.close());
        }
        _ => {
            let sent = send_until(&*connection, &mut report, MESSAGES);
            report.end = closed(sent.and_then(|()| connection.close()));
        }
    }
    report
}

/// The server's part, of one connection.
pub(crate) fn server(case: TestCase, listener: &dyn Listener) -> PeerReport {
    let mut report = PeerReport::default();
    let Some(mut connection) = listener.accept() else { return report };
    report.connected = true;
    match case {
        TestCase::ServerClose => {
            // Linux answers a close with data unread by an abort: nothing is left to be read.
            connection.set_patience(SILENCE);
            let end = drain(&*connection, &mut report);
            report.end = if end == SILENT { closed(connection.close()) } else { end };
        }
        TestCase::BothWays => {
            let writer = connection.handle();
            let mut sent = PeerReport::default();
            std::thread::scope(|scope| {
                scope.spawn(|| send_until(&*writer, &mut sent, MESSAGES));
                report.end = drain(&*connection, &mut report);
            });
            report.sent = sent.sent;
        }
        TestCase::Bulk => report.end = measure(&*connection, &mut report),
        _ => report.end = drain(&*connection, &mut report),
    }
    report
}

/// Lets time pass: that of the guest.
#[expect(clippy::disallowed_methods, reason = "a peer owns its time")]
pub(crate) fn wait(time: Duration) {
    std::thread::sleep(time);
}

fn closed(result: Result<(), String>) -> String {
    result.err().unwrap_or_else(|| "closed".into())
}

fn send_until(
    connection: &dyn Connection,
    report: &mut PeerReport,
    count: u64,
) -> Result<(), String> {
    for n in 0..count {
        connection.send(&message(n, MESSAGE_BYTES))?;
        report.sent += 1;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a transfer lasts a time")]
fn send_for(connection: &dyn Connection, report: &mut PeerReport, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if connection.send(&message(report.sent, BULK_BYTES)).is_err() {
            return;
        }
        report.sent += 1;
    }
}

/// Takes one message; whether there was one.
fn take(connection: &dyn Connection, report: &mut PeerReport) -> bool {
    match connection.recv() {
        Read::Message(bytes) => {
            report.received += 1;
            report.damaged += u64::from(!is_whole(&bytes));
            true
        }
        Read::Closed => {
            report.end = "closed".into();
            false
        }
        Read::Lost(why) => {
            report.end = why;
            false
        }
        Read::Silence => {
            report.end = SILENT.into();
            false
        }
    }
}

/// Takes all that comes; how it ended.
fn drain(connection: &dyn Connection, report: &mut PeerReport) -> String {
    while take(connection, report) {}
    std::mem::take(&mut report.end)
}

/// The same, and the rate from five seconds after the first message to the last.
#[expect(clippy::disallowed_methods, reason = "a rate needs a clock")]
fn measure(connection: &dyn Connection, report: &mut PeerReport) -> String {
    const SKIP: Duration = Duration::from_secs(5);
    let mut begun = None;
    let (mut counted, mut last) = (0_u64, Instant::now());
    loop {
        match connection.recv() {
            Read::Message(bytes) => {
                last = Instant::now();
                report.received += 1;
                report.damaged += u64::from(!is_whole(&bytes));
                if last >= *begun.get_or_insert(last) + SKIP {
                    counted += bytes.len() as u64;
                }
            }
            end => {
                let span = begun.map(|begun| last.saturating_duration_since(begun + SKIP));
                report.goodput = span.map(|s| counted as f64 * 8.0 / s.as_secs_f64().max(1e-3));
                return match end {
                    Read::Lost(why) => why,
                    Read::Silence => SILENT.into(),
                    _ => "closed".into(),
                };
            }
        }
    }
}
