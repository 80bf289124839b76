//! Settings that are zero, the smallest and the largest, and names and keys of any length: each is
//! refused at once with its reason, or a connection with it carries messages.

mod common;

use std::time::Duration;

use common::{dccp, echo, handshake, run};
use udccp::Options;
use udccp_dtls::{DtlsConnection, DtlsOptions, Error, Identity, Version};

/// Options of a client and a server that fit together.
fn fitting() -> [DtlsOptions; 2] {
    let identity = Identity::self_signed("server.example").unwrap();
    [DtlsOptions::new().pin(identity.fingerprint()), DtlsOptions::new().identity(identity)]
}

async fn meet([client, server]: [DtlsOptions; 2]) -> [Result<DtlsConnection, Error>; 2] {
    let (client, server) = handshake(dccp(&Options::default()).await, &client, &server).await;
    [client, server]
}

/// Both ends shake hands, and carry messages.
async fn serves(options: [DtlsOptions; 2]) {
    let [client, server] = meet(options).await;
    echo(&client.unwrap(), &server.unwrap()).await;
}

/// The settings are refused before anything is sent.
async fn refused(options: DtlsOptions, is_client: bool) -> String {
    let (client, server) = dccp(&Options::default()).await;
    let end = match is_client {
        true => DtlsConnection::client(client, &options).await,
        false => DtlsConnection::server(server, &options).await,
    };
    match end {
        Err(e @ (Error::Options(_) | Error::Identity(_))) => e.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Both ends refuse these.
async fn both_refuse(options: [DtlsOptions; 2]) -> String {
    let [client, server] = options;
    let error = refused(client, true).await;
    assert_eq!(refused(server, false).await, error);
    error
}

#[test]
fn times_of_a_nanosecond_and_without_end_are_served() {
    run(async {
        for time in [Duration::from_nanos(1), Duration::MAX] {
            serves(fitting().map(|options| options.flight_timeout(time))).await;
        }
        serves(fitting().map(|options| options.handshake_timeout(Duration::MAX))).await;
        let [client, _] = fitting().map(|o| o.handshake_timeout(Duration::from_nanos(1)));
        let (connection, _server) = dccp(&Options::default()).await;
        let ended = DtlsConnection::client(connection, &client).await;
        assert!(matches!(ended, Err(Error::HandshakeTimeout(_))), "{ended:?}");
    });
}

#[test]
fn times_of_zero_are_refused() {
    run(async {
        let zero = |set: fn(DtlsOptions, Duration) -> DtlsOptions| {
            both_refuse(fitting().map(|options| set(options, Duration::ZERO)))
        };
        let flight = zero(DtlsOptions::flight_timeout).await;
        assert_eq!(flight, "the timeout of a flight must be above zero");
        let handshake = zero(DtlsOptions::handshake_timeout).await;
        assert_eq!(handshake, "the timeout of the handshake must be above zero");
    });
}

#[test]
fn an_empty_range_of_versions_is_refused() {
    run(async {
        let none = fitting().map(|o| o.versions(Version::Dtls13..=Version::Dtls12));
        assert_eq!(both_refuse(none).await, "the range of versions is empty");
    });
}

fn shared_key(name: usize, key: usize) -> [DtlsOptions; 2] {
    [(); 2].map(|()| DtlsOptions::new().psk(vec![b'n'; name], vec![7; key]))
}

/// RFC 4279 section 2: the length of a key is two bytes. A name fits in 48 packets of 1100 bytes
/// with headers of 64 bytes.
#[test]
fn names_and_keys_of_every_length_with_a_place_on_the_wire_are_served() {
    run(async {
        for (name, key) in [(1, 1), (255, 16), (256, 256), (48 * 1036, 16), (4, 65_535)] {
            serves(shared_key(name, key)).await;
        }
    });
}

#[test]
fn names_and_keys_that_are_empty_or_too_long_are_refused() {
    run(async {
        let key = "a pre-shared key has 1 to 65535 bytes";
        assert_eq!(both_refuse(shared_key(4, 0)).await, key);
        assert_eq!(both_refuse(shared_key(4, 65_536)).await, key);
        let name = "the identity of a pre-shared key is longer than 48 packets of this path";
        assert_eq!(both_refuse(shared_key(48 * 1036 + 1, 16)).await, name);
        let [empty, _] = shared_key(0, 16);
        let error = refused(empty, true).await;
        assert_eq!(error, "a client has one pre-shared key with its identity");
    });
}

/// A name has 253 characters at most, and a dot at its end (RFC 1035 section 3.1).
#[test]
fn names_of_hosts_have_the_lengths_of_the_dns() {
    run(async {
        let named = |len: usize| Identity::self_signed(&"n".repeat(len));
        for len in [1, 64, 65, 253] {
            let identity = named(len).unwrap();
            let client = DtlsOptions::new().pin(identity.fingerprint());
            serves([client, DtlsOptions::new().identity(identity)]).await;
        }
        assert!(Identity::self_signed(&format!("{}.", "n".repeat(253))).is_ok());
        for len in [254, 255, 256, 100_000] {
            let Err(Error::Identity(why)) = named(len) else { panic!("{len} bytes") };
            assert!(why.ends_with("is longer than the 253 characters of a host name"), "{why}");
            assert!(why.len() < 200, "{why}");
        }
    });
}

/// A certificate for so many names of 250 bytes.
fn large(names: usize) -> Identity {
    let hosts = (0..names).map(|n| format!("{n:03}.{}", "n".repeat(240)));
    Identity::self_signed_for(hosts).unwrap()
}

/// It is served in DTLS 1.2 as long as its 48 packets can hold it.
#[test]
fn a_certificate_of_any_size_is_served_or_refused() {
    run(async {
        let dtls12 = |identity: &Identity| {
            let client = DtlsOptions::new().pin(identity.fingerprint());
            let server = DtlsOptions::new().identity(identity.clone());
            [client, server].map(|options| options.versions(Version::Dtls12..=Version::Dtls12))
        };
        let fits = |names: &usize| large(*names).certificate_der().len() <= 48 * 1036;
        let most = (150..250).rev().find(fits).expect("names");
        serves(dtls12(&large(most))).await;
        for names in [most + 1, 4000] {
            let [_, server] = dtls12(&large(names));
            let error = refused(server.clone(), false).await;
            assert!(error.contains("exceeds the 49728 that DTLS 1.2 carries"), "{error}");
            let server = server.versions(Version::Dtls12..=Version::Dtls13);
            let error = refused(server, false).await;
            assert!(error.contains("exceeds the 6216 that DTLS 1.3 carries"), "{error}");
            assert!(error.ends_with("DTLS 1.2 alone carries 49728"), "{error}");
        }
    });
}

/// A path whose packets have exactly the smallest size for a handshake is wide enough.
#[test]
fn a_handshake_needs_packets_of_256_bytes() {
    run(async {
        let probe = dccp(&Options::default().path_mtu(1000).pmtu_probing(None)).await;
        let headers = 1000 - probe.0.max_message_size();
        for (mps, fits) in [(257, true), (256, true), (255, false), (200, false)] {
            let mtu = (headers + mps) as u16;
            let narrow = Options::default().path_mtu(mtu).pmtu_probing(None);
            let ends = dccp(&narrow).await;
            assert_eq!(ends.0.max_message_size(), mps);
            let [client, server] = fitting();
            let (client, server) = handshake(ends, &client, &server).await;
            if fits {
                echo(&client.unwrap(), &server.unwrap()).await;
                continue;
            }
            for end in [client, server] {
                let Err(Error::PathTooNarrow { max_message_size, needed }) = end else {
                    panic!("{end:?}")
                };
                assert_eq!((max_message_size, needed), (mps, 256));
            }
        }
    });
}
