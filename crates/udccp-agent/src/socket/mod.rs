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

/// Zeros that are sent: what applications say does not matter.
pub(crate) static ZEROS: [u8; 65_536] = [0; 65_536];

/// Messages that are handed to the kernel, or taken from it, by one call.
pub(crate) const BATCH: usize = 64;

/// How long bulk data may wait in a socket before it is read, or room in it before it is filled.
/// Every call costs, in a guest kernel as much as tens of packets. Not whole milliseconds, which
/// timers of tokio are.
pub(crate) const PAUSE: Duration = Duration::from_micros(4050);
/// The same where messages are tracked one by one.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_millis(1);

/// One connection (or pair of UDP ports) on real sockets.
///
/// A message that is offered leaves with the next [`FlowSocket::turn`]. Messages keep their
/// boundaries over byte streams too: the receiver cuts the stream where messages end.
pub(crate) trait FlowSocket: AppPort {
    /// Starts the flow. What comes of it is seen later.
    fn open(&mut self, now: Instant) -> Result<(), AgentError>;

    /// Takes what the network brought, and hands on what waits for it. Does not wait.
    fn turn(&mut self, now: Instant) -> Result<(), AgentError>;

    /// Data that came since the last call.
    fn poll_delivered(&mut self) -> Option<Delivered>;

    /// Whether the flow is over.
    fn is_closed(&self) -> bool;

    /// Congestion state now.
    fn probe(&mut self) -> Probe;

    /// What to wait for besides the clock.
    fn interest(&self) -> Interest<'_>;

    /// The sender's port, once known.
    fn port(&self) -> u16;

    /// Packets that arrived and were dropped because the socket had no room for them, where the
    /// kernel counts them by socket alone.
    fn buffer_drops(&self) -> u64 {
        0
    }

    /// What went wrong without ending the run.
    fn take_warnings(&mut self) -> Vec<String>;
}

/// Data that came to the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// How much since the last look.
    pub(crate) bytes: u64,
    /// Of one tracked message: what it began with.
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
    /// Events of a socket.
    pub(crate) socket: Option<(BorrowedFd<'a>, PollFlags)>,
    /// Look again after this time at most.
    pub(crate) within: Option<Duration>,
}

/// A passive socket.
pub(crate) trait Listen {
    /// The next connection, if there is one.
    fn accept(&mut self, now: Instant) -> Result<Option<Box<dyn FlowSocket>>, AgentError>;

    /// What to wait for besides the clock.
    fn interest(&self) -> Interest<'_>;
}
