//! Receiving on a DCCP socket, with Linux's order of checks and errors.

use core::ffi::{c_int, c_void};

use crate::abi::*;
use crate::data::{pending_error, pieces, send_bell, vector};
use crate::find::Socket;
use crate::protocol::*;
use crate::ring::{Into, Ring};
use crate::rings;
use crate::sys::{self, Raw};

const fn fail(errno: c_int) -> Raw {
    -(errno as Raw)
}

/// Receives one message like `recvmsg`, and fills in the address.
///
/// # Safety
/// `message` and what it points to are the program's.
pub unsafe fn receive(s: &Socket, message: &mut MsgHdr, flags: c_int) -> Raw {
    // SAFETY: the caller's promise.
    match unsafe { receive_or_end(s, message, flags) } {
        Ok(Received::Message(len)) => len as Raw,
        Ok(Received::End) => 0,
        Err(e) => fail(e),
    }
}

/// What a call received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    /// A message, with the call's return value.
    Message(usize),
    /// The end of the stream.
    End,
}

unsafe fn receive_or_end(
    s: &Socket,
    message: &mut MsgHdr,
    flags: c_int,
) -> Result<Received, c_int> {
    let flags = flags & !MSG_OOB;
    // The kernel checks the pieces before the socket. SAFETY: the caller's promise.
    unsafe { pieces(message) }?;
    let (name, name_len) = (message.name, message.name_len);
    (message.name, message.name_len) = (core::ptr::null_mut(), 0);
    // SAFETY: the caller's promise.
    let result = unsafe { next_message(s, message, flags) };
    (message.name, message.name_len) = (name, name_len);
    let received = match result? {
        Received::End => match end_of_reading(s, flags) {
            0 => Received::End,
            e => return Err(-e as c_int),
        },
        message => message,
    };
    // There is no control data in this direction: that of Unix sockets does not apply to DCCP.
    message.control_len = 0;
    message.flags &= MSG_TRUNC;
    // SAFETY: the caller's promise.
    message.name_len = unsafe { write_source(s, name, name_len) };
    Ok(received)
}

unsafe fn next_message(s: &Socket, message: &mut MsgHdr, flags: c_int) -> Result<Received, c_int> {
    loop {
        may_receive(s, flags)?;
        let received = match rings::of(s) {
            // SAFETY: the caller's promise.
            Some(ring) => unsafe { receive_from_ring(s, ring, message, flags) }?,
            // SAFETY: the caller's promise.
            None => unsafe { receive_from_pair(s, message, flags) }?,
        };
        if let Some(received) = received {
            return Ok(received);
        }
    }
}

/// Receives from the pair. `None` means: try again.
unsafe fn receive_from_pair(
    s: &Socket,
    message: &mut MsgHdr,
    flags: c_int,
) -> Result<Option<Received>, c_int> {
    // Not into the program's memory: the packet may be a bell.
    let mut packet = [0; MAX_MESSAGE];
    let len = match read_packet(s, &mut packet, flags & (MSG_PEEK | MSG_DONTWAIT)) {
        // The kernel reports that the broker's end is closed before it returns queued packets.
        e if e == fail(ECONNRESET) => return Ok(None),
        e if e < 0 => return Err(-e as c_int),
        0 if has_ended(s) => return Ok(Some(Received::End)),
        len => len as usize,
    };
    let packet = &packet[..len];
    if let Some(bell) = read_bell(s.key(), packet) {
        return handle_bell(s, bell, flags & MSG_PEEK == 0).map(|()| None);
    }
    // SAFETY: the caller's promise.
    let into = Into { pieces: unsafe { pieces(message) }?, fd: s.fd };
    // SAFETY: the caller's promise.
    unsafe { into.fill(packet) }?;
    Ok(Some(received(message, len, flags)))
}

/// Handles a bell: another thread or process has switched this socket to the ring.
fn handle_bell(s: &Socket, bell: u32, is_taken: bool) -> Result<(), c_int> {
    // Without the ring, nothing can be received.
    let ring = rings::of(s).ok_or(ENOMEM)?;
    if is_taken && ring.mark_bell_taken(bell) {
        // If the broker is gone, the next call reports it.
        let _ = send_bell(s);
    }
    Ok(())
}

/// Whether nothing more will arrive.
fn has_ended(s: &Socket) -> bool {
    let events = sys::poll(s.fd, POLLRDHUP, Some(TimeSpec::default()));
    s.state() == STATE_ENDED || events.is_ok_and(|e| e & (POLLRDHUP | POLLHUP) != 0)
}

/// Receives from the ring, or waits for a message. `None` means: try again.
unsafe fn receive_from_ring(
    s: &Socket,
    ring: Ring,
    message: &mut MsgHdr,
    flags: c_int,
) -> Result<Option<Received>, c_int> {
    if !ring.is_on() {
        ring.want();
    } else {
        // SAFETY: the caller's promise.
        let into = Into { pieces: unsafe { pieces(message) }?, fd: s.fd };
        // SAFETY: the caller's promise.
        if let Some(taken) = unsafe { ring.receive(&into, flags & MSG_PEEK != 0) }? {
            finish_receive(s, ring, taken.was_last, taken.has_room);
            return Ok(Some(received(message, taken.len, flags)));
        }
        take_bell(s, ring);
    }
    let mut packet = [0; FRAME_HEADER];
    ring.count_waiter(true);
    let len = peek(s, &mut packet, flags & MSG_DONTWAIT);
    ring.count_waiter(false);
    if flags & MSG_DONTWAIT == 0 && !s.is_there() {
        // SAFETY: the caller's promise.
        return unsafe { receive_after_close(s, ring, message, flags) }.map(Some);
    }
    if len == fail(ECONNRESET) {
        return Ok(None);
    }
    if len < 0 {
        return Err(-len as c_int);
    }
    if let Some(bell) = read_bell(s.key(), &packet[..(len as usize).min(FRAME_HEADER)]) {
        if !ring.is_rung(bell) {
            drop_bell(s, ring);
        }
        return Ok(None);
    }
    if ring.is_on() {
        let is_end = len == 0 && ring.is_empty();
        return Ok(is_end.then_some(Received::End));
    }
    // SAFETY: the caller's promise.
    match unsafe { receive_from_pair(s, message, flags | MSG_DONTWAIT) } {
        Err(EAGAIN) => Ok(None),
        other => other,
    }
}

/// Another thread has closed the descriptor while this call waited. As in Linux, the call still
/// returns a message that has arrived. The descriptor's number may mean another file now, so it is
/// not used.
unsafe fn receive_after_close(
    s: &Socket,
    ring: Ring,
    message: &mut MsgHdr,
    flags: c_int,
) -> Result<Received, c_int> {
    // SAFETY: the caller's promise.
    let into = Into { pieces: unsafe { pieces(message) }?, fd: s.fd };
    // SAFETY: the caller's promise.
    let taken = unsafe { ring.receive(&into, flags & MSG_PEEK != 0) }?.ok_or(EBADF)?;
    Ok(received(message, taken.len, flags))
}

/// Sets the flags for a received message of length `len`, and the call's return value.
fn received(message: &mut MsgHdr, len: usize, flags: c_int) -> Received {
    // SAFETY: the caller has just checked the pieces.
    let room = unsafe { pieces(message) }.map_or(0, length);
    message.flags = if len > room { MSG_TRUNC } else { 0 };
    Received::Message(if flags & MSG_TRUNC != 0 { len } else { len.min(room) })
}

fn finish_receive(s: &Socket, ring: Ring, was_last: bool, has_room: bool) {
    if was_last {
        take_bell(s, ring);
    }
    if has_room {
        // If the broker is gone, the next call reports it.
        let _ = send_bell(s);
    }
}

/// Takes the bell out of the pair if the ring is empty and the bell has arrived.
fn take_bell(s: &Socket, ring: Ring) {
    /// The broker announces a bell before it sends it. The total wait is longer than that takes,
    /// unless the thread that took the bell was killed before it could say so.
    const WAITS: usize = 50;
    const WAIT: TimeSpec = TimeSpec { sec: 0, nsec: 20_000_000 };
    let Some(bell) = ring.release() else { return };
    let mut waits = 0;
    while !ring.is_gone(bell) && waits < WAITS {
        if drop_bell(s, ring).is_some() {
            continue;
        }
        waits += 1;
        let events = sys::poll(s.fd, POLLIN, Some(WAIT));
        if !s.is_there() {
            // Another thread has closed the socket, and its number may mean another file now.
            return;
        }
        if events.is_ok_and(|events| events & POLLHUP != 0) {
            // Nothing more will arrive in the pair.
            waits = WAITS;
            while drop_bell(s, ring).is_some() {}
        }
    }
}

/// Takes a bell that is no longer needed out of the pair and returns its number.
fn drop_bell(s: &Socket, ring: Ring) -> Option<u32> {
    let mut packet = [0; FRAME_HEADER];
    let len = read_packet(s, &mut packet, MSG_DONTWAIT);
    let bell = read_bell(s.key(), packet.get(..usize::try_from(len).ok()?)?)?;
    // Another thread took the intended bell; this one was still needed.
    if ring.mark_bell_taken(bell) {
        let _ = send_bell(s);
    }
    Some(bell)
}

fn read_packet(s: &Socket, into: &mut [u8], flags: c_int) -> Raw {
    let mut piece = IoVec { base: into.as_mut_ptr().cast(), len: into.len() };
    sys::recvmsg(s.fd, &mut MsgHdr::of(&raw mut piece, 1), flags)
}

/// Reads the next packet of the pair without removing it.
fn peek(s: &Socket, into: &mut [u8], flags: c_int) -> Raw {
    read_packet(s, into, flags | MSG_PEEK)
}

/// Receives messages as `recvmmsg` does.
///
/// # Safety
/// The messages are the program's, writable as its call promises.
pub unsafe fn receive_many(
    s: &Socket,
    all: &mut [MMsgHdr],
    flags: c_int,
    time: sys::TimeSpecPointer,
) -> Raw {
    if !time.is_null() {
        // With no messages, the kernel only checks the timeout.
        let checked = sys::recvmmsg(s.fd, &mut [], flags, time);
        if checked < 0 {
            return checked;
        }
    }
    let mut clock = Clock::start(time);
    let mut done = 0;
    while done < all.len() {
        let (rest, waits) = (&mut all[done..], done == 0 || flags & MSG_WAITFORONE == 0);
        // SAFETY: the caller's promise.
        let some = if time.is_null() { unsafe { at_once(s, rest, flags) } } else { None };
        match some {
            Some(0) if !waits => break,
            Some(0) | None => {}
            Some(some) => {
                done += some;
                continue;
            }
        }
        let flags = if waits { flags } else { flags | MSG_DONTWAIT };
        // SAFETY: the caller's promise.
        match unsafe { receive_or_end(s, &mut rest[0].header, flags) } {
            Ok(Received::Message(len)) => rest[0].len = len as u32,
            // After the end of the stream, every further message would read as empty.
            Ok(Received::End) if done > 0 => break,
            Ok(Received::End) => {
                rest[0].len = 0;
                return 1;
            }
            Err(e) if done == 0 => return fail(e),
            Err(_) => break,
        }
        done += 1;
        if clock.is_over() {
            break;
        }
    }
    done as Raw
}

/// Receives messages that are in the ring and returns how many. With 0, [`receive`] returns the
/// error or waits; `None` means that only [`receive`] can handle this call.
unsafe fn at_once(s: &Socket, all: &mut [MMsgHdr], flags: c_int) -> Option<usize> {
    let is_plain = flags & !(MSG_DONTWAIT | MSG_WAITFORONE | MSG_TRUNC) == 0;
    if !is_plain || !matches!(s.state(), STATE_OPEN | STATE_ENDED) {
        return None;
    }
    let ring = rings::of(s).filter(|ring| ring.is_on())?;
    // SAFETY: the caller's promise.
    let into = |one: &MMsgHdr| unsafe { pieces_of(one) }.map(|pieces| Into { pieces, fd: s.fd });
    // SAFETY: the caller's promise.
    let Some(many) = (unsafe { ring.receive_many(all, into) }) else { return Some(0) };
    for one in &mut all[..many.count] {
        // SAFETY: as above.
        let room = unsafe { pieces_of(one) }.map_or(0, length);
        one.header.flags = if one.len as usize > room { MSG_TRUNC } else { 0 };
        if flags & MSG_TRUNC == 0 {
            one.len = one.len.min(room as u32);
        }
        one.header.control_len = 0;
        // SAFETY: the caller's promise.
        one.header.name_len = unsafe { write_source(s, one.header.name, one.header.name_len) };
    }
    finish_receive(s, ring, many.was_last, many.has_room);
    Some(many.count)
}

/// The pieces of a message, for the duration of the call.
unsafe fn pieces_of<'a>(one: &MMsgHdr) -> Option<&'a [IoVec]> {
    if one.header.has_wrong_name() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { vector(one.header.iov, one.header.iov_count()) }.ok()
}

/// The timeout of `recvmmsg`, which Linux checks only after each message.
struct Clock {
    time: sys::TimeSpecPointer,
    end: TimeSpec,
}

impl Clock {
    fn start(time: sys::TimeSpecPointer) -> Self {
        if time.is_null() {
            return Self { time, end: TimeSpec::default() };
        }
        let now = sys::monotonic();
        // SAFETY: the kernel has just read it.
        let limit = unsafe { time.read_unaligned() };
        let nsec = now.nsec + limit.nsec;
        let sec = now.sec.saturating_add(limit.sec).saturating_add(nsec / 1_000_000_000);
        Self { time, end: TimeSpec { sec, nsec: nsec % 1_000_000_000 } }
    }

    /// Whether the time has run out. Writes the remaining time into the program's timeout.
    fn is_over(&mut self) -> bool {
        if self.time.is_null() {
            return false;
        }
        let now = sys::monotonic();
        let nsec = self.end.nsec - now.nsec;
        let sec = self.end.sec - now.sec - i64::from(nsec < 0);
        let left = TimeSpec { sec, nsec: nsec.rem_euclid(1_000_000_000) };
        let is_over = sec < 0 || (left.sec == 0 && left.nsec == 0);
        let left = if is_over { TimeSpec::default() } else { left };
        // SAFETY: it belongs to the program, and Linux writes it as well.
        unsafe { self.time.write_unaligned(left) };
        is_over
    }
}

/// Writes the peer's address and returns its full length.
unsafe fn write_source(s: &Socket, name: *mut c_void, room: u32) -> u32 {
    let mut address = [0; ADDRESS_BYTES];
    if name.is_null() || s.has_fault(FAULT_NO_SOURCE) {
        return 0;
    }
    let len = s.address(SLOT_PEER_AT, &mut address);
    // SAFETY: the program's buffer has `room` bytes.
    unsafe {
        core::ptr::copy_nonoverlapping(address.as_ptr(), name.cast(), len.min(room as usize));
    }
    len as u32
}

fn may_receive(s: &Socket, flags: c_int) -> Result<(), c_int> {
    loop {
        match s.state() {
            STATE_OPEN | STATE_ENDED => return Ok(()),
            STATE_CONNECTING if s.is_orphan() => return Ok(()),
            STATE_CONNECTING if !s.is_blocking(flags) => return Err(EAGAIN),
            STATE_CONNECTING => {
                if s.wait_writable(s.timeout(SO_RCVTIMEO))? == 0 {
                    return Err(EAGAIN);
                }
            }
            STATE_CLOSED => return Err(pending_error(s).unwrap_or(ENOTCONN)),
            _ => return Err(ENOTCONN),
        }
    }
}

/// What a read of zero bytes means: an empty message, the end of the stream, or an error.
fn end_of_reading(s: &Socket, flags: c_int) -> Raw {
    if s.is_orphan() {
        return if s.report_orphan() { fail(ECONNRESET) } else { 0 };
    }
    let stays = s.has_fault(FAULT_RESET_IS_END) || flags & MSG_PEEK != 0;
    if s.state() != STATE_ENDED || stays || !s.has_error() || is_more_to_read(s) {
        return 0;
    }
    -(s.take_error() as Raw)
}

fn is_more_to_read(s: &Socket) -> bool {
    peek(s, &mut [0], MSG_DONTWAIT) > 0
}

/// `splice` into a pipe: one message, or the first `len` bytes of it. Neither end has a file
/// position.
pub fn into_pipe(s: &Socket, at: [*mut i64; 2], pipe: c_int, len: usize, flags: c_int) -> Raw {
    const F_GETPIPE_SZ: c_int = 1032;
    const SPLICE_F_NONBLOCK: c_int = 2;
    const SPLICE_F_ALL: c_int = 15;
    const O_ACCMODE: c_int = 3;
    const O_RDONLY: c_int = 0;
    let of_pipe = sys::fcntl(pipe, F_GETFL, 0) as c_int;
    let is_pipe = sys::fcntl(pipe, F_GETPIPE_SZ, 0) >= 0;
    match () {
        () if len == 0 => return 0,
        () if flags & !SPLICE_F_ALL != 0 => return fail(EINVAL),
        () if of_pipe < 0 => return fail(EBADF),
        () if is_pipe && !at[1].is_null() => return fail(ESPIPE),
        // The read end of a pipe never becomes writable.
        () if of_pipe & O_ACCMODE == O_RDONLY => return fail(EBADF),
        () if !is_pipe || !at[0].is_null() => return fail(EINVAL),
        () => {}
    }
    let waits = flags & SPLICE_F_NONBLOCK == 0 && of_pipe & O_NONBLOCK == 0;
    // A writable pipe has room for every message.
    let time = if waits { None } else { Some(TimeSpec::default()) };
    match sys::wait_writable(pipe, time) {
        Err(e) => return fail(e),
        Ok(0) => return fail(EAGAIN),
        Ok(ready) if ready & POLLERR != 0 => return fail(EPIPE),
        Ok(_) => {}
    }
    let mut packet = [0u8; MAX_MESSAGE];
    let mut piece = IoVec { base: packet.as_mut_ptr().cast(), len: len.min(MAX_MESSAGE) };
    // SAFETY: the piece is this function's.
    match unsafe { receive(s, &mut MsgHdr::of(&raw mut piece, 1), 0) } {
        n if n <= 0 => n,
        n => sys::write(pipe, &packet[..n as usize]),
    }
}

/// Length of the next message, or 0 if there is none.
pub fn next_len(s: &Socket) -> Raw {
    let has_connection = matches!(s.state(), STATE_OPEN | STATE_ENDED);
    let ring = if has_connection { rings::of(s) } else { None };
    match ring.filter(|ring| ring.is_on()) {
        Some(ring) => ring.next_len().unwrap_or(0) as Raw,
        None => peek(s, &mut [], MSG_TRUNC | MSG_DONTWAIT).max(0),
    }
}
