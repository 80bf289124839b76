//! Reads a scenario, builds its network and transports, runs it, and measures the results.
//!
//! A scenario consists of topology, time and flows. A [`Backend`] turns a scenario and a seed into
//! a [`Record`]. The [`Simulator`] is a backend; others use [`network()`] and [`record_of`] with
//! hosts of their own. Stored results are keyed by a hash of all sources of this crate and of those
//! below it ([`VERSION`]).

#![forbid(unsafe_code)]

mod backend;
pub mod diagnostic;
pub mod document;
pub mod library;
mod measure;
mod network;
mod outcome;
pub mod protocol;
mod record;
mod run;
mod run_error;
pub mod schema;
mod transports;
mod version;

pub use backend::{BACKENDS, Backend, BackendError, Simulator, backend_rank, backend_title};
pub use diagnostic::{Diagnostic, Diagnostics, SourceText, Span, suggestion as suggest};
pub use measure::record_of;
pub use network::{
    HostPair, Hosts, MAX_TRANSFERS, access_links, hop_configs, network, routers_of, source,
};
pub use outcome::{CompletionRecord, CrossingRecord, LinkRecord, LinkSeriesRecord, QuantileRecord};
pub use protocol::{Family, PROTOCOLS, Protocol};
pub use record::{CostRecord, FlowRecord, Record, SIM, SeriesRecord, SystemRecord, TimingRecord};
pub use run::{RunOptions, run, run_config};
pub use run_error::RunError;
pub use transports::{SERVICE, dccp_config};
pub use version::VERSION;
