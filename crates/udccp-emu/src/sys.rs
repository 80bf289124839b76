//! System calls that no library wraps. Each is one call with plain arguments.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Turns an open `/dev/net/tun` into the device of this name in the calling thread's namespace:
/// layer 3, no header before the IP header, no offloads. Closing it removes the device.
pub(crate) fn attach_tun(tun: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // SAFETY: all zeros is a valid `ifreq`: it consists of numbers and arrays of numbers.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, and the kernel reads and writes one `ifreq`.
    let done = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives the calling thread, and what it starts from now on, real-time priority over all normal
/// threads. A higher `priority` (from 1) goes first.
pub(crate) fn run_first(priority: i32) -> io::Result<()> {
    let least = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 is the calling thread, and the kernel reads one `sched_param`.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const least) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Undoes [`run_first`].
pub(crate) fn run_as_others() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above. Returning to normal scheduling needs no privilege.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const none) };
}
