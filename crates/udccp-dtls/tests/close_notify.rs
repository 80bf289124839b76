//! Closing and dropping: messages sent before arrive, and the peer learns that none is missing.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{echo, pair, pair_over, run};
use udccp::ccid::InitialWindow;
use udccp::{Ccid2Options, Options};
use udccp_dtls::{DtlsConnection, Error};
use udccp_testkit::{Fate, Relay};

/// A connection to a pinned server over a path whose acknowledgements are delayed once enabled.
async fn slow_path(
    options: &Options,
    delay: Duration,
) -> (DtlsConnection, DtlsConnection, Arc<AtomicBool>, Relay) {
    let is_slow = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_slow);
    let rule = move |from_client: bool, _: &mut Vec<u8>| match told.load(Ordering::Relaxed) {
        true if !from_client => Fate::Late(delay),
        _ => Fate::Pass,
    };
    let (client, server, relay) = pair_over(options, rule).await;
    client.acknowledged().await.unwrap();
    (client, server, is_slow, relay)
}

/// Reads to the end. Returns the number of messages, and how the connection ended.
async fn read_to_the_end(connection: &DtlsConnection) -> (usize, Option<Error>) {
    let mut messages = 0;
    loop {
        match connection.recv().await {
            Ok(Some(_)) => messages += 1,
            end => return (messages, end.err()),
        }
    }
}

#[test]
fn cancelled_close_still_sends_close_notify() {
    for closes_again in [false, true] {
        run(async {
            let (client, server) = pair().await;
            client.send("last words").await.unwrap();
            let given_up = tokio::select! {
                biased;
                _ = client.close() => false,
                () = std::future::ready(()) => true,
            };
            assert!(given_up, "nothing can be acknowledged yet");
            assert!(matches!(client.send("too late").await, Err(Error::Closed)));
            if closes_again {
                client.close().await.unwrap();
            }
            drop(client);
            assert!(matches!(read_to_the_end(&server).await, (1, None)));
        });
    }
}

/// The first window takes longer than all attempts to send close_notify.
#[test]
fn close_notify_follows_queued_data_on_a_slow_path() {
    run(async {
        let options = Options::default().close_linger(Duration::from_secs(30));
        let (client, server, is_slow, _relay) =
            slow_path(&options, Duration::from_millis(1600)).await;
        is_slow.store(true, Ordering::Relaxed);
        for n in 0..20_u8 {
            client.send(vec![n; 1000]).await.unwrap();
        }
        let (closed, read) = tokio::join!(client.close(), read_to_the_end(&server));
        closed.unwrap();
        assert!(matches!(read, (20, None)), "{read:?}");
    });
}

#[test]
fn connection_dropped_with_a_full_queue_sends_close_notify() {
    run(async {
        let options = Options::default().send_queue(1 << 20, 2);
        let (client, server, is_slow, _relay) =
            slow_path(&options, Duration::from_millis(200)).await;
        is_slow.store(true, Ordering::Relaxed);
        let mut sent = 0;
        while let Ok(done) =
            tokio::time::timeout(Duration::from_millis(50), client.send("more")).await
        {
            done.unwrap();
            sent += 1;
        }
        drop(client);
        let read = read_to_the_end(&server).await;
        assert!(matches!(read, (messages, None) if messages == sent), "{read:?} of {sent}");
    });
}

#[test]
fn dropped_connection_retransmits_a_lost_close_notify() {
    run(async {
        let lose = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&lose);
        let rule = move |from_client: bool, packet: &mut Vec<u8>| {
            // Data Offset (RFC 4340 section 5.1): after it comes a record, or nothing.
            let is_record = packet.len() > usize::from(packet[4]) * 4;
            if from_client && is_record && now.swap(false, Ordering::Relaxed) {
                Fate::Drop
            } else {
                Fate::Pass
            }
        };
        let (client, server, _relay) = pair_over(&Options::default(), rule).await;
        echo(&client, &server).await;
        client.acknowledged().await.unwrap();
        lose.store(true, Ordering::Relaxed);
        drop(client);
        assert!(matches!(read_to_the_end(&server).await, (0, None)));
    });
}

/// Messages sent at once.
const BURST: u32 = 32;

#[test]
fn lost_close_notify_is_retransmitted_after_reordering() {
    run(async {
        let lose = Arc::new(AtomicBool::new(false));
        let (now, mut count) = (Arc::clone(&lose), 0_u32);
        let rule = move |from_client: bool, packet: &mut Vec<u8>| {
            let is_data = matches!(packet[8] >> 1 & 15, 2 | 4) && packet.len() > 200;
            count += u32::from(from_client && is_data);
            let is_record = packet.len() > usize::from(packet[4]) * 4;
            match from_client {
                // The late packet's acknowledgement must come before that of a later one.
                false => Fate::Late(Duration::from_millis(30)),
                true if is_record && now.swap(false, Ordering::Relaxed) => Fate::Drop,
                true if is_data && count % BURST == BURST - 5 => {
                    Fate::Late(Duration::from_millis(10))
                }
                true => Fate::Pass,
            }
        };
        let ccid2 = Ccid2Options::new().initial_window(InitialWindow::Packets(BURST + 10));
        let options = Options::default().ccid(2).ccid2(ccid2);
        let (client, server, _relay) = pair_over(&options, rule).await;
        let counters = || client.dccp_stats().unwrap().counters;
        // Until a packet was judged lost and arrived nevertheless.
        while counters().data_packets_acked + counters().data_packets_lost
            <= counters().data_packets_sent
        {
            for _ in 0..BURST {
                client.send(vec![7; 200]).await.unwrap();
            }
            client.acknowledged().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        lose.store(true, Ordering::Relaxed);
        drop(client);
        assert!(matches!(read_to_the_end(&server).await, (_, None)));
    });
}
