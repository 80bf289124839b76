//! The four socket options for which no crate has a typed interface.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

/// `DCCP_SOCKOPT_CCID_TX_INFO`.
const CCID_TX_INFO: i32 = 192;

/// `SO_MEMINFO` returns an array; the count of dropped packets is at this index.
const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;

/// The state of a CCID 3 sender (`struct tfrc_tx_info`, `linux/tfrc.h`).
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

/// Reads the state of a TCP connection.
pub(crate) fn tcp_info(socket: impl AsFd) -> io::Result<libc::tcp_info> {
    option(&socket, libc::IPPROTO_TCP, libc::TCP_INFO)
}

/// Reads the state of a CCID 3 sender.
pub(crate) fn tfrc_info(socket: impl AsFd) -> io::Result<Tfrc> {
    option(&socket, libc::SOL_DCCP, CCID_TX_INFO)
}

/// Counts the packets that a socket dropped because it had no room for them.
pub(crate) fn drops(socket: impl AsFd) -> io::Result<u32> {
    let numbers: [u32; DROPS + 1] = option(&socket, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(numbers[DROPS])
}

/// Sets how much unread data wakes a reader (`SO_RCVLOWAT`).
pub(crate) fn set_receive_low_water(socket: impl AsFd, bytes: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    let value = (&raw const bytes).cast();
    // SAFETY: the kernel reads `length` bytes, the size of the integer that `value` points to.
    #[expect(unsafe_code, reason = "no crate offers this option")]
    let result =
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option whose value is a structure of integers. Fields that an older kernel does not
/// write are zero.
fn option<T: Copy>(socket: &impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes, the size of `value`.
    #[expect(unsafe_code, reason = "no crate offers these three options")]
    let result =
        unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut length) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `T` is one of the types above, which consist of integers alone. All its bytes are
    // initialised (to zero at first), and every bit pattern is valid.
    #[expect(unsafe_code, reason = "no crate offers these three options")]
    Ok(unsafe { value.assume_init() })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use socket2::SockRef;

    use super::*;

    #[test]
    fn socket_counts_datagrams_dropped_by_a_full_buffer() {
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
