//! Owns DCCP for programs that run under `udccp run`.
//!
//! A thread inside such a program would not survive fork and exec, so the protocol runs in a
//! separate process: one for each user and network namespace. The first socket starts it, and it
//! exits some seconds after the last one closes. [`udccp_preload`] is its counterpart in the
//! program and explains how a program's socket works.
//!
//! - [`place`]: the folder (mode 0700), the lock against a second broker, the socket for requests.
//! - `requests`: one task per request; checks the peer's user id.
//! - `socket`: one task per socket, which connects, listens, carries messages and closes.
//! - `pair`: the broker's end of a socket pair. The kernel's queue in it is the first part of the
//!   transmit queue. The broker takes a message only when the connection has room, so congestion
//!   control and the program see one queue of `tx_qlen` messages, and poll in the program is
//!   correct.
//! - `flow`, `taken`: the messages of a connection, through shared memory (`shared`) or the pair.
//! - `slabs`: memory for messages that programs send.
//! - `region`: what programs can read without a request.
//! - `options`: every socket option, with its errors.
//!
//! # The end of a socket
//! The kernel reports the end when the last descriptor of the program's side is closed, whatever
//! process closes it and however, including kill -9. Then the connection closes, or is aborted with
//! Reset if the program left messages unread. If the connection ends by itself, the program sees a
//! hang-up of its pair; the slot is kept until `/proc/net/unix` no longer lists the program's end.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod address;
mod broker;
mod endpoints;
mod errno;
mod flow;
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
