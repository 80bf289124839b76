//! Asks the kernel whether the program's memory can be read or written, before this library copies
//! to or from it: a bad pointer is EFAULT, as it is where the kernel copies.
//!
//! A page that was good is remembered. A program that has unmapped it since, and passes it again,
//! ends as after any other use of freed memory.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::IoVec;
use crate::sys;

const PAGE: usize = 4096;
const REMEMBERED: usize = 512;

/// Numbers of pages, each at its number modulo [`REMEMBERED`].
struct Pages([AtomicUsize; REMEMBERED]);

static READABLE: Pages = Pages([const { AtomicUsize::new(0) }; REMEMBERED]);
static WRITABLE: Pages = Pages([const { AtomicUsize::new(0) }; REMEMBERED]);

impl Pages {
    /// Whether all pages of a piece of memory are good; `ask` is asked about those that are not
    /// remembered, with an address within the piece.
    fn are_good(&self, piece: &IoVec, ask: impl Fn(usize) -> bool) -> bool {
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
            let is_good = ask(first.max(page * PAGE));
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

/// Whether the kernel could write this memory, whose bytes the caller is about to replace. `fd` is
/// a socket.
pub fn is_writable(piece: &IoVec, fd: c_int) -> bool {
    WRITABLE.are_good(piece, |at| sys::can_write(at, fd))
}
