//! All of this crate that the result of a simulation depends on: what a scenario means, the network
//! and the transports that it becomes, and the record of what happened.
//!
//! The key of a stored result is a hash of the sources in this folder and of all crates below
//! (`build.rs`). What only reads files, plans runs, or keeps, judges and shows results stands
//! outside: a change there keeps all results. Code here uses nothing from there but the readers of
//! TOML, whose outcome, the scenario, is part of the key by itself
//! (`tests/code_hash.rs` looks that it stays so).

pub(crate) mod measure;
pub(crate) mod network;
pub(crate) mod outcome;
pub(crate) mod protocol;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod transports;
