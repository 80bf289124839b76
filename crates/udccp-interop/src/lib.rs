//! Interoperability with the DCCP that Linux had until 6.15: a matrix of connections between our
//! stack over raw IP and the kernel's. Each is judged from the programs at both ends and from its
//! packets, decoded by tshark.
//!
//! [`run_trial`] runs an entry on a kernel that has DCCP (in a guest, [`serve`]); [`judge()`]
//! evaluates its files, on any machine; [`page`] writes the table of results.

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
pub use run::{TrialResult, run_trial};
