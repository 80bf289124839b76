//! The four socket options that have no typed form in any crate.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

/// `DCCP_SOCKOPT_CCID_TX_INFO`.
const CCID_TX_INFO: i32 = 192;

/// `SO_MEMINFO` gives numbers up to that of the packets dropped.
const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;

/// What a sender by CCID 3 tells (`struct tfrc_tx_info`, `linux/tfrc.h`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tfrc {
    /// Allowed rate in 64ths of a byte a second.
    pub(crate) x: u64,
    /// Rate that the receiver reported, in the same unit.
    pub(crate) x_recv: u64,
    /// Rate of the throughput equation in bytes a second.
    pub(crate) x_calc: u32,
    /// Round-trip time in microseconds.
    pub(crate) rtt: u32,
    /// Loss event rate in millionths.
    pub(crate) p: u32,
    /// No-feedback timeout in microseconds.
    pub(crate) rto: u32,
    /// Time between packets in microseconds.
    pub(crate) ipi: u32,
}

/// The state of a TCP connection.
pub(crate) fn tcp_info(socket: impl AsFd) -> io::Result<libc::tcp_info> {
    option(&socket, libc::IPPROTO_TCP, libc::TCP_INFO)
}

/// The state of a sender by CCID 3.
pub(crate) fn tfrc_info(socket: impl AsFd) -> io::Result<Tfrc> {
    option(&socket, libc::SOL_DCCP, CCID_TX_INFO)
}

/// Packets that arrived for a socket and were dropped because it had no room for them.
pub(crate) fn drops(socket: impl AsFd) -> io::Result<u32> {
    let numbers: [u32; DROPS + 1] = option(&socket, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(numbers[DROPS])
}

/// Sets the least amount of unread data that a reader is woken for (`SO_RCVLOWAT`).
pub(crate) fn set_receive_low_water(socket: impl AsFd, bytes: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    let value = (&raw const bytes).cast();
    // SAFETY: the kernel reads `length` bytes of an integer that has as many.
    #[expect(unsafe_code, reason = "no crate offers this option")]
    let result =
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option whose value is a structure of numbers; what an older kernel does not write of it
/// is zero.
fn option<T: Copy>(socket: &impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes into `value`, which has as many.
    #[expect(unsafe_code, reason = "no crate offers these three options")]
    let result =
        unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut length) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `T` is one of the types above, of integers alone: all bytes of it are set (zero at
    // first), and any are valid.
    #[expect(unsafe_code, reason = "no crate offers these three options")]
    Ok(unsafe { value.assume_init() })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use socket2::SockRef;

    use super::*;

    #[test]
    fn a_socket_counts_what_it_has_no_room_for() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        SockRef::from(&receiver).set_recv_buffer_size(4096).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        sender.send(&[0; 1000]).unwrap();
        assert_eq!(drops(&receiver).unwrap(), 0);
        for _ in 0..100 {
            sender.send(&[0; 1000]).unwrap();
        }
        receiver.set_nonblocking(true).unwrap();
        let mut read = 0;
        while receiver.recv(&mut [0; 1000]).is_ok() {
            read += 1;
        }
        assert_eq!(read + drops(&receiver).unwrap(), 101);
    }
}
