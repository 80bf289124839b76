//! Answers that belong to no connection are bounded when they cannot be sent: a driver whose socket
//! is blocked continues to read.

mod common;

use common::packet::finished;
use common::pair::PORT;
use common::{CLIENT, Net, SERVER, connect_options, listen_config};
use udccp_base::{Datagram, Machine, Payload};
use udccp_proto::{ConnectionConfig, InitCookies, ListenConfig};
use udccp_wire::PacketView;

/// As in the documentation of `EndpointStats::answers_dropped`.
const MOST: usize = 1024;

/// The Request of client number `n`.
fn request(like: &Datagram, n: u32) -> Datagram {
    let header = PacketView::new(&like.header, like.transport_len()).unwrap().header();
    let src = std::net::Ipv4Addr::from(0x0a01_0000 + n);
    finished(&Datagram { src: (src, 0).into(), ..like.clone() }, &header, &[], Payload::EMPTY)
}

#[test]
fn undrained_answers_are_bounded_and_counted() {
    let mut net = Net::new(1);
    let config = ListenConfig {
        init_cookies: InitCookies::Always,
        ..listen_config(ConnectionConfig::default())
    };
    net.ends[SERVER].listen(None, PORT, config).unwrap();
    let now = net.now;
    net.ends[CLIENT].connect(now, connect_options(ConnectionConfig::default())).unwrap();
    let like = net.ends[CLIENT].poll_transmit(now).unwrap();
    let server = &mut net.ends[SERVER];
    let flood = 100_000;
    for n in 0..flood {
        server.handle_datagram(now, request(&like, n));
    }
    let waiting = std::iter::from_fn(|| server.poll_transmit(now)).count();
    assert_eq!(waiting, MOST);
    let stats = server.endpoint_stats();
    assert_eq!(stats.answers_dropped, u64::from(flood) - MOST as u64);
    assert_eq!(stats.datagrams_sent, MOST as u64);
    // After the queue was emptied, the next answer is sent again.
    server.handle_datagram(now, request(&like, flood));
    assert!(server.poll_transmit(now).is_some());
    assert_eq!(server.endpoint_stats().answers_dropped, stats.answers_dropped);
}
