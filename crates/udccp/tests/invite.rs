//! A server invites its client over the loopback interface (RFC 5596).

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{SERVICE, localhost, run};
use udccp::{Address, Endpoint, Error, Options, blocking};

const CLIENT_PORT: u16 = 50_001;
const SERVER_PORT: u16 = 5_001;

fn at(endpoint: &Endpoint, port: u16) -> Address {
    Address { udp: endpoint.local_addr(), port }
}

#[test]
fn a_client_that_comes_after_the_invitation_is_accepted() {
    run(async {
        let client = Endpoint::bind(localhost(false)).unwrap();
        let server = Endpoint::bind(localhost(false)).unwrap();
        let options = Options::default();
        let from = Options::default().local_port(CLIENT_PORT);
        let (to_server, to_client) = (at(&server, SERVER_PORT), at(&client, CLIENT_PORT));
        let connecting = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            client.connect(to_server, SERVICE, &from).await
        };
        let inviting = server.invite(SERVER_PORT, to_client, SERVICE, &options);
        let (connected, invited) = tokio::join!(connecting, inviting);
        let (connected, invited) = (connected.unwrap(), invited.unwrap());
        assert_eq!(invited.peer_addr(), connected.local_addr());
        invited.send("welcome").await.unwrap();
        assert_eq!(connected.recv().await.unwrap().as_deref(), Some(&b"welcome"[..]));
    });
}

#[test]
fn invite_sends_three_listens_and_ends_when_dropped() {
    run(async {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = Endpoint::bind(localhost(false)).unwrap();
        let peer = Address { udp: nobody.local_addr().unwrap(), port: CLIENT_PORT };
        let options = Options::default();
        let inviting = server.invite(SERVER_PORT, peer, SERVICE, &options);
        let mut inviting = std::pin::pin!(inviting);
        // However late a busy machine sends them. Then wait long enough for two more.
        let short = Duration::from_millis(20);
        while server.stats().listens_sent < 3 {
            assert!(tokio::time::timeout(short, &mut inviting).await.is_err(), "it waits");
        }
        let long = Duration::from_millis(400);
        assert!(tokio::time::timeout(long, &mut inviting).await.is_err(), "it waits");
        nobody.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut listens = 0;
        let mut buffer = [0; 100];
        while let Ok(len) = nobody.recv(&mut buffer) {
            assert_eq!((len, buffer[8] >> 1), (20, 10), "type 10, 20 bytes");
            listens += 1;
        }
        assert_eq!(listens, 3);
        assert_eq!(server.stats().listens_sent, 3);
    });
}

#[expect(clippy::disallowed_methods, reason = "blocking calls need two threads")]
#[test]
fn blocking_sockets_can_invite() {
    let client = blocking::Endpoint::bind(localhost(false)).unwrap();
    let server = blocking::Endpoint::bind(localhost(false)).unwrap();
    let to_server = Address { udp: server.local_addr(), port: SERVER_PORT };
    let to_client = Address { udp: client.local_addr(), port: CLIENT_PORT };
    let limit = Some(Duration::from_secs(60));
    let early = Some(Duration::from_millis(20));
    let none = server.invite(SERVER_PORT, to_client, SERVICE, &Options::default(), early);
    assert!(matches!(none, Err(Error::TimedOut)));
    let inviting = std::thread::spawn(move || {
        server.invite(SERVER_PORT, to_client, SERVICE, &Options::default(), limit).unwrap()
    });
    std::thread::sleep(Duration::from_millis(50));
    let from = Options::default().local_port(CLIENT_PORT);
    let connected = client.connect(to_server, SERVICE, &from, limit).unwrap();
    let invited = inviting.join().unwrap();
    connected.send("here").unwrap();
    assert_eq!(invited.recv().unwrap().as_deref(), Some(&b"here"[..]));
}
