//! No segment allocates: headers are cut from blocks, and everything else has grown to its size.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Fate, Pipe, ms};
use udccp_base::{Duration, Seed};
use udccp_cc::Algorithm;
use udccp_tcp::TcpConfig;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, hence from the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_thousand_segments_cost_a_handful_of_allocations() {
    for loss in [0.0, 0.001] {
        let mut rng = Seed(3).stream("loss");
        let config = TcpConfig { max_cwnd: Some(500), ..TcpConfig::new(Algorithm::NEW_RENO) };
        let mut pipe = Pipe::new(config, ms(10))
            .with_rule(move |_, _| if rng.chance(loss) { Fate::Drop } else { Fate::Pass });
        pipe.start();
        pipe.run_for(Duration::from_secs(5));
        let (before, delivered) = (ALLOCATIONS.load(Ordering::Relaxed), pipe.delivered);
        pipe.run_for(Duration::from_secs(5));
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        let segments = (pipe.delivered - delivered) / 1448;
        // A block of 16 KiB (two allocations) holds 500 headers of 32 bytes; an acknowledgement
        // for every second segment: six allocations for a thousand segments.
        assert!(segments > 10_000, "{segments}");
        assert!(allocations < segments / 100, "{allocations} for {segments} segments");
    }
}
