//! The rings that this process has mapped, by slot.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::*;
use crate::find::{PLACES, Socket};
use crate::protocol::Op;
use crate::ring::{RING_BYTES, Ring};
use crate::{rpc, sys};

/// The address of a ring; or twice a cookie plus one, for a socket that gets none. Mappings are
/// never taken away, since another thread may be in one: the next socket of the slot takes its
/// place.
static MAPPED: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

/// The ring of a connected socket. The first call asks the broker for it.
pub fn of(s: &Socket) -> Option<Ring> {
    let known = MAPPED[s.place].load(Ordering::Acquire);
    let without = (s.cookie << 1 | 1) as usize;
    if known == without {
        return None;
    }
    let old = if known.is_multiple_of(2) { known as *mut u8 } else { core::ptr::null_mut() };
    if !old.is_null() {
        // SAFETY: mapped by `map`, for ever.
        let ring = unsafe { Ring::at(old) };
        if ring.cookie() == s.cookie {
            return Some(ring);
        }
    }
    let Some(at) = map(s, old) else {
        MAPPED[s.place].store(without, Ordering::Release);
        return None;
    };
    MAPPED[s.place].store(at as usize, Ordering::Release);
    // SAFETY: mapped just now, for ever.
    let ring = unsafe { Ring::at(at) };
    (ring.cookie() == s.cookie).then_some(ring)
}

fn map(s: &Socket, old: *mut u8) -> Option<*mut u8> {
    let answer = rpc::ask(Op::Ring, s.cookie, 0, 0, &[]).ok()?;
    if answer.fd < 0 {
        return None;
    }
    let at = sys::map_to_write(answer.fd, old, RING_BYTES);
    sys::close(answer.fd);
    if at.is_null() {
        return None;
    }
    let buffer = answer.reply.value;
    sys::setsockopt(s.fd, SOL_SOCKET, SO_SNDBUF, core::ptr::from_ref(&buffer).cast(), 4);
    Some(at)
}
