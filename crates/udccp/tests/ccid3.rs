//! CCIDs 3 and 4 over the loopback interface.

mod common;

use common::{deliver, pair, run};
use udccp::Options;

#[test]
fn client_that_requires_ccid_3_gets_it_both_ways() {
    run(async {
        let (client, server) = pair(&Options::default().ccid(3), &Options::default()).await;
        let (stats, received) = deliver(&client, &server, 300, 1000, 64).await;
        assert_eq!((stats.tx_ccid, stats.rx_ccid, received), (Some(3), Some(3), 300));
        assert_eq!(stats.loss_event_rate, Some(0.0));
        assert!(stats.x_bytes_per_sec.is_some_and(|x| x > 0.0));
    });
}

#[test]
fn peers_that_accept_both_ccids_agree_on_ccid_2() {
    run(async {
        let (client, _server) = pair(&Options::default(), &Options::default()).await;
        assert_eq!(client.stats().unwrap().tx_ccid, Some(2));
    });
}

#[test]
fn client_that_requires_ccid_4_gets_it_both_ways() {
    run(async {
        let (client, server) = pair(&Options::default().ccid(4), &Options::default()).await;
        let (stats, received) = deliver(&client, &server, 60, 160, 64).await;
        assert_eq!((stats.tx_ccid, stats.rx_ccid, received), (Some(4), Some(4), 60));
    });
}
