//! Handshakes that succeed, and handshakes that fail.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{SERVICE, dccp, echo, handshake, localhost, run};
use udccp::{Connection, Endpoint, Options, ServiceCode};
use udccp_dtls::{Alert, DtlsConnection, DtlsOptions, Error, Identity, Version};

fn identity() -> Identity {
    Identity::self_signed("server.example").unwrap()
}

//= 5238-3.2-4 test
//= 5238-3.4-1 test
//= 5238-3.7-1 test
#[test]
fn both_versions_connect_on_one_service_code() {
    use Version::{Dtls12, Dtls13};
    // The client's versions, the server's versions, the negotiated one.
    for (client, server, agreed) in [
        (Dtls12..=Dtls12, Dtls12..=Dtls12, Dtls12),
        (Dtls13..=Dtls13, Dtls13..=Dtls13, Dtls13),
        (Dtls12..=Dtls13, Dtls12..=Dtls13, Dtls13),
        (Dtls12..=Dtls13, Dtls12..=Dtls12, Dtls12),
        (Dtls12..=Dtls12, Dtls12..=Dtls13, Dtls12),
        (Dtls13..=Dtls13, Dtls12..=Dtls13, Dtls13),
    ] {
        for cookies in [false, true] {
            run(async {
                let me = identity();
                let client = DtlsOptions::new().pin(me.fingerprint()).versions(client.clone());
                let server = DtlsOptions::new()
                    .identity(me.clone())
                    .versions(server.clone())
                    .cookie_exchange(cookies);
                let both = handshake(dccp(&Options::default()).await, &client, &server).await;
                let (client, server) = (both.0.unwrap(), both.1.unwrap());
                assert_eq!((client.version(), server.version()), (agreed, agreed));
                assert_eq!(client.peer_certificate(), Some(me.certificate_der()));
                assert_eq!(server.peer_certificate(), None, "nobody asked the client for one");
                assert_eq!(client.service_code(), SERVICE);
                echo(&client, &server).await;
                client.close().await.unwrap();
                assert_eq!(server.recv().await.unwrap(), None);
            });
        }
    }
}

/// RFC 6347 section 4.2.1, RFC 9147 section 5.1: the client repeats its hello with the cookie.
#[test]
fn a_cookie_costs_the_client_a_second_hello() {
    for version in [Version::Dtls12, Version::Dtls13] {
        let packets = |cookies| {
            run(async {
                let me = identity();
                let client = DtlsOptions::new().pin(me.fingerprint()).versions(version..=version);
                let client = client.flight_timeout(Duration::from_secs(20));
                let server = DtlsOptions::new().identity(me).versions(version..=version);
                let server = server.cookie_exchange(cookies);
                let server = server.flight_timeout(Duration::from_secs(20));
                let both = handshake(dccp(&Options::default()).await, &client, &server).await;
                both.1.unwrap();
                both.0.unwrap().stats().handshake_packets_sent
            })
        };
        assert_eq!(packets(true), packets(false) + 1, "{version:?}");
    }
}

#[test]
fn version_mismatch_is_reported_on_both_sides() {
    let (old, new) = (Version::Dtls12, Version::Dtls13);
    for (ours, theirs) in [(old, new), (new, old)] {
        run(async {
            let me = identity();
            let client = DtlsOptions::new().pin(me.fingerprint()).versions(ours..=ours);
            let server = DtlsOptions::new().identity(me).versions(theirs..=theirs);
            let both = handshake(dccp(&Options::default()).await, &client, &server).await;
            let told = both.0.unwrap_err();
            assert!(matches!(told, Error::PeerAlert(Alert::PROTOCOL_VERSION)), "{told}");
            assert!(matches!(both.1, Err(Error::Version)), "{both:?}", both = both.1);
        });
    }
}

#[test]
fn wrong_pin_is_refused_and_the_peer_is_notified() {
    for version in [Version::Dtls12, Version::Dtls13] {
        run(async {
            let (me, other) = (identity(), identity());
            let client = DtlsOptions::new().pin(other.fingerprint()).versions(version..=version);
            let server = DtlsOptions::new().identity(me.clone());
            let both = handshake(dccp(&Options::default()).await, &client, &server).await;
            let Err(Error::CertificateRefused { fingerprint, .. }) = both.0 else {
                panic!("{:?}", both.0);
            };
            assert_eq!(fingerprint, me.fingerprint(), "the error shows what to compare");
            match (version, both.1.unwrap_err()) {
                (Version::Dtls12, e) => {
                    assert!(matches!(e, Error::PeerAlert(Alert::BAD_CERTIFICATE)), "{e}");
                }
                // An unencrypted alert would be ignored, so the peer sees the end of DCCP.
                (Version::Dtls13, e) => assert!(matches!(e, Error::Dccp(_)), "{e}"),
            }
        });
    }
}

#[test]
fn both_sides_can_show_and_check_certificates() {
    for version in [Version::Dtls12, Version::Dtls13] {
        run(async {
            let (us, them) = (identity(), Identity::self_signed("client.example").unwrap());
            let client = DtlsOptions::new().pin(us.fingerprint()).identity(them.clone());
            let client = client.versions(version..=version);
            let seen = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&seen);
            let server = DtlsOptions::new().identity(us.clone()).verify(move |der| {
                count.store(der.len(), Ordering::Relaxed);
                Ok(())
            });
            let both = handshake(dccp(&Options::default()).await, &client, &server).await;
            let (client, server) = (both.0.unwrap(), both.1.unwrap());
            assert_eq!(server.peer_fingerprint(), Some(them.fingerprint()));
            assert_eq!(seen.load(Ordering::Relaxed), them.certificate_der().len());
            echo(&client, &server).await;
        });
    }
}

#[test]
fn refused_client_is_notified() {
    for version in [Version::Dtls12, Version::Dtls13] {
        run(async {
            let me = identity();
            let client = DtlsOptions::new().pin(me.fingerprint()).versions(version..=version);
            let server = DtlsOptions::new().identity(me).verify(|_| Err("not today".into()));
            let both = handshake(dccp(&Options::default()).await, &client, &server).await;
            let refused = both.1.unwrap_err();
            assert!(refused.to_string().contains("not today"), "{refused}");
            // With DTLS 1.3, the client completes before the server has verified its certificate.
            let told = match both.0 {
                Ok(client) => client.recv().await.unwrap_err(),
                Err(e) => e,
            };
            match version {
                Version::Dtls12 => assert!(matches!(told, Error::PeerAlert(_)), "{told}"),
                Version::Dtls13 => assert!(matches!(told, Error::Dccp(_)), "{told}"),
            }
        });
    }
}

#[test]
fn a_shared_key_connects_and_a_wrong_one_does_not() {
    run(async {
        let key = |key: &str| DtlsOptions::new().psk("sensor-1", key);
        let server = DtlsOptions::new()
            .psk_lookup(|id| (id == b"sensor-1").then(|| b"sixteen byte key".to_vec()));
        let dccp_pair = dccp(&Options::default()).await;
        let both = handshake(dccp_pair, &key("sixteen byte key"), &server).await;
        let (client, server_end) = (both.0.unwrap(), both.1.unwrap());
        assert_eq!(client.version(), Version::Dtls12);
        assert_eq!(client.peer_certificate(), None);
        echo(&client, &server_end).await;

        let both = handshake(dccp(&Options::default()).await, &key("another"), &server).await;
        let (client, server) = (both.0.unwrap_err(), both.1.unwrap_err());
        assert!(matches!(client, Error::PeerAlert(Alert::DECRYPT_ERROR)), "{client}");
        assert!(matches!(server, Error::WrongKey), "{server}");
    });
}

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    run(async {
        let (client, server) = dccp(&Options::default()).await;
        let both = handshake((client, server), &DtlsOptions::new(), &DtlsOptions::new()).await;
        assert!(matches!(both.0, Err(Error::NoVerification)));
        assert!(matches!(both.1, Err(Error::NoIdentity)));

        let (client, server) = dccp(&Options::default()).await;
        let mixed = DtlsOptions::new().psk("a", "b").dangerous_accept_any();
        let damaged = Identity::from_der(identity().certificate_der(), *b"no key").unwrap();
        let damaged = DtlsOptions::new().identity(damaged);
        let both = handshake((client, server), &mixed, &damaged).await;
        assert!(matches!(both.0, Err(Error::Options(_))));
        assert!(matches!(both.1, Err(Error::Identity(_))));
    });
}

#[test]
fn timeouts_have_no_upper_limit() {
    run(async {
        let me = identity();
        let patient = DtlsOptions::new().handshake_timeout(Duration::MAX);
        let patient = patient.flight_timeout(Duration::MAX);
        let client = patient.clone().pin(me.fingerprint());
        let both = handshake(dccp(&Options::default()).await, &client, &patient.identity(me)).await;
        echo(&both.0.unwrap(), &both.1.unwrap()).await;

        let (client, _server) = dccp(&Options::default()).await;
        let hasty = DtlsOptions::new().dangerous_accept_any().flight_timeout(Duration::ZERO);
        let refused = DtlsConnection::client(client, &hasty).await;
        assert!(matches!(refused, Err(Error::Options(_))), "{refused:?}");
    });
}

#[test]
fn peer_close_gives_the_same_error_throughout_the_handshake() {
    for packets in 0..4 {
        run(async {
            let me = identity();
            let (client, server) = dccp(&Options::default()).await;
            let serving = async {
                for _ in 0..packets.min(2) {
                    let _ = server.recv().await;
                }
                for _ in 2..packets {
                    tokio::task::yield_now().await;
                }
                drop(server);
            };
            let options = DtlsOptions::new().pin(me.fingerprint());
            let (refused, ()) = tokio::join!(DtlsConnection::client(client, &options), serving);
            let e = refused.unwrap_err();
            assert!(matches!(&e, Error::Handshake(why) if why.contains("closed")), "{e}");
        });
    }
}

#[test]
fn handshake_with_a_peer_without_dtls_times_out() {
    run(async {
        let (client, server) = dccp(&Options::default()).await;
        let limit = Duration::from_millis(300);
        let options = DtlsOptions::new().dangerous_accept_any().handshake_timeout(limit);
        let plain = tokio::spawn(async move {
            while let Ok(Some(_)) = server.recv().await {
                server.send("what is this?").await.unwrap();
            }
        });
        let e = DtlsConnection::client(client, &options).await.unwrap_err();
        assert!(matches!(e, Error::HandshakeTimeout(t) if t == limit), "{e}");
        plain.await.unwrap();
    });
}

//= 5238-3.6-1 test
//= 5238-3.6-2 test
/// One port serves a service with and without DTLS, distinguished by the service code.
#[test]
fn plain_and_protected_use_have_service_codes_of_their_own_on_one_port() {
    const PLAIN: ServiceCode = ServiceCode(u32::from_be_bytes(*b"tele"));
    const SECURE: ServiceCode = ServiceCode(u32::from_be_bytes(*b"tels"));
    run(async {
        let me = identity();
        let endpoint = Endpoint::bind(localhost()).unwrap();
        let listener = endpoint.listen(7000, [PLAIN, SECURE], &Options::default()).unwrap();
        let options = DtlsOptions::new().identity(me.clone());
        let serving = tokio::spawn(async move {
            for _ in 0..2 {
                let connection = listener.accept().await.unwrap();
                if connection.service_code() == SECURE {
                    let connection = DtlsConnection::server(connection, &options).await.unwrap();
                    connection.send("protected").await.unwrap();
                    connection.close().await.unwrap();
                } else {
                    connection.send("plain").await.unwrap();
                    connection.close().await.unwrap();
                }
            }
        });
        let address = format!("127.0.0.1:7000/{}", endpoint.local_addr().port());
        let address: udccp::Address = address.parse().unwrap();
        let plain = Connection::connect(address, PLAIN).await.unwrap();
        assert_eq!(plain.recv().await.unwrap().as_deref(), Some(&b"plain"[..]));
        let secure = Connection::connect(address, SECURE).await.unwrap();
        let options = DtlsOptions::new().pin(me.fingerprint());
        let secure = DtlsConnection::client(secure, &options).await.unwrap();
        assert_eq!(secure.recv().await.unwrap().as_deref(), Some(&b"protected"[..]));
        serving.await.unwrap();
    });
}
