//! Interoperability with the DCCP that Linux had until 6.15: a matrix of cells, each a connection
//! between our stack over raw IP and the kernel's, judged by the programs at both ends and by
//! tshark from what passed.
//!
//! [`play`] runs a cell on a kernel that has DCCP (in a guest, [`serve`]); [`judge()`] looks at
//! what it left behind, anywhere; [`page`] makes the table of it.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod capture;
mod guest;
mod hosts;
mod judge;
mod page;
mod peer;
mod plan;
mod run;

pub use guest::{FAILED, TRIAL, serve};
pub use judge::{Verdict, compare_goodputs, judge};
pub use page::{page, summary};
pub use peer::PeerReport;
pub use plan::{Condition, MatrixEntry, SEEDS, Stack, TestCase, Trial, matrix};
pub use run::{Played, play};
