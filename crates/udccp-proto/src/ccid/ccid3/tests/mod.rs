//! Both halves of CCID 3, each with a peer whose packets the tests write by hand.

mod false_feedback;
mod receiver;
mod sender;
mod verify;

use udccp_base::{Duration, Instant};

//= 4342-3.1-2 test
#[test]
fn defaults_are_what_the_documents_say() {
    let config = crate::ccid::Ccid3Config::default();
    assert!(config.oscillation_reduction && config.history_discounting);
    assert_eq!(config.segment_size, crate::ccid::ccid3::SegmentSizeRule::Mean);
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}
