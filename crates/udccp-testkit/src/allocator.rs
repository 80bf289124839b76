//! Counts the allocations of a test program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The system's allocator with counters. A test program makes it its global allocator:
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
    /// An allocator with all counters at zero.
    pub const fn new() -> Self {
        Self {
            allocations: AtomicU64::new(0),
            held_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
        }
    }

    /// Allocations so far in all threads. A reallocation counts as one more.
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Relaxed)
    }

    /// Bytes allocated now.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Relaxed)
    }

    /// Runs `job`. Returns its result and the peak of allocated bytes above the level at the start.
    /// Other threads count too.
    pub fn peak_of<T>(&self, job: impl FnOnce() -> T) -> (T, usize) {
        let before = self.held_bytes();
        self.peak_bytes.store(before, Relaxed);
        let value = job();
        (value, self.peak_bytes.load(Relaxed).saturating_sub(before))
    }
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocations.fetch_add(1, Relaxed);
        let held = self.held_bytes.fetch_add(layout.size(), Relaxed) + layout.size();
        self.peak_bytes.fetch_max(held, Relaxed);
        // SAFETY: the caller meets the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.held_bytes.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `alloc` above, and so from the system's allocator.
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
            // SAFETY: both pointers are freed once, with the layout with which they were allocated.
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
