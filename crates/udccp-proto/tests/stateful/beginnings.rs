//! The starting points of random runs.

use udccp_base::Duration;
use udccp_proto::ConnectionConfig;
use udccp_proto::ccid::experimental::{BBR, CUBIC};

use super::Story;

/// Open connections and handshakes, with several settings.
pub(super) fn all() -> Vec<Story> {
    let plain = ConnectionConfig::default();
    let all = ConnectionConfig {
        tx_ccids: vec![2, 3],
        rx_ccids: vec![3, 2],
        short_seqnos: true,
        ndp_count: true,
        data_checksum: true,
        send_cscov: 1,
        min_cscov: 1,
        server_timewait: true,
        keep_alive: Some(Duration::from_secs(10)),
        ..plain.clone()
    };
    let small = ConnectionConfig {
        ecn: false,
        sequence_window: 32,
        recv_queue_packets: 4,
        send_queue_packets: 4,
        handshake_timestamps: false,
        ..plain.clone()
    };
    let of =
        |ccid| ConnectionConfig { tx_ccids: vec![ccid], rx_ccids: vec![ccid], ..plain.clone() };
    vec![
        Story::open(&plain),
        Story::open(&of(3)),
        Story::open(&all),
        Story::open(&small),
        Story::starting(&plain, false),
        Story::starting(&all, false),
        Story::open(&of(4)),
        Story::open(&of(CUBIC)),
        Story::open(&of(BBR)),
        Story::open_over(&plain, true),
        Story::open_over(&of(3), true),
        Story::open_over(&small, true),
    ]
}
