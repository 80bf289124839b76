//! Window algorithms and round-trip estimators shared by DCCP's CCIDs and the TCP model.
//!
//! A window algorithm is assembled from small parts: [`SlowStart`], [`AdditiveIncrease`] and
//! [`Cut`]. All windows count packets (segments). An algorithm decides how far the window moves;
//! its caller decides *that* it moves: which acknowledgements count, which losses belong to one
//! congestion event, when a timer expired, when a window has gone stale.

#![forbid(unsafe_code)]

mod algorithm;
mod bic;
mod cubic;
mod cwv;
mod initial;
mod law;
mod newreno;
mod pacer;
mod parts;
mod pipe_ack;
mod rtt;
#[cfg(test)]
mod tests;
mod validation;

pub use algorithm::{AckSample, Algorithm, CongestionControl};
pub use bic::BicConfig;
pub use cubic::{Cubic, CubicConfig, CubicForm};
pub use cwv::NewCwv;
pub use initial::InitialWindow;
pub use newreno::NewReno;
pub use pacer::Pacer;
pub use parts::{AdditiveIncrease, Cut, SlowStart};
pub use pipe_ack::{Delivered, PipeAck};
pub use rtt::{RtoConfig, RttEstimator};
pub use validation::{IdlePolicy, WindowValidation};
