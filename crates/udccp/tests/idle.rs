//! Peers that vanish, and peers that have nothing to send, over sockets.

mod common;

use std::time::Duration;

use common::{SERVICE, listener, localhost, run};
use udccp::{Address, CloseReason, Endpoint, Error, Options};
use udccp_testkit::{Relay, pass};

#[test]
fn the_defaults_ask_a_silent_peer_after_25_seconds_and_give_up_after_two_minutes() {
    let options = Options::default();
    let (keep_alive, idle_limit) =
        (options.protocol_config().keep_alive, options.protocol_config().idle_limit);
    assert_eq!(keep_alive.map(|d| d.as_secs_f64()), Some(25.0));
    assert_eq!(idle_limit.map(|d| d.as_secs_f64()), Some(120.0));
}

#[test]
fn an_idle_peer_is_kept_and_the_connection_of_a_vanished_one_is_freed_with_its_reason() {
    run(async {
        let options = Options::default()
            .keep_alive(Some(Duration::from_millis(500)))
            .idle_limit(Some(Duration::from_secs(4)));
        let server = Endpoint::bind(localhost(false)).unwrap();
        let listener = server.listen(5001, [SERVICE], &options).unwrap();
        let path = Relay::start(server.local_addr(), pass).await;
        let peer = Address { udp: path.addr(), port: 5001 };
        let client = Endpoint::bind(localhost(false)).unwrap();
        let connection = client.connect(peer, SERVICE, &options).await.unwrap();
        let accepted = listener.accept().await.unwrap();
        // More than twice the limit without data.
        tokio::time::sleep(Duration::from_secs(9)).await;
        connection.send("still here").await.unwrap();
        assert_eq!(accepted.recv().await.unwrap().as_deref(), Some(&b"still here"[..]));
        path.cut();
        let gone = accepted.recv().await.unwrap_err();
        assert!(matches!(gone, Error::Lost(CloseReason::PeerSilent)), "{gone}");
        assert!(gone.to_string().contains("the peer fell silent"), "{gone}");
        drop(accepted);
        server.wait_idle().await;
        assert_eq!(server.stats().connections, 0);
    });
}

#[test]
fn idle_limit_can_be_disabled_or_short() {
    run(async {
        let listener = listener(&Options::default());
        let options = Options::default().keep_alive(None).idle_limit(None);
        assert_eq!(
            (options.protocol_config().keep_alive, options.protocol_config().idle_limit),
            (None, None)
        );
        let late = Options::default().keep_alive(Some(Duration::from_secs(300)));
        let client = Endpoint::bind(localhost(false)).unwrap();
        let e = client.connect(listener.local_addr(), SERVICE, &late).await.unwrap_err();
        assert!(e.to_string().contains("idle limit of 120 s"), "{e}");
    });
}
