//! Shows on a file descriptor whether a call would wait, for `poll`, `epoll`, `select` and runtimes
//! that wait on descriptors.
//!
//! The descriptor is one end of a pair of Unix sockets; the endpoint has the other. A byte in it
//! makes it readable, a full send buffer makes it unwritable, a shutdown hangs it up, and closing
//! the other end with data unread is an error. All changes are made under the endpoint's lock, so
//! that the descriptor is right whenever no call is in progress.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use socket2::SockRef;

use crate::Error;

/// A file descriptor that is ready whenever a call of a connection or listener would not wait.
///
/// It is level-triggered, and the same descriptor for the whole life of its connection or listener:
///
/// | `poll` | connection | listener |
/// |---|---|---|
/// | `POLLIN` | `recv` would give a message, the end or an error | `accept` would not wait |
/// | `POLLOUT` | a message of the maximum size would be taken | never |
/// | `POLLRDHUP` | nothing more will arrive: the end, or `shutdown_read` | its driver has ended |
/// | `POLLHUP` | the connection has ended | its driver has ended |
/// | `POLLERR` | it ended with an error | its driver has ended |
///
/// If a connection was closed here and the peer does not confirm in time, the descriptor shows the
/// end with an error, although the connection may still end in order.
///
/// During a handshake no event is set; `POLLOUT` shows that it is complete. After an error, and
/// when nothing more can be sent (this side has closed, or the peer reads no more), `POLLOUT` is
/// set too, as for TCP: `send` then fails at once. Only Linux shows `POLLERR`; on other systems an
/// error is a hang-up.
///
/// Only wait on it: its contents are not data. Clones are the same descriptor. It is created by the
/// first call and uses two descriptors of the process. After its connection is dropped it remains,
/// hung up.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<UnixStream>);

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Readiness {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A descriptor created before the handshake or listener whose [`Readiness`] it will be, for
/// programs that register a socket with `epoll` before they connect it. Pass it to `set_readiness`
/// of a `Connecting` or a `Listener`. Until then no event is set. If it is dropped, it hangs up.
#[derive(Debug)]
pub struct EarlyReadiness(Box<Signal>);

impl EarlyReadiness {
    /// A descriptor with no event set. It uses two descriptors of the process.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has no more descriptors.
    pub fn new() -> Result<Self, Error> {
        let made = Signal::new().map(|signal| Self(Box::new(signal)));
        made.map_err(|source| Error::Io { what: "cannot make a descriptor to wait on", source })
    }

    /// The descriptor, which stays the same later.
    pub fn readiness(&self) -> Readiness {
        self.0.readiness()
    }

    pub(crate) fn into_signal(self) -> Box<Signal> {
        self.0
    }
}

/// The condition that a descriptor is to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// Nothing more will arrive.
    pub(crate) read_closed: bool,
    pub(crate) ended: bool,
    /// It ended with an error.
    pub(crate) failed: bool,
}

impl Condition {
    /// The end.
    pub(crate) fn end(failed: bool) -> Self {
        Self { readable: true, writable: false, read_closed: true, ended: true, failed }
    }
}

/// Both ends of the pair.
#[derive(Debug)]
pub(crate) struct Signal {
    theirs: Arc<UnixStream>,
    /// Dropped to show an error.
    ours: Option<UnixStream>,
    shown: Condition,
}

/// Requested from the system for each direction, which raises it to its minimum.
const BUFFER_BYTES: usize = 1024;

/// More than the smallest send buffer holds.
const FILLING: [u8; 8192] = [0; 8192];

impl Signal {
    /// A descriptor with no event set.
    pub(crate) fn new() -> io::Result<Self> {
        let (theirs, ours) = UnixStream::pair()?;
        for end in [&theirs, &ours] {
            end.set_nonblocking(true)?;
            let _ = SockRef::from(end).set_send_buffer_size(BUFFER_BYTES);
            let _ = SockRef::from(end).set_recv_buffer_size(BUFFER_BYTES);
        }
        fill(&theirs);
        Ok(Self { theirs: Arc::new(theirs), ours: Some(ours), shown: Condition::default() })
    }

    /// The end that the user waits on.
    pub(crate) fn readiness(&self) -> Readiness {
        Readiness(Arc::clone(&self.theirs))
    }

    /// Shows this condition.
    pub(crate) fn show(&mut self, to: Condition) {
        let was = std::mem::replace(&mut self.shown, to);
        let Some(ours) = &self.ours else { return };
        if was.writable && !to.writable {
            fill(&self.theirs);
        }
        // An end is shown first and in one step, because a waiting program wakes at the first of
        // several steps.
        if to.failed {
            self.ours = None;
            return;
        }
        if to.ended && !was.ended {
            let _ = self.theirs.shutdown(Shutdown::Both);
        } else if to.read_closed && !was.read_closed {
            let _ = self.theirs.shutdown(Shutdown::Read);
        }
        if to.writable && !was.writable {
            drain(ours);
        }
        match (was.readable, to.readable) {
            // After a shutdown the descriptor is readable anyway.
            (false, true) if !to.read_closed => drop((&*ours).write(&[1])),
            (true, false) => drain(&self.theirs),
            _ => {}
        }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        // Closing with unread data would show an error.
        if let Some(ours) = &self.ours {
            drain(ours);
        }
    }
}

/// Fills the send buffer.
fn fill(mut end: &UnixStream) {
    while end.write(&FILLING).is_ok() {}
}

/// Reads everything.
fn drain(mut end: &UnixStream) {
    let mut buffer = [0; FILLING.len()];
    while end.read(&mut buffer).is_ok_and(|n| n == buffer.len()) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    const ALL: PollFlags = PollFlags::IN.union(PollFlags::OUT).union(PollFlags::RDHUP);

    fn bits(readiness: &Readiness) -> PollFlags {
        let mut fds = [PollFd::new(readiness, ALL)];
        poll(&mut fds, Some(&Timespec::default())).expect("a descriptor");
        fds[0].revents()
    }

    #[test]
    fn every_condition_has_its_bits_and_comes_and_goes() {
        let mut signal = Signal::new().expect("a descriptor");
        let readiness = signal.readiness();
        assert_eq!(bits(&readiness), PollFlags::empty());
        for round in 0..20 {
            for (readable, writable) in [(true, false), (true, true), (false, true)] {
                signal.show(Condition { readable, writable, ..Condition::default() });
                let expected = [(readable, PollFlags::IN), (writable, PollFlags::OUT)];
                let expected = expected.into_iter().filter(|(is, _)| *is).map(|(_, bit)| bit);
                assert_eq!(bits(&readiness), expected.collect(), "round {round}");
            }
            signal.show(Condition::default());
            assert_eq!(bits(&readiness), PollFlags::empty(), "round {round}");
        }
    }

    #[test]
    fn an_end_is_shown_as_a_hang_up_or_an_error() {
        let hung_up = PollFlags::IN | PollFlags::RDHUP | PollFlags::HUP;
        for (failed, expected) in
            [(false, hung_up), (true, hung_up | PollFlags::ERR | PollFlags::OUT)]
        {
            for writable in [false, true] {
                let mut signal = Signal::new().expect("a descriptor");
                signal.show(Condition { writable, ..Condition::default() });
                signal.show(Condition::end(failed));
                assert_eq!(bits(&signal.readiness()), expected, "{failed} {writable}");
            }
        }
    }

    /// A program that waited for a handshake once took POLLIN alone, the first half of a failure,
    /// for data.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "somebody has to wait meanwhile")]
    fn waiting_task_wakes_with_the_complete_end_condition() {
        for (failed, expected) in [(false, PollFlags::HUP), (true, PollFlags::HUP | PollFlags::ERR)]
        {
            for _ in 0..200 {
                let mut signal = Signal::new().expect("a descriptor");
                let readiness = signal.readiness();
                let waiter = std::thread::spawn(move || {
                    let mut fds = [PollFd::new(&readiness, ALL)];
                    poll(&mut fds, None).expect("a descriptor");
                    fds[0].revents()
                });
                std::thread::sleep(std::time::Duration::from_micros(100));
                signal.show(Condition::end(failed));
                let woke_with = waiter.join().expect("a waiter");
                assert!(woke_with.contains(expected), "{failed}: {woke_with:?}");
            }
        }
    }

    #[test]
    fn shutdown_read_is_shown_without_the_end() {
        let mut signal = Signal::new().expect("a descriptor");
        let closed = Condition { readable: true, read_closed: true, ..Condition::default() };
        signal.show(Condition { writable: true, ..closed });
        assert_eq!(bits(&signal.readiness()), ALL);
        signal.show(closed);
        assert_eq!(bits(&signal.readiness()), PollFlags::IN | PollFlags::RDHUP);
    }
}
