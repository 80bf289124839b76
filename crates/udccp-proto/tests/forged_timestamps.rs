//! A peer that reports false times to its advantage.

mod common;
mod spec_support;

use spec_support::{Harness, plain};
use udccp_base::Duration;
use udccp_proto::ConnectionConfig;
use udccp_wire::PacketType::{Ack, Response};
use udccp_wire::{FeatureNumber, OptionRef};

/// A client with this CCID whose Request is answered after 40 ms, with an echo of this timestamp.
fn answered(ccid: u8, timestamp: u32) -> Harness {
    let config = ConnectionConfig {
        tx_ccids: vec![ccid],
        rx_ccids: vec![ccid],
        handshake_timestamps: true,
        ..plain()
    };
    let (mut harness, _) = Harness::requesting(config);
    harness.wait(Duration::from_millis(40));
    let (feature, value) = (FeatureNumber::CCID, &[ccid][..]);
    let options = [
        OptionRef::TimestampEcho { timestamp, elapsed: None },
        OptionRef::ConfirmR { feature, value },
        OptionRef::ConfirmL { feature, value },
    ];
    harness.deliver(Response, &options, b"");
    harness
}

#[test]
fn echoes_of_future_timestamps_do_not_raise_the_rate() {
    for ccid in [3, 4] {
        // Timestamps count units of 10 us from the first packet, so the peer can guess them.
        for timestamp in [0, 1, 2000, 3999, 4000] {
            let harness = answered(ccid, timestamp);
            let stats = harness.stats();
            // An echo is accurate to 10 us.
            let least = Duration::from_micros(39_990);
            // An echo of a timestamp that was not sent gives no sample.
            let is_echo = timestamp == 0;
            assert_eq!(stats.srtt.is_some(), is_echo, "CCID {ccid}, {timestamp}");
            assert!(stats.srtt >= Some(least) || !is_echo, "CCID {ccid}: {:?}", stats.srtt);
            let most = 4380.0 / least.as_secs_f64();
            assert!(stats.x_bytes_per_sec.unwrap() <= most, "CCID {ccid}, {timestamp}");
        }
    }
}

#[test]
fn timestamp_echoes_are_sampled_once_and_only_if_sent() {
    for timestamp in [1, 2000, 3999, 4000, 4001, u32::MAX] {
        let harness = answered(2, timestamp);
        assert_eq!(harness.stats().srtt, None, "{timestamp}");
    }
    let mut harness = answered(2, 0);
    let (rtt, ms) = (Some(Duration::from_millis(40)), Duration::from_millis(1));
    assert_eq!(harness.stats().srtt, rtt);
    for (timestamp, elapsed) in [(0, None), (0, Some(1)), (4000, None), (5000, None)] {
        harness.deliver(Ack, &[OptionRef::TimestampEcho { timestamp, elapsed }], b"");
        assert_eq!(harness.stats().srtt, rtt, "{timestamp} again");
        harness.wait(ms * 10);
    }
    let lies = [OptionRef::TimestampEcho { timestamp: 0, elapsed: None }];
    harness.wait(ms * 3_000);
    harness.deliver(Ack, &lies, b"");
    assert_eq!(harness.stats().srtt, rtt, "not the age of the connection");
}
