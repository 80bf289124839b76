//! The last message is lost: no later one tells of it.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{SERVICE, listener, localhost, run};
use tokio::net::UdpSocket;
use udccp::{Address, Endpoint, Options};

/// Passes datagrams between the first that speaks to it and `server`, while `open` is set.
async fn relay(socket: UdpSocket, server: SocketAddr, open: Arc<AtomicBool>) {
    let mut client = None;
    let mut datagram = vec![0; 65_536];
    loop {
        let Ok((len, from)) = socket.recv_from(&mut datagram).await else { return };
        let to = if from == server { client } else { Some(server) };
        if from != server {
            client = Some(from);
        }
        if let (Some(to), true) = (to, open.load(Ordering::Relaxed)) {
            let _ = socket.send_to(&datagram[..len], to).await;
        }
    }
}

#[test]
fn drained_ends_by_the_transmit_timer_where_the_last_message_is_lost() {
    run(async {
        let options = Options::default().ccid(2);
        let listener = listener(&options);
        let socket = UdpSocket::bind(localhost(false)).await.unwrap();
        let peer = Address { udp: socket.local_addr().unwrap(), port: listener.port() };
        let open = Arc::new(AtomicBool::new(true));
        tokio::spawn(relay(socket, listener.local_addr(), Arc::clone(&open)));
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let client = endpoint.connect(peer, SERVICE, &options).await.unwrap();
        client.send("arrives").await.unwrap();
        client.drained().await.unwrap();
        open.store(false, Ordering::Relaxed);
        client.send("is lost").await.unwrap();
        let drained = tokio::time::timeout(Duration::from_secs(30), client.drained()).await;
        drained.expect("the timer judges it lost").unwrap();
        assert_eq!(client.stats().unwrap().counters.data_packets_acked, 1);
    });
}
