//! `libudccp`: DCCP sockets for C and C++.
//!
//! This crate is the boundary between C and the sockets of the crate `udccp`: it checks pointers,
//! converts errors to numbers, and catches panics. It has no logic of its own. The header
//! `include/udccp.h` is generated from its public items and their comments, which are written for C
//! programmers. The rules for all calls are in the introduction of the header (`cbindgen.toml`).

#![allow(
    clippy::missing_safety_doc,
    reason = "the introduction of the header has it for all calls"
)]

pub mod connect;
#[cfg(not(windows))]
pub mod descriptors;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod listener;
pub mod options;
pub mod receive;
pub mod send;
pub mod settings;
pub mod socket;
pub mod socket_options;
pub mod stats;
pub mod text;

mod address;
mod pointer;
