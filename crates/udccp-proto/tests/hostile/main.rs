//! Attacks by strangers and hostile peers: filling tables, shrinking packets, wiping out congestion
//! state, flooding others through us, drawing too many answers, and vanishing.

#[path = "../common/mod.rs"]
mod common;
#[path = "../spec_support/mod.rs"]
mod spec_support;

mod amplification;
mod ccid_change;
mod icmp;
mod idle;
mod syncs;
mod timewait;
