//! Rung by calls that leave work to the driver.

use std::io::{self, Read};
use std::sync::Arc;
use std::task::Wake;

#[cfg(unix)]
use std::os::unix::net::UnixStream as Line;
#[cfg(windows)]
use windows::Line;

/// Rings.
pub(super) struct Bell(Line);

/// Where it is heard: readable from a ring until it was [heard](Self::hear).
pub(super) struct Rings(pub(super) Line);

impl Bell {
    pub(super) fn new() -> io::Result<(Self, Rings)> {
        let (bell, rings) = Line::pair()?;
        bell.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        Ok((Self(bell), Rings(rings)))
    }
}

impl Rings {
    /// From here on the next ring counts.
    pub(super) fn hear(&self) {
        let mut rings = [0; 64];
        while (&self.0).read(&mut rings).is_ok_and(|n| n == rings.len()) {}
    }
}

#[cfg(all(unix, not(target_vendor = "apple")))]
const NO_SIGPIPE: rustix::net::SendFlags = rustix::net::SendFlags::NOSIGNAL;
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
const NO_SIGPIPE: rustix::net::SendFlags = rustix::net::SendFlags::empty();

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

/// Windows makes no pairs of sockets, so two of UDP on loopback are connected to each other.
#[cfg(windows)]
mod windows {
    use std::io::{self, Read};
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::windows::io::{AsSocket, BorrowedSocket};

    pub(in crate::blocking) struct Line(UdpSocket);

    impl Line {
        pub(super) fn pair() -> io::Result<(Self, Self)> {
            let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
            let (one, other) = (bind()?, bind()?);
            one.connect(other.local_addr()?)?;
            other.connect(one.local_addr()?)?;
            Ok((Self(one), Self(other)))
        }

        pub(super) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
            self.0.set_nonblocking(nonblocking)
        }
    }

    impl AsSocket for Line {
        fn as_socket(&self) -> BorrowedSocket<'_> {
            self.0.as_socket()
        }
    }

    impl Read for &Line {
        /// Rings, one byte each.
        fn read(&mut self, rings: &mut [u8]) -> io::Result<usize> {
            let mut count = 0;
            while count < rings.len() && self.0.recv(&mut rings[count..=count]).is_ok() {
                count += 1;
            }
            Ok(count)
        }
    }
}
