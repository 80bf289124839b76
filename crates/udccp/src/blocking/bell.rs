//! Wakes the driver when a call leaves work to it.

use std::io;
use std::sync::Arc;
use std::task::Wake;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{RecvFlags, SendFlags, recv, send};

#[cfg(windows)]
use std::net::UdpSocket as Line;
#[cfg(unix)]
use std::os::unix::net::UnixStream as Line;

/// The end that wakes the driver.
pub(super) struct Bell(Line);

/// The end that the driver waits on: readable after a ring until it is [cleared](Self::hear).
pub(super) struct BellReceiver(Line);

impl Bell {
    pub(super) fn new() -> io::Result<(Self, BellReceiver)> {
        let (bell, rings) = pair()?;
        bell.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        Ok((Self(bell), BellReceiver(rings)))
    }
}

#[cfg(unix)]
fn pair() -> io::Result<(Line, Line)> {
    Line::pair()
}

/// Windows has no socket pairs, so two UDP sockets on loopback are connected to each other.
#[cfg(windows)]
fn pair() -> io::Result<(Line, Line)> {
    let bind = || Line::bind((std::net::Ipv4Addr::LOCALHOST, 0));
    let (one, other) = (bind()?, bind()?);
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}

impl BellReceiver {
    /// Clears all rings so far.
    pub(super) fn clear(&self) {
        let mut rings = [0; 64];
        // Each read of a datagram returns one ring.
        let more = |read: usize| cfg!(windows) || read == 64;
        while recv(&self.0, &mut rings, RecvFlags::empty()).is_ok_and(|(_, read)| more(read)) {}
    }

    /// The descriptor to wait on.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(unix, not(target_vendor = "apple")))]
const NO_SIGPIPE: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
const NO_SIGPIPE: SendFlags = SendFlags::empty();

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A full buffer means that it is rung already. If the driver is gone, `write` would raise
        // SIGPIPE in programs that are not written in Rust.
        let _ = send(&self.0, &[1], NO_SIGPIPE);
    }
}
