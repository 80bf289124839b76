//! The differences of CCID 4 from CCID 3.

mod receiver;
mod sender;
mod verify;

use udccp_base::{Duration, Instant};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}
