//! Waiting for the send queue.

mod common;

use common::{numbered, pair, run};
use udccp::{Error, Options};

#[test]
fn flushed_waits_for_an_empty_send_queue_and_not_for_the_peer() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        for n in 0..200 {
            client.try_send(numbered(n, 1000)).unwrap();
        }
        client.flushed().await.unwrap();
        assert_eq!(client.stats().unwrap().send_queue_packets, 0);
        server.abort();
        while client.try_send("more").is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(matches!(client.flushed().await, Ok(()) | Err(Error::Lost(_))));
    });
}
