//! Connects the simulator's sources to real sockets.

mod connected;
pub(crate) mod dccp;
pub(crate) mod linux;
mod many;
pub(crate) mod stream;
pub(crate) mod tcp;
pub(crate) mod udp;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use bytes::Bytes;
use nix::poll::PollFlags;
use udccp_base::{AppPort, Duration, Instant, Probe};

use crate::error::AgentError;

/// The contents of messages do not matter, so all are zeros.
pub(crate) static ZEROS: [u8; 65_536] = [0; 65_536];

/// Messages passed to or from the kernel in one call.
pub(crate) const BATCH: usize = 64;

/// How long bulk data may wait in a socket before they are read, or free room before it is filled.
/// Each call costs time: in a guest kernel, as much as tens of packets. Not a whole number of
/// milliseconds, as tokio's timers are.
pub(crate) const PAUSE: Duration = Duration::from_micros(4050);
/// The pause where messages are tracked one by one.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_millis(1);

/// A connection (or pair of UDP ports) over real sockets.
///
/// An offered message leaves with the next [`FlowSocket::exchange`]. Messages keep their boundaries
/// over byte streams too: the receiver splits the stream where they end.
pub(crate) trait FlowSocket: AppPort {
    /// Starts the flow. The outcome shows later.
    fn open(&mut self, now: Instant) -> Result<(), AgentError>;

    /// Reads what has arrived and sends what is queued. Does not block.
    fn exchange(&mut self, now: Instant) -> Result<(), AgentError>;

    /// Data received since the last call.
    fn poll_delivered(&mut self) -> Option<Delivered>;

    /// Whether the flow has ended.
    fn is_closed(&self) -> bool;

    /// The congestion state now.
    fn probe(&mut self) -> Probe;

    /// What to wait for in addition to the clock.
    fn interest(&self) -> Interest<'_>;

    /// The sender's port, once known.
    fn port(&self) -> u16;

    /// Packets that the socket dropped because it had no room for them, if the kernel counts them
    /// only per socket.
    fn buffer_drops(&self) -> u64 {
        0
    }

    /// Returns and clears the problems that did not end the run.
    fn take_warnings(&mut self) -> Vec<String>;
}

/// Data delivered to the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Bytes since the last call.
    pub(crate) bytes: u64,
    /// For a tracked message: its first bytes.
    pub(crate) mark: Option<Bytes>,
}

/// Data that waits for the application.
#[derive(Debug, Default)]
struct Inbox {
    bytes: u64,
    marks: VecDeque<Bytes>,
}

impl Inbox {
    fn take(&mut self) -> Option<Delivered> {
        let mark = self.marks.pop_front();
        (self.bytes > 0 || mark.is_some())
            .then(|| Delivered { bytes: std::mem::take(&mut self.bytes), mark })
    }
}

/// What a socket waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interest<'a> {
    /// The socket and the events to wait for.
    pub(crate) socket: Option<(BorrowedFd<'a>, PollFlags)>,
    /// Poll again after at most this time.
    pub(crate) within: Option<Duration>,
}

/// A passive socket.
pub(crate) trait Listen {
    /// Accepts the next connection, if there is one.
    fn accept(&mut self, now: Instant) -> Result<Option<Box<dyn FlowSocket>>, AgentError>;

    /// What to wait for in addition to the clock.
    fn interest(&self) -> Interest<'_>;
}
