//! System calls made directly: the library must not call the names that it replaces.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::size_of;

use crate::abi::{
    AF_UNIX, EINTR, EINVAL, IoVec, MMsgHdr, MSG_DONTWAIT, MSG_PEEK, MsgHdr, POLLHUP, POLLIN,
    POLLOUT, POLLRDHUP, PollFd, SIOCOUTQ, SOCK_CLOEXEC, SOCK_STREAM, SockAddrUn, TimeSpec,
};

/// A C string from `getenv`, or null.
pub type CString = *const c_char;

#[cfg(target_arch = "x86_64")]
mod nr {
    pub(super) const CLOSE: i64 = 3;
    pub(super) const MMAP: i64 = 9;
    pub(super) const CLOCK_GETTIME: i64 = 228;
    #[cfg(not(udccp_shim))]
    pub(super) const MUNMAP: i64 = 11;
    pub(super) const LSEEK: i64 = 8;
    pub(super) const IOCTL: i64 = 16;
    pub(super) const PREAD64: i64 = 17;
    pub(super) const SOCKET: i64 = 41;
    pub(super) const CONNECT: i64 = 42;
    pub(super) const SENDMSG: i64 = 46;
    pub(super) const RECVMSG: i64 = 47;
    pub(super) const RECVMMSG: i64 = 299;
    pub(super) const SENDMMSG: i64 = 307;
    pub(super) const SHUTDOWN: i64 = 48;
    pub(super) const SETSOCKOPT: i64 = 54;
    pub(super) const GETSOCKOPT: i64 = 55;
    pub(super) const CLONE: i64 = 56;
    pub(super) const EXECVE: i64 = 59;
    pub(super) const WAIT4: i64 = 61;
    pub(super) const FCNTL: i64 = 72;
    pub(super) const SETSID: i64 = 112;
    pub(super) const SIGACTION: i64 = 13;
    pub(super) const SIGPROCMASK: i64 = 14;
    pub(super) const EXIT_GROUP: i64 = 231;
    pub(super) const OPENAT: i64 = 257;
    pub(super) const PPOLL: i64 = 271;
    pub(super) const PSELECT6: i64 = 270;
    pub(super) const DUP3: i64 = 292;
    pub(super) const STATX: i64 = 332;
    pub(super) const CLOSE_RANGE: i64 = 436;
    pub(super) const WRITE: i64 = 1;
    pub(super) const GETRANDOM: i64 = 318;
}

#[cfg(target_arch = "aarch64")]
mod nr {
    pub(super) const CLOSE: i64 = 57;
    pub(super) const MMAP: i64 = 222;
    pub(super) const CLOCK_GETTIME: i64 = 113;
    #[cfg(not(udccp_shim))]
    pub(super) const MUNMAP: i64 = 215;
    pub(super) const IOCTL: i64 = 29;
    pub(super) const LSEEK: i64 = 62;
    pub(super) const PREAD64: i64 = 67;
    pub(super) const SOCKET: i64 = 198;
    pub(super) const CONNECT: i64 = 203;
    pub(super) const SENDMSG: i64 = 211;
    pub(super) const RECVMSG: i64 = 212;
    pub(super) const RECVMMSG: i64 = 243;
    pub(super) const SENDMMSG: i64 = 269;
    pub(super) const SHUTDOWN: i64 = 210;
    pub(super) const SETSOCKOPT: i64 = 208;
    pub(super) const GETSOCKOPT: i64 = 209;
    pub(super) const CLONE: i64 = 220;
    pub(super) const EXECVE: i64 = 221;
    pub(super) const WAIT4: i64 = 260;
    pub(super) const FCNTL: i64 = 25;
    pub(super) const SETSID: i64 = 157;
    pub(super) const SIGACTION: i64 = 134;
    pub(super) const SIGPROCMASK: i64 = 135;
    pub(super) const EXIT_GROUP: i64 = 94;
    pub(super) const OPENAT: i64 = 56;
    pub(super) const PPOLL: i64 = 73;
    pub(super) const PSELECT6: i64 = 72;
    pub(super) const DUP3: i64 = 24;
    pub(super) const STATX: i64 = 291;
    pub(super) const CLOSE_RANGE: i64 = 436;
    pub(super) const WRITE: i64 = 64;
    pub(super) const GETRANDOM: i64 = 278;
}

/// The result of a system call: a negative errno on failure.
pub type Raw = isize;

#[cfg(target_arch = "x86_64")]
unsafe fn syscall(number: i64, a: [usize; 6]) -> Raw {
    let result;
    // SAFETY: the kernel's calling convention; the caller vouches for pointers.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
            in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn syscall(number: i64, a: [usize; 6]) -> Raw {
    let result;
    // SAFETY: the kernel's calling convention; the caller vouches for pointers.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a[0] as isize => result,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack),
        );
    }
    result
}

macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {{
        let given = [$($argument as usize),*];
        let mut all = [0usize; 6];
        all[..given.len()].copy_from_slice(&given);
        // SAFETY: number and arguments belong to this call. Pointers come from references, or from
        // the program and are checked by the kernel.
        unsafe { syscall(nr::$number, all) }
    }};
}

unsafe extern "C" {
    #[link_name = "__errno_location"]
    fn errno_location() -> *mut c_int;
    fn getenv(name: *const c_char) -> CString;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> CString;
}

/// Converts a result for C callers: -1 and `errno` on failure.
pub fn to_c(result: Raw) -> isize {
    if result < 0 {
        // SAFETY: every C library returns the address of the thread's errno.
        unsafe { *errno_location() = (-result) as c_int };
        return -1;
    }
    result
}

/// A variable of the environment, or null.
pub fn environment(name: &CStr) -> CString {
    // SAFETY: `name` ends with a zero byte.
    unsafe { getenv(name.as_ptr()) }
}

/// The next definition of a name after this library's, or null.
pub fn next_symbol(name: &CStr) -> *mut c_void {
    const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;
    // SAFETY: `name` ends with a zero byte.
    let found = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        // The program would take this error for one of its own. SAFETY: it may be called at any
        // time.
        unsafe { dlerror() };
    }
    found
}

/// Ends the process much as `abort` does.
pub fn abort() -> ! {
    loop {
        call!(EXIT_GROUP, 134);
    }
}

/// Exits from a child that could not execute another program.
pub fn exit(code: c_int) -> ! {
    loop {
        call!(EXIT_GROUP, code);
    }
}

/// `socket`.
pub fn socket(domain: c_int, kind: c_int, protocol: c_int) -> Raw {
    call!(SOCKET, domain, kind, protocol)
}

/// `close`.
pub fn close(fd: c_int) {
    call!(CLOSE, fd);
}

/// `connect` to a Unix socket.
pub fn connect_unix(fd: c_int, address: &SockAddrUn) -> Raw {
    call!(CONNECT, fd, core::ptr::from_ref(address), size_of::<SockAddrUn>())
}

/// `connect` to an address in the kernel's format.
pub fn connect(fd: c_int, address: &[u8]) -> Raw {
    call!(CONNECT, fd, address.as_ptr(), address.len())
}

/// `sendmsg`.
pub fn sendmsg(fd: c_int, message: &MsgHdr, flags: c_int) -> Raw {
    call!(SENDMSG, fd, core::ptr::from_ref(message), flags)
}

/// `recvmsg`.
pub fn recvmsg(fd: c_int, message: &mut MsgHdr, flags: c_int) -> Raw {
    call!(RECVMSG, fd, core::ptr::from_mut(message), flags)
}

/// `sendmmsg`.
pub fn sendmmsg(fd: c_int, messages: &mut [MMsgHdr], flags: c_int) -> Raw {
    call!(SENDMMSG, fd, messages.as_mut_ptr(), messages.len(), flags)
}

/// `recvmmsg` with the program's timeout pointer, which the kernel checks.
pub fn recvmmsg(
    fd: c_int,
    messages: &mut [MMsgHdr],
    flags: c_int,
    timeout: TimeSpecPointer,
) -> Raw {
    call!(RECVMMSG, fd, messages.as_mut_ptr(), messages.len(), flags, timeout)
}

/// `pread`.
pub fn pread(fd: c_int, into: &mut [u8], at: i64) -> Raw {
    call!(PREAD64, fd, into.as_mut_ptr(), into.len(), at)
}

/// Moves the position in a file and returns the new one.
pub fn seek_by(fd: c_int, bytes: i64) -> Raw {
    const SEEK_CUR: c_int = 1;
    call!(LSEEK, fd, bytes, SEEK_CUR)
}

/// `shutdown`.
pub fn shutdown(fd: c_int, how: c_int) -> Raw {
    call!(SHUTDOWN, fd, how)
}

/// `getsockopt` with the program's pointers, which the kernel checks.
pub fn getsockopt(fd: c_int, level: c_int, name: c_int, to: *mut c_void, len: *mut u32) -> Raw {
    call!(GETSOCKOPT, fd, level, name, to, len)
}

/// `getsockopt` for a fixed-size value.
pub fn option<T: Copy + Default>(fd: c_int, level: c_int, name: c_int) -> Result<T, c_int> {
    let mut value = T::default();
    let mut len = size_of::<T>() as u32;
    let to = core::ptr::from_mut(&mut value).cast();
    match getsockopt(fd, level, name, to, core::ptr::from_mut(&mut len)) {
        0 => Ok(value),
        e => Err(-e as c_int),
    }
}

/// `setsockopt` with the program's pointers, which the kernel checks.
pub fn setsockopt(fd: c_int, level: c_int, name: c_int, of: *const c_void, len: u32) -> Raw {
    call!(SETSOCKOPT, fd, level, name, of, len)
}

/// `fcntl`.
pub fn fcntl(fd: c_int, command: c_int, argument: c_int) -> Raw {
    call!(FCNTL, fd, command, argument)
}

/// Checks that the process can open another descriptor now.
///
/// # Errors
/// EMFILE, ENFILE.
pub fn may_have_descriptor() -> Result<(), c_int> {
    match socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) {
        e if e < 0 => Err(-e as c_int),
        fd => {
            close(fd as c_int);
            Ok(())
        }
    }
}

/// `ioctl` with the program's pointer, which the kernel checks.
pub fn ioctl(fd: c_int, request: u64, argument: *mut c_void) -> Raw {
    call!(IOCTL, fd, request, argument)
}

/// What the kernel charges for bytes that a socket has sent and the other end has not read, in
/// bytes of send buffer.
pub fn unread_bytes(fd: c_int) -> u32 {
    let mut held: c_int = 0;
    if ioctl(fd, SIOCOUTQ, core::ptr::from_mut(&mut held).cast()) < 0 {
        return u32::MAX;
    }
    held.max(0).unsigned_abs()
}

/// `poll` of one descriptor; without a timeout it waits for ever.
pub fn poll(fd: c_int, events: i16, timeout: Option<TimeSpec>) -> Result<i16, c_int> {
    let mut polled = PollFd { fd, events, revents: 0 };
    let mut time = timeout.unwrap_or_default();
    let at = timeout.map_or(core::ptr::null_mut(), |_| core::ptr::from_mut(&mut time));
    match call!(PPOLL, core::ptr::from_mut(&mut polled), 1, at, 0, 8) {
        // `poll` takes at most as many descriptors as a process may have, and RLIMIT_NOFILE is 0.
        e if e == -(EINVAL as Raw) => select(fd, events, timeout),
        e if e < 0 => Err(-e as c_int),
        _ => Ok(polled.revents),
    }
}

/// The same with `pselect6`, which has no such limit. To it, an end looks like data.
fn select(fd: c_int, events: i16, timeout: Option<TimeSpec>) -> Result<i16, c_int> {
    const WORDS: usize = 64;
    let (mut readable, mut writable) = ([0u64; WORDS], [0u64; WORDS]);
    let (word, bit) = (fd as usize / 64, 1 << (fd as usize % 64));
    if word >= WORDS {
        return Err(EINVAL);
    }
    readable[word] = if events & (POLLIN | POLLRDHUP) == 0 { 0 } else { bit };
    writable[word] = if events & POLLOUT == 0 { 0 } else { bit };
    let mut time = timeout.unwrap_or_default();
    let at = timeout.map_or(core::ptr::null_mut(), |_| core::ptr::from_mut(&mut time));
    match call!(PSELECT6, fd + 1, readable.as_mut_ptr(), writable.as_mut_ptr(), 0, at, 0) {
        e if e < 0 => return Err(-e as c_int),
        _ => {}
    }
    let set = |found: bool, event: i16| if found { event } else { 0 };
    let found = set(readable[word] != 0, POLLIN) | set(writable[word] != 0, POLLOUT);
    Ok((found & events) | set(has_nothing_to_read(fd), POLLHUP | (events & POLLRDHUP)))
}

/// Whether a read would return nothing, as after the end.
fn has_nothing_to_read(fd: c_int) -> bool {
    let mut byte = 0u8;
    let mut piece = IoVec { base: core::ptr::from_mut(&mut byte).cast(), len: 1 };
    recvmsg(fd, &mut MsgHdr::of(&raw mut piece, 1), MSG_PEEK | MSG_DONTWAIT) == 0
}

/// Waits until a socket is writable or has ended, like a call that the kernel restarts: signal
/// handlers installed with SA_RESTART do not interrupt it, unless there is a timeout.
pub fn wait_writable(fd: c_int, timeout: Option<TimeSpec>) -> Result<i16, c_int> {
    loop {
        match poll(fd, POLLOUT, timeout) {
            Err(EINTR) if timeout.is_none() && handlers_restart_calls() => {}
            other => return other,
        }
    }
}

/// Whether calls continue after every signal that this thread can handle. Which signal arrived is
/// unknown, so if any handler interrupts calls, all count as interrupting.
fn handlers_restart_calls() -> bool {
    const SIG_SETMASK: c_int = 2;
    const SIG_DFL_OR_IGN: u64 = 1;
    const SA_RESTART: u64 = 0x1000_0000;
    let mut blocked = 0u64;
    call!(SIGPROCMASK, SIG_SETMASK, 0, core::ptr::from_mut(&mut blocked), 8);
    // Signals 32 to 34 are used by the C library.
    let signals = (1..=64).filter(|n| !(32..=34).contains(n) && blocked >> (n - 1) & 1 == 0);
    let mut handled = signals.filter_map(|n| {
        let [handler, flags, ..] = action_of(n);
        (handler > SIG_DFL_OR_IGN).then_some(flags & SA_RESTART != 0)
    });
    handled.next() == Some(true) && handled.all(|restarts| restarts)
}

/// What happens on a signal: the handler, its flags, and two fields that are not used.
fn action_of(signal: c_int) -> [u64; 4] {
    let mut action = [0; 4];
    call!(SIGACTION, signal, 0, action.as_mut_ptr(), 8);
    action
}

/// The signal of a write to a pipe that nobody reads.
#[cfg(not(udccp_shim))]
pub const SIGPIPE: c_int = 13;

/// Whether a signal does what it does in a new process.
#[cfg(not(udccp_shim))]
pub fn is_default(signal: c_int) -> bool {
    action_of(signal)[0] == 0
}

/// Makes a signal do that again.
#[cfg(not(udccp_shim))]
pub fn set_default(signal: c_int) {
    let action = [0u64; 4];
    call!(SIGACTION, signal, action.as_ptr(), 0, 8);
}

/// Sleeps for some milliseconds.
pub fn sleep_ms(ms: i64) {
    let mut time = TimeSpec { sec: 0, nsec: ms * 1_000_000 };
    call!(PPOLL, 0, 0, core::ptr::from_mut(&mut time), 0, 8);
}

const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;

/// Maps a file read-only. Returns null on failure.
pub fn map_to_read(fd: c_int, len: usize) -> *const u8 {
    let at = call!(MMAP, 0, len, PROT_READ, MAP_SHARED, fd, 0);
    if at < 0 { core::ptr::null() } else { at as *const u8 }
}

/// Maps a file read-write, in place of the mapping at an address unless that is null. Returns null
/// on failure.
pub fn map_to_write(fd: c_int, instead_of: *mut u8, len: usize) -> *mut u8 {
    const PROT_WRITE: c_int = 2;
    const MAP_FIXED: c_int = 0x10;
    let flags = if instead_of.is_null() { MAP_SHARED } else { MAP_SHARED | MAP_FIXED };
    let at = call!(MMAP, instead_of, len, PROT_READ | PROT_WRITE, flags, fd, 0);
    if at < 0 { core::ptr::null_mut() } else { at as *mut u8 }
}

/// Removes a mapping.
#[cfg(not(udccp_shim))]
pub fn unmap(at: *mut u8, len: usize) {
    call!(MUNMAP, at, len);
}

/// Whether eight bytes at an address, which is a multiple of eight, can be read. For this call, the
/// kernel reads a signal set there before it rejects the operation.
pub fn can_read(at: usize) -> bool {
    const NOTHING: c_int = -1;
    const EFAULT: isize = -14;
    call!(SIGPROCMASK, NOTHING, at, 0, 8) != EFAULT
}

/// Whether the byte at an address can be written; this overwrites it. `fd` is a socket.
pub fn can_write(at: usize, fd: c_int) -> bool {
    const SOL_SOCKET: c_int = 1;
    const SO_TYPE: c_int = 3;
    const EFAULT: isize = -14;
    const GRND_NONBLOCK: c_int = 1;
    let mut len = 1;
    match getsockopt(fd, SOL_SOCKET, SO_TYPE, at as *mut c_void, core::ptr::from_mut(&mut len)) {
        0 => true,
        EFAULT => false,
        // Another thread has closed `fd`, whose number may be in use again.
        _ => call!(GETRANDOM, at, 1, GRND_NONBLOCK) != EFAULT,
    }
}

/// The time of the monotonic clock.
pub fn monotonic() -> TimeSpec {
    const CLOCK_MONOTONIC: c_int = 1;
    let mut time = TimeSpec::default();
    call!(CLOCK_GETTIME, CLOCK_MONOTONIC, core::ptr::from_mut(&mut time));
    time
}

/// The number of the network namespace, or 0 without /proc.
pub fn network_namespace() -> u64 {
    const AT_FDCWD: c_int = -100;
    const STATX_INO: c_int = 0x100;
    const INO_AT: usize = 4;
    let mut status = [0u64; 32];
    let path = c"/proc/self/ns/net";
    let to = status.as_mut_ptr();
    match call!(STATX, AT_FDCWD, path.as_ptr(), 0, STATX_INO, to) {
        0 => status[INO_AT],
        _ => 0,
    }
}

/// Duplicates a descriptor to a given number.
pub fn dup3(from: c_int, to: c_int, flags: c_int) -> Raw {
    call!(DUP3, from, to, flags)
}

/// `write`.
pub fn write(fd: c_int, bytes: &[u8]) -> Raw {
    call!(WRITE, fd, bytes.as_ptr(), bytes.len())
}

/// Writes a line to standard error.
pub fn write_stderr(text: &[u8]) {
    write(2, text);
}

/// Forks a child that sends no signal when it exits and that only `wait_for_child` sees.
pub fn fork_without_signal() -> Raw {
    call!(CLONE, 0, 0, 0, 0, 0)
}

/// Waits for a child from `fork_without_signal` to exit.
pub fn wait_for_child(pid: c_int) {
    const WCLONE: u32 = 0x8000_0000;
    const EINTR: isize = -4;
    while call!(WAIT4, pid, 0, WCLONE, 0) == EINTR {}
}

/// Leaves the program's session and signal mask, and closes all descriptors; standard ones
/// become /dev/null.
pub fn detach() {
    const AT_FDCWD: c_int = -100;
    const O_RDWR: c_int = 2;
    const SIG_SETMASK: c_int = 2;
    call!(SETSID);
    let no_signals = 0u64;
    call!(SIGPROCMASK, SIG_SETMASK, core::ptr::from_ref(&no_signals), 0, 8);
    let null = call!(OPENAT, AT_FDCWD, c"/dev/null".as_ptr(), O_RDWR, 0);
    for fd in 0..3 {
        if null >= 0 && null != fd {
            call!(DUP3, null, fd, 0);
        }
    }
    call!(CLOSE_RANGE, 3, u32::MAX, 0);
}

/// `execve`; returns only on failure.
///
/// # Safety
/// The lists end with null, and their strings with a zero byte.
pub unsafe fn execve(path: CString, arguments: *const CString, environment: *const CString) {
    call!(EXECVE, path, arguments, environment);
}

/// The length of a C string.
///
/// # Safety
/// The string ends with a zero byte.
pub unsafe fn length(text: CString) -> usize {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_bytes().len()
}

/// The timeout of `recvmmsg`.
pub type TimeSpecPointer = *mut TimeSpec;
