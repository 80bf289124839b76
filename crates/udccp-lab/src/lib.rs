//! The laboratory: scenario and experiment files, campaigns over a grid, a store of results that
//! survives being killed, claims judged on our numbers and on the published ones, and reports.
//!
//! Run, store and report are three steps. A run's key is a hash of its scenario, its seed and the
//! program's version: an interrupted campaign resumes, and a report is remade without running.

#![forbid(unsafe_code)]

mod diagnostic;
pub mod document;
mod protocol;
pub mod schema;

pub use diagnostic::{Diagnostic, Diagnostics, Source, Span};
pub use protocol::{Family, Marker, PROTOCOLS, Protocol};
