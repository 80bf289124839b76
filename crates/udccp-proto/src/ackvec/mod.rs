//! Ack Vectors and Data Dropped (RFC 4340 sections 11.4 and 11.7).
//!
//! The receiving side keeps an [`AckVectorBuffer`] of received packets and a [`DropLog`] of data
//! that did not reach the application. Both need to know when an acknowledgement is sent, and when
//! one of ours is acknowledged. The sending side reads the peer's reports with [`for_each_run`] and
//! [`for_each_drop`]. The cost per packet is O(1) amortised if packets arrive in order. Memory
//! grows with the history, up to a limit.

mod buffer;
mod cells;
mod drop_log;
mod dropped;
mod evidence;
mod lookup;
mod nonces;
mod records;
mod room;
mod runs;
#[cfg(test)]
mod tests;

pub use buffer::{AckVectorBuffer, Arrival};
pub use drop_log::DropLog;
pub use dropped::{DropCode, DropState, for_each_drop, is_invalid_drop};
pub(crate) use evidence::{Evidence, NUMDUPACK};
pub(crate) use lookup::{is_received, is_received_at_all};
pub(crate) use runs::is_surely_after_isn;
pub use runs::{CellState, Run, Runs, covered_packets, for_each_run, is_before_isn};

/// Largest number of bytes in one Ack Vector or Data Dropped option.
pub const MAX_OPTION_CELLS: usize = 253;

/// Default size of an [`AckVectorBuffer`] in cells (two full options).
pub const DEFAULT_MAX_CELLS: usize = 506;
