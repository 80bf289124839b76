//! What strangers and hostile peers try: to fill tables, to shrink packets, to wipe out congestion
//! state, to have us flood others, to make us talk too much, and to vanish.

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
