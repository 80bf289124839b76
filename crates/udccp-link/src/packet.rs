//! What a link needs to know of a packet.

use udccp_base::{Datagram, Ecn};

/// A packet as a link sees it. Implemented for [`Datagram`]; a driver that keeps its packets
/// elsewhere sends small handles through the same links.
pub trait Packet {
    /// Length on the wire in bytes (IP header included).
    fn wire_len(&self) -> u32;

    /// The ECN codepoint.
    fn ecn(&self) -> Ecn;

    /// Sets the ECN codepoint to "congestion experienced" (RFC 3168 section 5).
    fn mark_ce(&mut self);
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
            header: bytes::Bytes::from_static(&[0; 8]),
            payload: Payload::Zeros(ip_len - 28),
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
