//! Assigns addresses to hosts.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IP version of the hosts' addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// 10.1.0.1 and so on.
    #[default]
    V4,
    /// fd00:1::1 and so on (RFC 4193), whose packets are 20 bytes longer.
    V6,
}

/// The addresses of the two hosts of a pair. They are known before the hosts exist, because a
/// transport is built with its addresses. In the order in which pairs are added, senders are
/// 10.1.0.1, 10.1.0.2 and so on, receivers 10.2.0.1 and so on; with IPv6 fd00:1::1 and fd00:2::1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairAddresses {
    /// The active side.
    pub sender: IpAddr,
    /// The passive side.
    pub receiver: IpAddr,
}

/// Hosts per /16, without .0 and .255.
const PER_NET: usize = 256 * 254;

impl PairAddresses {
    /// Largest number of pairs with different addresses (10.0.0.0/8 in two halves).
    pub const MAX_PAIRS: usize = PER_NET * 127;

    /// The addresses of the pair with this number, from 0. From [`Self::MAX_PAIRS`] on they repeat.
    pub const fn of(pair: usize, ip: IpVersion) -> Self {
        match ip {
            IpVersion::V4 => Self::v4(pair),
            IpVersion::V6 => Self::v6(pair),
        }
    }

    const fn v4(pair: usize) -> Self {
        let net = (pair / PER_NET % 127) as u8;
        let host = pair % PER_NET;
        let (high, low) = ((host / 254) as u8, (host % 254 + 1) as u8);
        Self {
            sender: IpAddr::V4(Ipv4Addr::new(10, 1 + 2 * net, high, low)),
            receiver: IpAddr::V4(Ipv4Addr::new(10, 2 + 2 * net, high, low)),
        }
    }

    const fn v6(pair: usize) -> Self {
        let number = (pair % Self::MAX_PAIRS + 1) as u32;
        let (high, low) = ((number >> 16) as u16, number as u16);
        Self {
            sender: IpAddr::V6(Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, high, low)),
            receiver: IpAddr::V6(Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, high, low)),
        }
    }
}

/// The addresses of all hosts, which their numbers tell: senders are even, receivers odd.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directory {
    pub(crate) ip: IpVersion,
    /// Number of hosts.
    pub(crate) hosts: usize,
}

impl Directory {
    /// The host with this address; `None` if no host has it.
    pub(crate) fn host(self, at: IpAddr) -> Option<usize> {
        let pair = match at {
            IpAddr::V4(ip) => {
                let [_, net, high, low] = ip.octets().map(usize::from);
                net.checked_sub(1)? / 2 * PER_NET + high * 254 + low.checked_sub(1)?
            }
            IpAddr::V6(ip) => (ip.to_bits() as u32 as usize).checked_sub(1)?,
        };
        if pair >= self.hosts / 2 {
            return None;
        }
        // What is not the address of a host was taken for that of another one.
        let PairAddresses { sender, receiver } = PairAddresses::of(pair, self.ip);
        let side = [sender, receiver].iter().position(|known| *known == at)?;
        Some(2 * pair + side)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_address_is_that_of_its_host_or_of_none() {
        let hosts = 2 * PairAddresses::MAX_PAIRS;
        for (ip, other) in [(IpVersion::V4, IpVersion::V6), (IpVersion::V6, IpVersion::V4)] {
            let last = PairAddresses::MAX_PAIRS - 1;
            for pair in [0, 1, 253, 254, 255, 65_535, PER_NET - 1, PER_NET, last] {
                let PairAddresses { sender, receiver } = PairAddresses::of(pair, ip);
                let found = [sender, receiver].map(|at| Directory { ip, hosts }.host(at));
                assert_eq!(found, [Some(2 * pair), Some(2 * pair + 1)], "{pair}");
                assert_eq!(Directory { ip, hosts: 2 * pair }.host(sender), None);
                assert_eq!(Directory { ip: other, hosts }.host(sender), None);
            }
        }
        let (ip, hosts) = (IpVersion::V4, hosts);
        for at in ["10.0.0.1", "10.255.0.1", "10.1.0.0", "10.1.0.255", "11.1.0.1", "0.0.0.0"] {
            let found = Directory { ip, hosts }.host(at.parse().expect("an address"));
            assert_eq!(found, None, "{at}");
        }
        for at in ["fd00:1::", "fd00:3::1", "fd00:1:0:0:0:1::1", "::"] {
            let found =
                Directory { ip: IpVersion::V6, hosts }.host(at.parse().expect("an address"));
            assert_eq!(found, None, "{at}");
        }
    }

    fn pair(number: usize, ip: IpVersion) -> [String; 2] {
        let PairAddresses { sender, receiver } = PairAddresses::of(number, ip);
        [sender.to_string(), receiver.to_string()]
    }

    #[test]
    fn the_first_addresses_are_easy_to_read_and_all_differ() {
        assert_eq!(pair(0, IpVersion::V4), ["10.1.0.1", "10.2.0.1"]);
        assert_eq!(pair(1, IpVersion::V4), ["10.1.0.2", "10.2.0.2"]);
        assert_eq!(pair(254, IpVersion::V4)[0], "10.1.1.1");
        assert_eq!(pair(PER_NET, IpVersion::V4)[0], "10.3.0.1");
        assert_eq!(pair(0, IpVersion::V6), ["fd00:1::1", "fd00:2::1"]);
        assert_eq!(pair(0xffff, IpVersion::V6)[1], "fd00:2::1:0");
        for ip in [IpVersion::V4, IpVersion::V6] {
            let both = |i| [PairAddresses::of(i, ip).sender, PairAddresses::of(i, ip).receiver];
            let all: BTreeSet<IpAddr> = (0..200_000).flat_map(both).collect();
            assert_eq!(all.len(), 400_000);
        }
    }
}
