//! Tests the rules of RFC 5597 one by one, with hand-made packets.

use std::net::SocketAddr;

use bytes::BytesMut;
use udccp_base::{Datagram, Duration, Ecn, Instant, Payload};
use udccp_nat::{Filtering, Nat, NatConfig, Side};
use udccp_wire::{
    Emitter, Header, HeaderKind, PacketType, PacketView, PseudoHeader, ResetCode, Seqno,
    ServiceCode,
};

const NAT: &str = "192.0.2.1";
const SERVICE: ServiceCode = ServiceCode(u32::from_be_bytes(*b"test"));

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn secs(n: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(n)
}

fn kind(ty: PacketType) -> HeaderKind {
    HeaderKind::of(ty, Seqno::new(7), SERVICE).with_reset(ResetCode::Closed, [0; 3])
}

fn packet_with(src: &str, dst: &str, ty: PacketType, cscov: u8, data: &[u8]) -> Datagram {
    let (src, dst) = (at(src), at(dst));
    let header = Header {
        src_port: src.port(),
        dst_port: dst.port(),
        ccval: 0,
        cscov,
        x: true,
        seq: Seqno::new(0x1234_5678_9abc),
        kind: kind(ty),
    };
    let mut bytes = BytesMut::new();
    let emitter = Emitter::new(&mut bytes, &header);
    emitter.finish(&PseudoHeader::new(src.ip(), dst.ip()), data, 0);
    bytes.extend_from_slice(data);
    Datagram {
        src: SocketAddr::new(src.ip(), 0),
        dst: SocketAddr::new(dst.ip(), 0),
        protocol: Datagram::DCCP,
        ecn: Ecn::Ect0,
        header: bytes.freeze().into(),
        payload: Payload::EMPTY,
    }
}

fn packet(src: &str, dst: &str, ty: PacketType) -> Datagram {
    packet_with(src, dst, ty, 0, b"")
}

fn nat() -> Nat {
    Nat::new(NatConfig::new(NAT.parse().unwrap()))
}

fn filtering(filtering: Filtering) -> Nat {
    Nat::new(NatConfig { filtering, ..NatConfig::new(NAT.parse().unwrap()) })
}

/// Passes a packet to the NAT and returns its output: the side and both ends.
fn pass(
    nat: &mut Nat,
    now: Instant,
    from: Side,
    d: Datagram,
) -> Option<(Side, SocketAddr, SocketAddr)> {
    nat.handle_datagram(now, from, d);
    let (side, d) = nat.poll_transmit()?;
    assert!(nat.poll_transmit().is_none(), "one in, one out");
    let view = PacketView::new(&d.header, d.transport_len()).unwrap();
    let pseudo = PseudoHeader::new(d.src.ip(), d.dst.ip());
    assert!(view.verify_checksum(&pseudo, &[], 0), "a valid checksum stays valid");
    let src = SocketAddr::new(d.src.ip(), view.src_port());
    let dst = SocketAddr::new(d.dst.ip(), view.dst_port());
    Some((side, src, dst))
}

//= 5597-4.1-1 test
#[test]
fn one_endpoint_has_one_external_port_whatever_it_talks_to() {
    let mut nat = nat();
    for to in ["198.51.100.7:5001", "198.51.100.7:5002", "203.0.113.9:80"] {
        let out =
            pass(&mut nat, secs(1), Side::Inside, packet("10.0.0.2:4000", to, PacketType::Request));
        assert_eq!(out, Some((Side::Outside, at("192.0.2.1:4000"), at(to))));
    }
    assert_eq!(nat.mappings(), 1);
    assert_eq!(nat.external_of(at("10.0.0.2:4000")), Some(at("192.0.2.1:4000")));
}

//= 5597-7.1-1 test
#[test]
fn no_two_endpoints_share_an_external_port() {
    let ports = (4000, 4002);
    let mut nat = Nat::new(NatConfig { ports, ..NatConfig::new(NAT.parse().unwrap()) });
    let mut external = Vec::new();
    for host in 2..6 {
        let from = format!("10.0.0.{host}:4001");
        let request = packet(&from, "198.51.100.7:5001", PacketType::Request);
        external.extend(pass(&mut nat, secs(1), Side::Inside, request).map(|o| o.1.port()));
    }
    assert_eq!(external, [4001, 4002, 4000], "the fourth finds none");
    assert_eq!(nat.stats().dropped, 1);
}

//= 5597-4.3-1 test
//= 5597-4.3-2 test
//= 5597-4.3-3 test
#[test]
fn filtering_is_configured_separately() {
    use Filtering::{AddressAndPortDependent, AddressDependent, EndpointIndependent};
    let from = ["198.51.100.7:5001", "198.51.100.7:6000", "203.0.113.9:5001"];
    let expected = [
        (EndpointIndependent, [true, true, true]),
        (AddressDependent, [true, true, false]),
        (AddressAndPortDependent, [true, false, false]),
    ];
    assert_eq!(NatConfig::new(NAT.parse().unwrap()).filtering, AddressDependent);
    for (setting, lets_in) in expected {
        for (source, passes) in from.into_iter().zip(lets_in) {
            let mut nat = filtering(setting);
            let request = packet("10.0.0.2:4000", from[0], PacketType::Request);
            pass(&mut nat, secs(1), Side::Inside, request);
            let packet = packet(source, "192.0.2.1:4000", PacketType::Response);
            let came = pass(&mut nat, secs(1), Side::Outside, packet);
            let inside = Some((Side::Inside, at(source), at("10.0.0.2:4000")));
            assert_eq!(came, inside.filter(|_| passes), "{setting:?} from {source}");
        }
    }
    let unknown = packet(from[0], "192.0.2.1:4000", PacketType::Request);
    let closed = pass(&mut filtering(EndpointIndependent), secs(1), Side::Outside, unknown);
    assert_eq!(closed, None, "there is no mapping");
}

//= 5597-4.2-1 test
//= 5597-4.2-2 test
//= 5596-2.2.1-4 test
/// A Listen creates a mapping, like a Request, and permits incoming packets.
#[test]
fn every_packet_type_passes_both_ways_and_a_listen_opens_the_way() {
    for opener in PacketType::ALL {
        let mut nat = nat();
        let (inside, outside) = ("10.0.0.2:5001", "198.51.100.7:4000");
        pass(&mut nat, secs(1), Side::Inside, packet(inside, outside, opener)).unwrap();
        for ty in PacketType::ALL {
            let came =
                pass(&mut nat, secs(2), Side::Outside, packet(outside, "192.0.2.1:5001", ty));
            assert_eq!(came, Some((Side::Inside, at(outside), at(inside))), "{opener}, {ty}");
            let went = pass(&mut nat, secs(2), Side::Inside, packet(inside, outside, ty));
            assert_eq!(went, Some((Side::Outside, at("192.0.2.1:5001"), at(outside))));
        }
    }
}

//= 5597-4.3-5 test
//= 5597-4.3-6 test
//= 5597-4.3-7 test
#[test]
fn an_unsolicited_listen_or_sync_is_answered_after_six_seconds_unless_a_request_leaves() {
    let (server, client) = ("198.51.100.7:5001", "192.0.2.1:4000");
    for ty in [PacketType::Listen, PacketType::Sync] {
        let mut nat = nat();
        assert_eq!(pass(&mut nat, secs(10), Side::Outside, packet(server, client, ty)), None);
        assert_eq!(nat.poll_timeout(), Some(secs(16)));
        nat.handle_timeout(secs(15));
        assert!(nat.poll_transmit().is_none());
        nat.handle_timeout(secs(16));
        let (side, icmp) = nat.poll_transmit().unwrap();
        assert_eq!((side, icmp.protocol, &icmp.header[..2]), (Side::Outside, 1, &[3, 3][..]));
        assert_eq!((icmp.src, icmp.dst), (at("192.0.2.1:0"), at("198.51.100.7:0")));
        assert_eq!(
            &icmp.header[28..48],
            &packet(server, client, ty).header[..20],
            "what it quotes"
        );
    }
    let mut nat = nat();
    pass(&mut nat, secs(10), Side::Outside, packet(server, client, PacketType::Listen));
    let request = packet("10.0.0.2:4000", server, PacketType::Request);
    assert!(pass(&mut nat, secs(15), Side::Inside, request).is_some());
    assert_eq!(nat.poll_timeout(), None, "dropped in silence");
    let other = packet(server, "192.0.2.1:4001", PacketType::Request);
    assert_eq!(pass(&mut nat, secs(15), Side::Outside, other), None);
    assert_eq!(nat.poll_timeout(), None, "a Request is dropped in silence too");
    let quiet = NatConfig { sends_icmp: false, ..NatConfig::new(NAT.parse().unwrap()) };
    let mut nat = Nat::new(quiet);
    pass(&mut nat, secs(10), Side::Outside, packet(server, client, PacketType::Listen));
    assert_eq!(nat.poll_timeout(), None, "the policy may forbid it");
}

//= 5597-5-1 test
//= 5597-5-2 test
//= 5597-5-3 test
#[test]
fn idle_connections_live_124_minutes_and_opening_and_closing_ones_four() {
    let (inside, outside) = ("10.0.0.2:4000", "198.51.100.7:5001");
    let minute = 60;
    let lives = |types: &[PacketType], idle_secs: u64| {
        let mut nat = nat();
        for &ty in types {
            pass(&mut nat, secs(0), Side::Inside, packet(inside, outside, ty));
        }
        let late = packet(outside, "192.0.2.1:4000", PacketType::Data);
        pass(&mut nat, secs(idle_secs), Side::Outside, late).is_some()
    };
    use PacketType::{Ack, Close, CloseReq, Data, Request, Reset, Sync, SyncAck};
    for open in [&[Request, Ack][..], &[Request, Ack, Data]] {
        assert!(lives(open, 124 * minute - 1));
        assert!(!lives(open, 124 * minute));
    }
    for short in
        [&[Request][..], &[Request, Ack, Close], &[Request, Ack, CloseReq], &[Request, Ack, Reset]]
    {
        assert!(lives(short, 4 * minute - 1));
        assert!(!lives(short, 4 * minute));
    }
    // The other end did not believe the Reset, and the connection goes on.
    assert!(lives(&[Request, Ack, Reset, Sync, SyncAck, Data], 124 * minute - 1));
    assert!(!lives(&[Request, Ack, Close, Data, Close], 4 * minute));
}

#[test]
fn a_sync_after_expiry_does_not_establish_a_mapping() {
    let (inside, outside) = ("10.0.0.2:4000", "198.51.100.7:5001");
    let minutes = |n: u64| secs(60 * n);
    let lives = |sync_at: u64, until: u64| {
        let mut nat = nat();
        for (at, ty) in
            [(0, PacketType::Request), (0, PacketType::Ack), (sync_at, PacketType::Sync)]
        {
            pass(&mut nat, minutes(at), Side::Inside, packet(inside, outside, ty));
        }
        let late = packet(outside, "192.0.2.1:4000", PacketType::Data);
        pass(&mut nat, minutes(until), Side::Outside, late).is_some()
    };
    assert!(lives(123, 130), "it was established all the time");
    assert!(lives(124, 127));
    assert!(!lives(124, 128), "a Sync establishes nothing");
}

//= 5597-7.2-1 test
//= 5597-7.2-2 test
#[test]
fn two_hosts_behind_one_nat_reach_each_other_by_external_addresses() {
    let mut nat = filtering(Filtering::AddressAndPortDependent);
    let (a, b) = ("10.0.0.2:4000", "10.0.0.3:5001");
    // The server sends a Listen to the client's external address, which has no mapping yet.
    assert_eq!(
        pass(&mut nat, secs(1), Side::Inside, packet(b, "192.0.2.1:4000", PacketType::Listen)),
        None
    );
    let came =
        pass(&mut nat, secs(1), Side::Inside, packet(a, "192.0.2.1:5001", PacketType::Request));
    assert_eq!(came, Some((Side::Inside, at("192.0.2.1:4000"), at(b))), "its external address");
    let back =
        pass(&mut nat, secs(1), Side::Inside, packet(b, "192.0.2.1:4000", PacketType::Response));
    assert_eq!(back, Some((Side::Inside, at("192.0.2.1:5001"), at(a))));
    assert_eq!(nat.stats().hairpinned, 2);
}

//= 5597-7.3-1 test
//= 5597-7.3-2 test
#[test]
fn icmp_errors_are_translated_and_end_nothing() {
    let mut nat = nat();
    let mut far = Nat::new(NatConfig::new("198.51.100.7".parse().unwrap()));
    let (inside, outside) = ("10.0.0.2:3999", "198.51.100.7:5001");
    pass(&mut nat, secs(0), Side::Inside, packet("10.0.0.9:3999", outside, PacketType::Request));
    nat.handle_datagram(secs(1), Side::Inside, packet(inside, outside, PacketType::Listen));
    let (_, sent) = nat.poll_transmit().unwrap();
    far.handle_datagram(secs(1), Side::Outside, sent);
    far.handle_timeout(secs(7));
    let (_, icmp) = far.poll_transmit().unwrap();
    nat.handle_datagram(secs(7), Side::Outside, icmp);
    let (side, icmp) = nat.poll_transmit().unwrap();
    assert_eq!((far.stats().icmp_sent, nat.stats().icmp_translated), (1, 1));
    assert_eq!((side, icmp.dst), (Side::Inside, at("10.0.0.2:0")));
    let original = packet(inside, outside, PacketType::Listen);
    assert_eq!(&icmp.header[20..24], &[10, 0, 0, 2], "the quoted source");
    assert_eq!(&icmp.header[28..48], &original.header[..20], "with its port and checksum");
    for part in [&icmp.header[..], &icmp.header[8..28]] {
        let mut sum = udccp_wire::checksum::Sum::new();
        sum.add(part);
        assert!(sum.is_valid());
    }
    let late = packet(outside, "192.0.2.1:4000", PacketType::Data);
    assert!(pass(&mut nat, secs(8), Side::Outside, late).is_some(), "the mapping is still there");
    // An error from inside about a packet from outside.
    let stranger = packet(outside, "192.0.2.1:4000", PacketType::Data);
    nat.handle_datagram(secs(8), Side::Outside, stranger);
    let (_, inner) = nat.poll_transmit().unwrap();
    let mut host = Nat::new(NatConfig::new("10.0.0.2".parse().unwrap()));
    let sync = Datagram { header: packet(outside, inside, PacketType::Sync).header, ..inner };
    host.handle_datagram(secs(8), Side::Outside, sync);
    host.handle_timeout(secs(14));
    let (_, icmp) = host.poll_transmit().unwrap();
    nat.handle_datagram(secs(14), Side::Inside, icmp);
    let (side, icmp) = nat.poll_transmit().unwrap();
    assert_eq!(
        (side, icmp.src, icmp.dst),
        (Side::Outside, at("192.0.2.1:0"), at("198.51.100.7:0"))
    );
    assert_eq!(&icmp.header[24..28], &[192, 0, 2, 1], "the quoted destination");
}

//= 5597-7.2-1 test
//= 5597-7.3-1 test
/// Both hosts are behind the NAT and use each other's external addresses, also in ICMP errors.
#[test]
fn icmp_errors_between_two_hosts_inside_stay_inside() {
    let mut nat = nat();
    let (a, b) = ("10.0.0.2:4000", "10.0.0.3:5001");
    let sent = packet(b, "192.0.2.1:4000", PacketType::Listen);
    assert_eq!(pass(&mut nat, secs(1), Side::Inside, sent.clone()), None, "nobody is there");
    nat.handle_timeout(secs(7));
    let (side, icmp) = nat.poll_transmit().unwrap();
    assert_eq!((side, icmp.src, icmp.dst), (Side::Inside, at("192.0.2.1:0"), at("10.0.0.3:0")));
    assert_eq!(&icmp.header[20..24], &[10, 0, 0, 3], "the quoted source");
    assert_eq!(&icmp.header[28..48], &sent.header[..20], "with its port and checksum");
    // An error about an incoming packet, from the host that received it.
    let request = packet(a, "192.0.2.1:5001", PacketType::Request);
    nat.handle_datagram(secs(8), Side::Inside, request.clone());
    let (_, inner) = nat.poll_transmit().unwrap();
    let mut host = Nat::new(NatConfig::new("10.0.0.3".parse().unwrap()));
    let sync = packet("192.0.2.1:4000", b, PacketType::Sync);
    host.handle_datagram(secs(8), Side::Outside, Datagram { header: sync.header, ..inner });
    host.handle_timeout(secs(14));
    let (_, icmp) = host.poll_transmit().unwrap();
    nat.handle_datagram(secs(14), Side::Inside, icmp);
    let (side, icmp) = nat.poll_transmit().unwrap();
    assert_eq!((side, icmp.src, icmp.dst), (Side::Inside, at("192.0.2.1:0"), at("10.0.0.2:0")));
    assert_eq!(&icmp.header[20..28], &[10, 0, 0, 2, 192, 0, 2, 1], "as the sender sent it");
    let sync = packet(a, "192.0.2.1:5001", PacketType::Sync);
    assert_eq!(&icmp.header[28..48], &sync.header[..20]);
    assert!(nat.poll_transmit().is_none());
}

//= 5597-8.1-1 test
//= 5597-8.1-2 test
//= 5597-8.2-1 test
//= 5595-3.2-2 test
#[test]
fn coverage_service_code_and_data_are_left_alone_and_checksums_follow() {
    let data: Vec<u8> = (0..101).collect();
    for cscov in 0..16 {
        for port in [0, 1, 4000, 0xffff] {
            let mut nat = nat();
            let inside = format!("10.0.{cscov}.255:{port}");
            let sent =
                packet_with(&inside, "198.51.100.7:5001", PacketType::Response, cscov, &data);
            nat.handle_datagram(secs(1), Side::Inside, sent.clone());
            let (_, went) = nat.poll_transmit().unwrap();
            let (before, after) = (&sent.header, &went.header);
            let view = PacketView::new(after, went.transport_len()).unwrap();
            let pseudo = PseudoHeader::new(went.src.ip(), went.dst.ip());
            assert!(view.verify_checksum(&pseudo, &[], 0), "CsCov {cscov}");
            assert_eq!(view.cscov(), cscov);
            assert_eq!(view.service_code(), Some(SERVICE));
            assert_eq!((&before[2..6], &before[8..]), (&after[2..6], &after[8..]), "the rest");
            assert_eq!((went.ecn, &went.payload), (sent.ecn, &sent.payload));
        }
    }
    // A wrong checksum stays wrong.
    let mut bad = packet("10.0.0.2:4000", "198.51.100.7:5001", PacketType::Data).header.to_vec();
    bad[7] ^= 1;
    let like = packet("10.0.0.2:4000", "198.51.100.7:5001", PacketType::Data);
    let mut nat = nat();
    nat.handle_datagram(secs(1), Side::Inside, Datagram { header: bad.into(), ..like });
    let (_, went) = nat.poll_transmit().unwrap();
    let view = PacketView::new(&went.header, went.transport_len()).unwrap();
    assert!(!view.verify_checksum(&PseudoHeader::new(went.src.ip(), went.dst.ip()), &[], 0));
}

//= 5597-6-1 test
#[test]
fn payload_is_never_touched_even_where_it_holds_addresses() {
    let mut nat = nat();
    let data = b"PORT 10.0.0.2:4000 \x0a\x00\x00\x02\x0f\xa0";
    let sent = packet_with("10.0.0.2:4000", "198.51.100.7:5001", PacketType::Data, 0, data);
    nat.handle_datagram(secs(1), Side::Inside, sent);
    let (_, went) = nat.poll_transmit().unwrap();
    assert!(went.header.ends_with(data));
}

#[test]
fn ipv6_addresses_are_translated_too() {
    let mut nat = Nat::new(NatConfig::new("2001:db8::1".parse().unwrap()));
    let request = packet("[fd00::2]:4000", "[2001:db8:5::7]:5001", PacketType::Request);
    let went = pass(&mut nat, secs(1), Side::Inside, request).unwrap();
    assert_eq!(went.1, at("[2001:db8::1]:4000"));
    let response = packet("[2001:db8:5::7]:5001", "[2001:db8::1]:4000", PacketType::Response);
    assert_eq!(pass(&mut nat, secs(1), Side::Outside, response).unwrap().2, at("[fd00::2]:4000"));
}

#[test]
fn packets_that_are_not_dccp_are_dropped() {
    let mut nat = nat();
    let like = packet("10.0.0.2:4000", "198.51.100.7:5001", PacketType::Data);
    let others = [
        Datagram { protocol: Datagram::TCP, ..like.clone() },
        Datagram { header: vec![0; 11].into(), ..like.clone() },
        Datagram { protocol: 1, header: vec![3; 20].into(), ..like },
    ];
    for other in others {
        nat.handle_datagram(secs(1), Side::Inside, other);
        assert!(nat.poll_transmit().is_none());
    }
    assert_eq!(nat.stats().dropped, 3);
}
