//! The C names. Each gives a DCCP socket to this library, and all else to the next definition of
//! the name, which is mostly the C library's.

use core::ffi::{CStr, c_int, c_uint, c_ulong, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::*;
use crate::find::{self, Socket};
use crate::sys::{Raw, TimeSpecPointer, to_c};
use crate::{calls, data, sys};

/// The next definition of a name, looked up once.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(core::ptr::null_mut()) }
    }

    fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        let found = sys::next_symbol(self.name);
        if found.is_null() {
            // The program could not have called the name without this library.
            sys::complain(b"udccp: the C library lacks a socket call\n");
            sys::abort();
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Defines a C name: what a DCCP socket does; all else goes to the next definition.
macro_rules! name {
    (
        $(#[$doc:meta])* $c_name:literal $name:ident($($a:ident: $t:ty),*) -> $r:ty,
        $s:ident, $fd:ident => $ours:expr
    ) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C call of this name.
        #[cfg_attr(udccp_shim, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($a: $t),*) -> $r {
            static NEXT: Next = Next::new($c_name);
            if let Some($s) = find::socket($fd) {
                let $s: &Socket = &$s;
                #[allow(unused_unsafe, reason = "some calls have no pointers")]
                // SAFETY: the caller's promise, passed on.
                let result: Option<Raw> = unsafe { $ours };
                if let Some(result) = result {
                    return to_c(result) as $r;
                }
            }
            // SAFETY: the definition of this name has these types in every C library.
            let next: unsafe extern "C" fn($($t),*) -> $r = unsafe { transmute(NEXT.get()) };
            // SAFETY: the caller's promise.
            unsafe { next($($a),*) }
        }
    };
}

/// `socket`.
///
/// # Safety
/// As the C call of this name.
#[cfg_attr(udccp_shim, unsafe(no_mangle))]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    static NEXT: Next = Next::new(c"socket");
    if calls::is_dccp(domain, kind, protocol) {
        return to_c(calls::open(domain, kind, 0)) as c_int;
    }
    // SAFETY: the definition of this name has these types in every C library.
    let next: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int = unsafe { transmute(NEXT.get()) };
    // SAFETY: the caller's promise.
    unsafe { next(domain, kind, protocol) }
}

type Void = *mut c_void;
type Const = *const c_void;

name!(/// `bind`.
    c"bind" bind(fd: c_int, at: Const, len: u32) -> c_int, s, fd =>
    Some(calls::bind(s, at, len)));
name!(/// `listen`.
    c"listen" listen(fd: c_int, backlog: c_int) -> c_int, s, fd =>
    Some(calls::listen(s, backlog)));
name!(/// `connect`.
    c"connect" connect(fd: c_int, at: Const, len: u32) -> c_int, s, fd =>
    Some(calls::connect(s, at, len)));
name!(/// `accept`.
    c"accept" accept(fd: c_int, to: Void, len: *mut u32) -> c_int, s, fd =>
    Some(calls::accept(s, to, len, 0)));
name!(/// `accept4`.
    c"accept4" accept4(fd: c_int, to: Void, len: *mut u32, kind: c_int) -> c_int, s, fd =>
    Some(calls::accept(s, to, len, kind)));
name!(/// `shutdown`.
    c"shutdown" shutdown(fd: c_int, how: c_int) -> c_int, s, fd =>
    Some(calls::shutdown(s, how)));
name!(/// `getsockname`.
    c"getsockname" getsockname(fd: c_int, to: Void, len: *mut u32) -> c_int, s, fd =>
    Some(calls::local_name(s, to, len)));
name!(/// `getpeername`.
    c"getpeername" getpeername(fd: c_int, to: Void, len: *mut u32) -> c_int, s, fd =>
    Some(calls::peer_name(s, to, len)));
name!(/// `getsockopt`.
    c"getsockopt"
    getsockopt(fd: c_int, level: c_int, option: c_int, to: Void, len: *mut u32) -> c_int, s, fd =>
    Some(calls::get_option(s, level, option, to, len)));
name!(/// `setsockopt`.
    c"setsockopt"
    setsockopt(fd: c_int, level: c_int, option: c_int, of: Const, len: u32) -> c_int, s, fd =>
    Some(calls::set_option(s, level, option, of, len)));
name!(/// `ioctl`. Its third argument is of any type, and passed like a pointer.
    c"ioctl" ioctl(fd: c_int, request: c_ulong, to: Void) -> c_int, s, fd =>
    calls::control(s, request & 0xffff_ffff, to));

/// One piece of the program's memory.
fn one(base: Const, len: usize) -> [IoVec; 1] {
    [IoVec { base: base.cast_mut(), len }]
}

unsafe fn send_one(s: &Socket, of: Const, len: usize, flags: c_int) -> Raw {
    // SAFETY: the caller's promise.
    unsafe { data::send(s, &one(of, len), 0, flags) }
}

unsafe fn receive_one(s: &Socket, to: Void, len: usize, flags: c_int) -> Raw {
    let mut piece = one(to, len);
    // SAFETY: the caller's promise.
    unsafe { data::receive(s, &mut MsgHdr::of(piece.as_mut_ptr(), 1), flags) }
}

unsafe fn receive_from(
    s: &Socket,
    piece: (Void, usize),
    flags: c_int,
    name: Void,
    name_len: *mut u32,
) -> Raw {
    let mut pieces = one(piece.0, piece.1);
    let mut message = MsgHdr::of(pieces.as_mut_ptr(), 1);
    if !name.is_null() && !name_len.is_null() {
        // SAFETY: the caller's promise.
        (message.name, message.name_len) = (name, unsafe { *name_len });
    }
    // SAFETY: the caller's promise.
    let result = unsafe { data::receive(s, &mut message, flags) };
    if result >= 0 && !name_len.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *name_len = message.name_len };
    }
    result
}

/// The pieces of a vector, or why there are none.
unsafe fn pieces<'a>(iov: *const IoVec, count: usize) -> Result<&'a [IoVec], Raw> {
    const UIO_MAXIOV: usize = 1024;
    if count > UIO_MAXIOV {
        return Err(-(EINVAL as Raw));
    }
    if count == 0 {
        return Ok(&[]);
    }
    if iov.is_null() {
        return Err(-(EFAULT as Raw));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(iov, count) })
}

unsafe fn send_pieces(s: &Socket, iov: *const IoVec, count: usize, flags: c_int) -> Raw {
    // SAFETY: the caller's promise.
    match unsafe { pieces(iov, count) } {
        // SAFETY: the caller's promise.
        Ok(pieces) => unsafe { data::send(s, pieces, 0, flags) },
        Err(e) => e,
    }
}

unsafe fn send_message(s: &Socket, message: *const MsgHdr, flags: c_int) -> Raw {
    if message.is_null() {
        return -(EFAULT as Raw);
    }
    // SAFETY: the caller's promise; musl's lengths are ints.
    unsafe {
        let message = &*message;
        let priority = match data::priority(s, message) {
            Ok(priority) => priority,
            Err(e) => return -(e as Raw),
        };
        match pieces(message.iov, message.iov_len & 0xffff_ffff) {
            Ok(pieces) => data::send(s, pieces, priority, flags),
            Err(e) => e,
        }
    }
}

unsafe fn receive_message(s: &Socket, message: *mut MsgHdr, flags: c_int) -> Raw {
    if message.is_null() {
        return -(EFAULT as Raw);
    }
    // SAFETY: the caller's promise.
    unsafe { data::receive(s, &mut *message, flags) }
}

name!(/// `send`.
    c"send" send(fd: c_int, of: Const, len: usize, flags: c_int) -> isize, s, fd =>
    Some(send_one(s, of, len, flags)));
name!(/// `sendto`. The address is ignored, as for every connected socket.
    c"sendto"
    sendto(fd: c_int, of: Const, len: usize, flags: c_int, to: Const, to_len: u32) -> isize,
    s, fd => Some(send_one(s, of, len, flags)));
name!(/// `sendmsg`.
    c"sendmsg" sendmsg(fd: c_int, message: *const MsgHdr, flags: c_int) -> isize, s, fd =>
    Some(send_message(s, message, flags)));
name!(/// `write`.
    c"write" write(fd: c_int, of: Const, len: usize) -> isize, s, fd =>
    Some(send_one(s, of, len, 0)));
name!(/// `writev`.
    c"writev" writev(fd: c_int, iov: *const IoVec, count: c_int) -> isize, s, fd =>
    Some(send_pieces(s, iov, count as usize, 0)));
name!(/// `recv`.
    c"recv" recv(fd: c_int, to: Void, len: usize, flags: c_int) -> isize, s, fd =>
    Some(receive_one(s, to, len, flags)));
name!(/// `recvfrom`.
    c"recvfrom"
    recvfrom(fd: c_int, to: Void, len: usize, flags: c_int, name: Void, name_len: *mut u32)
        -> isize,
    s, fd => Some(receive_from(s, (to, len), flags, name, name_len)));
name!(/// `recvmsg`.
    c"recvmsg" recvmsg(fd: c_int, message: *mut MsgHdr, flags: c_int) -> isize, s, fd =>
    Some(receive_message(s, message, flags)));
name!(/// `read`.
    c"read" read(fd: c_int, to: Void, len: usize) -> isize, s, fd =>
    Some(receive_one(s, to, len, 0)));
name!(/// `readv`.
    c"readv" readv(fd: c_int, iov: *mut IoVec, count: c_int) -> isize, s, fd =>
    Some(data::receive(s, &mut MsgHdr::of(iov, count as usize), 0)));
name!(/// `read` as fortified programs call it.
    c"__read_chk" __read_chk(fd: c_int, to: Void, len: usize, room: usize) -> isize, s, fd =>
    (len <= room).then(|| receive_one(s, to, len, 0)));
name!(/// `recv` as fortified programs call it.
    c"__recv_chk" __recv_chk(fd: c_int, to: Void, len: usize, room: usize, flags: c_int) -> isize,
    s, fd => (len <= room).then(|| receive_one(s, to, len, flags)));
name!(/// `recvfrom` as fortified programs call it.
    c"__recvfrom_chk"
    __recvfrom_chk(fd: c_int, to: Void, len: usize, room: usize, flags: c_int, name: Void,
        name_len: *mut u32) -> isize,
    s, fd => (len <= room).then(|| receive_from(s, (to, len), flags, name, name_len)));
name!(/// `sendfile`, which DCCP sockets do not take.
    c"sendfile" sendfile(to: c_int, from: c_int, at: *mut i64, len: usize) -> isize, s, to =>
    Some(refuse(s)));
name!(/// `sendfile` with 64-bit offsets.
    c"sendfile64" sendfile64(to: c_int, from: c_int, at: *mut i64, len: usize) -> isize, s, to =>
    Some(refuse(s)));

const fn refuse(_: &Socket) -> Raw {
    -(EINVAL as Raw)
}

name!(/// `sendmmsg`.
    c"sendmmsg" sendmmsg(fd: c_int, all: *mut MMsgHdr, count: c_uint, flags: c_int) -> c_int,
    s, fd => Some(send_many(s, all, count, flags)));
name!(/// `recvmmsg`.
    c"recvmmsg"
    recvmmsg(fd: c_int, all: *mut MMsgHdr, count: c_uint, flags: c_int, time: TimeSpecPointer)
        -> c_int,
    s, fd => Some(receive_many(s, all, count, flags)));

unsafe fn send_many(s: &Socket, all: *mut MMsgHdr, count: c_uint, flags: c_int) -> Raw {
    // SAFETY: the program's array has `count` elements.
    unsafe { for_each_message(all, count, |one, _| Some(send_message(s, &raw const *one, flags))) }
}

/// Linux looks at the timeout of `recvmmsg` only after a message has come; here nobody does.
unsafe fn receive_many(s: &Socket, all: *mut MMsgHdr, count: c_uint, flags: c_int) -> Raw {
    let mut has_ended = false;
    let receive = |one: &mut MsgHdr, received| {
        // The end is said once.
        if has_ended {
            return None;
        }
        let is_rest = received > 0 && flags & MSG_WAITFORONE != 0;
        let rest = if is_rest { MSG_DONTWAIT } else { 0 };
        let flags = (flags & !MSG_WAITFORONE) | rest;
        // SAFETY: the header is the program's.
        let result = unsafe { receive_message(s, &raw mut *one, flags) };
        has_ended = result == 0 && s.state() == crate::protocol::STATE_ENDED;
        Some(result)
    };
    // SAFETY: the program's array has `count` elements.
    unsafe { for_each_message(all, count, receive) }
}

/// Runs a call for each of `count` messages, until one fails or the call gives none; how many went.
unsafe fn for_each_message(
    all: *mut MMsgHdr,
    count: c_uint,
    mut run: impl FnMut(&mut MsgHdr, Raw) -> Option<Raw>,
) -> Raw {
    let mut done = 0;
    while done < count.min(1024) as Raw {
        // SAFETY: the caller's array has `count` elements.
        let one = unsafe { &mut *all.offset(done) };
        let Some(result) = run(&mut one.header, done) else { break };
        one.len = result.max(0) as u32;
        if result < 0 {
            return if done > 0 { done } else { result };
        }
        done += 1;
    }
    done
}
