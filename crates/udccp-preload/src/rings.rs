//! The rings that this process has mapped, by place.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::abi::*;
use crate::find::{PLACES, Socket};
use crate::protocol::Op;
use crate::ring::{RING_BYTES, Ring};
use crate::{rpc, sys};

/// The address of a socket's ring, or 0. A mapping is never removed, since another thread may be
/// using it: the place's next ring is mapped over it.
static MAPPED: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

/// The owner of that ring: twice the socket's cookie, plus one if the socket has no ring. Reading
/// the ring of a socket that is gone would allocate memory again that the broker has freed.
static OWNER: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// The ring of a connected socket. The first call requests it from the broker.
pub fn of(s: &Socket) -> Option<Ring> {
    let (own, without) = (s.cookie << 1, s.cookie << 1 | 1);
    let owner = OWNER[s.place].load(Ordering::Acquire);
    if owner == without {
        return None;
    }
    let known = MAPPED[s.place].load(Ordering::Acquire) as *mut u8;
    if owner == own {
        // SAFETY: mapped by `map`, for ever.
        return Some(unsafe { Ring::at(known) });
    }
    let ring = match map(s, known) {
        // A descriptor may become free later, so do not record a failure.
        Err(EMFILE | ENFILE) => return None,
        mapped => mapped.ok().map(|at| {
            MAPPED[s.place].store(at as usize, Ordering::Release);
            // SAFETY: mapped just now, for ever.
            unsafe { Ring::at(at) }
        }),
    };
    let ring = ring.filter(|ring| ring.cookie() == s.cookie);
    OWNER[s.place].store(if ring.is_some() { own } else { without }, Ordering::Release);
    ring
}

fn map(s: &Socket, old: *mut u8) -> Result<*mut u8, c_int> {
    let answer = rpc::call(Op::Ring, s.cookie, 0, 0, &[])?;
    let at = sys::map_to_write(answer.fd, old, RING_BYTES);
    sys::close(answer.fd);
    if at.is_null() {
        return Err(ENOMEM);
    }
    let buffer = answer.reply.value;
    sys::setsockopt(s.fd, SOL_SOCKET, SO_SNDBUF, core::ptr::from_ref(&buffer).cast(), 4);
    Ok(at)
}
