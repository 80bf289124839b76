//! Sending and receiving on a DCCP socket, with Linux's order of checks and errors.

use core::ffi::{c_int, c_void};
use core::slice;

use crate::abi::*;
use crate::find::Socket;
use crate::protocol::*;
use crate::sys::{self, Raw};

const fn fail(errno: c_int) -> Raw {
    -(errno as Raw)
}

/// Sends one message gathered from pieces.
///
/// # Safety
/// The pieces are the program's, readable as its call promises.
pub unsafe fn send(s: &Socket, pieces: &[IoVec], priority: u32, flags: c_int) -> Raw {
    if flags & MSG_OOB != 0 {
        return fail(EOPNOTSUPP);
    }
    let len = pieces.iter().fold(0usize, |sum, p| sum.saturating_add(p.len));
    if len > s.max_message_size() {
        return fail(EMSGSIZE);
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
    let blocks = s.is_blocking(flags);
    loop {
        if let Err(e) = may_send(s, blocks) {
            return fail(e);
        }
        match put_frame(s, FRAME_DATA, priority, &mut data, len) {
            // Another thread was faster.
            e if e == fail(EAGAIN) && blocks => {}
            e if e == fail(ECONNRESET) || e == fail(EPIPE) => return fail(why_ended(s)),
            e if e < 0 => return e,
            _ => return len as Raw,
        }
    }
}

/// Waits until a message may go, or says why none may.
fn may_send(s: &Socket, blocks: bool) -> Result<(), c_int> {
    loop {
        match s.state() {
            STATE_OPEN => {}
            STATE_CONNECTING if !blocks => return Err(EAGAIN),
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
        if !blocks || copies_linux || sys::poll(s.fd, POLLOUT, s.timeout(SO_SNDTIMEO))? == 0 {
            return Err(EAGAIN);
        }
    }
}

fn pending_error(s: &Socket) -> Option<c_int> {
    Some(s.take_error()).filter(|e| *e != 0)
}

/// What sending gives when it cannot go on: the pending error once, then EPIPE.
fn why_ended(s: &Socket) -> c_int {
    if s.is_orphan() {
        return if s.report_orphan() { ECONNRESET } else { EPIPE };
    }
    pending_error(s).unwrap_or(EPIPE)
}

/// Writes one frame. What follows its data are the bytes that are there.
fn put_frame(s: &Socket, kind: u32, priority: u32, data: &mut [u8], len: usize) -> Raw {
    let mut header = frame_header(s.key(), kind, priority, len);
    let mut pieces = [
        IoVec { base: header.as_mut_ptr().cast(), len: FRAME_HEADER },
        IoVec { base: data.as_mut_ptr().cast(), len: MAX_MESSAGE },
    ];
    let message = MsgHdr::of(pieces.as_mut_ptr(), 2);
    loop {
        match sys::sendmsg(s.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) {
            e if e == fail(EINTR) => {}
            result => return result,
        }
    }
}

/// Keeps the socket from being writable until the broker reads what this writes.
pub fn plug(s: &Socket) {
    let mut nothing = [0u8; MAX_MESSAGE];
    for _ in 0..=MAX_PAIR_FRAMES {
        let is_writable = sys::poll(s.fd, POLLOUT, Some(TimeSpec::default()))
            .is_ok_and(|ready| ready & POLLOUT != 0);
        if !is_writable || put_frame(s, FRAME_PLUG, 0, &mut nothing, 0) < 0 {
            return;
        }
    }
}

/// Receives one message, as `recvmsg` does; the address is filled in.
///
/// # Safety
/// `message` and what it points to are the program's.
pub unsafe fn receive(s: &Socket, message: &mut MsgHdr, flags: c_int) -> Raw {
    if flags & MSG_OOB != 0 {
        return fail(EOPNOTSUPP);
    }
    let (name, name_len) = (message.name, message.name_len);
    (message.name, message.name_len) = (core::ptr::null_mut(), 0);
    let control_len = message.control_len;
    let mut result;
    loop {
        if let Err(e) = may_receive(s, flags) {
            result = fail(e);
            break;
        }
        message.control_len = control_len;
        result = sys::recvmsg(s.fd, message, flags);
        if result == fail(ECONNRESET) {
            // The kernel's word for the broker's end being closed, before what waits to be read.
            continue;
        }
        break;
    }
    if result == 0 {
        result = end_of_reading(s, flags);
    }
    (message.name, message.name_len) = (name, name_len);
    if result >= 0 {
        // No control data in this direction: what Unix sockets have of it is not DCCP's.
        message.control_len = 0;
        message.flags &= MSG_TRUNC;
        // SAFETY: the caller's promise.
        message.name_len = unsafe { give_source(s, name, name_len) };
    }
    result
}

/// Writes the peer's address; gives its true length.
unsafe fn give_source(s: &Socket, name: *mut c_void, room: u32) -> u32 {
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
                if sys::poll(s.fd, POLLOUT, s.timeout(SO_RCVTIMEO))? == 0 {
                    return Err(EAGAIN);
                }
            }
            _ => return Err(ENOTCONN),
        }
    }
}

/// What a read of nothing means: a message of length zero, the end, or an error.
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
    let mut byte = 0u8;
    let mut piece = IoVec { base: core::ptr::from_mut(&mut byte).cast(), len: 1 };
    let mut message = MsgHdr::of(&raw mut piece, 1);
    sys::recvmsg(s.fd, &mut message, MSG_PEEK | MSG_DONTWAIT) > 0
}

/// Bytes of the next message, 0 where there is none.
pub fn next_len(s: &Socket) -> Raw {
    let mut piece = IoVec { base: core::ptr::null_mut(), len: 0 };
    let mut message = MsgHdr::of(&raw mut piece, 0);
    sys::recvmsg(s.fd, &mut message, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT).max(0)
}

/// The priority that control data carry.
///
/// # Safety
/// `message` is the program's.
pub unsafe fn priority(s: &Socket, message: &MsgHdr) -> Result<u32, c_int> {
    const ALIGN: usize = size_of::<usize>();
    const HEADER: usize = size_of::<CMsgHdr>();
    let mut priority = 0;
    let mut at = 0;
    while !message.control.is_null() && at + HEADER <= message.control_len {
        // SAFETY: within the program's buffer.
        let header: CMsgHdr =
            unsafe { message.control.cast::<u8>().add(at).cast::<CMsgHdr>().read_unaligned() };
        if header.len < HEADER || header.len > message.control_len - at {
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
