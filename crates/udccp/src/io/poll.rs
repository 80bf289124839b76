//! Waits until a socket has something to read, or room to write.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::BorrowedFd;
use udccp_base::Duration;

use super::Io;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waited {
    /// The socket reports an error.
    pub(crate) error: bool,
    /// The bell was rung.
    pub(crate) rung: bool,
}

/// Waits for a packet, for room to write with `for_room`, or for the bell, for at most
/// `timeout`. Rounded up to a millisecond, because a thread that wakes too early has nothing to do
/// and waits again.
pub(crate) fn wait(
    io: &Io,
    for_room: bool,
    bell: Option<BorrowedFd<'_>>,
    timeout: Option<Duration>,
) -> io::Result<Waited> {
    let room = if for_room { PollFlags::OUT } else { PollFlags::empty() };
    let socket = PollFd::new(io.socket(), PollFlags::IN | room);
    let timeout = timeout.map(timespec);
    let Some(bell) = bell else {
        let mut fds = [socket];
        rustix::event::poll(&mut fds, timeout.as_ref())?;
        return Ok(Waited { error: fds[0].revents().contains(PollFlags::ERR), rung: false });
    };
    let mut fds = [socket, PollFd::from_borrowed_fd(bell, PollFlags::IN)];
    rustix::event::poll(&mut fds, timeout.as_ref())?;
    let error = fds[0].revents().contains(PollFlags::ERR);
    Ok(Waited { error, rung: !fds[1].revents().is_empty() })
}

fn timespec(timeout: Duration) -> Timespec {
    let millis = timeout.as_nanos().div_ceil(1_000_000);
    Timespec {
        tv_sec: i64::try_from(millis / 1000).unwrap_or(i64::MAX),
        tv_nsec: (millis % 1000 * 1_000_000) as _,
    }
}
