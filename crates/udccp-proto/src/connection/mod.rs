//! One connection, from its first Request to TIMEWAIT.

mod state;

pub use state::State;
