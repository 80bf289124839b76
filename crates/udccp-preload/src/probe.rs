//! Checks with the kernel whether the program's memory can be read or written before this library
//! copies from or to it. A bad pointer gives EFAULT, as when the kernel copies.
//!
//! Valid pages are cached. If a program unmaps one and passes it again, it crashes, as after any
//! use of freed memory.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::IoVec;
use crate::sys;

const PAGE: usize = 4096;
const REMEMBERED: usize = 512;

/// A cache of page numbers, each stored at its number modulo [`REMEMBERED`].
struct Pages([AtomicUsize; REMEMBERED]);

static READABLE: Pages = Pages([const { AtomicUsize::new(0) }; REMEMBERED]);
static WRITABLE: Pages = Pages([const { AtomicUsize::new(0) }; REMEMBERED]);

impl Pages {
    /// Whether all pages of a piece of memory are valid. Calls `check` for pages that are not
    /// cached, with an address within the piece.
    fn are_good(&self, piece: &IoVec, check: impl Fn(usize) -> bool) -> bool {
        if piece.len == 0 {
            return true;
        }
        let first = piece.base as usize;
        let Some(last) = first.checked_add(piece.len - 1) else { return false };
        (first / PAGE..=last / PAGE).all(|page| {
            let remembered = &self.0[page % REMEMBERED];
            if page == 0 {
                return false;
            }
            if remembered.load(Ordering::Relaxed) == page {
                return true;
            }
            let is_good = check(first.max(page * PAGE));
            if is_good {
                remembered.store(page, Ordering::Relaxed);
            }
            is_good
        })
    }
}

/// Whether the kernel could read this memory.
pub fn is_readable(piece: &IoVec) -> bool {
    READABLE.are_good(piece, |at| sys::can_read(at & !7))
}

/// Whether the kernel could write this memory, which the caller is about to overwrite. `fd` is a
/// socket.
pub fn is_writable(piece: &IoVec, fd: c_int) -> bool {
    WRITABLE.are_good(piece, |at| sys::can_write(at, fd))
}
