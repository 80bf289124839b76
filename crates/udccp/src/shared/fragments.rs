//! Selects the packets that routers may fragment (RFC 4340 section 14.2).

use udccp_base::Datagram;
use udccp_wire::PacketType;

/// IP packets of this length get through wherever DCCP does: all hosts accept them over IPv4 (RFC
/// 791), and all links carry them over IPv6 (RFC 8200).
const SMALLEST_MTU: [usize; 2] = [576, 1280];
/// IP and UDP headers, over IPv4 and over IPv6.
const HEADERS_BYTES: [usize; 2] = [28, 48];

//= 4340-14.2-4
//= 4340-14.2-5
/// Whether routers may have to fragment this packet, and may. The handshake and Resets in answer to
/// it must not wait for the search for the path MTU. Small packets need no permission, which saves
/// changing a setting of the whole socket and changing it back.
pub(super) fn may_be_fragmented(datagram: &Datagram) -> bool {
    let family = usize::from(datagram.dst.is_ipv6());
    if datagram.transport_len() + HEADERS_BYTES[family] <= SMALLEST_MTU[family] {
        return false;
    }
    let ty = PacketType::peek(&datagram.header);
    matches!(ty, Some(PacketType::Request | PacketType::Response | PacketType::Reset))
}

#[cfg(test)]
mod tests {
    use udccp_base::{Ecn, Payload};

    use super::*;

    fn packet(dst: &str, ty: PacketType, size: usize) -> Datagram {
        let mut header = [0; 12];
        header[8] = (ty as u8) << 1;
        let payload = Payload::Zeros((size - header.len()) as u32);
        let (src, dst) = (dst.parse().unwrap(), dst.parse().unwrap());
        let header = header.to_vec().into();
        Datagram { src, dst, protocol: Datagram::DCCP, ecn: Ecn::NotEct, header, payload }
    }

    //= 4340-14.2-4 test
    //= 4340-14.2-5 test
    #[test]
    fn large_packets_of_the_handshake_may_be_cut_and_no_others() {
        for (dst, largest_small) in [("10.0.0.1:5", 576 - 28), ("[fd00::1]:5", 1280 - 48)] {
            for ty in [PacketType::Request, PacketType::Response, PacketType::Reset] {
                assert!(!may_be_fragmented(&packet(dst, ty, largest_small)), "{ty:?}");
                assert!(may_be_fragmented(&packet(dst, ty, largest_small + 1)), "{ty:?}");
            }
            for ty in [PacketType::Data, PacketType::Sync, PacketType::Close] {
                assert!(!may_be_fragmented(&packet(dst, ty, 1400)), "{ty:?}");
            }
        }
    }
}
