//! Any story of a connection: packets delivered, lost, doubled, broken and forged, calls and time.
//! One execution is one story of up to 24 steps between two endpoints, told from one of six
//! beginnings (four open connections with different features, two handshakes).
//!
//! ```text
//! cargo +nightly fuzz run -s none --no-trace-compares connection -- \
//!     -max_len=64 -use_counters=0 -entropic=0 -reduce_inputs=0 -max_total_time=3600
//! ```
//!
//! There is no unsafe block for the address sanitizer to watch, and without these flags libFuzzer's
//! own books take twice the time of the stories. Every million stories it prints how many were
//! told in a second of this process's time on a processor.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/udccp-proto/tests/stateful/machine.rs"]
mod machine;

#[path = "../rate.rs"]
mod rate;

fuzz_target!(|input: &[u8]| {
    let steps = machine::tell(input, false);
    rate::count(steps);
});
