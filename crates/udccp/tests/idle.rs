//! Peers that vanish, and peers that have nothing to say, over sockets.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{SERVICE, listener, localhost, run};
use tokio::net::UdpSocket;
use udccp::{Address, CloseReason, Endpoint, Error, Options};

/// Hands datagrams to and fro between a server and the one client that calls it, as long as it is
/// up.
async fn relay(server: SocketAddr, is_up: Arc<AtomicBool>) -> SocketAddr {
    let inside = UdpSocket::bind(localhost(false)).await.unwrap();
    let outside = UdpSocket::bind(localhost(false)).await.unwrap();
    let at = inside.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut a, mut b) = (vec![0; 65_536], vec![0; 65_536]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((len, from)) = inside.recv_from(&mut a) => {
                    client = Some(from);
                    if is_up.load(Ordering::Relaxed) {
                        let _ = outside.send_to(&a[..len], server).await;
                    }
                }
                Ok((len, _)) = outside.recv_from(&mut b) => {
                    if let Some(client) = client.filter(|_| is_up.load(Ordering::Relaxed)) {
                        let _ = inside.send_to(&b[..len], client).await;
                    }
                }
            }
        }
    });
    at
}

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
        let is_up = Arc::new(AtomicBool::new(true));
        let at = relay(server.local_addr(), is_up.clone()).await;
        let peer = Address { udp: at, port: 5001 };
        let client = Endpoint::bind(localhost(false)).unwrap();
        let connection = client.connect(peer, SERVICE, &options).await.unwrap();
        let accepted = listener.accept().await.unwrap();
        // More than twice the limit without a word.
        tokio::time::sleep(Duration::from_secs(9)).await;
        connection.send("still here").await.unwrap();
        assert_eq!(accepted.recv().await.unwrap().as_deref(), Some(&b"still here"[..]));
        is_up.store(false, Ordering::Relaxed);
        let gone = accepted.recv().await.unwrap_err();
        assert!(matches!(gone, Error::Lost(CloseReason::PeerSilent)), "{gone}");
        assert!(gone.to_string().contains("the peer fell silent"), "{gone}");
        drop(accepted);
        server.wait_idle().await;
        assert_eq!(server.stats().connections, 0);
    });
}

#[test]
fn an_application_may_wait_for_ever_or_not_at_all() {
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
