//! One end of a connection with either stack, and the test cases that it runs.

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
/// Messages of a test case, and bytes in each.
const MESSAGES: u64 = 300;
const MESSAGE_BYTES: usize = 700;
/// Bytes in the messages of a long transfer.
const BULK_BYTES: usize = 1400;
const BULK_TIME: Duration = Duration::from_secs(60);
/// A call that takes longer has failed; guest time.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// A closing server closes when nothing has arrived for this time: a CCID 3 sender whose receiver
/// is Linux may send only one packet in several seconds for a while.
const SILENCE: Duration = Duration::from_secs(60);
/// The same for a closing client, over a path without losses.
const PAUSE: Duration = Duration::from_secs(5);
/// How long a client waits for a closing server.
const END: Duration = Duration::from_secs(900);
/// Time between the last message and an abort.
const BEFORE_ABORT: Duration = Duration::from_secs(20);
/// The reported end if none was observed.
const SILENT: &str = "silence";
/// Checksum coverage of the partial-checksum case: headers, and two words of data.
const COVERAGE: u8 = 3;

/// The configuration of one end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) port: u16,
    pub(crate) service: u32,
    pub(crate) ccid: u8,
    /// Checksum coverage of data: of sent packets, and the minimum for received ones.
    pub(crate) coverage: u8,
    pub(crate) is_bulk: bool,
}

/// What one end did and observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// Whether the handshake succeeded.
    pub connected: bool,
    /// If it did not, the error of this end's sockets.
    pub refusal: Option<String>,
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Messages received whose bytes differ from those sent.
    pub damaged: u64,
    /// How the connection ended: the error of this end's sockets, or `closed` if orderly. For
    /// `traceroute`, the hosts that it found.
    pub end: String,
    /// For a long transfer: data rate received in bit/s, without the first 5 s.
    pub goodput: Option<f64>,
}

/// The result of reading from a connection.
pub(crate) enum Read {
    Message(Vec<u8>),
    Closed,
    Lost(String),
    /// Nothing arrived within the time limit.
    Silence,
}

/// An open connection.
pub(crate) trait Connection: Send + Sync {
    /// Sends a message, waiting for room. Returns an error once the connection has ended.
    fn send(&self, message: &[u8]) -> Result<(), String>;
    /// Returns the next message or the end.
    fn recv(&self) -> Read;
    /// Sets the time limit of `recv`.
    fn set_timeout(&mut self, timeout: Duration);
    /// Closes in order. `Ok` if this end knows that everything was delivered.
    fn close(self: Box<Self>) -> Result<(), String>;
    /// Aborts.
    fn abort(self: Box<Self>);
    /// Another handle, for reading and writing at the same time.
    fn handle(&self) -> Box<dyn Connection>;
}

/// A listening port.
pub(crate) trait Listener: Send {
    /// Accepts the next connection within [`TIMEOUT`].
    fn accept(&self) -> Option<Box<dyn Connection>>;
}

impl Side {
    /// The two ends of an entry, client first.
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

/// A message that starts with its number, from which all its bytes follow.
fn message(n: u64, len: usize) -> Vec<u8> {
    let mut bytes = n.to_be_bytes().to_vec();
    bytes.resize(len, n as u8);
    bytes
}

fn is_whole(bytes: &[u8]) -> bool {
    let number = bytes.first_chunk().map(|n| u64::from_be_bytes(*n));
    number.is_some_and(|n| bytes[8..].iter().all(|b| *b == n as u8))
}

/// Runs the client.
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
            connection.set_timeout(END);
            let sent = send_until(&*connection, &mut report, MESSAGES);
            let read = drain(&*connection, &mut PeerReport::default());
            report.end = sent.err().unwrap_or(read);
        }
        TestCase::Abort => {
            let _ = send_until(&*connection, &mut report, MESSAGES);
            // Much of the data should arrive before the abort.
            wait(BEFORE_ABORT);
            connection.abort();
            report.end = "aborted".into();
        }
        TestCase::BothWays => {
            connection.set_timeout(PAUSE);
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

/// Runs the server for one connection.
pub(crate) fn server(case: TestCase, listener: &dyn Listener) -> PeerReport {
    let mut report = PeerReport::default();
    let Some(mut connection) = listener.accept() else { return report };
    report.connected = true;
    match case {
        TestCase::ServerClose => {
            // Linux answers a Close with an abort if data are unread, so read everything first.
            connection.set_timeout(SILENCE);
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

/// Waits, in guest time.
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

/// Reads one message. Returns whether there was one.
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

/// Reads all messages. Returns how the connection ended.
fn drain(connection: &dyn Connection, report: &mut PeerReport) -> String {
    while take(connection, report) {}
    std::mem::take(&mut report.end)
}

/// The same; also measures the rate from five seconds after the first message to the last.
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
