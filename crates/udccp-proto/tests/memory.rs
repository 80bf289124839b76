//! Memory that a hostile peer can make a connection use, counted byte by byte by the allocator, for
//! every CCID. All state of the protocol is within 256 KiB. Messages that wait for the application
//! are counted separately: their limits are settings (`recv_queue_bytes`, `recv_queue_packets`),
//! and they use at most a quarter more, plus 128 bytes each.

mod common;
mod spec_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use common::packet::numbers;
use common::pair::{CLIENT, SERVER};
use spec_support::{Harness, plain};
use udccp_base::{Duration, Machine, Message, Payload, Seed};
use udccp_cc::InitialWindow;
use udccp_proto::ConnectionConfig;
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::ccid::ccid2::SlowStartGrowth;
use udccp_wire::PacketType::{Ack, Data, DataAck};
use udccp_wire::{Header, LossInterval, OptionRef, PacketType};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(live, Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `alloc` above, so it is from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Only one test at a time may count.
static TURN: Mutex<()> = Mutex::new(());

const CCIDS: [u8; 5] = [2, 3, 4, 249, 250];
/// Limit of the memory of a connection.
const LIMIT: usize = 256 << 10;

/// Runs an attack. Returns the peak memory of both ends of the connection, one of which is nearly
/// inactive.
fn held(attack: impl FnOnce()) -> usize {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    attack();
    MOST.load(Relaxed) - before
}

fn config(ccid: u8) -> ConnectionConfig {
    let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
    let mut config = ConnectionConfig { tx_ccids, rx_ccids, sequence_window: 1 << 20, ..plain() };
    // The fastest growth to a large window.
    config.ccid2.slow_start = SlowStartGrowth::EveryPacket;
    config.ccid2.initial_window = InitialWindow::Packets(4000);
    config
}

fn harness(ccid: u8) -> Harness {
    Harness::open_of(CLIENT, config(ccid), CcidRegistry::with_experiments())
}

/// The application sends as much as is accepted, as zeros that need no memory of their own.
fn fill(harness: &mut Harness) {
    let (now, end) = (harness.pair.now, harness.end);
    let id = harness.pair.id(end);
    while harness.pair.net.ends[end].send(now, id, Message::new(Payload::Zeros(1000))).is_ok() {}
}

fn read(harness: &mut Harness) {
    harness.pair.events.iter_mut().for_each(Vec::clear);
    let (now, end) = (harness.pair.now, harness.end);
    let id = harness.pair.id(end);
    while matches!(harness.pair.net.ends[end].recv(now, id), Ok(Some(_))) {}
}

/// The peer's next packet arrives.
fn deliver(harness: &mut Harness, header: &Header, options: &[OptionRef<'_>], bytes: &[u8]) {
    let d = harness.datagram(header, options, bytes);
    harness.seq = header.seq;
    let (now, end) = (harness.pair.now, harness.end);
    harness.pair.net.ends[end].handle_datagram(now, d);
}

/// The peer's next data packet arrives. Its window counter requests feedback at once.
fn data(harness: &mut Harness, nth: u64) {
    let header = Header { ccval: (nth * 4 % 16) as u8, ..harness.header(Data) };
    deliver(harness, &header, &[], b"x");
    drain(harness);
    read(harness);
}

/// Runs due timers, and counts and drops the packets that are sent.
fn drain(harness: &mut Harness) -> usize {
    let (now, mut left) = (harness.pair.now, 0);
    let end = &mut harness.pair.net.ends[harness.end];
    end.handle_timeout(now);
    while let Some(d) = end.poll_transmit(now) {
        harness.gss = harness.gss.max(numbers(&d).1);
        left += 1;
        while end.poll_event().is_some() {}
    }
    left
}

/// The peer acknowledges the last `packets` packets, whatever the CCID.
fn acknowledge(harness: &mut Harness, packets: usize) {
    let mut cells = vec![63; packets / 64];
    cells.extend((packets % 64 != 0).then(|| (packets % 64 - 1) as u8));
    cells.truncate(250);
    let (lossless_length, loss_length, data_length) = (packets as u32, 0, 0);
    let whole = LossInterval { lossless_length, nonce_echo: false, loss_length, data_length };
    let options = [
        OptionRef::AckVector { nonce: false, cells: &cells },
        OptionRef::ReceiveRate(u32::MAX),
        OptionRef::LossIntervals { skip_length: 0, intervals: &whole.to_bytes() },
    ];
    let header = harness.header(Ack);
    deliver(harness, &header, &options, &[]);
}

fn assert_within(what: &str, ccid: u8, held: usize) {
    assert!(held <= LIMIT, "CCID {ccid}, {what}: {} KiB", held >> 10);
}

#[test]
fn memory_is_bounded_with_a_peer_that_withholds_acks() {
    for ccid in CCIDS {
        let held = held(|| {
            let mut harness = harness(ccid);
            for nth in 0..4_500 {
                data(&mut harness, nth);
                harness.pair.net.now += Duration::from_micros(100);
            }
            assert!(harness.stats().counters.acks_sent >= 1000);
        });
        assert_within("acknowledgements forced", ccid, held);
    }
}

#[test]
fn a_peer_that_never_acknowledges_data_makes_no_connection_grow() {
    for ccid in CCIDS {
        let held = held(|| {
            let mut harness = harness(ccid);
            for nth in 0..300 {
                fill(&mut harness);
                data(&mut harness, nth);
                for _ in 0..10 {
                    harness.pair.net.now += Duration::from_millis(500);
                    drain(&mut harness);
                }
            }
        });
        assert_within("data never acknowledged", ccid, held);
    }
}

#[test]
fn a_peer_that_opens_the_window_as_far_as_it_goes_and_then_falls_silent_stays_within_the_limit() {
    for ccid in CCIDS {
        let mut most = 0;
        let held = held(|| {
            let mut harness = harness(ccid);
            let mut in_flight = 0;
            for _ in 0..30 {
                for _ in 0..40 {
                    fill(&mut harness);
                    in_flight += drain(&mut harness);
                    harness.pair.net.now += Duration::from_micros(500);
                }
                most = most.max(in_flight);
                acknowledge(&mut harness, in_flight.max(1));
                in_flight = 0;
            }
            for _ in 0..40 {
                fill(&mut harness);
                drain(&mut harness);
                harness.pair.net.now += Duration::from_micros(500);
            }
            // Timeouts reduce the window to one packet again and again.
            for nth in 0..300 {
                fill(&mut harness);
                data(&mut harness, nth);
                harness.pair.net.now += Duration::from_secs(10);
                drain(&mut harness);
            }
        });
        assert!(most > 1000 || ccid == 4, "CCID {ccid}: {most} in flight");
        assert_within("the largest window", ccid, held);
    }
}

#[test]
fn memory_is_bounded_with_alternating_ack_vectors() {
    for ccid in CCIDS {
        let held = held(|| {
            let mut harness = harness(ccid);
            let mut rng = Seed(u64::from(ccid)).stream("odd");
            for nth in 0..1_500 {
                fill(&mut harness);
                harness.pair.net.now += Duration::from_millis(rng.below(50));
                drain(&mut harness);
                let cells: Vec<u8> = (0..rng.below(40))
                    .map(|_| [0xc0, 0, 0x40, 0xc5][rng.below(4) as usize])
                    .collect();
                let vector = OptionRef::AckVector { nonce: false, cells: &cells };
                let dropped = OptionRef::DataDropped(&[0xa0, 0x85, 0xb0]);
                let ty = if nth % 3 == 0 { DataAck } else { Ack };
                let header = harness.header(ty);
                deliver(&mut harness, &header, &[vector, dropped], b"");
                drain(&mut harness);
                read(&mut harness);
            }
        });
        assert_within("odd reports", ccid, held);
    }
}

#[test]
fn memory_is_bounded_with_every_option() {
    let types = [PacketType::Ack, PacketType::DataAck, PacketType::Data, PacketType::Sync];
    for ccid in CCIDS {
        let held = held(|| {
            let mut rng = Seed(u64::from(ccid)).stream("junk");
            let mut connection = harness(ccid);
            for nth in 0..1_500_u64 {
                if connection.state() != Some(udccp_proto::State::Open) {
                    connection = harness(ccid);
                }
                let junk: Vec<u8> = (0..rng.below(40)).map(|_| rng.below(256) as u8).collect();
                let kind = [32, 33, 34, 35, 37, 38, 39, 40, 41, 42, 43, 44, 60, 130, 192, 193, 255];
                let options: Vec<OptionRef<'_>> = (0..rng.below(10))
                    .map(|_| {
                        let kind = kind[rng.below(kind.len() as u64) as usize];
                        OptionRef::Unknown { kind, data: &junk }
                    })
                    .collect();
                let ty = types[rng.below(4) as usize];
                let header = connection.header(ty);
                deliver(&mut connection, &header, &options, b"");
                connection.pair.net.now += Duration::from_millis(nth % 20);
                fill(&mut connection);
                drain(&mut connection);
                read(&mut connection);
            }
        });
        assert_within("any options", ccid, held);
    }
}

#[test]
fn a_full_receive_queue_holds_what_its_settings_say() {
    for (size, padding) in [(1, 0), (1, 900), (100, 900), (500, 500), (1400, 0)] {
        for ccid in [2, 3] {
            let settings = config(ccid);
            let held = held(|| {
                let mut harness = harness(ccid);
                let bytes = vec![7; size];
                let padding = vec![OptionRef::Padding; padding];
                for _ in 0..1500 {
                    harness.deliver(PacketType::Data, &padding, &bytes);
                    harness.pair.events[CLIENT].clear();
                }
                let stats = harness.stats();
                assert!(stats.counters.drops.receive_queue_full > 0, "{size} B");
            });
            let messages = settings.recv_queue_packets.min(settings.recv_queue_bytes / size);
            let queue = messages * (size + size / 4 + 128);
            assert!(held <= LIMIT + queue, "{size} B: {} KiB", held >> 10);
        }
    }
}

#[test]
fn memory_of_a_server_is_bounded_too() {
    for ccid in CCIDS {
        let held = held(|| {
            let ccids = CcidRegistry::with_experiments();
            let mut harness = Harness::open_of(SERVER, config(ccid), ccids);
            for nth in 0..4_500 {
                data(&mut harness, nth);
            }
        });
        assert_within("acknowledgements forced from a server", ccid, held);
    }
}
