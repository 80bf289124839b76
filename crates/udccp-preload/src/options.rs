//! The socket options.
//!
//! The broker handles DCCP's options. Options that all Internet sockets share are handled by the
//! system: a socket of another protocol, opened for the call, accepts or refuses them, and the
//! broker keeps what was accepted. So lengths, values, errors and defaults are those of the running
//! kernel.

use core::ffi::{c_int, c_void};

use crate::abi::*;
use crate::find::Socket;
use crate::protocol::*;
use crate::rpc;
use crate::sys::{self, Raw};

/// Largest value of a system option to keep, in bytes.
const SYSTEM_VALUE: usize = 64;
/// Options of SOL_SOCKET that the broker answers or refuses: a filter must not seem to work.
const OURS: [c_int; 11] = [SO_SNDBUF, SO_RCVBUF, SO_LINGER, 26, 27, 32, 33, 44, 50, 51, 52];
/// Options whose value this library knows and which cannot be set.
const KNOWN: [c_int; 5] = [SO_TYPE, SO_ERROR, SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN];
/// Options of DCCP that Linux accepts and ignores.
const WITHOUT_EFFECT: [c_int; 3] = [1, 3, 4];

const fn fail(errno: c_int) -> Raw {
    -(errno as Raw)
}

fn is_system_option(level: c_int, name: c_int) -> bool {
    match level {
        SOL_SOCKET => !OURS.contains(&name),
        SOL_IP | SOL_IPV6 => true,
        _ => false,
    }
}

/// A socket of the same family, used to try an option. At the IP level, a TCP socket is the most
/// similar, but it drops the ECN bits of the traffic class and has no multicast.
struct ProxySocket(c_int);

impl ProxySocket {
    fn open(s: &Socket, level: c_int, name: c_int) -> Result<Self, c_int> {
        let has_ecn = matches!((level, name), (SOL_IP, IP_TOS) | (SOL_IPV6, IPV6_TCLASS));
        let is_mtu = matches!((level, name), (SOL_IP, IP_MTU) | (SOL_IPV6, IPV6_MTU));
        let is_multicast = matches!(
            (level, name),
            (SOL_IP, IP_MULTICAST_IF | IP_MULTICAST_TTL)
                | (SOL_IPV6, IPV6_MULTICAST_IF | IPV6_MULTICAST_HOPS)
        );
        let is_datagram = has_ecn || is_mtu || is_multicast || level == SOL_SOCKET;
        let kind = if is_datagram { SOCK_DGRAM } else { SOCK_STREAM };
        let fd = sys::socket(s.family(), kind | SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(-fd as c_int);
        }
        let mut peer = [0; ADDRESS_BYTES];
        let len = if is_mtu { s.address(SLOT_PEER_AT, &mut peer) } else { 0 };
        if len > 0 {
            // Connected, so that the option reflects the path to the same host.
            sys::connect(fd as c_int, &peer[..len]);
        }
        Ok(Self(fd as c_int))
    }
}

impl Drop for ProxySocket {
    fn drop(&mut self) {
        sys::close(self.0);
    }
}

/// Whether only TCP and UDP sockets have an option: no others can change from IPv6 to IPv4.
const fn is_of_tcp_and_udp(level: c_int, name: c_int) -> bool {
    matches!((level, name), (SOL_IPV6, IPV6_ADDRFORM))
}

/// Converts the kernel's result.
fn checked(result: Raw) -> Result<(), c_int> {
    if result < 0 { Err(-result as c_int) } else { Ok(()) }
}

fn set_system_option(
    s: &Socket,
    level: c_int,
    name: c_int,
    of: *const c_void,
    len: u32,
) -> Result<(), c_int> {
    let proxy = ProxySocket::open(s, level, name)?;
    checked(sys::setsockopt(proxy.0, level, name, of, len)).map_err(|e| {
        if is_of_tcp_and_udp(level, name) && e == ENOTCONN { ENOPROTOOPT } else { e }
    })?;
    let mut value = [0u8; SYSTEM_VALUE];
    let mut len = SYSTEM_VALUE as u32;
    let to = value.as_mut_ptr().cast();
    if sys::getsockopt(proxy.0, level, name, to, core::ptr::from_mut(&mut len)) < 0 {
        // The option cannot be read, so it need not be kept.
        return Ok(());
    }
    let bytes = &value[..(len as usize).min(SYSTEM_VALUE)];
    rpc::call(Op::SetOption, s.cookie, level, name, bytes).map(|_| ())
}

unsafe fn get_system_option(
    s: &Socket,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    len: *mut u32,
) -> Result<(), c_int> {
    if is_of_tcp_and_udp(level, name) {
        return Err(ENOPROTOOPT);
    }
    let proxy = ProxySocket::open(s, level, name)?;
    let most = (SYSTEM_VALUE as u32).to_ne_bytes();
    if let Ok(kept) = rpc::call(Op::GetOption, s.cookie, level, name, &most) {
        let bytes = kept.bytes();
        sys::setsockopt(proxy.0, level, name, bytes.as_ptr().cast(), bytes.len() as u32);
    }
    checked(sys::getsockopt(proxy.0, level, name, to, len))
}

/// Options that the socket pair supports itself, with the same meaning as for DCCP.
fn is_supported_by_pair(name: c_int) -> bool {
    matches!(name, SO_RCVTIMEO | SO_SNDTIMEO | SO_RCVTIMEO_NEW | SO_SNDTIMEO_NEW | SO_COOKIE)
}

/// `getsockopt`.
///
/// # Safety
/// As `getsockopt`.
pub unsafe fn get_option(
    s: &Socket,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    len: *mut u32,
) -> Raw {
    if level == SOL_SOCKET && is_supported_by_pair(name) {
        return sys::getsockopt(s.fd, level, name, to, len);
    }
    let is_known = level == SOL_SOCKET && KNOWN.contains(&name);
    if is_system_option(level, name) && !is_known {
        // SAFETY: the caller's promise.
        return unsafe { get_system_option(s, level, name, to, len) }.map_or_else(fail, |()| 0);
    }
    if len.is_null() {
        return fail(EFAULT);
    }
    // SAFETY: the caller's promise.
    let room = unsafe { *len };
    if room.cast_signed() < 0 {
        return fail(EINVAL);
    }
    let number = match (level, name) {
        (SOL_SOCKET, SO_TYPE) => Some(SOCK_DCCP),
        (SOL_SOCKET, SO_PROTOCOL) => Some(IPPROTO_DCCP),
        (SOL_SOCKET, SO_DOMAIN) => Some(s.family()),
        (SOL_SOCKET, SO_ACCEPTCONN) => Some(c_int::from(s.state() == STATE_LISTENING)),
        (SOL_SOCKET, SO_ERROR) if s.is_orphan() => {
            Some(if s.report_orphan() { ECONNRESET } else { 0 })
        }
        (SOL_SOCKET, SO_ERROR) => Some(s.take_error()),
        _ => None,
    };
    let answer;
    let number_bytes;
    let (bytes, true_len): (&[u8], usize) = match number {
        Some(number) => {
            number_bytes = number.to_ne_bytes();
            (&number_bytes, (room as usize).min(4))
        }
        None => match rpc::call(Op::GetOption, s.cookie, level, name, &room.to_ne_bytes()) {
            Ok(got) => {
                answer = got;
                (answer.bytes(), answer.reply.value.max(0) as usize)
            }
            Err(e) => return fail(e),
        },
    };
    let copied = bytes.len().min(room as usize);
    if copied > 0 && to.is_null() {
        return fail(EFAULT);
    }
    // SAFETY: the program's buffer has `room` bytes.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), copied);
        *len = true_len as u32;
    }
    0
}

/// `setsockopt`.
///
/// # Safety
/// As `setsockopt`.
pub unsafe fn set_option(
    s: &Socket,
    level: c_int,
    name: c_int,
    of: *const c_void,
    len: u32,
) -> Raw {
    if level == SOL_SOCKET && is_supported_by_pair(name) {
        return sys::setsockopt(s.fd, level, name, of, len);
    }
    if is_system_option(level, name) {
        return set_system_option(s, level, name, of, len).map_or_else(fail, |()| 0);
    }
    if level == SOL_DCCP && WITHOUT_EFFECT.contains(&name) {
        return 0;
    }
    if of.is_null() && len > 0 {
        return fail(EFAULT);
    }
    if len as usize > MAX_PAYLOAD {
        return fail(EINVAL);
    }
    let bytes: &[u8] = match len {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { core::slice::from_raw_parts(of.cast(), len as usize) },
    };
    match rpc::call(Op::SetOption, s.cookie, level, name, bytes) {
        Ok(answer) => {
            // A larger buffer would make a socket writable that is plugged because it cannot send.
            let is_plugged = matches!(s.state(), STATE_CONNECTING | STATE_LISTENING);
            if answer.reply.value > 0 && !is_plugged {
                let buffer = answer.reply.value;
                let at = core::ptr::from_ref(&buffer).cast();
                sys::setsockopt(s.fd, SOL_SOCKET, SO_SNDBUF, at, 4);
            }
            0
        }
        Err(e) => fail(e),
    }
}
