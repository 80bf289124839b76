//! Peers that a signal stops, continues or kills, and peers that do not read.

#![expect(clippy::disallowed_methods, reason = "processes are stopped for a real time")]

use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use udccp::blocking::{Connection, Listener};
use udccp::{Address, CloseReason, Error, Options, TryRecvError};

use crate::common::{SERVICE, localhost};
use crate::{PATIENCE, accept, assert_success, lingering, start};

/// Between two messages of a process that talks.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a process is stopped: longer than timers wait for acknowledgements.
const STOPPED: Duration = Duration::from_millis(1500);

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("it is there");
}

/// The number of a message, and the last number that its sender had received.
fn numbers(message: &[u8]) -> [u64; 2] {
    [0, 8].map(|at| u64::from_le_bytes(message[at..at + 8].try_into().expect("two numbers")))
}

/// Sends numbered messages, which say what arrived.
struct Talk<'a> {
    connection: &'a Connection,
    sent: u64,
    received: u64,
    /// The last of our messages that the peer has received.
    heard: u64,
}

impl<'a> Talk<'a> {
    fn over(connection: &'a Connection) -> Self {
        Self { connection, sent: 0, received: 0, heard: 0 }
    }

    /// Sends a message if there is room, and reads all. Each message is newer than those before.
    fn turn(&mut self) -> Result<(), Error> {
        let bytes = [self.sent + 1, self.received].map(u64::to_le_bytes).concat();
        self.sent += u64::from(self.connection.try_send(bytes).is_ok());
        loop {
            match self.connection.try_recv() {
                Ok(message) => {
                    let [number, heard] = numbers(&message);
                    assert!(number > self.received, "{number} after {}", self.received);
                    (self.received, self.heard) = (number, heard);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Ended(error)) => return Err(error),
            }
        }
        std::thread::park_timeout(PAUSE);
        Ok(())
    }

    /// Continues until new messages have arrived in both directions.
    fn goes_on(&mut self) {
        let (sent, received) = (self.sent, self.received);
        let began = Instant::now();
        while self.heard <= sent || self.received < received + 20 {
            self.turn().expect("the peer is there");
            let hangs = PATIENCE.is_some_and(|patience| began.elapsed() > 4 * patience);
            assert!(!hangs, "no progress: {:?}", self.connection.stats());
        }
    }
}

/// A connection survives that its peer's process is stopped, and ends when that is killed.
pub(crate) fn stopped_and_killed(case: &str) {
    let listener = Listener::bind_with(localhost(false), [SERVICE], &talking(case));
    let listener = listener.expect("a listener");
    let mut child = start(case, listener.local_addr());
    let connection = accept(&listener);
    let mut talk = Talk::over(&connection);
    talk.goes_on();
    for while_sending in [true, false] {
        signal(&child, Signal::SIGSTOP);
        let began = Instant::now();
        while began.elapsed() < STOPPED {
            if while_sending {
                talk.turn().expect("it is only stopped");
            } else {
                std::thread::park_timeout(STOPPED);
            }
        }
        signal(&child, Signal::SIGCONT);
        talk.goes_on();
    }
    signal(&child, Signal::SIGKILL);
    child.wait().expect("its end");
    // Only the answers to our own packets show the end.
    let end = loop {
        if let Err(end) = talk.turn() {
            break end;
        }
    };
    assert!(matches!(end, Error::Lost(CloseReason::PortUnreachable)), "{end:?}");
}

/// The settings of a case that ends with the number of its CCID.
fn talking(case: &str) -> Options {
    let ccid = case.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a CCID");
    lingering().ccid(ccid)
}

pub(crate) fn talk(case: &str, peer: Address) -> ExitCode {
    let connection = Connection::connect_with(peer, SERVICE, &talking(case), PATIENCE);
    let connection = connection.expect("a connection");
    let mut talk = Talk::over(&connection);
    while talk.turn().is_ok() {}
    ExitCode::SUCCESS
}

/// Both ends send as much as they can and read nothing for a while. Then one reads all, and the
/// other, which never reads, closes.
pub(crate) fn nobody_reads(case: &str) {
    let options = talking(case).recv_queue(1 << 20, 50);
    let listener = Listener::bind_with(localhost(false), [SERVICE], &options);
    let listener = listener.expect("a listener");
    let child = start(case, listener.local_addr());
    let connection = accept(&listener);
    let began = Instant::now();
    let mut sent = 0_u64;
    while began.elapsed() < STOPPED {
        sent += u64::from(connection.try_send(vec![1; 1000]).is_ok());
        std::thread::park_timeout(Duration::from_millis(1));
    }
    let mut last = 0;
    while let Some(message) = connection.recv().expect("the orderly end") {
        let [number, _] = numbers(&message);
        assert!(number > last, "{number} after {last}");
        last = number;
    }
    assert_success(child);
    assert!(sent > 0 && last > 50, "{sent} sent, {last} received");
}

pub(crate) fn send_and_never_read(case: &str, peer: Address) -> ExitCode {
    let options = talking(case).recv_queue(1 << 20, 50);
    let connection = Connection::connect_with(peer, SERVICE, &options, PATIENCE);
    let connection = connection.expect("a connection");
    let (began, mut sent) = (Instant::now(), 0_u64);
    while began.elapsed() < 2 * STOPPED {
        let mut bytes = vec![0; 1000];
        bytes[..8].copy_from_slice(&(sent + 1).to_le_bytes());
        sent += u64::from(connection.try_send(bytes).is_ok());
        std::thread::park_timeout(Duration::from_millis(1));
    }
    ExitCode::SUCCESS
}
