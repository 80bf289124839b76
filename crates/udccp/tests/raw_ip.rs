//! DCCP as IP protocol 33, on hosts in network namespaces.

#![cfg(target_os = "linux")]

mod common;
mod namespace;

use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;
use std::time::Duration;

use common::without_timeouts;
use namespace::{Host, Network, has, inside, output, skip};
use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{
    Address, AnswerForHost, ConnectionEvent, EndpointOptions, Error, Options, ServiceCode,
};

const SERVICE: ServiceCode = ServiceCode(0x7465_7374);
const PORT: u16 = 5004;
/// Time limit, so that a test that hangs fails.
const LIMIT: Option<Duration> = Some(Duration::from_secs(20));

fn raw() -> EndpointOptions {
    EndpointOptions::new().raw_ip(true)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn any(v6: bool) -> SocketAddr {
    SocketAddr::new(ip(if v6 { "::" } else { "0.0.0.0" }), 0)
}

fn endpoint(v6: bool) -> Endpoint {
    Endpoint::bind_with(any(v6), &raw()).unwrap()
}

fn connect(to: &str, port: u16, options: &Options) -> Result<Connection, Error> {
    let to = ip(to);
    let endpoint = Endpoint::bind_with(any(to.is_ipv6()), &raw())?;
    endpoint.connect(Address::raw(to, port), SERVICE, options, LIMIT)
}

/// Fails fast: two Requests, 200 ms apart.
fn impatient() -> Options {
    Options::default().initial_rto(Duration::from_millis(200)).request_retries(1)
}

/// A server that sends every message back, until its connection ends.
fn echo(listener: &Listener) {
    let connection = listener.accept_within(LIMIT).unwrap();
    connection.set_read_timeout(LIMIT);
    while let Ok(Some(message)) = connection.recv() {
        connection.send(message).unwrap();
    }
}

#[test]
fn messages_keep_their_boundaries_between_hosts() {
    if !inside("messages_keep_their_boundaries_between_hosts") {
        return;
    }
    let net = Network::new();
    for (v6, server) in [(false, "10.2.0.1"), (true, "fd02::1")] {
        let (tell, listening) = mpsc::channel();
        let served = net.server.start(move || {
            let listener = endpoint(v6).listen(PORT, [SERVICE], &Options::default()).unwrap();
            assert_eq!(listener.local_addr(), SocketAddr::new(any(v6).ip(), PORT));
            tell.send(()).unwrap();
            echo(&listener);
        });
        listening.recv().unwrap();
        net.client.on(move || {
            // The address selects raw IP.
            let peer: Address = SocketAddr::new(ip(server), PORT).into();
            let peer: Address = format!("{peer}/raw").parse().unwrap();
            let client = Connection::connect_with(peer, SERVICE, &without_timeouts(), LIMIT);
            let client = client.unwrap();
            client.set_read_timeout(LIMIT);
            assert_eq!(client.peer_addr(), peer);
            assert_eq!(client.local_addr().ip(), ip(if v6 { "fd01::1" } else { "10.1.0.1" }));
            for len in [1, 2, 500, client.max_message_size()] {
                client.send(vec![7; len]).unwrap();
                assert_eq!(client.recv().unwrap().unwrap(), vec![7; len]);
            }
            let stats = client.stats().unwrap();
            assert_eq!(stats.counters.data_packets_lost, 0);
            client.close().unwrap();
        });
        served.recv().unwrap();
    }
}

#[test]
fn a_batch_arrives_whole_and_in_order() {
    if !inside("a_batch_arrives_whole_and_in_order") {
        return;
    }
    const COUNT: u32 = 50_000;
    // Large enough that a reader delayed by a busy machine loses nothing.
    let roomy = Options::default().recv_queue(COUNT as usize * 1400, COUNT as usize);
    for address in ["127.0.0.1", "::1"] {
        let listener = endpoint(ip(address).is_ipv6()).listen(PORT, [SERVICE], &roomy).unwrap();
        let client = connect(address, PORT, &Options::default()).unwrap();
        let server = listener.accept_within(LIMIT).unwrap();
        let sending = std::thread::scope(|scope| {
            scope.spawn(|| {
                let messages = (0..COUNT).map(|n| {
                    let mut message = n.to_be_bytes().to_vec();
                    message.resize(4 + (n % 1300) as usize, n as u8);
                    message
                });
                client.send_batch(messages).unwrap();
                client.close().unwrap();
            });
            let (mut batch, mut next) = (Vec::new(), 0);
            while server.recv_batch(&mut batch, 256).unwrap() > 0 {
                for message in batch.drain(..) {
                    assert_eq!(message[..4], u32::to_be_bytes(next));
                    assert_eq!(message.len(), 4 + (next % 1300) as usize);
                    next += 1;
                }
            }
            next
        });
        assert_eq!(sending, COUNT);
    }
}

#[test]
fn a_router_that_runs_out_of_hops_or_routes_ends_the_handshake() {
    if !inside("a_router_that_runs_out_of_hops_or_routes_ends_the_handshake") {
        return;
    }
    let net = Network::new();
    for (server, nowhere) in [("10.2.0.1", "10.3.0.1"), ("fd02::1", "fd03::1")] {
        net.client.on(move || {
            let one_hop = Endpoint::bind_with(any(ip(server).is_ipv6()), &raw().ttl(1)).unwrap();
            let peer = Address::raw(ip(server), PORT);
            let e = one_hop.connect(peer, SERVICE, &Options::default(), LIMIT).unwrap_err();
            assert!(matches!(e, Error::Unreachable { .. }), "time exceeded: {e}");
            let e = connect(nowhere, PORT, &Options::default()).unwrap_err();
            assert!(matches!(e, Error::Unreachable { .. }), "no route: {e}");
            assert!(e.to_string().contains("protocol 33"), "{e}");
        });
    }
}

#[test]
fn a_host_without_dccp_says_so_unless_a_raw_socket_is_open() {
    if !inside("a_host_without_dccp_says_so_unless_a_raw_socket_is_open") {
        return;
    }
    let net = Network::new();
    for (v6, server) in [(false, "10.2.0.1"), (true, "fd02::1")] {
        let e = net.client.on(move || connect(server, PORT, &Options::default()).unwrap_err());
        assert!(matches!(e, Error::PortClosed { .. }), "{e}");
        // This endpoint only connects, so it does not answer, and the kernel no longer does.
        let open = net.server.on(move || endpoint(v6));
        let e = net.client.on(move || connect(server, PORT, &impatient()).unwrap_err());
        assert!(matches!(e, Error::NoAnswer { .. }), "{e}");
        drop(open);
    }
}

#[test]
fn invalid_raw_settings_are_rejected_by_name() {
    if !inside("invalid_raw_settings_are_rejected_by_name") {
        return;
    }
    let net = Network::new();
    for (v6, server) in [(false, "10.2.0.1"), (true, "fd02::1")] {
        let other = ServiceCode(1);
        let _listeners = net.server.on(move || {
            let first = endpoint(v6).listen(PORT, [other], &Options::default()).unwrap();
            // Another program listens too. One of them answers for the host.
            let second = endpoint(v6).listen(0, [other], &Options::default()).unwrap();
            assert_ne!(second.port(), 0);
            (first, second)
        });
        net.client.on(move || {
            let e = connect(server, PORT, &Options::default()).unwrap_err();
            assert!(matches!(e, Error::BadServiceCode { .. }), "{e}");
            let e = connect(server, 7, &Options::default()).unwrap_err();
            assert!(matches!(e, Error::Refused { .. }), "{e}");
        });
    }
}

#[test]
fn host_answers_without_a_listener_if_configured() {
    if !inside("host_answers_without_a_listener_if_configured") {
        return;
    }
    for (v6, host) in [(false, "127.0.0.1"), (true, "::1")] {
        let e = connect(host, PORT, &impatient()).unwrap_err();
        assert!(matches!(e, Error::NoAnswer { .. }), "{e}");
        let options = raw().answer_for_host(AnswerForHost::WhileOpen);
        let _host = Endpoint::bind_with(any(v6), &options).unwrap();
        let e = connect(host, PORT, &Options::default()).unwrap_err();
        assert!(matches!(e, Error::Refused { .. }), "{e}");
    }
}

#[test]
fn a_narrow_link_makes_messages_smaller() {
    if !inside("a_narrow_link_makes_messages_smaller") {
        return;
    }
    let net = Network::new();
    net.router.set_mtu("right", 1300);
    net.server.set_mtu("eth0", 1300);
    for (v6, server) in [(false, "10.2.0.1"), (true, "fd02::1")] {
        let (tell, listening) = mpsc::channel();
        let served = net.server.start(move || {
            let listener = endpoint(v6).listen(PORT, [SERVICE], &Options::default()).unwrap();
            tell.send(()).unwrap();
            echo(&listener);
        });
        listening.recv().unwrap();
        net.client.on(move || {
            // Without probes: the router's report is used.
            let options = Options::default().pmtu_probing(None);
            let client = connect(server, PORT, &options).unwrap();
            let large = client.max_message_size();
            assert!(large > 1380, "{large}");
            client.send(vec![1; large]).unwrap();
            let event = client.event(LIMIT).unwrap();
            let Some(ConnectionEvent::MaxMessageSize { bytes }) = event else {
                panic!("{event:?}")
            };
            assert!((1200..1300).contains(&bytes), "{bytes}");
            let client = client;
            client.set_read_timeout(LIMIT);
            client.send(vec![2; bytes]).unwrap();
            assert_eq!(client.recv().unwrap().unwrap(), vec![2; bytes]);
            client.close().unwrap();
        });
        served.recv().unwrap();
    }
}

#[test]
fn raw_sockets_of_one_host_do_not_disturb_each_other() {
    if !inside("raw_sockets_of_one_host_do_not_disturb_each_other") {
        return;
    }
    let listener = endpoint(false).listen(PORT, [SERVICE], &Options::default()).unwrap();
    let e = endpoint(false).listen(PORT, [ServiceCode(9)], &Options::default()).unwrap_err();
    assert!(matches!(e, Error::DccpPortInUse { port: PORT }), "{e}");
    // A second program that listens, and many that connect, each with its own socket.
    let bystander = endpoint(false).listen(PORT + 1, [SERVICE], &Options::default()).unwrap();
    let pairs: Vec<_> = (0..20)
        .map(|_| {
            let client = connect("127.0.0.1", PORT, &Options::default()).unwrap();
            (client, listener.accept_within(LIMIT).unwrap())
        })
        .collect();
    let mut ports: Vec<u16> = pairs.iter().map(|(client, _)| client.local_addr().port).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 20, "each has a port of its own");
    for (client, server) in &pairs {
        for n in 0..50_u8 {
            client.send(vec![n; 100]).unwrap();
            assert_eq!(server.recv().unwrap().unwrap(), vec![n; 100]);
        }
    }
    for (client, server) in pairs {
        client.close().unwrap();
        assert_eq!(server.recv().unwrap(), None);
    }
    drop(bystander);
}

#[test]
fn one_endpoint_uses_a_port_again_towards_other_peers() {
    if !inside("one_endpoint_uses_a_port_again_towards_other_peers") {
        return;
    }
    let options = Options::default();
    let listeners =
        [PORT, PORT + 1].map(|p| endpoint(false).listen(p, [SERVICE], &options).unwrap());
    let client = endpoint(false);
    let connections: Vec<_> = [PORT, PORT, PORT + 1]
        .map(|port| client.connect(Address::raw(ip("127.0.0.1"), port), SERVICE, &options, LIMIT))
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let [a, b, c] = [0, 1, 2].map(|i: usize| connections[i].local_addr().port);
    assert_ne!(a, b);
    assert_eq!(a, c, "another peer");
    drop(listeners);
}

#[test]
fn client_can_reconnect_at_once_after_abort() {
    if !inside("client_can_reconnect_at_once_after_abort") {
        return;
    }
    let options = Options::default();
    let listener = endpoint(false).listen(PORT, [SERVICE], &options).unwrap();
    let client = endpoint(false);
    for round in 0..10 {
        let peer = Address::raw(ip("127.0.0.1"), PORT);
        let connected = client.connect(peer, SERVICE, &options, LIMIT);
        let connected = connected.unwrap_or_else(|e| panic!("round {round}: {e}"));
        let server = listener.accept_within(LIMIT).unwrap();
        connected.abort();
        // The server received the Reset, and holds the ports in TIMEWAIT.
        assert!(matches!(server.closed(LIMIT), Err(Error::Lost(_))));
    }
}

#[test]
fn an_address_over_udp_and_one_over_raw_ip_do_not_meet() {
    if !inside("an_address_over_udp_and_one_over_raw_ip_do_not_meet") {
        return;
    }
    let udp = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let peer = Address::raw(ip("127.0.0.1"), PORT);
    let e = udp.connect(peer, SERVICE, &Options::default(), LIMIT).unwrap_err();
    assert!(matches!(e, Error::Connect(_)), "{e}");
    let listener = endpoint(false).listen(PORT, [SERVICE], &Options::default()).unwrap();
    // The same number as a UDP port is a different port.
    let e = Connection::connect((ip("127.0.0.1"), listener.port()), SERVICE).unwrap_err();
    assert!(matches!(e, Error::PortClosed { .. }), "{e}");
    let mut over_udp = peer;
    over_udp.udp.set_port(PORT);
    endpoint(false).connect(over_udp, SERVICE, &Options::default(), LIMIT).expect("no UDP here");
}

#[test]
fn a_port_is_free_as_soon_as_its_user_was_dropped() {
    if !inside("a_port_is_free_as_soon_as_its_user_was_dropped") {
        return;
    }
    for round in 0..50 {
        let listener = endpoint(false).listen(PORT, [SERVICE], &Options::default());
        let listener = listener.unwrap_or_else(|e| panic!("round {round}: {e}"));
        if round % 2 > 0 {
            let client = connect("127.0.0.1", PORT, &Options::default()).unwrap();
            let server = listener.accept_within(LIMIT).unwrap();
            client.close().unwrap();
            server.closed(LIMIT).unwrap();
        }
    }
}

#[test]
fn port_stays_claimed_until_a_dropped_connection_is_flushed() {
    if !inside("port_stays_claimed_until_a_dropped_connection_is_flushed") {
        return;
    }
    let slow = Options::default().recv_queue(1 << 20, 32);
    let listener = endpoint(false).listen(PORT, [SERVICE], &slow).unwrap();
    let options = Options::default().close_linger(Duration::from_secs(20));
    let client = connect("127.0.0.1", PORT, &options).unwrap();
    let port = client.local_addr().port;
    client.send_batch((0..500).map(|_| vec![0; 1000])).unwrap();
    drop(client);
    // Nobody reads yet, so most of them wait.
    let e = endpoint(false).listen(port, [SERVICE], &Options::default()).unwrap_err();
    assert!(matches!(e, Error::DccpPortInUse { .. }), "{e}");
    let server = listener.accept_within(LIMIT).unwrap();
    server.set_read_timeout(LIMIT);
    let got = std::iter::from_fn(|| server.recv().unwrap()).count();
    assert!(got > 300, "acknowledgements still reach the port: {got}");
}

#[test]
fn marks_of_congestion_are_sent_and_seen() {
    if !inside("marks_of_congestion_are_sent_and_seen") {
        return;
    }
    for address in ["127.0.0.1", "::1"] {
        let v6 = ip(address).is_ipv6();
        let listener = endpoint(v6).listen(PORT, [SERVICE], &Options::default()).unwrap();
        // The sender marks every second data packet itself, and each mark has to be reported.
        let options = Options::default().ecn_probe(std::num::NonZeroU32::new(1));
        let client = connect(address, PORT, &options).unwrap();
        let server = listener.accept_within(LIMIT).unwrap();
        for n in 0..200_u8 {
            client.send(vec![n; 100]).unwrap();
            assert_eq!(server.recv().unwrap().unwrap(), vec![n; 100]);
        }
        let counters = server.stats().unwrap().counters;
        assert!(counters.ecn_ce_received > 0, "marked packets arrive marked");
    }
}

/// Needs the Debian package traceroute. It prints an address as soon as the target answers.
#[test]
fn traceroute_gets_its_answer_from_a_listener() {
    if !inside("traceroute_gets_its_answer_from_a_listener") {
        return;
    }
    if !has("traceroute") {
        return skip("traceroute -D: no such program (Debian package traceroute)");
    }
    let net = Network::new();
    for (v6, router, server) in [(false, "10.1.0.9", "10.2.0.1"), (true, "fd01::9", "fd02::1")] {
        let _listener = net
            .server
            .on(move || endpoint(v6).listen(PORT, [SERVICE], &Options::default()).unwrap());
        for port in ["33434", "5004"] {
            let family = if v6 { "-6" } else { "-4" };
            let args = [family, "-n", "-D", "-p", port, "-m", "4", "-q", "2", server];
            let (says, fails) = net.client.on(move || output("traceroute", &args));
            if fails.contains("Socket type not supported") {
                return skip("traceroute -D: it needs a kernel with DCCP on its own side");
            }
            let hops: Vec<&str> = says.lines().skip(1).collect();
            assert_eq!(hops.len(), 2, "{says}");
            assert!(hops[0].contains(router) && hops[1].contains(server), "{says}");
        }
    }
}

/// If a lossy path lost a request for a hardware address, the host would count as unreachable.
#[test]
fn hosts_send_no_arp_requests() {
    if !inside("hosts_send_no_arp_requests") {
        return;
    }
    if !has("ip") {
        return skip("neighbours: there is no `ip`");
    }
    let network = Network::new();
    for (host, neighbours) in [(&network.client, 2), (&network.router, 4), (&network.server, 2)] {
        let (known, _) = host.on(|| output("ip", &["neighbour"]));
        let for_good = known.lines().filter(|line| line.trim_end().ends_with("PERMANENT"));
        assert_eq!(for_good.count(), neighbours, "{known}");
    }
}

#[test]
fn a_missing_permission_is_reported_with_advice() {
    let attempt = Endpoint::bind_with(any(false), &raw());
    let Err(e) = attempt else { return };
    assert!(matches!(e, Error::RawDenied), "{e}");
    assert!(e.advice().contains("setcap cap_net_raw+ep"), "{}", e.advice());
}

#[test]
fn threads_of_a_host_keep_their_namespaces() {
    if !inside("threads_of_a_host_keep_their_namespaces") {
        return;
    }
    let (a, b) = (Host::new(), Host::new());
    for host in [&a, &b] {
        host.on(|| {
            // The same port on two hosts, because names are per network namespace.
            let listener = endpoint(false).listen(PORT, [SERVICE], &Options::default()).unwrap();
            let client = connect("127.0.0.1", PORT, &Options::default()).unwrap();
            drop((listener, client));
        });
    }
}
