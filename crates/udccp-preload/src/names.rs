//! The C names. Each handles DCCP sockets here and passes all others to the next definition of the
//! name, usually that of the C library.

use core::ffi::{CStr, c_int, c_uint, c_ulong, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::*;
use crate::find::{self, Socket};
use crate::sys::{Raw, TimeSpecPointer, to_c};
use crate::{calls, data, options, receive, sys};

/// The next definition of a name. It is looked up when the program starts: the loader takes a lock
/// for the lookup, and a later call could wait for a thread that holds it.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Looks the name up. Null if the C library does not have it.
    fn look_up(&self) -> *mut c_void {
        let found = sys::next_symbol(self.name);
        self.found.store(found, Ordering::Relaxed);
        found
    }

    fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // Called by another library's constructor, which ran before ours.
        let found = self.look_up();
        if found.is_null() {
            // The program cannot have called a name that the C library lacks.
            sys::write_stderr(b"udccp: the C library lacks a socket call\n");
            sys::abort();
        }
        found
    }
}

/// The next definition of a C name, which this library looks up when it is loaded.
macro_rules! next {
    ($c_name:literal) => {{
        static NEXT: Next = Next::new($c_name);
        #[cfg(udccp_shim)]
        #[used]
        #[unsafe(link_section = ".init_array")]
        static LOOK_UP: extern "C" fn() = {
            extern "C" fn look_up() {
                NEXT.look_up();
            }
            look_up
        };
        NEXT.get()
    }};
}

/// Defines a C name: how it handles DCCP sockets. All others go to the next definition.
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
            let next: unsafe extern "C" fn($($t),*) -> $r = unsafe { transmute(next!($c_name)) };
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
    if calls::is_dccp(domain, kind, protocol) {
        return to_c(calls::open(domain, kind, 0)) as c_int;
    }
    if calls::is_mismatch(domain, kind, protocol) {
        return to_c(-(EPROTONOSUPPORT as Raw)) as c_int;
    }
    // SAFETY: the definition of this name has these types in every C library.
    let next: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int =
        unsafe { transmute(next!(c"socket")) };
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
    Some(options::get_option(s, level, option, to, len)));
name!(/// `setsockopt`.
    c"setsockopt"
    setsockopt(fd: c_int, level: c_int, option: c_int, of: Const, len: u32) -> c_int, s, fd =>
    Some(options::set_option(s, level, option, of, len)));
name!(/// `ioctl`. Its third argument is of any type, and passed like a pointer.
    c"ioctl" ioctl(fd: c_int, request: c_ulong, to: Void) -> c_int, s, fd =>
    calls::control(s, request & 0xffff_ffff, to));

/// A single piece of the program's memory.
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
    unsafe { receive::receive(s, &mut MsgHdr::of(piece.as_mut_ptr(), 1), flags) }
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
    if name.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { receive::receive(s, &mut message, flags) };
    }
    // SAFETY: the caller's promise.
    let room = if name_len.is_null() { 0 } else { unsafe { *name_len } };
    // Linux looks at the length only when a message has been taken.
    let is_wrong = room.cast_signed() < 0;
    (message.name, message.name_len) = (name, if is_wrong { 0 } else { room });
    // SAFETY: the caller's promise.
    let result = unsafe { receive::receive(s, &mut message, flags) };
    match result {
        0.. if name_len.is_null() => -(EFAULT as Raw),
        0.. if is_wrong => -(EINVAL as Raw),
        0.. => {
            // SAFETY: the caller's promise.
            unsafe { *name_len = message.name_len };
            result
        }
        _ => result,
    }
}

/// `read`. With length 0, it does not check the socket, as in Linux.
unsafe fn read_one(s: &Socket, to: Void, len: usize) -> Raw {
    if len == 0 {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { receive_one(s, to, len, 0) }
}

/// The pieces of `readv` and `writev`, or the result if they return without checking the socket.
unsafe fn file_pieces<'a>(iov: *const IoVec, count: c_int) -> Result<&'a [IoVec], Raw> {
    // SAFETY: the caller's promise.
    match unsafe { data::vector(iov, count as usize) } {
        Ok(pieces) if length(pieces) == 0 => Err(0),
        Ok(pieces) => Ok(pieces),
        // File calls return EINVAL for too many pieces.
        Err(EMSGSIZE) => Err(-(EINVAL as Raw)),
        Err(e) => Err(-(e as Raw)),
    }
}

unsafe fn write_pieces(s: &Socket, iov: *const IoVec, count: c_int, flags: c_int) -> Raw {
    // SAFETY: the caller's promise.
    match unsafe { file_pieces(iov, count) }.and_then(|all| Ok((all, of_file(flags)?))) {
        // SAFETY: the caller's promise.
        Ok((pieces, flags)) => unsafe { data::send(s, pieces, 0, flags) },
        Err(result) => result,
    }
}

unsafe fn read_pieces(s: &Socket, iov: *mut IoVec, count: c_int, flags: c_int) -> Raw {
    // SAFETY: the caller's promise.
    match unsafe { file_pieces(iov, count) }.and_then(|all| Ok((all.len(), of_file(flags)?))) {
        // SAFETY: the caller's promise.
        Ok((len, flags)) => unsafe { receive::receive(s, &mut MsgHdr::of(iov, len), flags) },
        Err(result) => result,
    }
}

/// Converts the flags of `preadv2` and `pwritev2` to those of socket calls.
fn of_file(flags: c_int) -> Result<c_int, Raw> {
    const RWF_NOWAIT: c_int = 8;
    const RWF_APPEND: c_int = 0x10;
    const RWF_NOAPPEND: c_int = 0x20;
    const RWF_NOSIGNAL: c_int = 0x100;
    // The flags below RWF_NOWAIT concern how files are written to disk.
    const KNOWN: c_int = 7 | RWF_NOWAIT | RWF_APPEND | RWF_NOAPPEND | RWF_NOSIGNAL;
    if flags & !KNOWN != 0 {
        return Err(-(EOPNOTSUPP as Raw));
    }
    if flags & RWF_APPEND != 0 && flags & RWF_NOAPPEND != 0 {
        return Err(-(EINVAL as Raw));
    }
    Ok(if flags & RWF_NOWAIT != 0 { MSG_DONTWAIT } else { 0 })
}

/// A socket has no file positions; only -1, the current one, is allowed.
fn is_here(at: i64) -> Result<(), Raw> {
    match at {
        -1 => Ok(()),
        ..-1 => Err(-(EINVAL as Raw)),
        _ => Err(-(ESPIPE as Raw)),
    }
}

unsafe fn write_pieces_here(
    s: &Socket,
    iov: *const IoVec,
    count: c_int,
    at: i64,
    flags: c_int,
) -> Raw {
    match is_here(at) {
        // SAFETY: the caller's promise.
        Ok(()) => unsafe { write_pieces(s, iov, count, flags) },
        Err(e) => e,
    }
}

unsafe fn read_pieces_here(
    s: &Socket,
    iov: *mut IoVec,
    count: c_int,
    at: i64,
    flags: c_int,
) -> Raw {
    match is_here(at) {
        // SAFETY: the caller's promise.
        Ok(()) => unsafe { read_pieces(s, iov, count, flags) },
        Err(e) => e,
    }
}

unsafe fn send_message(s: &Socket, message: *const MsgHdr, flags: c_int) -> Raw {
    if message.is_null() {
        return -(EFAULT as Raw);
    }
    // SAFETY: the caller's promise.
    unsafe {
        let message = &*message;
        let pieces = match data::pieces(message) {
            Ok(pieces) => pieces,
            Err(e) => return -(e as Raw),
        };
        match data::priority(s, message) {
            Ok(priority) => data::send(s, pieces, priority, flags),
            Err(e) => data::refuse(s, flags, e),
        }
    }
}

unsafe fn receive_message(s: &Socket, message: *mut MsgHdr, flags: c_int) -> Raw {
    if message.is_null() {
        return -(EFAULT as Raw);
    }
    // SAFETY: the caller's promise.
    unsafe { receive::receive(s, &mut *message, flags) }
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
    Some(write_pieces(s, iov, count, 0)));
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
    Some(read_one(s, to, len)));
name!(/// `readv`.
    c"readv" readv(fd: c_int, iov: *mut IoVec, count: c_int) -> isize, s, fd =>
    Some(read_pieces(s, iov, count, 0)));
name!(/// `preadv2`.
    c"preadv2" preadv2(fd: c_int, iov: *mut IoVec, count: c_int, at: i64, flags: c_int) -> isize,
    s, fd => Some(read_pieces_here(s, iov, count, at, flags)));
name!(/// `preadv2` with 64-bit offsets.
    c"preadv64v2"
    preadv64v2(fd: c_int, iov: *mut IoVec, count: c_int, at: i64, flags: c_int) -> isize,
    s, fd => Some(read_pieces_here(s, iov, count, at, flags)));
name!(/// `pwritev2`.
    c"pwritev2"
    pwritev2(fd: c_int, iov: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize,
    s, fd => Some(write_pieces_here(s, iov, count, at, flags)));
name!(/// `pwritev2` with 64-bit offsets.
    c"pwritev64v2"
    pwritev64v2(fd: c_int, iov: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize,
    s, fd => Some(write_pieces_here(s, iov, count, at, flags)));
name!(/// `read` as fortified programs call it.
    c"__read_chk" __read_chk(fd: c_int, to: Void, len: usize, room: usize) -> isize, s, fd =>
    (len <= room).then(|| read_one(s, to, len)));
name!(/// `recv` as fortified programs call it.
    c"__recv_chk" __recv_chk(fd: c_int, to: Void, len: usize, room: usize, flags: c_int) -> isize,
    s, fd => (len <= room).then(|| receive_one(s, to, len, flags)));
name!(/// `recvfrom` as fortified programs call it.
    c"__recvfrom_chk"
    __recvfrom_chk(fd: c_int, to: Void, len: usize, room: usize, flags: c_int, name: Void,
        name_len: *mut u32) -> isize,
    s, fd => (len <= room).then(|| receive_from(s, (to, len), flags, name, name_len)));
name!(/// `sendfile`.
    c"sendfile" sendfile(to: c_int, from: c_int, at: *mut i64, len: usize) -> isize, s, to =>
    Some(data::send_file(s, from, at, len)));
name!(/// `sendfile` with 64-bit offsets.
    c"sendfile64" sendfile64(to: c_int, from: c_int, at: *mut i64, len: usize) -> isize, s, to =>
    Some(data::send_file(s, from, at, len)));

name!(/// `splice` from a socket. One to a socket is the kernel's, which writes packets to the pair.
    c"splice"
    splice(from: c_int, at: *mut i64, to: c_int, to_at: *mut i64, len: usize, flags: c_uint)
        -> isize,
    s, from => Some(receive::into_pipe(s, [at, to_at], to, len, flags.cast_signed())));

name!(/// `sendmmsg`.
    c"sendmmsg" sendmmsg(fd: c_int, all: *mut MMsgHdr, count: c_uint, flags: c_int) -> c_int,
    s, fd => Some(send_many(s, all, count, flags)));
name!(/// `recvmmsg`.
    c"recvmmsg"
    recvmmsg(fd: c_int, all: *mut MMsgHdr, count: c_uint, flags: c_int, time: TimeSpecPointer)
        -> c_int,
    s, fd => Some(receive_many(s, all, count, flags, time)));

unsafe fn send_many(s: &Socket, all: *mut MMsgHdr, count: c_uint, flags: c_int) -> Raw {
    // SAFETY: the caller's promise.
    let all = match unsafe { messages(all, count) } {
        Ok(all) => all,
        Err(e) => return e,
    };
    let mut done = 0;
    while done < all.len() {
        // SAFETY: as above.
        let sent = unsafe { data::send_some(s, &mut all[done..]) };
        done += sent;
        if sent > 0 {
            continue;
        }
        // SAFETY: as above.
        match unsafe { send_message(s, &raw const all[done].header, flags) } {
            e if e < 0 && done == 0 => return e,
            e if e < 0 => break,
            len => all[done].len = len as u32,
        }
        done += 1;
    }
    done as Raw
}

unsafe fn receive_many(
    s: &Socket,
    all: *mut MMsgHdr,
    count: c_uint,
    flags: c_int,
    time: TimeSpecPointer,
) -> Raw {
    // SAFETY: the caller's promise.
    unsafe {
        match messages(all, count) {
            Ok(all) => receive::receive_many(s, all, flags, time),
            Err(e) => e,
        }
    }
}

/// The array of `sendmmsg` and `recvmmsg`, cut to Linux's limit.
unsafe fn messages<'a>(all: *mut MMsgHdr, count: c_uint) -> Result<&'a mut [MMsgHdr], Raw> {
    const UIO_MAXIOV: usize = 1024;
    match count as usize {
        0 => Ok(&mut []),
        _ if all.is_null() => Err(-(EFAULT as Raw)),
        // SAFETY: the program's array has `count` elements.
        count => Ok(unsafe { core::slice::from_raw_parts_mut(all, count.min(UIO_MAXIOV)) }),
    }
}
