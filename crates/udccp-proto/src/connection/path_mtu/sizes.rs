//! Computes packet sizes on the path (RFC 4340 section 14).

use crate::tuple::FourTuple;

/// Room kept free for options and for the acknowledgement number of a DataAck, in bytes.
const RESERVE: usize = 24;
const DATA_HEADER: usize = 16;

/// Smallest path MTU that can be set, in bytes. IPv4's least is 68, which leaves no room for data.
pub(crate) const MIN_MTU: u16 = 128;

/// Smallest path MTU of the network that we believe, in bytes with the IP header: what every IPv6
/// link takes (RFC 8200 section 5, RFC 8201 section 4), or every IPv4 host (RFC 791). IPv4 links
/// that take less are rare.
pub(crate) const fn usual_floor(is_ipv6: bool) -> u16 {
    if is_ipv6 { 1280 } else { 576 }
}

/// What fits in a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// IP and UDP headers, in bytes.
    envelope: u8,
    /// Longest DCCP packet, in bytes.
    longest: u16,
    /// Reports from the network cannot lower the MTU below this.
    floor: u16,
    /// Whether DCCP is encapsulated in UDP (RFC 6773), whose checksum then protects the packet.
    pub(super) is_encapsulated: bool,
}

//= 6773-3.7-1
impl Sizes {
    /// Sizes for a path with this MTU. The network cannot lower it below `floor`, or else the usual
    /// least value. Both are in bytes with the IP header.
    pub(super) fn new(tuple: &FourTuple, mtu: u16, floor: Option<u16>) -> Self {
        //= 4340-14.1-1
        let is_encapsulated = tuple.remote.port() != 0;
        let ip = if tuple.remote.is_ipv4() { 20 } else { 40 };
        let envelope = ip + if is_encapsulated { 8 } else { 0 };
        let mtu = mtu.max(MIN_MTU);
        let floor = floor.unwrap_or(usual_floor(tuple.remote.is_ipv6())).clamp(MIN_MTU, mtu);
        Self { envelope, longest: mtu - u16::from(envelope), floor, is_encapsulated }
    }

    /// Longest DCCP packet in bytes.
    pub(super) fn max_transport_len(&self) -> usize {
        self.longest.into()
    }

    /// Largest payload of a message, in bytes.
    pub(super) fn max_message_size(&self) -> usize {
        //= 4340-14-1
        //= 4340-14-6
        self.max_transport_len() - DATA_HEADER - RESERVE
    }

    /// The MTU in bytes, including the IP header.
    pub(super) fn mtu(&self) -> u16 {
        self.longest + u16::from(self.envelope)
    }

    /// An MTU that the network reports, raised to the least that we believe.
    pub(super) fn credible(&self, mtu: u16) -> u16 {
        mtu.max(self.floor)
    }

    /// The least MTU of the network that we believe.
    pub(super) fn floor(&self) -> u16 {
        self.floor
    }

    /// Length of the IP packet that carries `payload` bytes of data, without options.
    pub(super) fn ip_len_of(&self, payload: usize) -> usize {
        usize::from(self.envelope) + DATA_HEADER + payload
    }

    /// Whether the packet that carries `payload` bytes of data may be larger than the least MTU.
    pub(super) fn may_exceed_floor(&self, payload: usize) -> bool {
        self.ip_len_of(payload) + RESERVE > usize::from(self.floor)
    }

    /// Length of the DCCP packet in an IP packet of `size` bytes.
    pub(super) fn transport_len_of(&self, size: u16) -> usize {
        size.saturating_sub(self.envelope.into()).into()
    }

    /// Sets the MTU, raised to the least that is possible.
    pub(super) fn set_mtu(&mut self, mtu: u16) {
        let mtu = mtu.max(MIN_MTU);
        self.longest = mtu - u16::from(self.envelope);
        self.floor = self.floor.min(mtu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_message_at_an_mtu_of_1500() {
        let tuple = |local: &str, remote: &str| FourTuple {
            local: local.parse().unwrap(),
            local_port: 1,
            remote: remote.parse().unwrap(),
            remote_port: 2,
        };
        let largest = |l, r| Sizes::new(&tuple(l, r), 1500, None).max_message_size();
        assert_eq!(largest("10.0.0.1:0", "10.0.0.2:0"), 1440);
        assert_eq!(largest("10.0.0.1:7", "10.0.0.2:6511"), 1432);
        assert_eq!(largest("[fd00::1]:0", "[fd00::2]:0"), 1420);
        let mut path = Sizes::new(&tuple("10.0.0.1:0", "10.0.0.2:0"), 1500, None);
        path.set_mtu(1400);
        assert_eq!(
            (path.max_message_size(), path.transport_len_of(1400)),
            (1340, path.max_transport_len())
        );
        path.set_mtu(0);
        assert_eq!(path.max_message_size(), 68);
    }

    #[test]
    fn the_network_cannot_name_less_than_the_floor() {
        let path = |remote: &str, mtu, floor| {
            let (remote, local_port, remote_port) = (remote.parse().unwrap(), 1, 2);
            Sizes::new(&FourTuple { local: remote, local_port, remote, remote_port }, mtu, floor)
        };
        let least = |remote, mtu, floor| path(remote, mtu, floor).credible(0);
        let (v4, v6) = ("10.0.0.2:0", "[fd00::2]:0");
        assert_eq!((least(v4, 1500, None), least(v6, 1500, None)), (576, 1280));
        assert_eq!((least(v4, 400, None), least(v6, 1000, None)), (400, 1000), "as it is set");
        assert_eq!((least(v4, 1500, Some(296)), least(v4, 1500, Some(0))), (296, 128));
        assert_eq!(path(v4, 1500, None).credible(1400), 1400);
    }
}
