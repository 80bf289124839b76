//! Runs scenarios in ns-2 2.35 (Debian package `ns2`), the simulator used in two of the studies.
//!
//! A run writes the scenario as a Tcl script, starts `ns`, and reads its trace from a pipe line by
//! line without storing it. Packets are followed from host to host, and queues between routers are
//! sampled 20 times a second. All randomness derives from the run's seed, and flows start in the
//! same phases as on every backend. The same seed gives the same record.
//!
//! ```text
//! scenario -> refusals -> script -> ns -> trace -> udccp_sim::RunResult -> Record
//! ```
//!
//! The backend works around three defects of ns-2:
//!
//! - Its CCID 2 aborts when an Ack Vector needs more than 253 bytes, which one option holds. On
//!   paths where the first slow start could lose that many packets, slow start ends below the
//!   path's capacity (`initial_ssthresh_`).
//! - BIC and CUBIC of TCP-Linux retransmit the same packets hundreds of thousands of times after a
//!   slow start that overshoots by much. Their window is limited to a quarter above what the path
//!   and its queue hold (`window_`).
//! - TCP-Linux and TCP-LP print to standard output. The trace therefore uses a separate descriptor.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod backend;
mod error;
mod flow;
mod links;
mod process;
mod refuse;
mod replay;
mod run;
mod script;
mod trace;

pub use error::Ns2Error;
pub use refuse::check_supported;
pub use run::{ID, Ns2, Ns2Run};
pub use script::script;
