//! A peer that says what suits it about time.

mod common;
mod spec_support;

use spec_support::{Hand, plain};
use udccp_base::Duration;
use udccp_proto::ConnectionConfig;
use udccp_wire::PacketType::Response;
use udccp_wire::{FeatureNumber, OptionRef};

/// A client under this CCID whose Request is answered after 40 ms, with an echo of this timestamp.
fn answered(ccid: u8, timestamp: u32) -> Hand {
    let config = ConnectionConfig {
        tx_ccids: vec![ccid],
        rx_ccids: vec![ccid],
        handshake_timestamps: true,
        ..plain()
    };
    let (mut hand, _) = Hand::requesting(config);
    hand.wait(Duration::from_millis(40));
    let (feature, value) = (FeatureNumber::CCID, &[ccid][..]);
    let options = [
        OptionRef::TimestampEcho { timestamp, elapsed: None },
        OptionRef::ConfirmR { feature, value },
        OptionRef::ConfirmL { feature, value },
    ];
    hand.give(Response, &options, b"");
    hand
}

#[test]
fn an_echo_of_a_timestamp_of_the_future_makes_no_rate_based_sender_fast() {
    for ccid in [3, 4] {
        // Timestamps count tens of microseconds from the first packet on: the peer knows them.
        for timestamp in [0, 1, 2000, 3999, 4000] {
            let hand = answered(ccid, timestamp);
            let stats = hand.stats();
            // An echo is good to 10 us.
            let least = Duration::from_micros(39_990);
            assert!(stats.srtt >= Some(least), "CCID {ccid}, {timestamp}: {:?}", stats.srtt);
            let most = 4380.0 / least.as_secs_f64();
            assert!(stats.x_bytes_per_sec.unwrap() <= most, "CCID {ccid}, {timestamp}");
        }
    }
}
