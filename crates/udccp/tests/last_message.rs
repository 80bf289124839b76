//! The last message is lost: no later one tells of it.

mod common;

use std::time::Duration;

use common::{Relay, SERVICE, listener, localhost, run};
use udccp::{Address, Endpoint, Options};

#[test]
fn acknowledged_ends_by_the_transmit_timer_where_the_last_message_is_lost() {
    run(async {
        let options = Options::default().ccid(2);
        let listener = listener(&options);
        let path = Relay::to(listener.local_addr()).await;
        let peer = Address { udp: path.addr(), port: listener.port() };
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let client = endpoint.connect(peer, SERVICE, &options).await.unwrap();
        client.send("arrives").await.unwrap();
        client.acknowledged().await.unwrap();
        path.cut();
        client.send("is lost").await.unwrap();
        let acknowledged =
            tokio::time::timeout(Duration::from_secs(30), client.acknowledged()).await;
        acknowledged.expect("the timer judges it lost").unwrap();
        assert_eq!(client.stats().unwrap().counters.data_packets_acked, 1);
    });
}
