//! Connections as streams and sinks.

mod common;

use common::{pair, run, runs_another_task_during, wide_pair, with_messages};
use futures_util::{SinkExt, StreamExt, TryStreamExt, stream};
use udccp::Options;

#[test]
fn a_sink_sends_everything_and_a_stream_ends_in_order() {
    run(async {
        let few = Options::default().send_queue(1 << 20, 4);
        let (client, server) = pair(&few, &Options::default()).await;
        let (send, _recv) = client.into_split();
        let mut numbers = stream::iter(0..500_u32).map(|n| Ok(common::numbered(n, 300)));
        let sender = async {
            let mut sink = send.into_sink();
            sink.send_all(&mut numbers).await.unwrap();
            SinkExt::<Vec<u8>>::close(&mut sink).await.unwrap();
        };
        let reader = async {
            let (_send, recv) = server.into_split();
            recv.try_collect::<Vec<_>>().await.unwrap()
        };
        let ((), messages) = tokio::join!(sender, reader);
        let numbers: Vec<u32> = messages.iter().map(|m| common::number_of(m)).collect();
        assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    });
}

#[test]
fn a_connection_is_a_stream_whose_last_item_is_its_error() {
    run(async {
        let (client, mut server) = pair(&Options::default(), &Options::default()).await;
        client.send("one").await.unwrap();
        client.acknowledged().await.unwrap();
        client.abort();
        assert_eq!(server.next().await.unwrap().unwrap(), "one");
        assert!(server.next().await.unwrap().is_err());
    });
}

#[test]
fn another_task_runs_beside_one_that_reads_a_stream() {
    run(async {
        let (_client, server) = with_messages(200).await;
        let reading = async { assert_eq!(server.take(200).count().await, 200) };
        assert!(runs_another_task_during(reading).await);
    });
}

#[test]
fn another_task_runs_beside_one_that_fills_a_sink() {
    run(async {
        let (client, _server) = wide_pair().await;
        let mut sink = client.into_split().0.into_sink();
        let filling = async {
            for _ in 0..200 {
                sink.feed(&b"message"[..]).await.unwrap();
            }
        };
        assert!(runs_another_task_during(filling).await);
    });
}
