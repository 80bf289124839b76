//! Both halves of CCID 3, each against a peer of pen and paper.

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
