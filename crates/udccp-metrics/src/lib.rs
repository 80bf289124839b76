//! Pure functions from measurements to numbers: fairness, throughput, loss, delay, jitter, and the
//! statistics of repeated runs. Each cites the paper and the equation that it computes.
//!
//! A value that does not exist (the fairness of two silent flows, the deviation of one run) is an
//! [`Undefined`] with the reason. No function returns NaN or infinity.

#![forbid(unsafe_code)]

mod convergence;
mod delay;
mod fairness;
mod harm;
mod jitter;
mod loss;
mod nru;
mod nru_system;
mod rate;
mod response;
mod share;
mod summary;
mod undefined;

pub use convergence::{THRESHOLD_DB, convergence_time, delta_fair_time, settling_time};
pub use delay::{mean_ms, quantile};
pub use fairness::{JainOverTime, jain, jain_over_time};
pub use harm::{harm_less_is_better, harm_more_is_better};
pub use jitter::{Rfc3550Jitter, arrival_gap_jitter_ns, mean_arrival_gap_jitter_ms};
pub use loss::{
    goodput_ratio_percent, loss_event_percent, loss_events, loss_on_all_links_percent,
    loss_percent, packet_loss,
};
pub use nru::{FlowNru, share_ratio, usage_db, usage_of_mean, weight};
pub use nru_system::{Case, SystemNru};
pub use rate::{throughput_mbps, utilisation_percent};
pub use response::{
    aggressiveness, equation_ratio, largest_reduction, power, recovery_time, responsiveness,
    tcp_friendly_rate,
};
pub use share::{
    epsilon, geometric_mean, log_utility, max_min_ratio, max_min_shares, normalised,
    potential_delay, proportional_change,
};
pub use summary::{INTERVAL_RUNS, Summary, coefficient_of_variation, mean, student_t_975};
pub use undefined::{Measured, Undefined};
