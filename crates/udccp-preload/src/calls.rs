//! The calls that open, connect and set up a DCCP socket, each a request to the broker.

use core::ffi::{c_int, c_void};

use crate::abi::*;
use crate::find::{self, Socket};
use crate::protocol::*;
use crate::rpc::{self, Control};
use crate::sys::{self, Raw};
use crate::{data, receive, rings, start};

/// Time limit for the broker to make a socket writable again after an aborted handshake.
const UNTIL_DRAINED: TimeSpec = TimeSpec { sec: 5, nsec: 0 };

const fn fail(errno: c_int) -> Raw {
    -(errno as Raw)
}

/// Whether a call of `socket` asks for DCCP. Some programs give protocol 0.
pub fn is_dccp(domain: c_int, kind: c_int, protocol: c_int) -> bool {
    matches!(domain, AF_INET | AF_INET6)
        && kind & SOCK_TYPE_MASK == SOCK_DCCP
        && matches!(protocol, 0 | IPPROTO_DCCP)
}

/// Whether a call of `socket` asks for DCCP's type with another protocol, which Linux refuses.
pub fn is_mismatch(domain: c_int, kind: c_int, protocol: c_int) -> bool {
    is_dccp(domain, kind, 0) && (1..256).contains(&protocol) && protocol != IPPROTO_DCCP
}

/// Opens a DCCP socket, with the options of the socket `like` if it is not 0.
pub fn open(domain: c_int, kind: c_int, like: u64) -> Raw {
    match rpc::call(Op::Socket, like, domain, 0, start::settings()) {
        Ok(answer) => apply_flags(answer.fd, answer.reply.value, kind),
        Err(e) => fail(e),
    }
}

/// Applies the program's flags to a descriptor from the broker.
fn apply_flags(fd: c_int, slot: i32, kind: c_int) -> Raw {
    const F_SETFD: c_int = 2;
    if kind & SOCK_CLOEXEC == 0 {
        sys::fcntl(fd, F_SETFD, 0);
    }
    if kind & SOCK_NONBLOCK != 0 {
        sys::fcntl(fd, F_SETFL, O_NONBLOCK | 2);
    }
    let cookie = sys::option::<u64>(fd, SOL_SOCKET, SO_COOKIE).unwrap_or_default();
    if find::adopt(fd, cookie, slot).is_none() {
        sys::close(fd);
        return fail(ENOMEM);
    }
    fd as Raw
}

/// Checks and returns the address that the program gave.
unsafe fn address<'a>(at: *const c_void, len: u32) -> Result<&'a [u8], c_int> {
    if at.is_null() {
        return Err(EFAULT);
    }
    if (len as usize) < 2 || len as usize > MAX_PAYLOAD {
        return Err(EINVAL);
    }
    // SAFETY: the promise of the callers of `bind` and `connect`.
    Ok(unsafe { core::slice::from_raw_parts(at.cast(), len as usize) })
}

fn done(answer: Result<rpc::Answer, c_int>) -> Raw {
    answer.map_or_else(fail, |_| 0)
}

/// `bind`.
///
/// # Safety
/// As `bind`.
pub unsafe fn bind(s: &Socket, at: *const c_void, len: u32) -> Raw {
    // SAFETY: the caller's promise.
    match unsafe { address(at, len) } {
        Ok(bytes) => done(rpc::call(Op::Bind, s.cookie, 0, 0, bytes)),
        Err(e) => fail(e),
    }
}

/// `listen`.
pub fn listen(s: &Socket, backlog: c_int) -> Raw {
    let mut s = *s;
    if has_stopped_listening(&s) {
        match listen_again(&s) {
            Ok(new) => s = new,
            Err(e) => return fail(e),
        }
    }
    if s.state() == STATE_CLOSED {
        // A listening socket is never writable.
        data::plug(&s);
    }
    done(rpc::call(Op::Listen, s.cookie, backlog, 0, &[]))
}

/// `connect`.
///
/// # Safety
/// As `connect`.
pub unsafe fn connect(s: &Socket, at: *const c_void, len: u32) -> Raw {
    // SAFETY: the caller's promise.
    let bytes = match unsafe { address(at, len) } {
        Ok(bytes) => bytes,
        Err(e) => return fail(e),
    };
    if bytes[..2] == [0; 2] {
        return disconnect(s);
    }
    let mut s = *s;
    if s.is_orphan() || has_stopped_listening(&s) {
        match replace_pair(&s) {
            Ok(new) => s = new,
            Err(e) => return fail(e),
        }
    }
    match s.state() {
        STATE_ENDED => return fail(EISCONN),
        // Report the result of an earlier call.
        STATE_CLOSED if s.has_error() => return -(s.take_error() as Raw),
        _ => {}
    }
    if s.state() == STATE_CLOSED {
        data::plug(&s);
    }
    match rpc::call(Op::Connect, s.cookie, 0, 0, bytes) {
        Err(EINPROGRESS) if s.is_blocking(0) => wait_connected(&s),
        Err(e) => fail(e),
        Ok(_) => 0,
    }
}

/// `connect` to AF_UNSPEC: the socket can then be used for another connection.
fn disconnect(s: &Socket) -> Raw {
    if s.state() == STATE_CLOSED && !s.is_orphan() {
        s.take_error();
        return 0;
    }
    replace_pair(s).map_or_else(fail, |_| 0)
}

/// Gives the descriptor of a socket that was connected a new pair. Its duplicates keep the old one.
fn replace_pair(s: &Socket) -> Result<Socket, c_int> {
    let flags = sys::fcntl(s.fd, F_GETFL, 0) as c_int & O_NONBLOCK;
    let cloexec = if sys::fcntl(s.fd, 1, 0) & 1 != 0 { SOCK_CLOEXEC } else { 0 };
    let fd = open(s.family(), flags | SOCK_CLOEXEC, s.cookie);
    if fd < 0 {
        return Err(-fd as c_int);
    }
    sys::dup3(fd as c_int, s.fd, cloexec);
    sys::close(fd as c_int);
    find::socket(s.fd).ok_or(ECONNRESET)
}

/// Whether the socket was shut down while it listened; such a socket can be used again.
fn has_stopped_listening(s: &Socket) -> bool {
    s.state() == STATE_ENDED && s.address(SLOT_PEER_AT, &mut [0; ADDRESS_BYTES]) == 0
}

/// A new socket with the address at which this one listened.
fn listen_again(s: &Socket) -> Result<Socket, c_int> {
    let mut name = [0; ADDRESS_BYTES];
    let len = s.address(SLOT_LOCAL_AT, &mut name);
    let new = replace_pair(s)?;
    // The connections of the old one do not count, which 1 says.
    rpc::call(Op::Bind, new.cookie, 1, 0, &name[..len])?;
    Ok(new)
}

fn wait_connected(s: &Socket) -> Raw {
    while s.state() == STATE_CONNECTING {
        if s.is_orphan() {
            s.report_orphan();
            return fail(ECONNRESET);
        }
        match s.wait_writable(s.timeout(SO_SNDTIMEO)) {
            Ok(0) => return fail(EINPROGRESS),
            Ok(_) => {}
            Err(e) => return fail(e),
        }
    }
    match s.take_error() {
        0 if s.state() == STATE_CLOSED => fail(ECONNREFUSED),
        e => -(e as Raw),
    }
}

/// `accept4`. The socket pair of a listener carries its new connections.
///
/// # Safety
/// As `accept`.
pub unsafe fn accept(s: &Socket, to: *mut c_void, len: *mut u32, kind: c_int) -> Raw {
    if kind & !(SOCK_CLOEXEC | SOCK_NONBLOCK) != 0 || s.state() != STATE_LISTENING {
        return fail(EINVAL);
    }
    let (fd, slot) = match next_connection(s) {
        Ok(next) => next,
        // The listener was shut down meanwhile, and the broker has closed its end.
        Err(ECONNRESET) if s.state() == STATE_ENDED => return fail(EINVAL),
        Err(e) => return fail(e),
    };
    let result = apply_flags(fd, slot, kind);
    let accepted = (result >= 0 && !to.is_null()).then(|| find::socket(fd)).flatten();
    let Some(accepted) = accepted else { return result };
    // SAFETY: the caller's promise.
    match unsafe { write_name(&accepted, SLOT_PEER_AT, to, len) } {
        0 => result,
        // As in Linux, the connection is lost if its address cannot be written.
        e => {
            sys::close(fd);
            e
        }
    }
}

/// Returns the descriptor and the slot of a listener's next connection. If this process has no free
/// descriptor, the connection stays queued: receiving it would lose it.
fn next_connection(s: &Socket) -> Result<(c_int, i32), c_int> {
    loop {
        sys::may_have_descriptor()?;
        let mut nothing = MsgHdr::of(core::ptr::null_mut(), 0);
        let n = sys::recvmsg(s.fd, &mut nothing, MSG_PEEK | MSG_TRUNC);
        if n < 0 {
            return Err(-n as c_int);
        }
        if !s.is_there() {
            // Another thread has closed the socket. Its number may already mean another file.
            return Err(EBADF);
        }
        if n == 0 {
            return Err(if s.is_orphan() { ECONNRESET } else { EINVAL });
        }
        // Other threads may have taken the last descriptor while this one waited.
        sys::may_have_descriptor()?;
        match take_connection(s) {
            Err(EAGAIN) if s.is_blocking(0) => {}
            taken => return taken,
        }
    }
}

fn take_connection(s: &Socket) -> Result<(c_int, i32), c_int> {
    let mut slot = [0u8; 4];
    let mut piece = IoVec { base: slot.as_mut_ptr().cast(), len: slot.len() };
    let mut control = Control::new();
    let mut message = MsgHdr::of(&raw mut piece, 1);
    control.attach(&mut message);
    match sys::recvmsg(s.fd, &mut message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) {
        4 => {
            let fd = control.descriptor(&message).ok_or(EMFILE)?;
            Ok((fd, i32::from_ne_bytes(slot)))
        }
        n if n < 0 => Err(-n as c_int),
        _ => Err(if s.is_orphan() { ECONNRESET } else { EINVAL }),
    }
}

/// Answers requests about interfaces and routes from an Internet socket: a Unix socket does not
/// support them.
fn forward_to_inet_socket(s: &Socket, request: u64, to: *mut c_void) -> Raw {
    let inet = sys::socket(s.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if inet < 0 {
        return inet;
    }
    let result = sys::ioctl(inet as c_int, request, to);
    sys::close(inet as c_int);
    result
}

unsafe fn write_name(s: &Socket, which: usize, to: *mut c_void, len: *mut u32) -> Raw {
    if to.is_null() || len.is_null() {
        return fail(EFAULT);
    }
    let mut name = [0; ADDRESS_BYTES];
    let true_len = s.address(which, &mut name);
    // SAFETY: the program's buffer has `len` bytes.
    unsafe {
        if (*len).cast_signed() < 0 {
            return fail(EINVAL);
        }
        let room = (*len as usize).min(true_len);
        core::ptr::copy_nonoverlapping(name.as_ptr(), to.cast(), room);
        *len = true_len as u32;
    }
    0
}

/// `getsockname`.
///
/// # Safety
/// As `getsockname`.
pub unsafe fn local_name(s: &Socket, to: *mut c_void, len: *mut u32) -> Raw {
    // SAFETY: the caller's promise.
    unsafe { write_name(s, SLOT_LOCAL_AT, to, len) }
}

/// `getpeername`.
///
/// # Safety
/// As `getpeername`.
pub unsafe fn peer_name(s: &Socket, to: *mut c_void, len: *mut u32) -> Raw {
    if !matches!(s.state(), STATE_OPEN | STATE_ENDED) {
        return fail(ENOTCONN);
    }
    // SAFETY: the caller's promise.
    unsafe { write_name(s, SLOT_PEER_AT, to, len) }
}

/// `shutdown`.
pub fn shutdown(s: &Socket, how: c_int) -> Raw {
    if !(SHUT_RD..=SHUT_RDWR).contains(&how) {
        return fail(EINVAL);
    }
    match s.state() {
        STATE_CLOSED => fail(ENOTCONN),
        STATE_CONNECTING => {
            let _ = rpc::call(Op::Disconnect, s.cookie, 0, 0, &[]);
            // The next `connect` must find the socket writable again.
            let _ = sys::poll(s.fd, POLLOUT, Some(UNTIL_DRAINED));
            0
        }
        // A listening socket never sends, so there is nothing to do.
        STATE_LISTENING if how == SHUT_WR => 0,
        STATE_LISTENING => {
            // Before this wakes an `accept` in another thread, which then reads the state.
            let _ = rpc::call(Op::Disconnect, s.cookie, 0, 0, &[]);
            while let Ok((fd, _)) = take_connection(s) {
                sys::close(fd);
            }
            sys::shutdown(s.fd, SHUT_RDWR)
        }
        _ => shutdown_connection(s, how),
    }
}

fn shutdown_connection(s: &Socket, how: c_int) -> Raw {
    let _ = rpc::call(Op::Shutdown, s.cookie, how, 0, &[]);
    if how == SHUT_RD {
        return sys::shutdown(s.fd, how);
    }
    data::shutdown_sending(s);
    if let Some(ring) = rings::of(s).filter(|_| s.state() == STATE_OPEN) {
        ring.shutdown_sending();
    }
    let result = sys::shutdown(s.fd, how);
    data::wake_senders(s);
    result
}

/// `ioctl`; `None` for requests that the socket pair answers.
///
/// # Safety
/// As `ioctl`.
pub unsafe fn control(s: &Socket, request: u64, to: *mut c_void) -> Option<Raw> {
    let number = match request {
        FIONREAD | SIOCOUTQ | SIOCATMARK if s.state() == STATE_LISTENING => {
            return Some(fail(ENOTCONN));
        }
        FIONREAD => receive::next_len(s) as c_int,
        SIOCOUTQ => rpc::call(Op::Unsent, s.cookie, 0, 0, &[]).map_or(0, |a| a.reply.value),
        SIOCATMARK => return Some(fail(ENOTTY)),
        FIRST_OF_INTERFACES..=LAST_OF_INTERFACES => {
            return Some(forward_to_inet_socket(s, request, to));
        }
        _ => return None,
    };
    if to.is_null() {
        return Some(fail(EFAULT));
    }
    // SAFETY: the program gave the address of an int.
    unsafe { to.cast::<c_int>().write_unaligned(number) };
    Some(0)
}
