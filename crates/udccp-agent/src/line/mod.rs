//! Real sockets as the simulator's sources see transports.

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
use udccp_base::{
    Datagram, Duration, Instant, Machine, Message, Payload, Probe, SendOutcome, Transport,
};

use crate::error::AgentError;

/// Zeros that are sent: what applications say does not matter.
pub(crate) static ZEROS: [u8; 65_536] = [0; 65_536];

/// Messages that are handed to the kernel, or taken from it, by one call.
pub(crate) const BATCH: usize = 64;

/// How long bulk data may wait in a socket before it is read, or room in it before it is filled.
/// Every call costs, in a guest kernel as much as tens of packets.
pub(crate) const PAUSE: Duration = Duration::from_millis(4);
/// The same where messages are followed one by one.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_millis(1);

/// One connection (or pair of UDP ports) on real sockets.
pub(crate) trait Line {
    /// Starts the flow. What comes of it is seen later.
    fn open(&mut self, now: Instant) -> Result<(), AgentError>;

    /// Takes what the network brought, and hands on what waits for it. Does not wait.
    fn turn(&mut self, now: Instant) -> Result<(), AgentError>;

    /// Offers a message; it leaves with the next [`Line::turn`].
    fn send(&mut self, now: Instant, message: Message) -> SendOutcome;

    /// Whether a message offered now would be taken.
    fn is_writable(&self) -> bool;

    /// Ends the flow after what was taken.
    fn close(&mut self, now: Instant);

    /// Data that came since the last call.
    fn poll_delivered(&mut self) -> Option<Delivered>;

    /// Whether the flow is over.
    fn is_closed(&self) -> bool;

    /// Largest message in bytes.
    fn max_payload(&self) -> usize;

    /// Congestion state now.
    fn probe(&mut self) -> Probe;

    /// What to wait for besides the clock.
    fn interest(&self) -> Interest<'_>;

    /// The sender's port, once known.
    fn port(&self) -> u16;

    /// What went wrong without ending the run.
    fn take_faults(&mut self) -> Vec<String>;
}

/// Data that came to the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// How much since the last look.
    pub(crate) bytes: u64,
    /// Of one followed message: what it began with.
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

/// What a line waits for.
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
    fn accept(&mut self, now: Instant) -> Result<Option<Box<dyn Line>>, AgentError>;

    /// What to wait for besides the clock.
    fn interest(&self) -> Interest<'_>;
}

/// A line as a source sees it. Messages keep their boundaries over byte streams too: whoever
/// listens cuts the stream where messages end.
pub(crate) struct AsTransport<'a>(pub(crate) &'a mut dyn Line);

impl Machine for AsTransport<'_> {
    fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl Transport for AsTransport<'_> {
    fn open(&mut self, _now: Instant) {}

    fn send(&mut self, now: Instant, message: Message) -> SendOutcome {
        self.0.send(now, message)
    }

    fn is_writable(&self) -> bool {
        self.0.is_writable()
    }

    fn close(&mut self, now: Instant) {
        self.0.close(now);
    }

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        None
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn max_payload(&self) -> usize {
        self.0.max_payload()
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}
