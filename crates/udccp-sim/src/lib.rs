//! Deterministic discrete-event simulator: hosts, topologies, sources, recorders.
//!
//! The simulator does not know protocols. A host is a [`Transport`](udccp_base::Transport) and, on
//! the sending side, a [`Source`] of application data; links are the elements of `udccp-link`; a
//! router is a table. Every component has at most one pending event, however many packets it holds.
//! Events happen in order of time, then of insertion.
//!
//! ```text
//! let mut net = Dumbbell::new(DumbbellConfig::symmetric(rate, rtt, limit));
//! let at = net.next_addresses();
//! net.add_pair(PairConfig::new("first", sender(at), receiver(at), Box::new(Bulk::new())));
//! let result = net.run(RunConfig::new(Duration::from_secs(300), Seed(1)))?;
//! ```
//!
//! A run depends only on its input and seed: it gives the same result every time, in debug and
//! release builds, and on any number of threads (a run uses one). [`RunResult::hash`] shows it.

#![forbid(unsafe_code)]

mod address;
mod application;
mod capture;
mod chain;
mod config;
mod dumbbell;
mod element;
mod ends;
mod engine;
mod error;
mod events;
mod fabric;
mod hash;
mod host;
mod names;
mod network;
mod observe;
mod pace;
mod packet;
mod quick_start;
mod record;
mod result;
mod route;
mod run;
#[cfg(test)]
mod sizes;
mod source;
mod transfers;
mod validate;

pub use address::{IpVersion, PairAddresses};
pub use application::{Application, FlowStep};
pub use capture::{Capture, CaptureFile};
pub use chain::Chain;
pub use config::{
    AccessConfig, BottleneckConfig, DumbbellConfig, HopConfig, PairConfig, RunConfig,
};
pub use dumbbell::Dumbbell;
pub use error::SimError;
pub use names::{hop_name, link_name};
pub use pace::{Pace, Turn};
pub use record::{Interval, Mark, PathRecorder, Schedule, sample_flow};
pub use result::{
    Completions, Cost, Crossing, FlowResult, FlowSample, HopResult, Jitter, LinkResult, LinkSample,
    PathCounts, PathWindow, RunResult, SenderSample, SystemResult,
};
pub use source::{
    Arrival, Bulk, Codec, ConstantRate, Dialogue, DialogueSizes, Distribution, End, Frames, OnOff,
    Outcome, RequestResponse, Responder, Source, SourceStats, Speech, Times, Transfer, Video, Voip,
    poisson,
};
pub use transfers::PairMaker;
pub use udccp_link::{
    Adaptive, Backlog, Change, CoDelConfig, DelayHistogram, DropReason, FqCoDelConfig, Gather,
    GilbertElliott, LinkConfig, LinkStats, LossConfig, Opportunities, PieConfig, QueueConfig,
    QueueLimit, RedConfig, RedUnit, Reorder, Tally, Variation,
};
