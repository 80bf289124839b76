//! Attacks by strangers and hostile peers: filling tables, shrinking packets, erasing congestion
//! state, reflecting floods, causing too many answers, and vanishing.

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
