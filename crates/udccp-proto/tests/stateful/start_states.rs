//! The starting points of random runs.

use udccp_base::Duration;
use udccp_proto::ConnectionConfig;
use udccp_proto::ccid::experimental::{BBR, CUBIC};

use super::Session;

/// Open connections and handshakes, with several settings.
pub(super) fn all() -> Vec<Session> {
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
        Session::open(&plain),
        Session::open(&of(3)),
        Session::open(&all),
        Session::open(&small),
        Session::starting(&plain, false),
        Session::starting(&all, false),
        Session::open(&of(4)),
        Session::open(&of(CUBIC)),
        Session::open(&of(BBR)),
        Session::open_over(&plain, true),
        Session::open_over(&of(3), true),
        Session::open_over(&small, true),
    ]
}
