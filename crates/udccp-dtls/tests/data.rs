//! Messages over a protected connection, and its end.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{dccp, dccp_over, echo, handshake, numbered, pair, pair_over, run};
use udccp::{Ccid2Options, ConnectionEvent, DropReason, MessageFate, Options, Outgoing};
use udccp_dtls::{DtlsConnection, DtlsOptions, Error, Identity, Version};
use udccp_testkit::{Fate, by_chance, pass};

/// Returns the number of a message, and checks its content.
fn number_of(message: &[u8]) -> u32 {
    let n = u32::from_be_bytes(message[..4].try_into().unwrap());
    assert!(message[4..].iter().all(|&b| b == n as u8), "message {n} is damaged");
    n
}

//= 5238-3-2 test
//= 5238-3.5-4 test
//= 5238-3.5-7 test
#[test]
fn the_largest_message_fills_one_packet_and_a_larger_one_is_refused() {
    for version in [Version::Dtls12, Version::Dtls13] {
        run(async {
            let identity = Identity::self_signed("server.example").unwrap();
            let client = DtlsOptions::new().pin(identity.fingerprint()).versions(version..=version);
            let server = DtlsOptions::new().identity(identity);
            let both = handshake(dccp(&Options::default()).await, &client, &server).await;
            let (client, server) = (both.0.unwrap(), both.1.unwrap());
            let max = client.max_message_size();
            let mps = client.dccp_stats().unwrap().max_message_size;
            let packets = || client.dccp_stats().unwrap().counters.data_packets_sent;
            client.acknowledged().await.unwrap();
            let before = packets();
            client.send(vec![7; max]).await.unwrap();
            assert_eq!(server.recv().await.unwrap().unwrap(), vec![7; max]);
            assert_eq!(packets() - before, 1, "one message, one packet");
            assert!(max < mps && mps - max <= 37);
            match client.send(vec![7; max + 1]).await {
                Err(Error::MessageTooLarge { len, max: told }) => {
                    assert_eq!((len, told), (max + 1, max));
                }
                other => panic!("{other:?}"),
            }
            echo(&client, &server).await;
        });
    }
}

#[test]
fn message_fates_are_reported_over_dtls() {
    run(async {
        // Only acknowledgements decide: a process that did not run would take messages for lost.
        let minute = Duration::from_secs(60);
        let ccid2 = Ccid2Options::new().initial_rto(minute).min_rto(minute);
        let (client, _server, relay) =
            pair_over(&Options::default().ccid(2).ccid2(ccid2), pass).await;
        let fate_of = async |number| loop {
            match client.event().await {
                Some(ConnectionEvent::MessageFate { token, fate }) if token == number => {
                    break fate;
                }
                Some(_) => {}
                None => panic!("no fate of {number}"),
            }
        };
        client.send(Outgoing::new("arrives").token(1)).await.unwrap();
        assert_eq!(fate_of(1).await, MessageFate::Acknowledged);
        relay.cut();
        for _ in 0..20 {
            client.send("lost").await.unwrap();
        }
        // These fill the window, so the next message waits longer than its lifetime.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let late = Outgoing::new("late").lifetime(Duration::from_millis(20)).priority(1);
        client.send(late.token(2)).await.unwrap();
        assert_eq!(fate_of(2).await, MessageFate::Dropped(DropReason::Expired));
    });
}

#[test]
fn no_plaintext_is_on_the_wire() {
    run(async {
        let secret = b"attack at dawn, attack at dawn";
        let seen = Arc::new(AtomicBool::new(false));
        let found = Arc::clone(&seen);
        let watch = move |_, packet: &mut Vec<u8>| {
            if packet.windows(secret.len()).any(|w| w == secret) {
                found.store(true, Ordering::Relaxed);
            }
            Fate::Pass
        };
        let (client, server, _relay) = pair_over(&Options::default(), watch).await;
        client.send(&secret[..]).await.unwrap();
        assert_eq!(server.recv().await.unwrap().as_deref(), Some(&secret[..]));
        assert!(!seen.load(Ordering::Relaxed));
    });
}

/// DCCP's partial checksums accept damaged data; DTLS does not.
#[test]
fn damaged_messages_are_dropped_and_counted() {
    for version in [Version::Dtls12, Version::Dtls13] {
        run(async {
            let damage = Arc::new(AtomicBool::new(false));
            let on = Arc::clone(&damage);
            let rule = move |from_client, packet: &mut Vec<u8>| {
                if from_client && on.load(Ordering::Relaxed) && packet.len() > 500 {
                    let last = packet.len() - 1;
                    packet[last] ^= 1;
                }
                Fate::Pass
            };
            let options = Options::default().send_cscov(1).min_cscov(1);
            let identity = Identity::self_signed("server.example").unwrap();
            let client = DtlsOptions::new().pin(identity.fingerprint()).versions(version..=version);
            let server = DtlsOptions::new().identity(identity);
            let (a, b, _relay) = dccp_over(&options, rule).await;
            let both = handshake((a, b), &client, &server).await;
            let (client, server) = (both.0.unwrap(), both.1.unwrap());
            echo(&client, &server).await;
            let before = server.stats().packets_discarded;
            damage.store(true, Ordering::Relaxed);
            for n in 0..10 {
                client.send(numbered(n, 600)).await.unwrap();
            }
            client.acknowledged().await.unwrap();
            damage.store(false, Ordering::Relaxed);
            client.send("good").await.unwrap();
            assert_eq!(server.recv().await.unwrap().as_deref(), Some(&b"good"[..]));
            assert_eq!(server.stats().packets_discarded - before, 10);
        });
    }
}

#[test]
fn dtls_12_withstands_loss_disorder_and_copies() {
    rough(Version::Dtls12, 1);
}

#[test]
fn dtls_13_withstands_loss_disorder_and_copies() {
    rough(Version::Dtls13, 3);
}

/// A path that is rough during the handshake and mild afterwards, which keeps the test short. The
/// handshake takes longer; some messages are lost, and none is damaged or duplicated.
fn rough(version: Version, seed: u64) {
    let (mut hard, mut gentle) = (by_chance(seed, 0.15, 0.2, 0.1), by_chance(seed, 0.02, 0.1, 0.1));
    let mut count = 0;
    let rule = move |from_client, packet: &mut Vec<u8>| {
        count += 1;
        if count < 50 { hard(from_client, packet) } else { gentle(from_client, packet) }
    };
    run(async {
        let identity = Identity::self_signed("server.example").unwrap();
        let quick = Duration::from_millis(60);
        let client = DtlsOptions::new().pin(identity.fingerprint());
        let client = client.versions(Version::Dtls12..=version).flight_timeout(quick);
        let server = DtlsOptions::new().identity(identity).flight_timeout(quick);
        let options = Options::default().initial_rto(Duration::from_millis(100));
        let (a, b, _relay) = dccp_over(&options, rule).await;
        let both = handshake((a, b), &client, &server).await;
        let (client, server) = (both.0.unwrap(), both.1.unwrap());
        assert_eq!(client.version(), version, "seed {seed}");
        let sending = async {
            for n in 0..30 {
                client.send(numbered(n, 800)).await.unwrap();
            }
            // By then most has been sent, whatever happened to the rest.
            let _ = tokio::time::timeout(Duration::from_secs(2), client.acknowledged()).await;
            client.close().await
        };
        let receiving = async {
            let mut seen = std::collections::BTreeSet::new();
            while let Ok(Some(message)) = server.recv().await {
                let n = number_of(&message);
                assert!(seen.insert(n), "message {n} came twice, seed {seed}");
            }
            seen.len()
        };
        let (closed, received) = tokio::join!(sending, receiving);
        assert!((18..=30).contains(&received), "{received} arrived, seed {seed}: {closed:?}");
    });
}

//= 5238-3.2-5 test
/// RFC 5238 section 3.2: DTLS's timer does not run during DCCP's handshake.
#[test]
fn slow_dccp_handshake_causes_no_dtls_retransmission() {
    run(async {
        let mut lose = 2;
        let rule = move |from_client: bool, _: &mut Vec<u8>| {
            if from_client && lose > 0 {
                lose -= 1;
                return Fate::Drop;
            }
            Fate::Pass
        };
        let identity = Identity::self_signed("server.example").unwrap();
        let client = DtlsOptions::new().pin(identity.fingerprint());
        let client = client.flight_timeout(Duration::from_millis(400));
        let server = DtlsOptions::new().identity(identity);
        let options = Options::default().initial_rto(Duration::from_millis(200));
        let (a, b, _relay) = dccp_over(&options, rule).await;
        assert_eq!(a.stats().unwrap().counters.requests_retransmitted, 2);
        let both = handshake((a, b), &client, &server).await;
        let sent = both.0.unwrap().stats().handshake_packets_sent;
        assert!(sent <= 3, "{sent}: hello, finished, and an acknowledgement of half a flight");
    });
}

//= 5238-3.3-1 test
/// RFC 5238 section 3.3: flights held back by congestion control are not retransmitted.
#[test]
fn queued_flights_are_not_retransmitted() {
    run(async {
        let identity = large_identity(300);
        let impatient = Duration::from_millis(20);
        let client = DtlsOptions::new()
            .pin(identity.fingerprint())
            .versions(Version::Dtls12..=Version::Dtls12)
            .flight_timeout(Duration::from_secs(5));
        let server = DtlsOptions::new()
            .identity(identity)
            .versions(Version::Dtls12..=Version::Dtls12)
            .flight_timeout(impatient);
        // Acknowledgements take long, so only the first window leaves for a long time.
        let mut seen = 0;
        let slow = move |from_client: bool, _: &mut Vec<u8>| {
            seen += u32::from(from_client);
            if from_client && seen > 3 {
                Fate::Late(Duration::from_millis(400))
            } else {
                Fate::Pass
            }
        };
        let (a, b, _relay) = dccp_over(&Options::default(), slow).await;
        let both = handshake((a, b), &client, &server).await;
        let (_client, server) = (both.0.unwrap(), both.1.unwrap());
        let sent = server.stats().handshake_packets_sent;
        // The flight has 9 packets; the last leave when the first are acknowledged. With a running
        // timer it would have been retransmitted five times by then.
        assert!(sent <= 9 * 3, "{sent} packets for a flight of 9");
    });
}

/// A certificate with a long list of names: about 25 bytes each.
fn large_identity(names: u32) -> Identity {
    let names = (0..names).map(|n| format!("host-number-{n}.example"));
    Identity::self_signed_for(names).unwrap()
}

//= 5238-3-1 test
//= 5238-3-3 test
//= 5238-3.5-1 test
//= 5238-3.5-2 test
#[test]
fn a_certificate_larger_than_the_packets_is_sent_in_parts() {
    for (version, names) in [(Version::Dtls12, 300), (Version::Dtls13, 100)] {
        run(async {
            let largest = Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let seen = Arc::clone(&largest);
            let rule = move |_, packet: &mut Vec<u8>| {
                seen.fetch_max(packet.len(), Ordering::Relaxed);
                Fate::Pass
            };
            let identity = large_identity(names);
            assert!(identity.certificate_der().len() > 2500);
            let client = DtlsOptions::new().pin(identity.fingerprint()).versions(version..=version);
            let server = DtlsOptions::new().identity(identity.clone()).versions(version..=version);
            // A narrow path, which the handshake has to fit too.
            let options = Options::default().path_mtu(700);
            let (a, b, _relay) = dccp_over(&options, rule).await;
            let both = handshake((a, b), &client, &server).await;
            let (client, server) = (both.0.unwrap(), both.1.unwrap());
            assert_eq!(client.peer_certificate(), Some(identity.certificate_der()));
            echo(&client, &server).await;
            assert!(largest.load(Ordering::Relaxed) + 28 <= 700);
        });
    }
}

#[test]
fn a_certificate_that_dtls_13_cannot_carry_is_refused_at_once() {
    run(async {
        let identity = large_identity(400);
        let client = DtlsOptions::new().pin(identity.fingerprint());
        let server = DtlsOptions::new().identity(identity);
        let both = handshake(dccp(&Options::default()).await, &client, &server).await;
        let e = both.1.unwrap_err();
        assert!(matches!(&e, Error::Identity(why) if why.contains("DTLS 1.2")), "{e}");
        assert!(both.0.is_err());
    });
}

#[test]
fn each_side_can_close_and_the_other_reads_to_the_end() {
    for server_closes in [false, true] {
        run(async {
            let (client, server) = pair().await;
            let (closer, other) = if server_closes { (server, client) } else { (client, server) };
            for n in 0..20 {
                closer.send(numbered(n, 100)).await.unwrap();
            }
            let closing = closer.close();
            let reading = async {
                for n in 0..20 {
                    assert_eq!(number_of(&other.recv().await.unwrap().unwrap()), n);
                }
                assert_eq!(other.recv().await.unwrap(), None);
                assert!(matches!(other.send("too late").await, Err(Error::Closed)));
                other.close().await.unwrap();
            };
            let (closed, ()) = tokio::join!(closing, reading);
            closed.unwrap();
            assert!(matches!(closer.send("too late").await, Err(Error::Closed)));
            assert_eq!(closer.recv().await.unwrap(), None);
        });
    }
}

#[test]
fn dropped_connection_sends_close_notify() {
    run(async {
        let (client, server) = pair().await;
        client.send("last words").await.unwrap();
        drop(client);
        assert_eq!(server.recv().await.unwrap().as_deref(), Some(&b"last words"[..]));
        assert_eq!(server.recv().await.unwrap(), None);
    });
}

#[test]
fn a_lost_close_notify_is_repeated() {
    run(async {
        let lose = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let left = Arc::clone(&lose);
        let rule = move |from_client: bool, packet: &mut Vec<u8>| {
            // Data Offset (RFC 4340 section 5.1): after it comes a record, or nothing.
            let take = from_client
                && packet.len() > usize::from(packet[4]) * 4
                && left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                    .is_ok();
            if take { Fate::Drop } else { Fate::Pass }
        };
        let (client, server, _relay) = pair_over(&Options::default(), rule).await;
        echo(&client, &server).await;
        client.acknowledged().await.unwrap();
        lose.store(1, Ordering::Relaxed);
        client.close().await.unwrap();
        assert_eq!(server.recv().await.unwrap(), None, "and not Truncated");
    });
}

//= 5238-3.3-1 test
/// The last flight of a client with a large certificate is larger than the first window, so its end
/// is still queued when the client has received everything.
#[test]
fn lost_last_flight_is_retransmitted_after_queueing() {
    run(async {
        let me = large_identity(100);
        let identity = Identity::self_signed("server.example").unwrap();
        let quick = DtlsOptions::new()
            .versions(Version::Dtls13..=Version::Dtls13)
            .flight_timeout(Duration::from_millis(100));
        let client = quick.clone().pin(identity.fingerprint()).identity(me.clone());
        let server = quick.identity(identity).pin(me.fingerprint());
        let mut records = 0;
        let rule = move |from_client: bool, packet: &mut Vec<u8>| {
            records += u32::from(from_client && packet.len() > 100);
            match from_client {
                // The hello takes two packets and the flight five; this is the last but one.
                true if records == 7 && packet.len() > 100 => Fate::Drop,
                true => Fate::Pass,
                false => Fate::Late(Duration::from_millis(50)),
            }
        };
        let (a, b, _relay) = dccp_over(&Options::default().path_mtu(700), rule).await;
        let both = handshake((a, b), &client, &server).await;
        echo(&both.0.unwrap(), &both.1.unwrap()).await;
    });
}

#[test]
fn deadlines_and_priorities_apply_over_dtls() {
    run(async {
        let (client, server) = pair().await;
        let message = Outgoing::new("urgent").lifetime(Duration::from_secs(1)).priority(3);
        client.send(message).await.unwrap();
        assert_eq!(server.recv().await.unwrap().as_deref(), Some(&b"urgent"[..]));
        client.send("").await.unwrap();
        assert_eq!(server.recv().await.unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(client.stats().messages_sent, 2);
        assert_eq!(server.stats().messages_received, 2);
    });
}

#[test]
fn a_slow_reader_slows_the_sender_down_and_loses_nothing() {
    run(async {
        let (client, server) = pair().await;
        let sending = async {
            for n in 0..1000 {
                client.send(numbered(n, 1000)).await.unwrap();
            }
            client.close().await.unwrap();
        };
        let receiving = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let mut next = 0;
            while let Some(message) = server.recv().await.unwrap() {
                assert_eq!(number_of(&message), next);
                next += 1;
            }
            next
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert_eq!(received, 1000);
    });
}

/// Two tasks can send and receive at the same time.
#[test]
fn data_flows_both_ways_at_once() {
    run(async {
        let (client, server) = pair().await;
        let both = [Arc::new(client), Arc::new(server)];
        let send = |end: Arc<DtlsConnection>| {
            tokio::spawn(async move {
                for n in 0..500 {
                    end.send(numbered(n, 700)).await.unwrap();
                }
            })
        };
        let receive = |end: Arc<DtlsConnection>| {
            tokio::spawn(async move {
                for n in 0..500 {
                    let message = end.recv().await.unwrap().unwrap();
                    assert_eq!(number_of(&message), n, "{:?} {:?}", end.stats(), end.dccp_stats());
                }
            })
        };
        let mut tasks = Vec::new();
        for end in &both {
            tasks.push(send(Arc::clone(end)));
            tasks.push(receive(Arc::clone(end)));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}
