//! Runs experiments: reads their files, runs campaigns over grids of scenarios, stores results
//! safely against interruption, judges claims on our numbers and the published ones, and writes
//! reports.
//!
//! Run, store and report are separate steps. The key of a run is a hash of its scenario, its seed
//! and the program's version, so an interrupted campaign can be continued, and a report can be
//! written again without running.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod calibrate;
mod campaign;
mod expected;
pub mod export;
pub mod forecast;
pub mod json_schema;
mod kept;
mod plan;
pub mod report;
pub mod schema;
mod selection;
mod store;
mod task;
mod template;
pub mod verify;

pub use campaign::{CampaignError, CampaignSummary, FailedRun, Progress, Start, campaign, label};
pub use forecast::WorkEstimate;
pub use kept::{Kept, KeptError, KeptRun};
pub use plan::{PlanOptions, Task, key, key_of, plan, run_seed};
pub use selection::Selection;
pub use store::{Costs, Store, StoreError};
pub use task::{TaskError, TaskFile, TaskResult};
pub use template::{NewError, copy_experiment, new_experiment};
/// Reads, runs and measures a scenario.
pub use udccp_scenario::{
    BACKENDS, Backend, BackendError, Diagnostic, Diagnostics, FlowRecord, Record, RunError,
    RunOptions, SIM, SeriesRecord, Simulator, SystemRecord, VERSION, document, library, run,
    suggest,
};
