//! Tens of thousands of messages over the loopback interface: none is lost, whichever end is slow.

mod common;

use std::time::Duration;

use common::{SERVICE, deliver, localhost, number_of, numbered, pair, run, without_timeouts};
use udccp::ccid::InitialWindow;
use udccp::{
    Address, Ccid2Options, Connection, ConnectionStats, Endpoint, EndpointOptions, Options,
};

#[test]
fn one_hundred_thousand_messages_arrive_whole_and_in_order() {
    run(async {
        let (client, server) = pair(&without_timeouts(), &Options::default()).await;
        let (stats, received) = deliver(&client, &server, 100_000, 1400, 256).await;
        assert_eq!(received, 100_000);
        assert_eq!(
            (stats.counters.data_packets_acked, stats.counters.data_packets_lost),
            (100_000, 0)
        );
        let acks = stats.counters.acks_received;
        assert!(acks < 25_000, "{acks} acknowledgements: a batch is answered by one");
    });
}

#[test]
fn a_slow_reader_slows_the_sender_down_and_loses_nothing() {
    run(async {
        let server = Options::default().recv_queue(256 << 10, 256);
        let (client, server) = pair(&Options::default(), &server).await;
        let count = 3_000;
        let sending = async {
            for n in 0..count {
                client.send(numbered(n, 1000)).await.unwrap();
            }
            client.close().await.unwrap();
        };
        let receiving = async {
            let mut next = 0;
            while let Some(message) = server.recv().await.unwrap() {
                assert_eq!(number_of(&message), next);
                next += 1;
                if next % 50 == 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            next
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert_eq!(received, count);
        let counters = server.stats().unwrap().counters;
        assert_eq!(counters.drops.receive_queue_full, 0);
    });
}

#[test]
fn a_reader_that_pauses_loses_nothing() {
    run(async {
        let options = Options::default().close_linger(Duration::from_secs(20));
        let (client, server) = pair(&options, &options).await;
        let sending = async {
            client.send_batch((0..20_000).map(|n| numbered(n, 1200))).await.unwrap();
            client.close().await.unwrap();
        };
        let receiving = async {
            tokio::time::sleep(Duration::from_millis(800)).await;
            let mut next = 0;
            while let Some(message) = server.recv().await.unwrap() {
                assert_eq!(number_of(&message), next);
                next += 1;
            }
            next
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert_eq!(received, 20_000);
    });
}

/// Settings for a sender of bursts of up to 300 messages.
fn bursting() -> Options {
    let at_once = Ccid2Options::new().initial_window(InitialWindow::Packets(300));
    Options::default().ccid2(at_once).sequence_window(2_000)
}

/// Both ends of a connection to a listener on `endpoint` whose receive queue holds this many
/// messages.
async fn to_queue_of(messages: usize, endpoint: &Endpoint, port: u16) -> (Connection, Connection) {
    let server = Options::default().recv_queue(1 << 20, messages);
    let listener = endpoint.listen(port, [SERVICE], &server).unwrap();
    let peer = Address { udp: endpoint.local_addr(), port };
    let client = bursting();
    let connecting = Connection::connect_with(peer, SERVICE, &client);
    let (connected, accepted) = tokio::join!(connecting, listener.accept());
    (connected.unwrap(), accepted.unwrap())
}

/// An endpoint in which each datagram uses its own buffer.
fn without_offload() -> Endpoint {
    let alone = EndpointOptions::default().offload(false);
    Endpoint::bind_with(localhost(false), &alone).unwrap()
}

async fn reads_all(server: &Connection, count: u32) {
    for n in 0..count {
        let message = server.recv().await.unwrap();
        assert_eq!(message.as_deref().map(number_of), Some(n));
    }
    assert_eq!(server.stats().unwrap().counters.drops.receive_queue_full, 0);
}

#[test]
fn long_burst_waits_in_the_kernel_until_the_reader_ran() {
    run(async {
        let endpoint = without_offload();
        let (client, server) = to_queue_of(100, &endpoint, 7).await;
        // No other task runs before all of them are in the kernel's buffer.
        for n in 0..200 {
            client.try_send(numbered(n, 100)).unwrap();
        }
        assert!(client.stats().unwrap().counters.data_packets_sent > 150);
        reads_all(&server, 200).await;
    });
}

#[test]
fn long_burst_beside_another_connection_waits_in_the_kernel() {
    run(async {
        let endpoint = without_offload();
        let (client, server) = to_queue_of(50, &endpoint, 7).await;
        let (other_client, other_server) = to_queue_of(1_000, &endpoint, 8).await;
        for n in 0..200 {
            for client in [&client, &other_client] {
                client.try_send(numbered(n, 100)).unwrap();
                client.flushed().await.unwrap();
            }
        }
        let reading = tokio::spawn(async move { reads_all(&other_server, 200).await });
        reads_all(&server, 200).await;
        reading.await.unwrap();
    });
}

/// Two threads, each with its own runtime, and a kernel buffer of a realistic size.
fn sent_and_received(options: EndpointOptions, len: usize) -> (ConnectionStats, u64) {
    let (tell, hear) = std::sync::mpsc::channel();
    let server = std::thread::Builder::new().spawn(move || {
        run(async {
            let endpoint = Endpoint::bind_with(localhost(false), &options).unwrap();
            let listener = endpoint.listen(7, [SERVICE], &Options::default()).unwrap();
            tell.send(endpoint.local_addr()).unwrap();
            let connection = listener.accept().await.unwrap();
            let (mut batch, mut received) = (Vec::new(), 0);
            while connection.recv_batch(&mut batch, 64).await.unwrap() > 0 {
                received += batch.drain(..).len() as u64;
            }
            received
        })
    });
    let udp = hear.recv().unwrap();
    let stats = run(async {
        let peer = Address { udp, port: 7 };
        let client = Connection::connect_with(peer, SERVICE, &without_timeouts()).await.unwrap();
        client.send_batch((0..30_000).map(|n| numbered(n, len))).await.unwrap();
        client.acknowledged().await.unwrap();
        let stats = client.stats().unwrap();
        client.close().await.unwrap();
        stats
    });
    (stats, server.unwrap().join().unwrap())
}

#[test]
fn default_kernel_buffers_lose_nothing() {
    for (recv_buffer, len) in [(212_992, 1400), (212_992, 50), (50_000, 1400)] {
        let options = EndpointOptions::default().recv_buffer(recv_buffer);
        let (stats, received) = sent_and_received(options, len);
        assert_eq!(received, 30_000, "{recv_buffer}: {stats:?}");
        assert_eq!(stats.counters.data_packets_lost, 0, "{recv_buffer}: {stats:?}");
    }
}

#[test]
fn without_offload_every_packet_travels_alone_and_none_is_lost() {
    let (stats, received) = sent_and_received(EndpointOptions::default().offload(false), 1400);
    assert_eq!((received, stats.counters.data_packets_lost), (30_000, 0), "{stats:?}");
}
