//! Special addresses: of hosts with several interfaces, link-local ones, IPv4 mapped into IPv6, and
//! unspecified ones.

#![cfg(target_os = "linux")]

mod namespace;

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::mpsc;
use std::time::Duration;

use namespace::{Host, Network, has, inside, output, skip};
use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{Address, ConnectionEvent, EndpointOptions, Error, Options, ServiceCode};

const SERVICE: ServiceCode = ServiceCode(0x7465_7374);
const PORT: u16 = 5004;
/// Time limit, so that a test that hangs fails.
const LIMIT: Option<Duration> = Some(Duration::from_secs(20));

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Over raw IP or UDP.
fn below(is_raw: bool) -> EndpointOptions {
    EndpointOptions::new().raw_ip(is_raw)
}

/// A service at an address. Over raw IP its UDP port is ignored.
fn service(is_raw: bool, ip: SocketAddr) -> Address {
    let udp_port = if is_raw { 0 } else { PORT };
    Address { udp: ip, port: PORT }.over_udp_port(udp_port)
}

fn listen(is_raw: bool, mut local: SocketAddr) -> Listener {
    local.set_port(PORT);
    let endpoint = Endpoint::bind_with(local, &below(is_raw)).unwrap();
    endpoint.listen(PORT, [SERVICE], &Options::default().pmtu_probing(None)).unwrap()
}

fn connect(from: SocketAddr, to: Address) -> Result<Connection, Error> {
    let endpoint = Endpoint::bind_with(from, &below(to.is_raw()))?;
    endpoint.connect(to, SERVICE, &Options::default(), LIMIT)
}

/// Exchanges a message and its answer.
fn exchange(client: &Connection, listener: &Listener) -> Connection {
    let server = listener.accept_within(LIMIT).unwrap();
    for end in [client, &server] {
        end.set_read_timeout(LIMIT);
    }
    client.send("question").unwrap();
    assert_eq!(server.recv().unwrap().unwrap(), "question");
    server.send("answer").unwrap();
    assert_eq!(client.recv().unwrap().unwrap(), "answer");
    server
}

/// Closes both sides, so that the port is free.
fn close(client: &Connection, server: &Connection) {
    client.close().unwrap();
    server.closed(LIMIT).unwrap();
}

#[test]
fn unreachable_route_is_reported_with_address_and_errno() {
    if !inside("unreachable_route_is_reported_with_address_and_errno") {
        return;
    }
    if !has("ip") {
        return skip("routes that lead nowhere: there is no program `ip`");
    }
    let kinds = ["unreachable", "prohibit", "blackhole", "throw"];
    for (n, kind) in kinds.into_iter().enumerate() {
        for network in [format!("198.51.{n}.0/24"), format!("2001:db8:{n}::/64")] {
            let (_, refused) = output("ip", &["route", "add", kind, &network]);
            assert_eq!(refused, "");
        }
        for ip in [format!("198.51.{n}.9"), format!("2001:db8:{n}::9")] {
            let to = SocketAddr::new(ip.parse().unwrap(), PORT);
            let ip = to.ip().to_string();
            let tcp = std::net::TcpStream::connect(to).unwrap_err();
            for is_raw in [false, true] {
                let from = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let e = connect(at(from), service(is_raw, to)).unwrap_err();
                let text = format!("{e}; {}", e.advice());
                assert!(text.contains(&ip) && text.contains("route"), "{kind}: {text}");
                let same = matches!(e, Error::Unreachable { .. }) == (n == 0 || n == 3);
                assert!(same, "{kind}: {e:?}");
                if n != 3 {
                    assert_eq!(Some(e.errno()), tcp.raw_os_error(), "{kind}: {text}");
                }
                let text = std::io::Error::from(e).to_string();
                assert!(text.contains(&ip), "{text}");
            }
        }
    }
}

#[test]
fn an_address_of_ipv4_in_ipv6_is_one_of_ipv4() {
    let listener = Listener::bind(at("127.0.0.1:0"), SERVICE).unwrap();
    let port = listener.local_addr().port();
    let mapped = at(&format!("[::ffff:127.0.0.1]:{port}"));
    for from in ["[::]:0", "0.0.0.0:0", "[::ffff:127.0.0.1]:0"] {
        let client = connect(at(from), mapped.into()).unwrap();
        assert_eq!(client.peer_addr().udp, listener.local_addr(), "from {from}");
        exchange(&client, &listener);
    }
    let client = Connection::connect(mapped, SERVICE).unwrap();
    exchange(&client, &listener);
    let mapped = Listener::bind(at("[::ffff:127.0.0.1]:0"), SERVICE).unwrap();
    exchange(&Connection::connect(mapped.local_addr(), SERVICE).unwrap(), &mapped);
}

#[test]
fn a_listener_for_one_address_may_name_it_as_one_of_ipv6() {
    let endpoint = Endpoint::bind(at("[::]:0")).unwrap();
    let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
    let options = Options::default().local_ip(mapped);
    let listener = endpoint.listen(PORT, [SERVICE], &options).unwrap();
    let udp = SocketAddr::new("127.0.0.1".parse().unwrap(), endpoint.local_addr().port());
    let client = connect(at("127.0.0.1:0"), Address { udp, port: PORT }).unwrap();
    exchange(&client, &listener);
}

#[test]
fn unspecified_address_means_this_host() {
    for any in ["0.0.0.0:0", "[::]:0"] {
        let listener = Listener::bind(at(any), SERVICE).unwrap();
        let client = Connection::connect(listener.local_addr(), SERVICE).unwrap();
        assert!(client.peer_addr().ip().is_loopback());
        exchange(&client, &listener);
    }
}

/// A regression: with one number for both ports, 0 meant raw IP: nobody answered, or it was not
/// permitted.
#[test]
fn port_0_is_not_served() {
    let peer = Address::from(at("127.0.0.1:0"));
    let options = Options::default();
    let refused = [
        Connection::connect_with(peer, SERVICE, &options, LIMIT).err(),
        Connection::connect_host("127.0.0.1:0", SERVICE, &options, LIMIT).err(),
        Connection::start_connect(peer, SERVICE, &options).err(),
        connect_over_udp(peer).err(),
    ];
    for e in refused {
        assert!(matches!(e, Some(Error::Refused { .. })), "{e:?}");
        let text = e.map(|e| e.to_string()).unwrap_or_default();
        assert!(text.starts_with("connection refused: nothing serves DCCP port 0 at "), "{text}");
        assert!(!text.contains("raw"), "{text}");
    }
    let e = Connection::connect_host("127.0.0.1:5004/0", SERVICE, &options, LIMIT).unwrap_err();
    assert!(e.to_string().contains("is not a DCCP address"), "{e}");
}

/// A regression: a listener on DCCP port 0 was possible, but none of its addresses reached it.
#[test]
fn a_listener_of_any_port_has_that_of_its_socket() {
    let endpoint = Endpoint::bind(at("127.0.0.1:0")).unwrap();
    let listener = endpoint.listen(0, [SERVICE], &Options::default()).unwrap();
    assert_eq!(listener.port(), endpoint.local_addr().port());
    exchange(&connect_over_udp(listener.local_addr().into()).unwrap(), &listener);
}

fn connect_over_udp(to: Address) -> Result<Connection, Error> {
    Endpoint::bind(at("127.0.0.1:0"))?.connect(to, SERVICE, &Options::default(), LIMIT)
}

#[test]
fn only_an_address_of_a_link_needs_the_link() {
    let listener = Listener::bind(at("[::1]:0"), SERVICE).unwrap();
    let (ip, port) = ("::1".parse().unwrap(), listener.local_addr().port());
    let peer = SocketAddr::from(SocketAddrV6::new(ip, port, 0, 1));
    let client = connect(at("[::]:0"), peer.into()).unwrap();
    exchange(&client, &listener);
}

#[test]
fn hosts_talk_over_addresses_of_their_link() {
    if !inside("hosts_talk_over_addresses_of_their_link") {
        return;
    }
    let (left, right) = (Host::new(), Host::new());
    left.join("left", &right, "right");
    let (here, there) = (left.link_local("left"), right.link_local("right"));
    // The peer's address, on our link.
    let on_link = |of: SocketAddrV6, link: SocketAddrV6| -> SocketAddr {
        SocketAddrV6::new(*of.ip(), 0, 0, link.scope_id()).into()
    };
    for is_raw in [false, true] {
        for (to, from) in [(there.into(), here.into()), (at("[::]:0"), at("[::]:0"))] {
            let listener = right.on(move || listen(is_raw, to));
            let peer = service(is_raw, on_link(there, here));
            let client = left.on(move || connect(from, peer).unwrap());
            let server = exchange(&client, &listener);
            assert_eq!(server.peer_addr().ip(), IpAddr::V6(*here.ip()));
            close(&client, &server);
        }
        // An endpoint bound to a link-local address knows the link.
        let listener = right.on(move || listen(is_raw, at("[::]:0")));
        let peer = service(is_raw, SocketAddrV6::new(*there.ip(), 0, 0, 0).into());
        let client = left.on(move || connect(here.into(), peer).unwrap());
        let server = exchange(&client, &listener);
        close(&client, &server);
    }
    let peer = Address { udp: on_link(there, here), port: 9 }.over_udp_port(9);
    let e = left.on(move || connect(at("[::]:0"), peer).unwrap_err());
    assert!(matches!(e, Error::PortClosed { .. }), "{e}");
}

#[test]
fn multihomed_host_answers_and_learns_path_mtu_at_each_address() {
    if !inside("multihomed_host_answers_and_learns_path_mtu_at_each_address") {
        return;
    }
    let (v4, v6) = ("0.0.0.0:0", "[::]:0");
    let asked = [("10.2.0.1:0", v4), ("10.2.0.7:0", v4), ("10.2.0.7:0", v6)];
    for (asked, any) in asked.into_iter().chain([("[fd02::1]:0", v6), ("[fd02::7]:0", v6)]) {
        for is_raw in [false, true] {
            let (asked, any) = (at(asked), at(any));
            if is_raw && asked.is_ipv4() != any.is_ipv4() {
                // Such a socket has a single IP version.
                continue;
            }
            // A host caches the MTU of a path, so each case has a new network.
            let net = Network::new();
            net.router.set_mtu("left", 1300);
            net.client.set_mtu("eth0", 1300);
            for second in ["10.2.0.7", "fd02::7"] {
                net.server.add_address("eth0", second.parse().unwrap());
            }
            is_notified_of_a_narrow_link(&net, asked, any, is_raw);
        }
    }
}

/// A server that listens, and at the end sends the lengths of its messages.
fn lengths_that_arrive(net: &Network) -> mpsc::Receiver<Vec<usize>> {
    let (tell, listening) = mpsc::channel();
    let served = net.server.start(move || {
        let listener = listen(false, at("0.0.0.0:0"));
        tell.send(()).unwrap();
        let server = listener.accept_within(LIMIT).unwrap();
        server.set_read_timeout(LIMIT);
        let all = std::iter::from_fn(|| server.recv().unwrap());
        all.map(|message| message.len()).collect::<Vec<_>>()
    });
    listening.recv().unwrap();
    served
}

/// The MTU of the client's own interface decreases, even below 576 bytes, which no router's report
/// can cause.
#[test]
fn lower_interface_mtu_is_applied() {
    if !inside("lower_interface_mtu_is_applied") {
        return;
    }
    for (mtu, tells) in [(1000, true), (1000, false), (400, true), (400, false)] {
        let net = Network::new();
        let served = lengths_that_arrive(&net);
        let options = Options::default().pmtu_probing(None);
        let client = net.client.on(move || {
            let peer = service(false, at("10.2.0.1:0"));
            Connection::connect_with(peer, SERVICE, &options, LIMIT).unwrap()
        });
        assert!(client.max_message_size() > 1400);
        net.client.set_mtu("eth0", mtu);
        let most = net.client.on(move || {
            if tells {
                client.path_changed();
            } else {
                client.send(vec![0; 1400]).unwrap();
                let event = client.event(LIMIT);
                assert!(matches!(event, Ok(Some(ConnectionEvent::MaxMessageSize { .. }))));
            }
            let most = client.max_message_size();
            assert!((mtu - 100..mtu).contains(&(most as u32)), "{most} of {mtu}, {tells}");
            client.send(vec![1; most]).unwrap();
            client.close().unwrap();
            most
        });
        assert_eq!(served.recv().unwrap(), [most]);
    }
}

/// A client connects through an interface with a small MTU and moves to another one, or its own MTU
/// increases.
#[test]
fn higher_interface_mtu_is_used() {
    if !inside("higher_interface_mtu_is_used") {
        return;
    }
    let net = Network::new();
    let served = lengths_that_arrive(&net);
    net.client.set_mtu("eth0", 1300);
    let options = Options::default().pmtu_probing(None).path_mtu(1450);
    let client = net.client.on(move || {
        let peer = service(false, at("10.2.0.1:0"));
        Connection::connect_with(peer, SERVICE, &options, LIMIT).unwrap()
    });
    assert!((1200..1300).contains(&client.max_message_size()));
    net.client.set_mtu("eth0", 1500);
    let most = net.client.on(move || {
        client.path_changed();
        let most = client.max_message_size();
        // Never more than the settings allow.
        assert!((1350..1450).contains(&most), "{most}");
        client.send(vec![1; most]).unwrap();
        client.close().unwrap();
        most
    });
    assert_eq!(served.recv().unwrap(), [most]);
}

/// Without probes, only the router's report makes messages smaller.
fn is_notified_of_a_narrow_link(net: &Network, asked: SocketAddr, any: SocketAddr, is_raw: bool) {
    let (tell, listening) = mpsc::channel();
    let served = net.server.start(move || {
        let listener = listen(is_raw, any);
        tell.send(()).unwrap();
        let server = listener.accept_within(LIMIT).unwrap();
        assert_eq!(server.local_addr().ip(), asked.ip());
        let large = server.max_message_size();
        assert!(large > 1380, "{large}");
        server.send(vec![1; large]).unwrap();
        let event = server.event(LIMIT);
        let Ok(Some(ConnectionEvent::MaxMessageSize { bytes })) = event else {
            panic!("{asked}, raw IP {is_raw}: {event:?}")
        };
        assert!((1200..1300).contains(&bytes), "{bytes}");
        server.send(vec![2; bytes]).unwrap();
        let _ = server.closed(LIMIT);
        bytes
    });
    listening.recv().unwrap();
    let got = net.client.on(move || {
        let client = connect(any, service(is_raw, asked)).unwrap();
        assert_eq!(client.peer_addr().ip(), asked.ip());
        client.set_read_timeout(LIMIT);
        let got = client.recv().unwrap().unwrap();
        client.close().unwrap();
        got
    });
    assert_eq!(got, vec![2; served.recv().unwrap()]);
}
