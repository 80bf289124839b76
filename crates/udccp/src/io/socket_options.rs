//! Options of a socket: where packets go, what the kernel tells about them, how large its buffers
//! are. What a system does not have is reported, or left as it is where that does no harm.

use std::io;

use socket2::Socket;

/// Lets sockets that all request it share a port. Windows has no such setting: its SO_REUSEADDR
/// takes the port away from others.
pub(super) fn share_port(socket: &Socket, shares: bool) -> io::Result<()> {
    #[cfg(unix)]
    return socket.set_reuse_port(shares);
    #[cfg(not(unix))]
    {
        let _ = (socket, shares);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Sets the firewall mark of packets, which routing and filter rules can match.
pub(super) fn set_mark(socket: &Socket, mark: Option<u32>) -> io::Result<()> {
    let Some(mark) = mark else { return Ok(()) };
    #[cfg(target_os = "linux")]
    return socket.set_mark(mark);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (socket, mark);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Restricts a socket to one network interface.
pub(super) fn bind_device(socket: &Socket, device: Option<&str>) -> io::Result<()> {
    let Some(device) = device else { return Ok(()) };
    #[cfg(target_os = "linux")]
    return socket.bind_device(Some(device.as_bytes()));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (socket, device);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Sends packets without Don't Fragment from now on (over IPv6: fragmented to the interface's MTU),
/// or with it again. A socket for both families has a setting for each.
pub(super) fn allow_fragments(socket: &Socket, allow: bool) {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt::{
            Ipv4PathMtuDiscovery as V4, Ipv6PathMtuDiscovery as V6, set_ip_mtu_discover,
            set_ipv6_mtu_discover,
        };
        let _ = set_ip_mtu_discover(socket, if allow { V4::DONT } else { V4::PROBE });
        let _ = set_ipv6_mtu_discover(socket, if allow { V6::DONT } else { V6::PROBE });
    }
    let _ = (socket, allow);
}

/// More would be a negative number for the system, which then gives its smallest buffer.
const MOST_BUFFER_BYTES: usize = i32::MAX as usize;

/// Requests a receive buffer. A smaller one works too; the socket reports its actual size.
pub(super) fn set_recv_buffer(socket: &Socket, bytes: usize) {
    let bytes = bytes.min(MOST_BUFFER_BYTES);
    let _ = socket.set_recv_buffer_size(bytes);
    #[cfg(target_os = "linux")]
    if socket.recv_buffer_size().is_ok_and(|got| got < bytes) {
        // Above `net.core.rmem_max`, which only an administrator may exceed.
        let _ =
            nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::RcvBufForce, &bytes);
    }
}

/// Requests a send buffer. A smaller one works too.
pub(super) fn set_send_buffer(socket: &Socket, bytes: usize) {
    let _ = socket.set_send_buffer_size(bytes.min(MOST_BUFFER_BYTES));
}

/// quinn-udp requests receive timestamps, but its buffer for control messages has no room for
/// timestamp, segment size, address and ECN together. ECN would be cut off whenever the kernel
/// merged datagrams.
pub(super) fn stop_timestamps(socket: &Socket) {
    #[cfg(target_os = "linux")]
    let _ =
        nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::ReceiveTimestampns, &false);
    let _ = socket;
}

/// Where a socket is bound to one address, the kernel need not say which one a packet came to.
pub(super) fn stop_packet_info(socket: &Socket) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::socket::{setsockopt, sockopt};
        let _ = setsockopt(socket, sockopt::Ipv4PacketInfo, &false);
        let _ = setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &false);
    }
    let _ = socket;
}

/// Makes the kernel return datagrams one by one.
pub(super) fn stop_merging(socket: &Socket) {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::UdpGroSegment, &false);
    let _ = socket;
}
