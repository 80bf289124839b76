//! Async sockets over the loopback interface.

mod common;

use std::io::IoSlice;
use std::time::Duration;

use common::{
    SERVICE, listener, localhost, number_of, numbered, pair, pair_at, run, without_timeouts,
};
use udccp::{
    Connection, ConnectionEvent, Endpoint, Error, Options, Outgoing, TryRecvError, TrySendError,
};

#[test]
fn messages_keep_their_boundaries_over_ipv4_and_ipv6() {
    for v6 in [false, true] {
        run(async {
            let options = Options::default();
            let (client, server) = pair_at(localhost(v6), &options, &options).await;
            assert_eq!(client.peer_addr(), server.local_addr());
            assert_eq!(server.service_code(), SERVICE);
            for len in [1, 2, 500, client.max_message_size()] {
                client.send(vec![7; len]).await.unwrap();
                assert_eq!(server.recv().await.unwrap().unwrap(), vec![7; len]);
                server.send(vec![8; len]).await.unwrap();
                assert_eq!(client.recv().await.unwrap().unwrap(), vec![8; len]);
            }
            client.close().await.unwrap();
            assert_eq!(server.recv().await.unwrap(), None);
        });
    }
}

#[test]
fn close_delivers_the_queue() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        let mut queued = 0;
        while client.try_send(numbered(queued, 1000)).is_ok() {
            queued += 1;
        }
        assert!(queued > 100, "the queue took {queued}");
        client.close().await.unwrap();
        for n in 0..queued {
            assert_eq!(number_of(&server.recv().await.unwrap().unwrap()), n);
        }
        assert_eq!(server.recv().await.unwrap(), None);
        assert!(matches!(client.send("late").await, Err(Error::Closed)));
    });
}

#[test]
fn dropping_a_connection_closes_it_and_delivers_the_queue() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        client.send_batch((0..200).map(|n| numbered(n, 100))).await.unwrap();
        drop(client);
        for n in 0..200 {
            assert_eq!(number_of(&server.recv().await.unwrap().unwrap()), n);
        }
        assert_eq!(server.recv().await.unwrap(), None);
    });
}

#[test]
fn abort_is_seen_as_loss_by_the_peer() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        client.abort();
        assert!(matches!(server.recv().await, Err(Error::Lost(_))));
        assert!(matches!(client.recv().await, Err(Error::Lost(_))));
    });
}

#[test]
fn try_calls_never_wait() {
    run(async {
        let options = Options::default().send_queue(4000, 4);
        let (client, server) = pair(&options, &options).await;
        assert!(matches!(server.try_recv(), Err(TryRecvError::Empty)));
        let full = loop {
            match client.try_send(vec![1; 1000]) {
                Ok(()) => {}
                Err(TrySendError::Full(message)) => break message,
                Err(e) => panic!("{e}"),
            }
        };
        assert_eq!(full, Outgoing::new(vec![1; 1000]), "the message comes back");
        client.writable().await.unwrap();
        client.try_send(full).unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.try_recv().unwrap().len(), 1000);
        let max = client.max_message_size();
        match client.try_send(vec![0; max + 1]) {
            Err(TrySendError::Failed(Error::MessageTooLarge { len, max: m })) => {
                assert_eq!((len, m), (max + 1, max));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn pieces_are_gathered_into_one_message() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        client.send_vectored(&[IoSlice::new(b"head"), IoSlice::new(b"body")]).await.unwrap();
        assert_eq!(server.recv().await.unwrap().unwrap(), "headbody");
    });
}

#[test]
fn data_past_its_lifetime_is_dropped_before_it_leaves_and_counted() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        let old = Duration::ZERO;
        client
            .send_batch((0..10).map(|n| Outgoing::new(numbered(n, 100)).lifetime(old)))
            .await
            .unwrap();
        client.send("fresh").await.unwrap();
        client.close().await.unwrap();
        let mut arrived = 0;
        while server.recv().await.unwrap().is_some() {
            arrived += 1;
        }
        let expired = client.stats().unwrap().counters.drops.send_expired;
        assert_eq!(arrived + expired, 11);
        assert!(expired > 0, "all {arrived} arrived");
    });
}

#[test]
fn halves_work_from_two_tasks() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        let (tx, rx) = client.into_split();
        let echo = tokio::spawn(async move {
            while let Some(message) = server.recv().await? {
                server.send(message).await?;
            }
            Ok::<_, Error>(())
        });
        let sender = tokio::spawn(async move {
            for n in 0..5_000 {
                tx.send(numbered(n, 200)).await?;
            }
            Ok::<_, Error>(tx)
        });
        for n in 0..5_000 {
            assert_eq!(number_of(&rx.recv().await.unwrap().unwrap()), n);
        }
        sender.await.unwrap().unwrap().close().await.unwrap();
        echo.await.unwrap().unwrap();
    });
}

#[test]
fn a_thousand_connections_share_one_socket_at_each_end() {
    run(async {
        let listener = listener(&Options::default().backlog(2000));
        let peer = listener.local_addr();
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let server = tokio::spawn(async move {
            for _ in 0..1000 {
                let connection = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    while let Some(message) = connection.recv().await.unwrap() {
                        connection.send(message).await.unwrap();
                    }
                });
            }
            listener
        });
        let mut clients = Vec::new();
        for n in 0..1000 {
            let endpoint = endpoint.clone();
            clients.push(tokio::spawn(async move {
                let c = endpoint.connect(peer, SERVICE, &Options::default()).await.unwrap();
                for round in 0..5 {
                    c.send(numbered(n * 10 + round, 300)).await.unwrap();
                    assert_eq!(number_of(&c.recv().await.unwrap().unwrap()), n * 10 + round);
                }
                c
            }));
        }
        let mut open = Vec::new();
        for client in clients {
            open.push(client.await.unwrap());
        }
        assert_eq!(endpoint.stats().connections, 1000);
        for connection in &open {
            connection.close().await.unwrap();
        }
        drop(server.await.unwrap());
    });
}

#[test]
fn a_connection_finds_its_own_port() {
    run(async {
        let listener = listener(&Options::default());
        let client = Connection::connect(listener.local_addr(), SERVICE).await.unwrap();
        let server = listener.accept().await.unwrap();
        assert_eq!(client.peer_addr(), listener.local_addr().into());
        client.send("hello").await.unwrap();
        assert_eq!(server.recv().await.unwrap().unwrap(), "hello");
    });
}

#[test]
fn a_larger_path_mtu_carries_larger_messages() {
    run(async {
        let options = Options::default().path_mtu(9000);
        let (client, server) = pair(&options, &options).await;
        assert!(client.max_message_size() > 8800);
        for n in 0..2_000 {
            client.send(numbered(n, 8800)).await.unwrap();
            assert_eq!(number_of(&server.recv().await.unwrap().unwrap()), n);
        }
    });
}

//= 4340-14.1-2 test
#[test]
fn the_path_mtu_starts_at_the_interface_s_unless_the_setting_is_less() {
    run(async {
        let interface: usize =
            std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
        // 20 bytes of IPv4, 8 of UDP, and the connection's own headers.
        let expected = interface.min(65_535) - 28;
        for end in [0, 1] {
            let options = Options::default().path_mtu(u16::MAX);
            let pair = pair(&options, &options).await;
            let max = [&pair.0, &pair.1][end].max_message_size();
            assert!((expected - 100..expected).contains(&max), "{max} of {expected}");
        }
        let options = Options::default();
        let (client, _server) = pair(&options, &options).await;
        assert!(client.max_message_size() < 1500 - 28);
    });
}

#[test]
fn connections_work_from_many_threads() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = listener(&Options::default());
        let peer = listener.local_addr();
        let server = tokio::spawn(async move {
            for _ in 0..8 {
                let connection = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut batch = Vec::new();
                    while connection.recv_batch(&mut batch, 64).await.unwrap() > 0 {
                        connection.send_batch(batch.drain(..)).await.unwrap();
                    }
                });
            }
            listener
        });
        let clients = (0..8).map(|_| {
            tokio::spawn(async move {
                let client = Connection::connect(peer, SERVICE).await.unwrap();
                let (tx, rx) = client.into_split();
                let sender = tokio::spawn(async move {
                    tx.send_batch((0..5_000).map(|n| numbered(n, 700))).await.unwrap();
                    tx
                });
                for n in 0..5_000 {
                    assert_eq!(number_of(&rx.recv().await.unwrap().unwrap()), n);
                }
                sender.await.unwrap().close().await.unwrap();
            })
        });
        let all = futures_join(clients);
        tokio::time::timeout(Duration::from_secs(300), all).await.expect("the test hangs");
        drop(server.await.unwrap());
    });
}

async fn futures_join<T>(tasks: impl IntoIterator<Item = tokio::task::JoinHandle<T>>) {
    // All tasks are running already, so awaiting one after the other is enough.
    for task in tasks.into_iter().collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

#[test]
fn end_that_stops_reading_notifies_its_peer_and_still_sends() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        server.shutdown_read();
        assert_eq!(server.recv().await.unwrap(), None);
        client.send("is anybody there?").await.unwrap();
        let mut events = Vec::new();
        while !events.contains(&ConnectionEvent::PeerShutdownRead) {
            events.push(client.event().await.unwrap());
        }
        let not_listening = ConnectionEvent::PeerDropped {
            code: udccp::DropCode::ApplicationNotListening,
            messages: 1,
        };
        assert!(events.contains(&not_listening), "{events:?}");
        assert!(client.send("hello").await.is_err());
        server.send("no").await.unwrap();
        assert_eq!(client.recv().await.unwrap().unwrap(), "no");
        client.close().await.unwrap();
        assert_eq!(client.event().await, None);
    });
}

#[test]
fn receiver_can_signal_slow_receiver() {
    run(async {
        let options = Options::default().data_checksum(true).deliver_corrupt(true);
        let (client, server) = pair(&options, &options).await;
        server.set_slow_receiver(true);
        client.send("one").await.unwrap();
        assert_eq!(client.event().await, Some(ConnectionEvent::PeerSlow));
        let message = server.recv_with_meta().await.unwrap().unwrap();
        assert_eq!((&message.data[..], message.is_corrupt), (&b"one"[..], false));
    });
}

#[test]
fn stateless_server_accepts_connections() {
    run(async {
        let options = Options::default().init_cookies(udccp::InitCookies::Always);
        let (client, server) = pair(&Options::default(), &options).await;
        client.send("ping").await.unwrap();
        assert_eq!(server.recv().await.unwrap().unwrap(), "ping");
    });
}

#[test]
fn data_of_the_request_is_there_when_the_server_accepts() {
    run(async {
        let client = Options::default().request_data("early");
        let (client, server) = pair(&client, &Options::default()).await;
        assert_eq!(server.recv().await.unwrap().unwrap(), "early");
        server.send("answer").await.unwrap();
        assert_eq!(client.recv().await.unwrap().unwrap(), "answer");
        client.path_changed();
        client.send("on a new path").await.unwrap();
        assert_eq!(server.recv().await.unwrap().unwrap(), "on a new path");
        assert_eq!(client.reset_text(), None);
        let long = Options::default().request_data(vec![0; 2000]);
        let refused = listener(&Options::default());
        let e = Connection::connect_with(refused.local_addr(), SERVICE, &long).await.unwrap_err();
        assert!(e.to_string().contains("2000 bytes of data"), "{e}");
    });
}

#[test]
fn the_path_mtu_is_confirmed_by_a_probe_once_a_message_needs_it() {
    run(async {
        let options = Options::default();
        let (client, server) = pair(&options, &options).await;
        client.send("small").await.unwrap();
        server.recv().await.unwrap();
        client.acknowledged().await.unwrap();
        assert_eq!(client.stats().unwrap().counters.pmtu_probes_sent, 0, "nothing needs it");
        client.send(vec![1; 1000]).await.unwrap();
        server.recv().await.unwrap();
        while client.stats().unwrap().counters.sync_acks_received == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(client.stats().unwrap().counters.pmtu_probes_sent > 0);
    });
}

#[test]
fn a_request_and_its_response_take_two_packets() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        let answering = tokio::spawn(async move {
            while let Some(question) = server.recv().await.unwrap() {
                server.send(question).await.unwrap();
            }
        });
        for _ in 0..200 {
            client.send("question").await.unwrap();
            client.recv().await.unwrap().unwrap();
        }
        let counters = client.stats().unwrap().counters;
        assert_eq!(counters.data_packets_sent, 200);
        assert!(counters.packets_sent < 230, "{counters:?}");
        client.close().await.unwrap();
        answering.await.unwrap();
    });
}

#[test]
fn reader_that_stops_does_not_delay_acknowledgements() {
    run(async {
        let (client, server) = pair(&without_timeouts(), &Options::default()).await;
        for n in 1..=20 {
            let reads = tokio::spawn({
                let server = server.clone();
                async move { server.recv().await.unwrap().unwrap() }
            });
            tokio::task::yield_now().await;
            client.send("no question").await.unwrap();
            // From here on, both ends only wait for the acknowledgement.
            client.acknowledged().await.unwrap();
            let counters = client.stats().unwrap().counters;
            assert_eq!((counters.data_packets_acked, counters.data_packets_lost), (n, 0));
            reads.await.unwrap();
        }
    });
}
