//! Tests of packets that the system or the network refuses.

use std::net::{SocketAddr, UdpSocket};
use std::task::{Context, Poll, Waker};

use udccp_proto::PathReport;

use crate::io::Failure;
use crate::shared::{ConnHandle, Handle, Shared};
use crate::{EndpointOptions, Error, Options, ServiceCode};

const SERVICE: ServiceCode = ServiceCode(0x7465_7374);

/// An outdated MTU from the routing table.
const OLD_MTU: u16 = 777;

/// A handshake whose Request was sent, its destination and bytes, and an outdated answer of the
/// routing table.
fn asking() -> (Handle, ConnHandle, SocketAddr, Vec<u8>) {
    let at = "127.0.0.1:0".parse().unwrap();
    let shared = Shared::bind(at, &EndpointOptions::default()).unwrap();
    // There is no driver.
    shared.set_starter(|_| Ok(()));
    let (client, server) = (Handle::new(shared), UdpSocket::bind(at).unwrap());
    let peer = server.local_addr().unwrap();
    let here = client.connect(peer.into(), SERVICE, &Options::default()).unwrap();
    let mut request = vec![0; 2048];
    let len = server.recv(&mut request).unwrap();
    request.truncate(len);
    client.shared().io.insert_mtu(client.shared().clock.now(), peer, OLD_MTU);
    (client, here, peer, request)
}

#[test]
fn send_errors_of_the_system_are_classified() {
    let after = |errno| {
        let (client, here, dst, quoted) = asking();
        let error = std::io::Error::from_raw_os_error(errno);
        let failure = Failure { dst, src: dst.ip(), quoted, error };
        client.shared().with(|core, io, now| core.sending_failed(io, now, &failure)).unwrap();
        let end = here.poll_connected((&mut Context::from_waker(Waker::noop())).into());
        (end, here.max_message_size())
    };
    for errno in [libc::ENOBUFS, libc::ENOMEM, libc::ECONNREFUSED] {
        let (end, _) = after(errno);
        assert!(end.is_pending(), "{errno} is a loss, or about an earlier packet: {end:?}");
    }
    let (end, _) = after(libc::ENETUNREACH);
    assert!(matches!(end, Poll::Ready(Err(Error::Unreachable { .. }))), "{end:?}");
    let (end, most) = after(libc::EMSGSIZE);
    assert!(end.is_pending() && most > usize::from(OLD_MTU), "asked anew: {most}, {end:?}");
}

#[test]
fn network_report_triggers_a_new_route_lookup() {
    let (client, _here, peer, request) = asking();
    let verdict = PathReport::PathMtu(1400);
    let mtu = client.shared().with(|core, io, now| {
        core.report(io, now, (peer, None), &request, verdict);
        io.route_to(now, peer).unwrap().mtu
    });
    assert!(mtu.unwrap().unwrap() > OLD_MTU);
}
