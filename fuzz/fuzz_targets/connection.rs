//! Random event sequences ("sessions") of a connection: packets delivered, lost, duplicated,
//! corrupted and forged, calls, and time. One execution is one session of up to 40 steps between
//! two endpoints. It starts from one of nine states: seven open connections with different CCIDs
//! and features, and two handshakes. A step may be an exchange of up to 256 messages.
//!
//! ```text
//! SECONDS_EACH=3600 scripts/fuzz.sh connection
//! ```
//!
//! After each million sessions it prints the number of sessions per second of processor time.
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
    // Start states, and what their first copy initialises in them, must outlive every session.
    init: (0..machine::count_start_states()).for_each(|start_state| {
        machine::run(&[start_state], false);
    }),
    |input: &[u8]| {
        let mut steps = 0;
        let session = || {
            let (steps_run, session) = machine::run(input, false);
            // The arena discards it at once; dropping it would take longer.
            std::mem::forget(session);
            steps = steps_run;
        };
        // SAFETY: a session leaves only its number of steps behind, and there is one thread.
        unsafe { HEAP.scope(session) };
        rate::count(steps);
    }
);
