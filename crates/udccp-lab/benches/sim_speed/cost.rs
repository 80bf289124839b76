//! What a run cost.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use udccp_lab::Record;

/// What one run cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Data packets (of flows from senders to receivers) that arrived.
    pub(crate) delivered: u64,
    pub(crate) events: u64,
    pub(crate) cpu_s: f64,
    /// Most heap memory that the run held at once.
    pub(crate) heap_bytes: usize,
}

impl Cost {
    pub(crate) fn of(record: &Record, heap_bytes: usize) -> Self {
        let delivered = record.flows.iter().map(|f| f.packets_delivered).sum();
        Self { delivered, events: record.cost.events, cpu_s: record.cost.cpu_s, heap_bytes }
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.delivered as f64 / self.cpu_s
    }

    pub(crate) fn ns_per_packet(&self) -> f64 {
        self.cpu_s * 1e9 / self.delivered as f64
    }

    pub(crate) fn events_per_packet(&self) -> f64 {
        self.events as f64 / self.delivered as f64
    }
}

/// The cheapest of several runs: other load on the machine only ever adds.
pub(crate) fn best(runs: impl Iterator<Item = Cost>) -> Cost {
    runs.min_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s)).expect("at least one run")
}

/// The system's allocator, with a count of what is held.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above, hence from the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs something and tells how much more heap it held, at most, than was held before.
pub(crate) fn with_heap<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let value = run();
    (value, PEAK.load(Ordering::Relaxed) - before)
}

/// Most memory that the process ever held, in MiB.
pub(crate) fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
