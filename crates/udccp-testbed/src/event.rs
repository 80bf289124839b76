//! Records packets in a file, with sixteen bytes each.

use std::net::IpAddr;

use udccp_base::{Datagram, Ecn};
use udccp_packet::ip::IpPacket;
use udccp_packet::udp;
use udccp_wire::PacketType;

/// Length of a record.
pub(crate) const BYTES: usize = 16;

/// A packet at a host's device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketEvent {
    /// Time since time zero (48 bits: three days).
    pub(crate) at_ns: u64,
    /// The device, as the number of its tap.
    pub(crate) tap: u16,
    /// A hash that is equal at both ends of the path and differs between packets sent close
    /// together.
    pub(crate) key: u32,
    /// Length of the IP packet.
    pub(crate) bytes: u16,
    /// Whether it leaves the host.
    pub(crate) is_out: bool,
    /// Whether it carries data.
    pub(crate) has_data: bool,
    /// Whether it is marked "congestion experienced".
    pub(crate) is_marked: bool,
}

impl PacketEvent {
    pub(crate) fn emit(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        out[..8].copy_from_slice(&(self.at_ns << 16 | u64::from(self.tap)).to_le_bytes());
        out[8..12].copy_from_slice(&self.key.to_le_bytes());
        out[12..14].copy_from_slice(&self.bytes.to_le_bytes());
        let flags = [self.is_out, self.has_data, self.is_marked];
        out[14] = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag));
        out
    }

    pub(crate) fn parse(record: &[u8; BYTES]) -> Self {
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| record[at + i]));
        let (first, second) = (word(0), word(8));
        let flag = |bit: u32| second >> (48 + bit) & 1 == 1;
        Self {
            at_ns: first >> 16,
            tap: first as u16,
            key: second as u32,
            bytes: (second >> 32) as u16,
            is_out: flag(0),
            has_data: flag(1),
            is_marked: flag(2),
        }
    }
}

/// The event of a packet, without time and device; `None` if it is not IPv4.
///
/// `packet` begins with the IP header and may be truncated.
pub(crate) fn parse(packet: &[u8], own: [u8; 4], encapsulated: bool) -> Option<PacketEvent> {
    let ip = IpPacket::parse(packet).ok().filter(|ip| ip.pseudo.src.is_ipv4())?;
    let inner = packet.get(ip.header_len..)?;
    let has_data = match ip.protocol {
        Datagram::TCP => ip.payload_len() > usize::from(inner.get(12)? >> 4) * 4,
        Datagram::UDP if encapsulated => is_dccp_data(inner.get(udp::HEADER_LEN..)?),
        Datagram::UDP => ip.payload_len() > udp::HEADER_LEN,
        Datagram::DCCP => is_dccp_data(inner),
        _ => ip.payload_len() > 0,
    };
    // Hash only what routers do not change: without type of service, time to live and checksum.
    let parts = [&packet[2..8], &packet[9..10], &packet[12..]];
    let key =
        parts.iter().copied().flatten().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
    Some(PacketEvent {
        key,
        bytes: u16::try_from(ip.len).unwrap_or(u16::MAX),
        is_out: ip.pseudo.src == IpAddr::from(own),
        has_data,
        is_marked: ip.ecn == Ecn::Ce as u8,
        ..PacketEvent::default()
    })
}

/// Whether a DCCP header is that of a Data or DataAck packet.
fn is_dccp_data(header: &[u8]) -> bool {
    matches!(PacketType::peek(header), Some(PacketType::Data | PacketType::DataAck))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let event = PacketEvent {
            at_ns: 299_999_999_999,
            tap: 399,
            key: 0xdead_beef,
            bytes: 1500,
            is_out: true,
            has_data: false,
            is_marked: true,
        };
        assert_eq!(PacketEvent::parse(&event.emit()), event);
        let other = PacketEvent { is_out: false, has_data: true, is_marked: false, ..event };
        assert_eq!(PacketEvent::parse(&other.emit()), other);
    }

    /// A packet with an IPv4 header from 10.1.0.1 to 10.2.0.1.
    fn packet(protocol: u8, length: u16, ttl: u8, inner: &[u8]) -> Vec<u8> {
        let [high, low] = length.to_be_bytes();
        let mut packet = vec![
            0x45, 2, high, low, 0, 7, 0x40, 0, ttl, protocol, 0, ttl, 10, 1, 0, 1, 10, 2, 0, 1,
        ];
        packet.extend(inner);
        packet
    }

    #[test]
    fn data_and_acknowledgements_are_distinguished_by_protocol_header() {
        let own = [10, 1, 0, 1];
        let mut tcp = [0; 32];
        tcp[12] = 8 << 4;
        assert!(parse(&packet(6, 1500, 64, &tcp), own, false).unwrap().has_data);
        assert!(!parse(&packet(6, 52, 64, &tcp), own, false).unwrap().has_data);
        let mut dccp = [0; 16];
        for (kind, is_data) in [(0, false), (2, true), (3, false), (4, true), (5, false)] {
            dccp[8] = kind << 1 | 1;
            assert_eq!(parse(&packet(33, 60, 64, &dccp), own, false).unwrap().has_data, is_data);
            let mut udp = vec![0; 8];
            udp.extend(dccp);
            assert_eq!(parse(&packet(17, 68, 64, &udp), own, true).unwrap().has_data, is_data);
            assert!(parse(&packet(17, 68, 64, &udp), own, false).unwrap().has_data);
        }
    }

    #[test]
    fn packet_key_is_unchanged_by_a_router() {
        let inner = [9; 40];
        let here = parse(&packet(17, 60, 64, &inner), [10, 1, 0, 1], false).unwrap();
        let there = parse(&packet(17, 60, 62, &inner), [10, 2, 0, 1], false).unwrap();
        assert_eq!((here.key, here.is_out, there.is_out), (there.key, true, false));
        let other = parse(&packet(17, 60, 64, &[8; 40]), [10, 1, 0, 1], false).unwrap();
        assert_ne!(here.key, other.key);
        assert_eq!(parse(&[0x60; 40], [0; 4], false), None);
        assert_eq!(parse(&[0x45; 12], [0; 4], false), None);
    }
}
