//! Window algorithms and round-trip estimators shared by DCCP's CCIDs and the TCP model.
//!
//! A window algorithm consists of small parts: [`SlowStart`], [`AdditiveIncrease`] and [`Cut`]. All
//! windows count packets (segments). An algorithm computes how far the window moves. Its caller
//! decides when it moves: which acknowledgements count, which losses belong to one congestion
//! event, when a timer has expired, when a window was unused for too long.

#![forbid(unsafe_code)]

mod algorithm;
mod bbr;
mod bic;
mod compound;
mod control;
mod cubic;
mod cubic_kernel;
mod custom;
mod cwv;
mod delivery;
mod highspeed;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod initial;
mod instance;
mod lp;
mod newreno;
mod pacer;
mod parts;
mod pipe_ack;
mod policy;
mod queue_delay;
mod rate;
mod rtt;
mod scalable;
#[cfg(test)]
mod tests;
mod validation;
mod vegas;
mod veno;
mod westwood;
mod yeah;

pub use algorithm::Algorithm;
pub use bbr::BbrConfig;
pub use bic::BicConfig;
pub use compound::CompoundConfig;
pub use control::{AckSample, CloneAlgorithm, CongestionControl};
pub use cubic::{Cubic, CubicConfig, CubicForm};
pub use custom::CustomAlgorithm;
pub use cwv::NewCwv;
pub use delivery::{Delivery, Needs, RateSample};
pub use highspeed::HighSpeedConfig;
pub use htcp::HtcpConfig;
pub use hybla::HyblaConfig;
pub use hystart::HyStart;
pub use illinois::IllinoisConfig;
pub use initial::InitialWindow;
pub use instance::Instance;
pub use lp::LpConfig;
pub use newreno::NewReno;
pub use pacer::{Pacer, train_of};
pub use parts::{AdditiveIncrease, Cut, GrowthAfterCut, SlowStart};
pub use pipe_ack::{Delivered, PipeAck};
pub use rate::{RateDraft, RateSampler, RateStamp};
pub use rtt::{RtoConfig, RttEstimator};
pub use scalable::ScalableConfig;
pub use validation::{IdlePolicy, WindowValidation};
pub use vegas::VegasConfig;
pub use veno::VenoConfig;
pub use westwood::WestwoodConfig;
pub use yeah::YeahConfig;

/// Compiles the code of the README, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
