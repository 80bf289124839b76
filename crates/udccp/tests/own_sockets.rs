//! Sockets provided by the caller, options of the underlying socket, and hosts by name.

#![expect(clippy::disallowed_methods, reason = "a test of sockets waits and has threads")]

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use common::{SERVICE, localhost, run};
use udccp::blocking::{self, Listener};
use udccp::{Address, Connection, Endpoint, EndpointOptions, Error, Options, ServiceCode};
use udccp_testkit::{Fate, Relay};

const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

#[test]
fn a_socket_of_the_caller_s_carries_connections() {
    let socket = UdpSocket::bind(localhost(false)).unwrap();
    let at = socket.local_addr().unwrap();
    let server = blocking::Endpoint::from_socket(socket, &EndpointOptions::new()).unwrap();
    let listener = server.listen(7, [SERVICE], &Options::default()).unwrap();
    run(async {
        let socket = UdpSocket::bind(localhost(false)).unwrap();
        let client = Endpoint::from_socket(socket, &EndpointOptions::new()).unwrap();
        let peer = Address { udp: at, port: 7 };
        let client = client.connect(peer, SERVICE, &Options::default()).await.unwrap();
        client.send("hello").await.unwrap();
        assert_eq!(listener.accept().unwrap().recv().unwrap().unwrap(), "hello");
    });
}

#[test]
fn a_connected_socket_is_refused() {
    let socket = UdpSocket::bind(localhost(false)).unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    let e = blocking::Endpoint::from_socket(socket, &EndpointOptions::new()).unwrap_err();
    assert!(matches!(e, Error::Io { .. }), "{e}");
}

#[test]
#[cfg(unix)]
fn ports_are_shared_only_where_both_ask_for_it() {
    let sharing = EndpointOptions::new().reuse_port(true);
    let one = blocking::Endpoint::bind_with(localhost(false), &sharing).unwrap();
    let again = blocking::Endpoint::bind_with(one.local_addr(), &EndpointOptions::new());
    assert!(matches!(again, Err(Error::PortInUse { .. })));
    blocking::Endpoint::bind_with(one.local_addr(), &sharing).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_socket_stays_on_its_device() {
    let options = EndpointOptions::new().device("lo");
    let listener = Listener::bind(localhost(false), SERVICE).unwrap();
    let client = blocking::Endpoint::bind_with(localhost(false), &options).unwrap();
    client.connect(listener.local_addr(), SERVICE, &Options::default(), PATIENCE).unwrap();
    let missing = EndpointOptions::new().device("nosuchdev0");
    assert!(blocking::Endpoint::bind_with(localhost(false), &missing).is_err());
}

/// The byte of DSCP and ECN of the first packet that arrives.
#[cfg(target_os = "linux")]
fn first_tos(socket: &UdpSocket) -> u8 {
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
    use std::os::fd::AsRawFd;
    let mut bytes = [0; 2048];
    let mut pieces = [std::io::IoSliceMut::new(&mut bytes)];
    let mut control = nix::cmsg_space!([u8; 64]);
    let fd = socket.as_raw_fd();
    let got =
        recvmsg::<SockaddrStorage>(fd, &mut pieces, Some(&mut control), MsgFlags::empty()).unwrap();
    got.cmsgs()
        .unwrap()
        .find_map(|message| match message {
            ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
            ControlMessageOwned::Ipv6TClass(class) => Some(class as u8),
            _ => None,
        })
        .expect("it was asked for")
}

#[test]
#[cfg(target_os = "linux")]
fn packets_carry_the_dscp_over_ipv4_and_ipv6_and_data_arrives() {
    use nix::sys::socket::{setsockopt, sockopt};

    let voice = EndpointOptions::new().dscp(46);
    for v6 in [false, true] {
        let socket = UdpSocket::bind(localhost(v6)).unwrap();
        if v6 {
            setsockopt(&socket, sockopt::Ipv6RecvTClass, &true).unwrap();
        } else {
            setsockopt(&socket, sockopt::IpRecvTos, &true).unwrap();
        }
        let endpoint = blocking::Endpoint::bind_with(localhost(v6), &voice).unwrap();
        let to = socket.local_addr().unwrap();
        let _connecting = endpoint.start_connect(to, SERVICE, &Options::default()).unwrap();
        assert_eq!(first_tos(&socket) >> 2, 46);

        let listener = Listener::bind(localhost(v6), SERVICE).unwrap();
        let to = listener.local_addr();
        let client = endpoint.connect(to, SERVICE, &Options::default(), PATIENCE).unwrap();
        let server = listener.accept().unwrap();
        server.set_read_timeout(Some(Duration::from_secs(5)));
        client.send_batch((0..400).map(|n| common::numbered(n, 1000))).unwrap();
        for n in 0..400 {
            assert_eq!(common::number_of(&server.recv().unwrap().unwrap()), n);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_dual_stack_socket_marks_ipv4_too() {
    let voice = EndpointOptions::new().dscp(46);
    let Ok(endpoint) = blocking::Endpoint::bind_with("[::]:0".parse().unwrap(), &voice) else {
        return;
    };
    let listener = Listener::bind(localhost(false), SERVICE).unwrap();
    let to = listener.local_addr();
    let client = endpoint.connect(to, SERVICE, &Options::default(), PATIENCE).unwrap();
    client.send("hello").unwrap();
    assert_eq!(listener.accept().unwrap().recv().unwrap().unwrap(), "hello");
}

#[test]
#[cfg(target_os = "linux")]
fn silent_addresses_delay_by_250_ms_and_refusing_ones_not() {
    let silent = UdpSocket::bind(localhost(false)).unwrap();
    let refusing = UdpSocket::bind(localhost(false)).unwrap().local_addr().unwrap();
    let listener = Listener::bind(localhost(false), SERVICE).unwrap();
    let live: Address = listener.local_addr().into();
    let addresses = [silent.local_addr().unwrap().into(), refusing.into(), live];
    let options = Options::default();

    let begun = Instant::now();
    let found = blocking::Connection::connect_any(&addresses, SERVICE, &options, PATIENCE).unwrap();
    assert_eq!(found.peer_addr(), live);
    // The silent address retransmits first after one second, and nothing waited for that.
    assert!(begun.elapsed() >= Duration::from_millis(240), "{:?}", begun.elapsed());
    run(async {
        let found = Connection::connect_any(&addresses, SERVICE, &options).await.unwrap();
        assert_eq!(found.peer_addr(), live);
    });

    let none = blocking::Connection::connect_any(&[refusing.into()], SERVICE, &options, PATIENCE);
    assert!(none.unwrap_err().is_refusal());
    let soon = Some(Duration::from_millis(20));
    let late = blocking::Connection::connect_any(&addresses[..1], SERVICE, &options, soon);
    assert!(matches!(late, Err(Error::TimedOut)));
}

/// Each takes 200 ms to refuse, which is sooner than the next would be tried.
#[test]
#[cfg(target_os = "linux")]
fn refusing_addresses_do_not_extend_the_timeout() {
    let refusing = Listener::bind(localhost(false), ServiceCode(1)).unwrap();
    run(async {
        let mut relays = Vec::new();
        for _ in 0..8 {
            let late = |_, _: &mut Vec<u8>| Fate::Late(Duration::from_millis(100));
            relays.push(Relay::start(refusing.local_addr(), late).await);
        }
        let at = |relay: &Relay| Address::from(SocketAddr::from(([127, 0, 0, 1], relay.port)));
        let addresses: Vec<Address> = relays.iter().map(at).collect();
        let tried = tokio::task::spawn_blocking(move || {
            let time = Some(Duration::from_millis(300));
            blocking::Connection::connect_any(&addresses, SERVICE, &Options::default(), time)
        });
        let error = tried.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::TimedOut), "{error}");
    });
}

#[test]
fn hosts_are_found_by_name() {
    let listener = Listener::bind(localhost(false), SERVICE).unwrap();
    let host = format!("localhost:{}", listener.port());
    let options = Options::default();
    blocking::Connection::connect_host(&host, SERVICE, &options, PATIENCE).unwrap();
    run(async {
        Connection::connect_host(&host, SERVICE, &options).await.unwrap();
        let nowhere = Connection::connect_host("no port", SERVICE, &options).await;
        assert!(matches!(nowhere, Err(Error::Io { .. })));
    });
}
