//! Any story of a connection: packets delivered, lost, doubled, broken and forged, calls and time.
//! One execution is one story of up to 40 steps between two endpoints, told from one of nine
//! beginnings (seven open connections with different CCIDs and features, two handshakes). A step
//! may be a talk of up to 256 messages.
//!
//! ```text
//! SECONDS_EACH=3600 scripts/fuzz.sh connection
//! ```
//!
//! Every million stories it prints how many were told in a second of this process's time on a
//! processor.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/udccp-proto/tests/stateful/machine.rs"]
mod machine;

#[path = "../arena.rs"]
mod arena;

#[path = "../rate.rs"]
mod rate;

#[global_allocator]
static HEAP: arena::Arena = arena::Arena::new();

fuzz_target!(
    // The beginnings, and what the first copy of each changes in it, outlive every story.
    init: (0..machine::count_beginnings()).for_each(|beginning| {
        machine::tell(&[beginning], false);
    }),
    |input: &[u8]| {
        let mut steps = 0;
        let story = || {
            let (told, story) = machine::tell(input, false);
            // The heap forgets it, faster than it can be taken apart.
            std::mem::forget(story);
            steps = told;
        };
        // SAFETY: a story leaves nothing behind but its number of steps, and there is one thread.
        unsafe { HEAP.scope(story) };
        rate::count(steps);
    }
);
