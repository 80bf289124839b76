//! Packet sizes on the path (RFC 4340 section 14).

use crate::endpoint::FourTuple;

/// Room kept free for options and for the acknowledgement number of a DataAck, in bytes.
const RESERVE: usize = 24;
const DATA_HEADER: usize = 16;

/// Smallest path MTU taken seriously, in bytes: IPv4's least is 68, which leaves no room for data.
const MIN_MTU: u16 = 128;

/// What fits in a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// IP and UDP headers, in bytes.
    envelope: usize,
    mtu: u16,
    /// Whether DCCP goes inside UDP (RFC 6773), whose checksum then does the work.
    pub(crate) encapsulated: bool,
}

//= 6773-3.7-1
impl Path {
    /// A path with this MTU in bytes, IP header included.
    pub(crate) fn new(tuple: &FourTuple, mtu: u16) -> Self {
        //= 4340-14.1-1
        let encapsulated = tuple.remote.port() != 0;
        let ip = if tuple.remote.is_ipv4() { 20 } else { 40 };
        let envelope = ip + if encapsulated { 8 } else { 0 };
        Self { envelope, mtu: mtu.max(MIN_MTU), encapsulated }
    }

    /// Longest DCCP packet in bytes.
    pub(crate) fn max_transport_len(&self) -> usize {
        usize::from(self.mtu) - self.envelope
    }

    /// Largest payload in bytes that a message may have.
    pub(crate) fn mps(&self) -> usize {
        //= 4340-14-1
        //= 4340-14-6
        self.max_transport_len() - DATA_HEADER - RESERVE
    }

    /// The MTU in bytes, IP header included.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Length of the DCCP packet in an IP packet of `size` bytes.
    pub(crate) fn transport_len_of(&self, size: u16) -> usize {
        usize::from(size).saturating_sub(self.envelope)
    }

    /// Sets the MTU; a value too small to be true is raised to the least that is.
    pub(crate) fn set_mtu(&mut self, mtu: u16) {
        self.mtu = credible(mtu);
    }
}

/// An MTU that somebody named, or the least that can be true.
pub(crate) fn credible(mtu: u16) -> u16 {
    mtu.max(MIN_MTU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mps_at_an_mtu_of_1500() {
        let tuple = |local: &str, remote: &str| FourTuple {
            local: local.parse().unwrap(),
            local_port: 1,
            remote: remote.parse().unwrap(),
            remote_port: 2,
        };
        let mps = |l, r| Path::new(&tuple(l, r), 1500).mps();
        assert_eq!(mps("10.0.0.1:0", "10.0.0.2:0"), 1440);
        assert_eq!(mps("10.0.0.1:7", "10.0.0.2:6511"), 1432);
        assert_eq!(mps("[fd00::1]:0", "[fd00::2]:0"), 1420);
        let mut path = Path::new(&tuple("10.0.0.1:0", "10.0.0.2:0"), 1500);
        path.set_mtu(1400);
        assert_eq!((path.mps(), path.transport_len_of(1400)), (1340, path.max_transport_len()));
        path.set_mtu(0);
        assert_eq!(path.mps(), 68);
    }
}
