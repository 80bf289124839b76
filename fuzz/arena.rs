//! A heap for one execution at a time: each execution overwrites the memory of the previous one.
//! Copying two endpoints takes about a hundred small allocations, which would cost more than the
//! rest of the execution.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Far more than any execution needs; if it is full, memory comes from the system.
const BYTES: usize = 32 << 20;

/// The heap of a process that runs its executions one after another on one thread.
pub struct Arena {
    is_on: AtomicBool,
    used: AtomicUsize,
    region: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: an atomic counter gives out each byte of the region at most once per `scope`; libFuzzer's
// own threads do not run Rust.
unsafe impl Sync for Arena {}

impl Arena {
    /// Initially off: all memory comes from the system.
    pub const fn new() -> Self {
        let region = UnsafeCell::new([0; BYTES]);
        Self { is_on: AtomicBool::new(false), used: AtomicUsize::new(0), region }
    }

    /// Runs `f` with allocations from the region.
    ///
    /// # Safety
    /// Nothing that `f` allocates may be used after it returns, and no other thread may allocate
    /// meanwhile.
    pub unsafe fn scope(&self, f: impl FnOnce()) {
        self.used.store(0, Relaxed);
        self.is_on.store(true, Relaxed);
        f();
        self.is_on.store(false, Relaxed);
    }

    fn base(&self) -> *mut u8 {
        self.region.get().cast()
    }

    fn holds(&self, at: *mut u8) -> bool {
        (at as usize).wrapping_sub(self.base() as usize) < BYTES
    }

    fn take(&self, layout: Layout) -> Option<*mut u8> {
        let base = self.base() as usize;
        let start = (base + self.used.load(Relaxed)).next_multiple_of(layout.align());
        let end = start.checked_add(layout.size())? - base;
        (end <= BYTES).then(|| {
            self.used.store(end, Relaxed);
            start as *mut u8
        })
    }
}

// SAFETY: memory of the region is aligned, large enough and given out once per `scope`. All other
// memory is the system's, and is recognised by its address.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = if self.is_on.load(Relaxed) { self.take(layout) } else { None };
        // SAFETY: the caller's layout is passed unchanged.
        taken.unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if !self.holds(at) {
            // SAFETY: it is outside the region, so it came from the system with this layout.
            unsafe { System.dealloc(at, layout) }
        }
    }
}
