//! The properties of a packet that a link needs.

use core::net::IpAddr;

use udccp_base::{Datagram, Ecn};

/// A packet as seen by a link. Implemented for [`Datagram`]. A driver that stores packets elsewhere
/// sends small handles through the same links.
pub trait Packet {
    /// Length on the wire in bytes (IP header included).
    fn wire_len(&self) -> u32;

    /// The ECN codepoint.
    fn ecn(&self) -> Ecn;

    /// Sets the ECN codepoint to "congestion experienced" (RFC 3168 section 5).
    fn mark_ce(&mut self);

    /// A number that is the same for all packets of a flow in one direction, and very probably
    /// different for other flows.
    fn flow_hash(&self) -> u64;
}

impl Packet for Datagram {
    fn wire_len(&self) -> u32 {
        u32::try_from(self.ip_len()).unwrap_or(u32::MAX)
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    /// Hash of addresses, ports and protocol (FNV-1a). In TCP, UDP and DCCP the ports are the first
    /// four bytes of the header.
    fn flow_hash(&self) -> u64 {
        let mut h = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |word: u64| h = (h ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        for address in [self.src, self.dst] {
            mix(u64::from(address.port()));
            match address.ip() {
                IpAddr::V4(ip) => mix(u64::from(ip.to_bits())),
                IpAddr::V6(ip) => mix((ip.to_bits() ^ (ip.to_bits() >> 64)) as u64),
            }
        }
        mix(u64::from(self.protocol));
        self.header.iter().take(4).for_each(|b| mix(u64::from(*b)));
        h
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use udccp_base::Payload;

    /// A datagram of this length on the wire.
    pub(crate) fn datagram(ip_len: u32) -> Datagram {
        let address = |last| ([10, 0, 0, last], 0).into();
        Datagram {
            src: address(1),
            dst: address(2),
            protocol: Datagram::UDP,
            ecn: Ecn::NotEct,
            header: vec![0; 8].into(),
            payload: Payload::Zeros(ip_len - 28),
        }
    }

    #[test]
    fn a_flow_is_its_addresses_ports_and_protocol() {
        let at = |text: &str| text.parse().unwrap();
        for ip in ["10.0.0", "2001:db8::a:"] {
            let end = |last: u32, port: u32| match ip.contains(':') {
                true => at(&format!("[{ip}{last}]:{port}")),
                false => at(&format!("{ip}.{last}:{port}")),
            };
            let of = |src, dst, protocol, header: [u8; 5]| {
                let header = header.to_vec().into();
                Datagram { src, dst, protocol, header, ..datagram(100) }.flow_hash()
            };
            let flow = || of(end(1, 7), end(2, 8), Datagram::UDP, [1, 2, 3, 4, 5]);
            assert_eq!(of(end(1, 7), end(2, 8), Datagram::UDP, [1, 2, 3, 4, 9]), flow());
            for other in [
                of(end(3, 7), end(2, 8), Datagram::UDP, [1, 2, 3, 4, 5]),
                of(end(1, 7), end(3, 8), Datagram::UDP, [1, 2, 3, 4, 5]),
                of(end(1, 9), end(2, 8), Datagram::UDP, [1, 2, 3, 4, 5]),
                of(end(1, 7), end(2, 9), Datagram::UDP, [1, 2, 3, 4, 5]),
                of(end(1, 7), end(2, 8), Datagram::DCCP, [1, 2, 3, 4, 5]),
                of(end(1, 7), end(2, 8), Datagram::UDP, [1, 9, 3, 4, 5]),
                of(end(1, 7), end(2, 8), Datagram::UDP, [1, 2, 3, 9, 5]),
            ] {
                assert_ne!(other, flow());
            }
        }
    }

    #[test]
    fn a_datagram_is_as_long_as_its_ip_packet() {
        let mut d = datagram(1500);
        assert_eq!(d.wire_len(), 1500);
        d.mark_ce();
        assert_eq!(Packet::ecn(&d), Ecn::Ce);
    }
}
