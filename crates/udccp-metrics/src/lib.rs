//! Pure functions from measurements to numbers: fairness, throughput, loss, delay, jitter, and
//! the statistics of repeated runs. Each cites the paper and the equation it computes.
//!
//! A value that does not exist (the fairness of two silent flows, the deviation of one run) is
//! an [`Undefined`] that says why; no function returns NaN or infinity.

#![forbid(unsafe_code)]

mod delay;
mod fairness;
mod rate;
mod summary;
mod undefined;

pub use delay::{Rfc3550Jitter, mean_ms, quantile};
pub use fairness::{JainOverTime, jain, jain_over_time};
pub use rate::{loss_percent, throughput_mbps, utilisation_percent};
pub use summary::{Summary, coefficient_of_variation, mean, student_t_975};
pub use undefined::{Measured, Undefined};
