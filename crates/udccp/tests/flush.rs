//! Waiting for the send queue.

mod common;

use common::{numbered, pair, run};
use udccp::{Error, Options, TrySendError};

#[test]
fn flushed_waits_for_an_empty_send_queue() {
    run(async {
        let options = Options::default();
        let (client, _server) = pair(&options, &options).await;
        for n in 0..200 {
            client.try_send(numbered(n, 1000)).unwrap();
        }
        client.flushed().await.unwrap();
        assert_eq!(client.stats().unwrap().send_queue_packets, 0);
    });
}

#[test]
fn flushed_does_not_wait_for_what_a_reset_drops() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        // More than fits in the first window. No acknowledgement is read before the Reset.
        for n in 0..200 {
            client.try_send(numbered(n, 1000)).unwrap();
        }
        let (flushed, ()) = tokio::join!(client.flushed(), async { server.abort() });
        flushed.unwrap();
        let after = client.try_send("more");
        assert!(matches!(after, Err(TrySendError::Failed(Error::Lost(_)))), "{after:?}");
    });
}
