//! The laboratory: scenario and experiment files, campaigns over a grid, a store of results that
//! survives being killed, claims judged on our numbers and on the published ones, and reports.
//!
//! Run, store and report are three steps. A run's key is a hash of its scenario, its seed and the
//! program's version: an interrupted campaign resumes, and a report is remade without running.

#![forbid(unsafe_code)]

pub mod analysis;
mod backend;
mod campaign;
mod diagnostic;
pub mod document;
mod expected;
pub mod export;
pub mod forecast;
pub mod json_schema;
pub mod library;
mod narrow;
mod plan;
pub mod report;
pub mod schema;
mod simulated;
mod store;
mod task;
mod template;
pub mod verify;
mod version;

use simulated::{protocol, record, run};

pub use backend::{BACKENDS, Backend, BackendError, SIM, Simulator, backend_title};
pub use campaign::{CampaignError, FailedRun, Outcome, Progress, Start, campaign, label};
pub use diagnostic::{Diagnostic, Diagnostics, Source, Span, suggestion as suggest};
pub use forecast::Outlook;
pub use narrow::Narrowing;
pub use plan::{PlanOptions, Task, key, key_of, plan, run_seed};
pub use schema::hop_name;
pub use simulated::measure::record_of;
pub use simulated::network::{
    HostPair, Hosts, MAX_TRANSFERS, access_links, hop_configs, network, routers_of, source,
};
pub use simulated::outcome::{CompletionRecord, CrossingRecord, LinkRecord, LinkSeriesRecord};
pub use simulated::protocol::{Family, Marker, PROTOCOLS, Protocol};
pub use simulated::record::{
    CostRecord, FlowRecord, QuantileRecord, Record, SeriesRecord, SystemRecord, TimingRecord,
};
pub use simulated::run::{RunError, RunOptions, run, run_config};
pub use simulated::transports::{SERVICE, dccp_config};
pub use store::{Costs, Store, StoreError};
pub use task::{TaskError, TaskFile, TaskResult};
pub use template::{NewError, copy_experiment, new_experiment};
pub use version::VERSION;
