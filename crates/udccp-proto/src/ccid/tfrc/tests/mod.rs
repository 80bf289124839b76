//! Compares the parts of TFRC with the text of the RFC.

mod equation;
mod loss_average;
mod loss_history;
mod rate_control;
mod sent_log;
mod timing;

use udccp_base::{Duration, Instant};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}
