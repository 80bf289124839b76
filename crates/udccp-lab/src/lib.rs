//! The laboratory: scenario and experiment files, campaigns over a grid, a store of results that
//! survives being killed, claims judged on our numbers and on the published ones, and reports.
//!
//! Run, store and report are three steps. A run's key is a hash of its scenario, its seed and the
//! program's version: an interrupted campaign resumes, and a report is remade without running.

#![forbid(unsafe_code)]

pub mod analysis;
mod campaign;
mod diagnostic;
pub mod document;
mod expected;
pub mod export;
mod measure;
mod network;
mod outcome;
mod plan;
mod protocol;
mod record;
pub mod report;
mod run;
pub mod schema;
mod store;
mod task;
mod template;
mod transports;
mod version;

pub use campaign::{CampaignError, FailedRun, Outcome, Progress, Start, campaign, label};
pub use diagnostic::{Diagnostic, Diagnostics, Source, Span, suggestion as suggest};
pub use outcome::{CompletionRecord, CrossingRecord, LinkRecord, LinkSeriesRecord};
pub use plan::{PlanOptions, Task, key, plan, run_seed};
pub use protocol::{Family, Marker, PROTOCOLS, Protocol};
pub use record::{CostRecord, FlowRecord, QuantileRecord, Record, SeriesRecord, SystemRecord};
pub use run::{RunError, RunOptions, run};
pub use store::{Costs, Store, StoreError};
pub use task::{TaskError, TaskFile, TaskResult};
pub use template::{NewError, new_experiment};
pub use version::VERSION;
