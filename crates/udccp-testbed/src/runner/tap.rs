//! Records the packets of a device, headers and times, with many per system call.

use std::io::{self, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockProtocol,
    SockType, recvmmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::event::{self, PacketEvent};

/// Bytes kept of a packet: IP header, transport header, and enough to tell packets apart.
const SNAP: usize = 96;
/// Packets per system call.
const BATCH: usize = 512;
/// Kernel memory for packets that have not been read.
const WAITING_BYTES: usize = 96 << 20;

/// A packet socket on one device.
pub(super) struct Tap {
    socket: OwnedFd,
    number: u16,
    address: [u8; 4],
    encapsulated: bool,
    index: u32,
    buffers: Vec<[u8; SNAP]>,
    headers: MultiHeaders<LinkAddr>,
}

impl Tap {
    /// Opens a tap in this thread's namespace.
    pub(super) fn open(
        number: usize,
        device: &str,
        address: IpAddr,
        encapsulated: bool,
    ) -> io::Result<Self> {
        let IpAddr::V4(address) = address else {
            return Err(io::Error::other("a tap is on a device with an IPv4 address"));
        };
        let index = if_nametoindex(device)?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let all = Some(SockProtocol::EthAll);
        let socket = socket(AddressFamily::Packet, SockType::Datagram, flags, all)?;
        // Root of a user namespace may not force the size; missing packets are reported at the end.
        if setsockopt(&socket, sockopt::RcvBufForce, &WAITING_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &WAITING_BYTES)?;
        }
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        Ok(Self {
            socket,
            number: number as u16,
            address: address.octets(),
            encapsulated,
            index,
            buffers: vec![[0; SNAP]; BATCH],
            headers: MultiHeaders::preallocate(BATCH, Some(nix::cmsg_space!(TimeSpec))),
        })
    }

    /// Reads all waiting packets. Times are those of the kernel's clock, minus `zero_ns`.
    pub(super) fn read(&mut self, zero_ns: u64, into: &mut Vec<PacketEvent>) -> io::Result<()> {
        loop {
            let fd = self.socket.as_raw_fd();
            let mut slices: Vec<[IoSliceMut<'_>; 1]> =
                self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
            let flags = MsgFlags::MSG_DONTWAIT;
            let found = match recvmmsg(fd, &mut self.headers, slices.iter_mut(), flags, None) {
                Ok(found) => found,
                Err(nix::errno::Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut read = 0;
            for message in found {
                read += 1;
                let on_device = message.address.is_some_and(|a| a.ifindex() == self.index as usize);
                let mut times = message.cmsgs()?;
                let time = times.find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(time) => Some(time),
                    _ => None,
                });
                let Some(time) = time.filter(|_| on_device) else { continue };
                let at_ns = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
                let Some(packet) = message.iovs().next() else { continue };
                let Some(event) = event::parse(packet, self.address, self.encapsulated) else {
                    continue;
                };
                // Ignore packets before the scenario's time zero.
                let Some(at_ns) = at_ns.checked_sub(zero_ns) else { continue };
                into.push(PacketEvent { at_ns, tap: self.number, ..event });
            }
            if read < BATCH {
                return Ok(());
            }
        }
    }
}
