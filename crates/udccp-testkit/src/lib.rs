//! Helpers for the tests of several crates: a relay that loses packets, random tests, free ports,
//! an allocator that counts, and tables of sizes. Only tests and benchmarks depend on this crate.

mod allocator;
pub mod ports;
pub mod randomised;
mod relay;
mod sizes;

pub use allocator::CountingAllocator;
pub use relay::{Fate, Relay, Rule, by_chance, pass};
