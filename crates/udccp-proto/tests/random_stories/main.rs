//! Connections over a path with a bottleneck, to which anything may happen, in any order: bulk data
//! in one or both directions and in turn, silence of up to a day, stopped processes, drivers that
//! run late, clocks that jump, a path that dies and returns, that loses only acknowledgements, that
//! delays, copies, and changes its MTU. Each message arrives at most once and complete, drivers do
//! not spin, and no connection ends by itself. Once everything works again, messages get through,
//! and the rate is a fair part of what a new connection reaches. Both ends then close. Other
//! connections end while they open.
//!
//! `UDCCP_TEST_CASES=20000 cargo test --release -p udccp-proto --test random_stories` tells more
//! stories, starting at `UDCCP_TEST_SEED`.

#![allow(clippy::print_stdout, reason = "a single case prints its story")]

#[path = "../common/mod.rs"]
mod common;

mod opening;
mod story;
mod tell;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use story::Story;
use tell::Teller;
use udccp_base::Seed;
use udccp_testkit::{CountingAllocator, randomised};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Held by the test that runs: the memory that is measured is that of all threads.
static ALONE: Mutex<()> = Mutex::new(());

const CASES: u64 = 8;
const OPENINGS: u64 = 60;
/// Most memory of a story: both endpoints with full queues, and what is on the path.
const MEMORY: usize = 8 << 20;
/// The part of a new connection's rate that one with a past has to reach.
const FAIR: u64 = 3;

fn run(seed: u64) {
    let story = Arc::new(Story::new(seed, &mut Seed(seed).stream("story")));
    if randomised::seeds(CASES).count() == 1 {
        println!("{story:?}");
    }
    let mut teller = Teller::new(&story);
    let ((), memory) = ALLOCATOR.peak_of(|| story.parts.iter().for_each(|part| teller.tell(part)));
    assert!(memory <= MEMORY, "{memory} bytes");
    if story.is_abrupt {
        return teller.end_abruptly(story.end);
    }
    teller.heal();
    teller.world.assert_delivery_both_ways();
    let before = teller.slowed();
    let reached = teller.final_rate();
    let slowed = teller.slowed();
    if !teller.is_path_full(reached, FAIR) {
        let fresh = Teller::new(&story).final_rate();
        let is_slowed = |sender: usize| slowed[sender] > before[sender];
        let is_fair = (0..2).all(|end| reached[end] * FAIR >= fresh[end] || is_slowed(1 - end));
        assert!(is_fair, "{reached:?} of {fresh:?} bytes per second: {}", teller.world.stats());
    }
    teller.end(story.end);
}

fn run_all(seeds: Range<u64>, run: impl Fn(u64)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut failed = Vec::new();
    for seed in seeds {
        if catch_unwind(AssertUnwindSafe(|| run(seed))).is_err() {
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "the seeds {failed:?}");
}

#[test]
fn stories_end_well() {
    run_all(randomised::seeds(CASES), run);
}

#[test]
fn connections_may_end_while_they_open() {
    run_all(randomised::seeds(OPENINGS), opening::run);
}
