//! The thread that drives an endpoint: waits for the socket, the clock or a call.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Wake, Waker};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use udccp_base::{Duration, Instant};

use super::alarm::LazyAlarm;
use super::shared_driver::SharedDriver;
use crate::Error;
use crate::shared::{Running, Shared, Turn};

/// Prepares the driver.
pub(super) fn prepare(shared: &Shared) -> Result<(), Error> {
    let io_error = |source| Error::Io { what: "cannot start the socket's thread", source };
    let (bell, wakeups) = UnixStream::pair().map_err(io_error)?;
    bell.set_nonblocking(true).map_err(io_error)?;
    wakeups.set_nonblocking(true).map_err(io_error)?;
    let bell = Arc::new(Bell(bell));
    shared.set_driver(Waker::from(Arc::clone(&bell)));
    let alarm = Arc::new(LazyAlarm::default());
    shared.set_alarm(Arc::<LazyAlarm>::clone(&alarm));
    let shared_driver = Arc::new(SharedDriver::new(shared, alarm, bell, wakeups));
    shared.set_shared_driver(Arc::clone(&shared_driver));
    shared.set_starter(move |shared| {
        let theirs = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("udccp".into());
        let drive = move || {
            let running = Running(theirs);
            shared_driver.drive(&running.0);
        };
        thread.spawn(drive).map_err(io_error)?;
        Ok(())
    });
    Ok(())
}

#[cfg(not(target_vendor = "apple"))]
const NO_SIGPIPE: rustix::net::SendFlags = rustix::net::SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const NO_SIGPIPE: rustix::net::SendFlags = rustix::net::SendFlags::empty();

/// How long an acknowledgement waits for a thread that was woken to answer or to read on.
const HELD_FOR: Duration = Duration::from_millis(1);

/// Rung by calls that leave work to the driver.
pub(super) struct Bell(UnixStream);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Full means that it rings already. Where the driver is gone, `write` would raise SIGPIPE
        // in programs that are not Rust's.
        let _ = rustix::net::send(&self.0, &[1], NO_SIGPIPE);
    }
}

/// Waits from `now` for a reason to take a turn, or until then; whether the socket reports errors.
pub(super) fn wait_for_socket(
    shared: &Shared,
    mut wakeups: &UnixStream,
    turn: &Turn,
    until: Option<Instant>,
    now: Instant,
) -> bool {
    let room = if turn.blocked { PollFlags::POLLOUT } else { PollFlags::empty() };
    let mut fds = [
        PollFd::new(shared.io.socket().as_fd(), PollFlags::POLLIN | room),
        PollFd::new(wakeups.as_fd(), PollFlags::POLLIN),
    ];
    let held = turn.holds_acks.then(|| now + HELD_FOR);
    let deadline = turn.deadline.into_iter().chain(held).chain(until).min();
    let timeout = deadline.map_or(PollTimeout::NONE, |at| {
        let left = at.saturating_since(now);
        // Rounded up: a driver that wakes early has nothing to do and would come back at once.
        let millis = left.as_nanos().div_ceil(1_000_000);
        PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
    });
    if poll(&mut fds, timeout).is_err() {
        return true;
    }
    let socket = fds[0].revents().unwrap_or(PollFlags::empty());
    if fds[1].any().unwrap_or(true) {
        let mut rings = [0; 64];
        while wakeups.read(&mut rings).is_ok_and(|n| n == rings.len()) {}
    }
    socket.contains(PollFlags::POLLERR)
}
