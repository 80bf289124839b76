//! The C types and constants of Linux that the calls need, as on 64-bit machines.

#![expect(missing_docs, reason = "the names are those of Linux's headers")]

use core::ffi::{c_int, c_void};

pub const AF_UNIX: c_int = 1;
pub const AF_INET: c_int = 2;
pub const AF_INET6: c_int = 10;
pub const SOCK_STREAM: c_int = 1;
pub const SOCK_DGRAM: c_int = 2;
pub const SOCK_SEQPACKET: c_int = 5;
pub const SOCK_DCCP: c_int = 6;
pub const SOCK_TYPE_MASK: c_int = 0xf;
pub const SOCK_CLOEXEC: c_int = 0o2_000_000;
pub const SOCK_NONBLOCK: c_int = 0o4000;
pub const IPPROTO_DCCP: c_int = 33;
pub const SOL_SOCKET: c_int = 1;
pub const SOL_DCCP: c_int = 269;
pub const SOL_IP: c_int = 0;
pub const SOL_IPV6: c_int = 41;
pub const IP_TOS: c_int = 1;
pub const IP_MTU: c_int = 14;
pub const IPV6_MTU: c_int = 24;
pub const IP_MULTICAST_IF: c_int = 32;
pub const IP_MULTICAST_TTL: c_int = 33;
pub const IPV6_ADDRFORM: c_int = 1;
pub const IPV6_MULTICAST_IF: c_int = 17;
pub const IPV6_MULTICAST_HOPS: c_int = 18;
pub const IPV6_TCLASS: c_int = 67;
pub const SCM_RIGHTS: c_int = 1;
pub const DCCP_SCM_PRIORITY: c_int = 1;
pub const SO_TYPE: c_int = 3;
pub const SO_SNDBUF: c_int = 7;
pub const SO_RCVBUF: c_int = 8;
pub const SO_LINGER: c_int = 13;
pub const SO_ERROR: c_int = 4;
pub const SO_ACCEPTCONN: c_int = 30;
pub const SO_PROTOCOL: c_int = 38;
pub const SO_DOMAIN: c_int = 39;
pub const SO_COOKIE: c_int = 57;
pub const SO_RCVTIMEO: c_int = 20;
pub const SO_SNDTIMEO: c_int = 21;
pub const SO_RCVTIMEO_NEW: c_int = 66;
pub const SO_SNDTIMEO_NEW: c_int = 67;
pub const MSG_PEEK: c_int = 2;
pub const MSG_TRUNC: c_int = 0x20;
pub const MSG_DONTWAIT: c_int = 0x40;
pub const MSG_OOB: c_int = 1;
pub const MSG_WAITFORONE: c_int = 0x10000;
pub const MSG_NOSIGNAL: c_int = 0x4000;
pub const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;
pub const POLLIN: i16 = 1;
pub const POLLOUT: i16 = 4;
pub const POLLERR: i16 = 8;
pub const POLLHUP: i16 = 0x10;
pub const POLLRDHUP: i16 = 0x2000;
pub const O_NONBLOCK: c_int = 0o4000;
pub const F_GETFL: c_int = 3;
pub const F_SETFL: c_int = 4;
pub const FIONREAD: u64 = 0x541b;
pub const SIOCOUTQ: u64 = 0x5411;
pub const SIOCATMARK: u64 = 0x8905;
/// SIOCADDRT and the last request number for interfaces; those of protocols follow.
pub const FIRST_OF_INTERFACES: u64 = 0x890b;
pub const LAST_OF_INTERFACES: u64 = 0x89df;
pub const SHUT_RD: c_int = 0;
pub const SHUT_WR: c_int = 1;
pub const SHUT_RDWR: c_int = 2;

pub const EINTR: c_int = 4;
pub const EAGAIN: c_int = 11;
pub const ENOMEM: c_int = 12;
pub const EFAULT: c_int = 14;
pub const ESPIPE: c_int = 29;
pub const EBADF: c_int = 9;
pub const EINVAL: c_int = 22;
pub const ENFILE: c_int = 23;
pub const EMFILE: c_int = 24;
pub const ENOTTY: c_int = 25;
pub const ENOENT: c_int = 2;
pub const EPIPE: c_int = 32;
pub const EPROTO: c_int = 71;
pub const EMSGSIZE: c_int = 90;
pub const EPROTONOSUPPORT: c_int = 93;
pub const ESOCKTNOSUPPORT: c_int = 94;
pub const ENOPROTOOPT: c_int = 92;
pub const EOPNOTSUPP: c_int = 95;
pub const ECONNRESET: c_int = 104;
pub const EISCONN: c_int = 106;
pub const ENOTCONN: c_int = 107;
pub const ECONNREFUSED: c_int = 111;
pub const EINPROGRESS: c_int = 115;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IoVec {
    pub base: *mut c_void,
    pub len: usize,
}

/// Sum of the pieces' lengths.
pub fn length(pieces: &[IoVec]) -> usize {
    pieces.iter().fold(0, |sum, p| sum.saturating_add(p.len))
}

/// `struct msghdr`. musl declares two of its lengths as `int` plus padding; on little-endian
/// machines, the `int` is the low half of the field here.
#[repr(C)]
#[derive(Debug)]
pub struct MsgHdr {
    pub name: *mut c_void,
    pub name_len: u32,
    pub iov: *mut IoVec,
    pub iov_len: usize,
    pub control: *mut c_void,
    pub control_len: usize,
    pub flags: c_int,
}

impl MsgHdr {
    /// Whether the length of the address is negative.
    pub fn has_wrong_name(&self) -> bool {
        !self.name.is_null() && self.name_len.cast_signed() < 0
    }

    /// Number of pieces that the program gave. Bits above an int are musl's padding.
    pub const fn iov_count(&self) -> usize {
        self.iov_len & 0xffff_ffff
    }

    /// Bytes of control data that the program gave, read likewise.
    pub const fn control_bytes(&self) -> usize {
        self.control_len & 0xffff_ffff
    }

    /// A header for one or more pieces, without address and control data.
    pub const fn of(iov: *mut IoVec, iov_len: usize) -> Self {
        let null = core::ptr::null_mut();
        Self { name: null, name_len: 0, iov, iov_len, control: null, control_len: 0, flags: 0 }
    }
}

#[repr(C)]
#[derive(Debug)]
pub struct MMsgHdr {
    pub header: MsgHdr,
    pub len: u32,
}

impl MMsgHdr {
    /// An empty header.
    pub const fn empty() -> Self {
        Self { header: MsgHdr::of(core::ptr::null_mut(), 0), len: 0 }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CMsgHdr {
    pub len: usize,
    pub level: c_int,
    pub kind: c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct PollFd {
    pub fd: c_int,
    pub events: i16,
    pub revents: i16,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeSpec {
    pub sec: i64,
    pub nsec: i64,
}

#[repr(C)]
#[derive(Debug)]
pub struct SockAddrUn {
    pub family: u16,
    pub path: [u8; 108],
}
