//! Owns DCCP for programs that run under `udccp run`.
//!
//! A thread inside such a program would die at fork and exec, so the protocol lives in a process of
//! its own: one for each user and network namespace, started by the first socket, gone some seconds
//! after the last. [`udccp_preload`] is its counterpart in the program and says how a program's
//! socket works.
//!
//! - [`place`]: the folder (mode 0700), the lock against a second broker, the socket of requests.
//! - `requests`: one task a request; the peer's user id is checked.
//! - `socket`: one task a socket: connecting, listening, carrying messages, ending.
//! - `pair`: the broker's end of a socket pair. The kernel's queue in it is the first part of the
//!   transmit queue: the broker takes a message only when the connection has room, so congestion
//!   control and the program see one queue of `tx_qlen` messages, and poll in the program is right.
//! - `flow`, `taken`: the messages of a connection, through shared memory (`shared`) or the pair.
//! - `slabs`: memory for what programs send.
//! - `region`: what programs may know without asking.
//! - `options`: every socket option and its errors.
//!
//! # The end of a socket
//! The kernel reports it when the last descriptor of the program's end is closed, by whatever
//! process and way, kill -9 included. Then the connection closes in order, or with Reset, Aborted,
//! if the program left messages unread. A connection that ended by itself shows in the program as
//! the hang-up of its pair; its slot is kept until `/proc/net/unix` no longer lists the program's
//! end.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod address;
mod broker;
mod errno;
mod flow;
mod gates;
mod options;
mod pair;
pub mod place;
mod ports;
mod region;
mod requests;
mod settings;
mod shared;
mod slabs;
mod socket;
mod taken;

pub use broker::{Error, serve};
pub use settings::{Settings, Transport};
