//! Scenarios, experiments, result store, claims and reports.
