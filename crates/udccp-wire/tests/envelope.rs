//! Envelopes around packets, and packets as text.

mod support;

use udccp_packet::ip::{Ipv4Header, Ipv6Header};
use udccp_wire::ip::{ChecksumState, Envelope, EnvelopeError, LinkType};
use udccp_wire::udp::{self, UdpError};
use udccp_wire::{
    FeatureNumber, Header, HeaderKind, OptionRef, Packet, PseudoHeader, ResetCode, Seqno,
    ServiceCode,
};

const PORTS: [u16; 1] = [udp::DEFAULT_PORT];

fn v4() -> PseudoHeader {
    PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into())
}

fn v6() -> PseudoHeader {
    let address = |n: u16| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n).into();
    PseudoHeader::new(address(1), address(2))
}

fn packet() -> Packet {
    let kind = HeaderKind::DataAck { ack: Seqno::new(9) };
    packet_of(kind, &[OptionRef::AckVector { nonce: true, cells: &[63, 1, 0xc0, 0x42] }])
}

fn packet_of(kind: HeaderKind, options: &[OptionRef<'_>]) -> Packet {
    let seq = Seqno::new(7);
    let header =
        Header { src_port: 41_000, dst_port: 5001, ccval: 0, cscov: 0, x: true, seq, kind };
    let options = options.iter().map(|&o| o.into()).collect();
    Packet { header, options, payload: Vec::new() }
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = Ipv4Header {
        src: [10, 1, 0, 1].into(),
        dst: [10, 2, 0, 1].into(),
        protocol,
        ecn: 2,
        ttl: 64,
        identification: 1,
        payload_len: payload.len(),
    };
    [&header.to_bytes()[..], payload].concat()
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let std::net::IpAddr::V6(src) = v6().src else { unreachable!() };
    let std::net::IpAddr::V6(dst) = v6().dst else { unreachable!() };
    let payload_len = payload.len();
    let header = Ipv6Header { src, dst, next_header, ecn: 3, hop_limit: 64, payload_len };
    [&header.to_bytes()[..], payload].concat()
}

fn in_udp(pseudo: &PseudoHeader, packet: &Packet) -> Vec<u8> {
    let inside = packet.emit_encapsulated().unwrap();
    let header = udp::around((40_000, 6511), pseudo, &inside, &[], 0).unwrap();
    [&header.to_bytes()[..], &inside].concat()
}

fn open(link: LinkType, frame: &[u8]) -> Result<Envelope<'_>, EnvelopeError> {
    Envelope::parse(link, frame, &PORTS)
}

#[test]
fn every_link_type_is_decapsulated() {
    let packet = packet();
    let ip = ipv4(33, &packet.emit(&v4()).unwrap());
    let mac = [0; 12];
    let frames = [
        (LinkType::RawIp, [&[][..], &ip].concat()),
        (LinkType::Null, [&[2, 0, 0, 0][..], &ip].concat()),
        (LinkType::Ethernet, [&mac[..], &[8, 0], &ip, &[0; 6]].concat()),
        (LinkType::Ethernet, [&mac[..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 9, 8, 0], &ip].concat()),
        (LinkType::LinuxSll, [&[0; 14][..], &[8, 0], &ip].concat()),
        (LinkType::LinuxSll2, [&[8, 0][..], &[0; 18], &ip].concat()),
    ];
    for (link, frame) in &frames {
        let envelope = open(*link, frame).unwrap();
        let view = envelope.packet().unwrap();
        assert_eq!((envelope.ecn, envelope.ttl, envelope.ip_len), (2, 64, ip.len()));
        assert_eq!(envelope.checksum(&view), ChecksumState::Valid, "{link:?}");
        assert_eq!(Packet::parse(envelope.dccp, Some(&envelope.pseudo)).as_ref(), Ok(&packet));
        for len in 0..frame.len() {
            let cut = open(*link, &frame[..len]);
            assert!(cut.is_err() || cut.is_ok_and(|e| e.packet().is_err() || len >= ip.len()));
        }
    }
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let bytes = packet().emit(&v6()).unwrap();
    let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let destination = [51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let authentication = [44, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    let atomic_fragment = [33, 0, 0, 0, 0, 0, 0, 1];
    let chain = [&hop_by_hop[..], &destination, &authentication, &atomic_fragment, &bytes].concat();
    let frame = ipv6(0, &chain);
    let envelope = open(LinkType::RawIp, &frame).unwrap();
    assert_eq!((envelope.dccp, envelope.ecn), (&bytes[..], 3));
    assert_eq!(envelope.checksum(&envelope.packet().unwrap()), ChecksumState::Valid);
    let fragment = ipv6(44, &[&[33, 0, 0, 1, 0, 0, 0, 1][..], &bytes].concat());
    assert_eq!(open(LinkType::RawIp, &fragment).unwrap_err(), EnvelopeError::Fragment);
}

//= 6773-3.1-1 test
//= 6773-3.3-3 test
//= 6773-3.3-6 test
#[test]
fn udp_is_decapsulated_if_its_checksum_is_valid() {
    for (pseudo, link) in [(v4(), ipv4 as fn(u8, &[u8]) -> Vec<u8>), (v6(), ipv6)] {
        let frame = link(17, &in_udp(&pseudo, &packet()));
        let envelope = open(LinkType::RawIp, &frame).unwrap();
        let view = envelope.packet().unwrap();
        assert_eq!(view.checksum(), 0);
        assert_eq!(envelope.checksum(&view), ChecksumState::Valid);
        let mut bad = frame.clone();
        *bad.last_mut().unwrap() ^= 1;
        let envelope = open(LinkType::RawIp, &bad).unwrap();
        assert_eq!(envelope.checksum(&view), ChecksumState::Invalid);
        let cut = &frame[..frame.len() - 1];
        let cut = Envelope::parse(LinkType::RawIp, cut, &PORTS).unwrap();
        assert_eq!(cut.checksum(&view), ChecksumState::Unknown);
        let other = Envelope::parse(LinkType::RawIp, &frame, &[53]).unwrap_err();
        assert_eq!(other, EnvelopeError::NotDccp { protocol: 17 });
    }
}

//= 6773-3.3-5 test
//= 6773-3.3-7 test
#[test]
fn udp_that_must_be_dropped_is_refused() {
    let datagram = in_udp(&v4(), &packet());
    let fault = |change: fn(&mut Vec<u8>)| {
        let mut bytes = datagram.clone();
        change(&mut bytes);
        udp::parse(&bytes, bytes.len()).map(|_| ()).unwrap_err()
    };
    assert_eq!(fault(|b| b[6..8].fill(0)), UdpError::NoChecksum);
    assert_eq!(fault(|b| b[5] = 19), UdpError::LengthTooSmall(19));
    assert_eq!(fault(|b| b.truncate(7)), UdpError::Truncated { have: 7 });
    let have = datagram.len();
    let length = have as u16 + 1;
    assert_eq!(fault(|b| b[5] += 1), UdpError::LengthTooLarge { length, have });
    // A Length that cuts into the DCCP header is detected when that header is parsed.
    let mut short = datagram.clone();
    short[5] = 20 + 8;
    let (header, inside) = udp::parse(&short, short.len()).unwrap();
    assert!(udccp_wire::PacketView::new(inside, header.payload_len()).is_err());
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    let pseudo = v4();
    let wanted = |n: &u16| {
        let bytes = n.to_be_bytes();
        udp::around((1, 2), &pseudo, &[0; 12], &bytes, 0).unwrap().checksum == 0xffff
    };
    let n = (0..=u16::MAX).find(wanted).expect("one of all sums is zero");
    let header = udp::around((1, 2), &pseudo, &[0; 12], &n.to_be_bytes(), 0).unwrap();
    let payload = [&[0; 12][..], &n.to_be_bytes()].concat();
    assert_eq!(udp::verify(&header, &pseudo, &payload), Ok(()));
    assert_eq!(udp::around((1, 2), &pseudo, &[], &[], 70_000), None);
}

#[test]
fn ipv4_header_checksums_are_right() {
    let bytes = ipv4(33, &[0; 100]);
    let mut sum = udccp_wire::checksum::Sum::new();
    sum.add(&bytes[..20]);
    assert!(sum.is_valid());
    let fragment = [&bytes[..6], &[0x20, 0], &bytes[8..]].concat();
    assert_eq!(open(LinkType::RawIp, &fragment).unwrap_err(), EnvelopeError::Fragment);
}

#[test]
fn packets_as_text() {
    let text = |kind, options: &[OptionRef<'_>], payload: &[u8]| {
        let packet = Packet { payload: payload.to_vec(), ..packet_of(kind, options) };
        let frame = ipv4(33, &packet.emit(&v4()).unwrap());
        let text = open(LinkType::RawIp, &frame).unwrap().to_string();
        text.strip_prefix("10.1.0.1:41000 > 10.2.0.1:5001 ").unwrap().to_owned()
    };
    let feature = FeatureNumber::CCID;
    let change = OptionRef::ChangeL { feature, value: &[2, 3] };
    let confirm = OptionRef::ConfirmR { feature, value: &[2, 2, 3] };
    let window = OptionRef::ChangeL { feature: FeatureNumber(3), value: &[0, 0, 0, 0, 4, 0] };
    let ack = Seqno::new(9);
    let request = HeaderKind::Request { service: ServiceCode(0x6664_707a) };
    assert_eq!(
        text(request, &[change, OptionRef::Mandatory, window], b""),
        "Request seq 7 service SC:fdpz <Change L CCID 2 3, Mandatory, \
         Change L Sequence Window 1024> [ECT(0)]"
    );
    let response = HeaderKind::Response { ack, service: ServiceCode(42) };
    assert_eq!(
        text(
            response,
            &[confirm, OptionRef::TimestampEcho { timestamp: 5, elapsed: Some(123) }],
            b"x"
        ),
        "Response seq 7 ack 9 service SC=42 <Confirm R CCID 2 of 2 3, \
         Timestamp Echo 5 1.23 ms> data 1 [ECT(0)]"
    );
    let cells = OptionRef::AckVector { nonce: true, cells: &[63, 1, 0xc0, 0x42] };
    assert_eq!(
        text(HeaderKind::DataAck { ack }, &[cells, OptionRef::DataDropped(&[0, 0xa2])], b"data"),
        "DataAck seq 7 ack 9 <Ack Vector [Nonce 1] R66 N1 E3, \
         Data Dropped normal 1 Receive Buffer 3> data 4 [ECT(0)]"
    );
    let reset = HeaderKind::Reset { ack, code: ResetCode::OptionError, data: [32, 1, 2] };
    assert_eq!(
        text(reset, &[], b"no such \"feature\""),
        "Reset seq 7 ack 9 code 5 (Option Error) data 32 1 2 \
         text \"no such \\\"feature\\\"\" [ECT(0)]"
    );
}

/// The printed text of a real connection's first packets.
#[test]
fn the_kernels_handshake_as_text() {
    let captures = support::kernel_captures();
    let basic = captures.iter().find(|c| c.name == "ccid2-basic.pcap").unwrap();
    let lines: Vec<String> = basic.frames[..3]
        .iter()
        .map(|frame| open(basic.link, frame).unwrap().packet().unwrap().to_string())
        .collect();
    support::note(lines.join("\n"));
    assert!(lines[0].starts_with("Request ") && lines[0].contains("service SC=42 <"));
    assert!(lines[0].contains("Change L CCID 2 3"));
    assert!(lines[1].contains("Confirm R CCID 2 of 2 3"));
}

#[test]
fn a_udp_checksum_left_to_the_device_is_not_called_wrong() {
    let pseudo = v4();
    let mut datagram = in_udp(&pseudo, &packet());
    let sum = !pseudo.sum(udp::IP_PROTOCOL, datagram.len()).checksum();
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    let frame = ipv4(udp::IP_PROTOCOL, &datagram);
    let envelope = open(LinkType::RawIp, &frame).unwrap();
    let view = envelope.packet().unwrap();
    assert_eq!(envelope.checksum(&view), ChecksumState::Unknown);
}
