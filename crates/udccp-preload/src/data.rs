//! Sending on a DCCP socket, with Linux's order of checks and errors.

use core::ffi::c_int;
use core::slice;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::abi::*;
use crate::find::{PLACES, Socket};
use crate::protocol::*;
use crate::ring::Ring;
use crate::rings;
use crate::sys::{self, Raw};

const fn fail(errno: c_int) -> Raw {
    -(errno as Raw)
}

/// Pads each frame after its message, so that the kernel charges the same for every message.
static PADDING: [u8; MAX_MESSAGE] = [0; MAX_MESSAGE];
/// Most pieces of a message that are passed to the kernel as they are. With more, they are copied
/// together first.
const PIECES: usize = 6;

/// Only the number of places limits the queue.
const NO_QUEUE: u64 = u64::MAX;

/// Most messages in one system call.
const AT_ONCE: usize = 16;

/// Cookies of the sockets, by place, that this process has shut down for sending.
static SHUT: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// Marks a socket as shut down for sending.
pub fn shutdown_sending(s: &Socket) {
    SHUT[s.place].store(s.cookie, Ordering::Relaxed);
}

/// Wakes senders that wait for room after the socket was shut down for sending: the kernel reports
/// the error only on a socket with room.
pub fn wake_senders(s: &Socket) {
    let most = c_int::MAX;
    sys::setsockopt(s.fd, SOL_SOCKET, SO_SNDBUF, core::ptr::from_ref(&most).cast(), 4);
}

/// A frame in pieces, for one system call: header, message, padding.
#[repr(C)]
struct Frame {
    header: [u8; FRAME_HEADER],
    pieces: [IoVec; PIECES + 2],
}

impl Frame {
    const NONE: IoVec = IoVec { base: core::ptr::null_mut(), len: 0 };

    const fn empty() -> Self {
        Self { header: [0; FRAME_HEADER], pieces: [Self::NONE; PIECES + 2] }
    }

    /// Fills in a message, which must stay in place until the frame is sent. Returns the kernel's
    /// header for the frame.
    fn fill(&mut self, key: u64, kind: u32, priority: u32, message: &[IoVec]) -> MsgHdr {
        let len = length(message);
        self.header = frame_header(key, kind, priority, len);
        self.pieces[0] = IoVec { base: self.header.as_mut_ptr().cast(), len: FRAME_HEADER };
        self.pieces[1..=message.len()].copy_from_slice(message);
        let padding = PADDING.as_ptr().cast_mut().cast();
        self.pieces[message.len() + 1] = IoVec { base: padding, len: MAX_MESSAGE - len };
        MsgHdr::of(self.pieces.as_mut_ptr(), message.len() + 2)
    }
}

/// Sends one message gathered from pieces.
///
/// # Safety
/// The pieces are the program's, readable as its call promises.
pub unsafe fn send(s: &Socket, pieces: &[IoVec], priority: u32, flags: c_int) -> Raw {
    let len = length(pieces);
    if len > s.max_message_size() {
        return fail(EMSGSIZE);
    }
    if let Some(ring) = ring_to_send(s) {
        // SAFETY: the caller's promise.
        return unsafe { send_by_ring(s, ring, pieces, priority, flags) };
    }
    if pieces.len() <= PIECES {
        return send_pieces(s, pieces, priority, flags);
    }
    let mut data = [0u8; MAX_MESSAGE];
    let mut at = 0;
    for piece in pieces.iter().filter(|p| p.len > 0) {
        if piece.base.is_null() {
            return fail(EFAULT);
        }
        // SAFETY: the caller's promise; the sum of the lengths is below MAX_MESSAGE.
        let bytes = unsafe { slice::from_raw_parts(piece.base.cast::<u8>(), piece.len) };
        data[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    }
    send_pieces(s, &[IoVec { base: data.as_mut_ptr().cast(), len }], priority, flags)
}

fn ring_to_send(s: &Socket) -> Option<Ring> {
    if s.state() == STATE_OPEN { rings::of(s) } else { None }
}

unsafe fn send_by_ring(
    s: &Socket,
    ring: Ring,
    pieces: &[IoVec],
    priority: u32,
    flags: c_int,
) -> Raw {
    let len = length(pieces);
    let mut queue = s.queue();
    loop {
        if s.state() != STATE_OPEN || ring.is_shut() {
            return fail(why_ended(s));
        }
        // SAFETY: the caller's promise; `send` has checked the length.
        match unsafe { ring.send(pieces, len, priority, queue) } {
            Ok(is_full) => match wake_broker(s, ring, is_full || ring.is_full(s.queue())) {
                Ok(()) => return len as Raw,
                Err(e) => return fail(e),
            },
            Err(EAGAIN) => {}
            Err(e) => return fail(e),
        }
        match wait_for_room(s, ring, flags) {
            Ok(may_wait) => queue = may_wait,
            Err(e) => return fail(e),
        }
    }
}

/// Wakes the broker if it sleeps. If the ring is full, plugs the socket instead, so that it is not
/// writable.
fn wake_broker(s: &Socket, ring: Ring, is_full: bool) -> Result<(), c_int> {
    if is_full {
        return plug_ring(s, ring);
    }
    let Some(sleep) = ring.sleep() else { return Ok(()) };
    let sent = send_bell(s);
    ring.end_sleep(sleep);
    sent
}

fn plug_ring(s: &Socket, ring: Ring) -> Result<(), c_int> {
    static PLUG: [u8; RING_PLUG_BYTES - FRAME_HEADER] = [0; RING_PLUG_BYTES - FRAME_HEADER];
    let sleep = ring.sleep();
    ring.plug();
    let mut header = frame_header(s.key(), FRAME_PLUG, 0, 0);
    let mut pieces = [
        IoVec { base: header.as_mut_ptr().cast(), len: FRAME_HEADER },
        IoVec { base: PLUG.as_ptr().cast_mut().cast(), len: PLUG.len() },
    ];
    let result = put_frame(s, &MsgHdr::of(pieces.as_mut_ptr(), 2));
    if let Some(sleep) = sleep {
        ring.end_sleep(sleep);
    }
    check_sent(s, result)
}

/// Sends the broker a bell, so that it looks at the ring.
///
/// # Errors
/// The error with which the connection has ended.
pub fn send_bell(s: &Socket) -> Result<(), c_int> {
    let mut bell = frame_header(s.key(), FRAME_BELL, 0, 0);
    let mut piece = IoVec { base: bell.as_mut_ptr().cast(), len: FRAME_HEADER };
    check_sent(s, put_frame(s, &MsgHdr::of(&raw mut piece, 1)))
}

/// Maps the result of sending a bell or plug. A full socket pair is fine: what fills it has woken
/// the broker.
fn check_sent(s: &Socket, result: Raw) -> Result<(), c_int> {
    match result {
        e if e == fail(ECONNRESET) || e == fail(EPIPE) => Err(why_ended(s)),
        _ => Ok(()),
    }
}

/// Waits until the ring may have room and returns the queue length to use, or the error if the call
/// does not wait.
fn wait_for_room(s: &Socket, ring: Ring, flags: c_int) -> Result<u64, c_int> {
    let waits = s.is_blocking(flags) && !s.has_fault(FAULT_EAGAIN);
    let time = if waits { s.timeout(SO_SNDTIMEO) } else { Some(TimeSpec::default()) };
    let ready = s.wait_writable(time)?;
    if ready & POLLHUP != 0 {
        return Err(why_ended(s));
    }
    if !ring.is_full(s.queue()) && ring.has_place() {
        return Ok(s.queue());
    }
    if ready & POLLOUT != 0 {
        // The broker grants less than before, or the thread that filled the ring was killed before
        // it could plug the socket. A writable socket has promised room: send one more message.
        if !ring.is_full(NO_QUEUE) && ring.has_place() {
            return Ok(NO_QUEUE);
        }
        // A sender was killed while it held places.
        plug_ring(s, ring)?;
    }
    if waits && ready != 0 { Ok(s.queue()) } else { Err(EAGAIN) }
}

/// Sends one message of a few pieces through the pair; the kernel checks the pointers.
fn send_pieces(s: &Socket, pieces: &[IoVec], priority: u32, flags: c_int) -> Raw {
    let mut frame = Frame::empty();
    let message = frame.fill(s.key(), FRAME_DATA, priority, pieces);
    loop {
        if let Err(e) = may_send(s, flags) {
            return fail(e);
        }
        match put_frame(s, &message) {
            // Another thread was faster.
            e if e == fail(EAGAIN) && s.is_blocking(flags) => {}
            e if e == fail(ECONNRESET) || e == fail(EPIPE) => return fail(why_ended(s)),
            e if e < 0 => return e,
            _ => return length(pieces) as Raw,
        }
    }
}

/// Sends as many of these messages as the queue has room for, with one system call. Returns how
/// many. If none could be sent, [`send`] returns the error or waits.
///
/// # Safety
/// The messages are the program's, readable as its call promises.
pub unsafe fn send_some(s: &Socket, all: &mut [MMsgHdr]) -> usize {
    if s.state() != STATE_OPEN {
        return 0;
    }
    if let Some(ring) = ring_to_send(s) {
        // SAFETY: the caller's promise.
        return unsafe { send_some_by_ring(s, ring, all) };
    }
    let mut frames = [const { Frame::empty() }; AT_ONCE];
    let mut headers = [const { MMsgHdr::empty() }; AT_ONCE];
    let most = all.len().min(AT_ONCE).min(s.room());
    let mut count = 0;
    for one in &mut all[..most] {
        // SAFETY: the caller's promise.
        let Some((pieces, priority)) = (unsafe { plain(s, &one.header) }) else { break };
        headers[count].header = frames[count].fill(s.key(), FRAME_DATA, priority, pieces);
        count += 1;
    }
    if count == 0 {
        return 0;
    }
    let sent = sys::sendmmsg(s.fd, &mut headers[..count], MSG_NOSIGNAL | MSG_DONTWAIT);
    let sent = sent.max(0) as usize;
    for one in &mut all[..sent] {
        // SAFETY: as above; these were read before.
        one.len = unsafe { pieces(&one.header) }.map_or(0, length) as u32;
    }
    sent
}

/// Sends messages through the ring and wakes the broker once.
unsafe fn send_some_by_ring(s: &Socket, ring: Ring, all: &mut [MMsgHdr]) -> usize {
    if ring.is_shut() {
        return 0;
    }
    let queue = s.queue();
    // SAFETY: the caller's promise; `plain` checks the lengths.
    let count = unsafe { ring.send_many(queue, all, |message| plain(s, message)) };
    if count > 0 {
        // An error shows in the next call.
        let _ = wake_broker(s, ring, ring.is_full(queue));
    }
    count
}

/// The pieces and the priority of a message that needs no special treatment.
unsafe fn plain<'a>(s: &Socket, message: &'a MsgHdr) -> Option<(&'a [IoVec], u32)> {
    // SAFETY: the caller's promise.
    let (pieces, priority) = unsafe { (pieces(message).ok()?, priority(s, message).ok()?) };
    let fits = pieces.len() <= PIECES && length(pieces) <= s.max_message_size();
    fits.then_some((pieces, priority))
}

/// The pieces of a message, or the error; like the kernel, it checks the address's length first.
///
/// # Safety
/// `message` is the program's.
pub unsafe fn pieces(message: &MsgHdr) -> Result<&[IoVec], c_int> {
    if message.has_wrong_name() {
        return Err(EINVAL);
    }
    // SAFETY: the caller's promise.
    unsafe { vector(message.iov, message.iov_count()) }
}

/// The pieces of a vector, or the error.
///
/// # Safety
/// The vector is the program's, and has `count` pieces.
pub unsafe fn vector<'a>(iov: *const IoVec, count: usize) -> Result<&'a [IoVec], c_int> {
    const UIO_MAXIOV: usize = 1024;
    if count > UIO_MAXIOV {
        return Err(EMSGSIZE);
    }
    if count == 0 {
        return Ok(&[]);
    }
    if iov.is_null() {
        return Err(EFAULT);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts(iov, count) })
}

/// Waits until a message can be sent, or returns the error.
fn may_send(s: &Socket, flags: c_int) -> Result<(), c_int> {
    loop {
        if SHUT[s.place].load(Ordering::Relaxed) == s.cookie {
            return Err(why_ended(s));
        }
        match s.state() {
            STATE_OPEN => {}
            STATE_CONNECTING if !s.is_blocking(flags) => return Err(EAGAIN),
            STATE_CONNECTING => {}
            STATE_ENDED => return Err(why_ended(s)),
            _ => return Err(pending_error(s).unwrap_or(EPIPE)),
        }
        let ready = sys::poll(s.fd, POLLOUT, Some(TimeSpec::default()))?;
        if ready & POLLHUP != 0 {
            return Err(why_ended(s));
        }
        if ready & POLLOUT != 0 {
            return Ok(());
        }
        let copies_linux = s.state() == STATE_OPEN && s.has_fault(FAULT_EAGAIN);
        let waits = !copies_linux && s.is_blocking(flags);
        if !waits {
            return Err(EAGAIN);
        }
        if s.wait_writable(s.timeout(SO_SNDTIMEO))? == 0 {
            return Err(EAGAIN);
        }
    }
}

/// The result for a message that Linux refuses only after it has checked that the socket can send.
pub fn refuse(s: &Socket, flags: c_int, errno: c_int) -> Raw {
    fail(may_send(s, flags).err().unwrap_or(errno))
}

/// `sendfile`: each page of the file becomes one message.
///
/// # Safety
/// As `sendfile`.
pub unsafe fn send_file(s: &Socket, from: c_int, at: *mut i64, len: usize) -> Raw {
    const PAGE: i64 = 4096;
    // SAFETY: the caller's promise.
    if !at.is_null() && unsafe { *at } < 0 {
        return fail(EINVAL);
    }
    if let Err(e) = may_send(s, 0) {
        return fail(e);
    }
    // SAFETY: the caller's promise.
    let begin = if at.is_null() { sys::seek_by(from, 0) as i64 } else { unsafe { *at } };
    if begin < 0 {
        return begin as Raw;
    }
    let mut data = [0u8; MAX_MESSAGE];
    let most = s.max_message_size();
    let mut done = 0;
    let failed = loop {
        let position = begin + done as i64;
        let page = (PAGE - position % PAGE) as usize;
        let wanted = (len - done).min(page);
        let read = sys::pread(from, &mut data[..wanted.min(most + 1).min(MAX_MESSAGE)], position);
        if read <= 0 || wanted == 0 {
            break read.min(0);
        }
        let pieces = [IoVec { base: data.as_mut_ptr().cast(), len: read as usize }];
        // SAFETY: the piece is this function's.
        match unsafe { send(s, &pieces, 0, 0) } {
            e if e < 0 => break e,
            sent => done += sent as usize,
        }
    };
    if at.is_null() {
        sys::seek_by(from, done as i64);
    } else {
        // SAFETY: the caller's promise.
        unsafe { *at += done as i64 };
    }
    if done > 0 { done as Raw } else { failed }
}

/// Takes the pending error, if there is one.
pub fn pending_error(s: &Socket) -> Option<c_int> {
    Some(s.take_error()).filter(|e| *e != 0)
}

/// The error when sending is over: the pending error once, then EPIPE.
fn why_ended(s: &Socket) -> c_int {
    if s.is_orphan() {
        return if s.report_orphan() { ECONNRESET } else { EPIPE };
    }
    pending_error(s).unwrap_or(EPIPE)
}

/// Writes one frame.
fn put_frame(s: &Socket, frame: &MsgHdr) -> Raw {
    loop {
        match sys::sendmsg(s.fd, frame, MSG_NOSIGNAL | MSG_DONTWAIT) {
            e if e == fail(EINTR) => {}
            result => return result,
        }
    }
}

/// Writes a plug, so that the socket is not writable until the broker reads it.
pub fn plug(s: &Socket) {
    let mut frame = Frame::empty();
    let message = frame.fill(s.key(), FRAME_PLUG, 0, &[]);
    for _ in 0..=MAX_PAIR_FRAMES {
        let is_writable = sys::poll(s.fd, POLLOUT, Some(TimeSpec::default()))
            .is_ok_and(|ready| ready & POLLOUT != 0);
        if !is_writable || put_frame(s, &message) < 0 {
            return;
        }
    }
}

/// The priority in the control data of a message.
///
/// # Safety
/// `message` is the program's.
pub unsafe fn priority(s: &Socket, message: &MsgHdr) -> Result<u32, c_int> {
    const ALIGN: usize = size_of::<usize>();
    const HEADER: usize = size_of::<CMsgHdr>();
    let control_len = message.control_bytes();
    let mut priority = 0;
    let mut at = 0;
    while !message.control.is_null() && at + HEADER <= control_len {
        // SAFETY: within the program's buffer.
        let header: CMsgHdr =
            unsafe { message.control.cast::<u8>().add(at).cast::<CMsgHdr>().read_unaligned() };
        if header.len < HEADER || header.len > control_len - at {
            return Err(EINVAL);
        }
        if header.level == SOL_DCCP {
            let is_priority = header.kind == DCCP_SCM_PRIORITY && header.len == HEADER + 4;
            if !is_priority || !s.has_priorities() {
                return Err(EINVAL);
            }
            // SAFETY: within the program's buffer.
            priority = unsafe {
                message.control.cast::<u8>().add(at + HEADER).cast::<u32>().read_unaligned()
            };
        }
        at += header.len.next_multiple_of(ALIGN);
    }
    Ok(priority)
}
