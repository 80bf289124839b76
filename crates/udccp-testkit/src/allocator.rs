//! Counts what a test program allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The system's allocator with counts. A test program makes it its global allocator:
///
/// ```
/// use udccp_testkit::CountingAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator::new();
///
/// let before = ALLOCATOR.allocations();
/// drop(Box::new([1_u8; 100]));
/// assert!(ALLOCATOR.allocations() > before);
/// ```
#[derive(Debug, Default)]
pub struct CountingAllocator {
    allocations: AtomicU64,
    held_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
}

impl CountingAllocator {
    /// One that has counted nothing.
    pub const fn new() -> Self {
        Self {
            allocations: AtomicU64::new(0),
            held_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
        }
    }

    /// Allocations so far, of all threads; what grows in place or moves counts again.
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Relaxed)
    }

    /// Bytes that are held now.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Relaxed)
    }

    /// Runs `job`; returns the most bytes that were held at any time above those held before.
    /// Other threads count too.
    pub fn peak_of<T>(&self, job: impl FnOnce() -> T) -> (T, usize) {
        let before = self.held_bytes();
        self.peak_bytes.store(before, Relaxed);
        let value = job();
        (value, self.peak_bytes.load(Relaxed).saturating_sub(before))
    }
}

// SAFETY: every call is handed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocations.fetch_add(1, Relaxed);
        let held = self.held_bytes.fetch_add(layout.size(), Relaxed) + layout.size();
        self.peak_bytes.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.held_bytes.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `alloc` above, hence from the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_and_the_most_that_was_held_are_counted() {
        let counting = CountingAllocator::new();
        let layout = Layout::array::<u8>(1000).expect("a layout");
        let pair = || {
            // SAFETY: both pointers are freed once, with the layout that they were made with.
            unsafe {
                let (one, other) = (counting.alloc(layout), counting.alloc(layout));
                counting.dealloc(one, layout);
                counting.dealloc(other, layout);
            }
        };
        assert_eq!(counting.peak_of(pair).1, 2000);
        assert_eq!((counting.allocations(), counting.held_bytes()), (2, 0));
        assert_eq!(counting.peak_of(|| ()).1, 0);
    }
}
