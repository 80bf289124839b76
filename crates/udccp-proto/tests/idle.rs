//! Memory of an idle open connection, counted by the allocator. A larger size fails the test.

#![allow(clippy::print_stdout, reason = "a test that prints what it measured")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use udccp_base::{Instant, Machine};
use udccp_proto::{
    ConnectOptions, ConnectionConfig, Endpoint, EndpointConfig, ListenConfig, State,
};
use udccp_wire::ServiceCode;

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        BLOCKS.fetch_add(1, Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Relaxed);
        BLOCKS.fetch_sub(1, Relaxed);
        // SAFETY: the pointer came from `alloc` above, so it is from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Connections of each end. A power of two, so that tables are full on both sides.
const CONNECTIONS: usize = 1024;

/// Limit of the bytes of one end of an idle connection, including its share of the tables.
const MOST_BYTES: usize = 3_700;
const MOST_BLOCKS: usize = 13;

#[test]
fn an_idle_connection_holds_no_more_than_it_did() {
    let (bytes, blocks) = (BYTES.load(Relaxed), BLOCKS.load(Relaxed));
    let ends = connected();
    let each = |all: usize| all / (2 * CONNECTIONS);
    let bytes = each(BYTES.load(Relaxed) - bytes);
    let blocks = each(BLOCKS.load(Relaxed) - blocks);
    println!("an idle connection holds {bytes} bytes in {blocks} allocations");
    assert!(
        bytes <= MOST_BYTES && blocks <= MOST_BLOCKS,
        "an idle connection holds {bytes} bytes in {blocks} allocations; \
         at most {MOST_BYTES} in {MOST_BLOCKS} are wanted"
    );
    drop(ends);
}

/// Two endpoints with open connections between them, and nothing left to send.
fn connected() -> [Endpoint; 2] {
    let now = Instant::ZERO;
    let service: ServiceCode = "SC:idle".parse().unwrap();
    let mut ends = [1, 2].map(|n| Endpoint::new(EndpointConfig::new([n; 32])));
    let listener = ends[1].listen(None, 5001, ListenConfig::new(service)).unwrap();
    for n in 0..CONNECTIONS {
        let options = ConnectOptions {
            local: "10.0.0.1:0".parse().unwrap(),
            local_port: Some(10_000 + n as u16),
            remote: "10.0.0.2:0".parse().unwrap(),
            remote_port: 5001,
            service,
            config: ConnectionConfig::default().into(),
        };
        let id = ends[0].connect(now, options).unwrap();
        while exchange(&mut ends, now) {}
        let accepted = ends[1].accept(listener).unwrap();
        assert_eq!(ends[1].state(accepted), Some(State::Open));
        assert!(matches!(ends[0].state(id), Some(State::Open)));
    }
    for end in &mut ends {
        while end.poll_event().is_some() {}
    }
    ends
}

/// Exchanges everything that both ends have to send. Returns whether there was anything.
fn exchange(ends: &mut [Endpoint; 2], now: Instant) -> bool {
    let mut any = false;
    for from in 0..2 {
        while let Some(datagram) = ends[from].poll_transmit(now) {
            ends[1 - from].handle_datagram(now, datagram);
            any = true;
        }
    }
    any
}
