//! Which host has which address.

use core::net::{IpAddr, Ipv4Addr};

/// The addresses of the two hosts of a pair. They are known before the hosts are, because a
/// transport is built with its addresses: senders are 10.1.0.1, 10.1.0.2 and so on, the receivers
/// 10.2.0.1 and so on, in the order in which pairs are added.
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
    /// Most pairs that the plan has addresses for (10.0.0.0/8 in two halves).
    pub const MAX_PAIRS: usize = PER_NET * 127;

    /// The addresses of the pair with this number, counted from 0; numbers from
    /// [`Self::MAX_PAIRS`] on begin again.
    pub const fn of(pair: usize) -> Self {
        let net = (pair / PER_NET % 127) as u8;
        let host = pair % PER_NET;
        let (high, low) = ((host / 254) as u8, (host % 254 + 1) as u8);
        Self {
            sender: IpAddr::V4(Ipv4Addr::new(10, 1 + 2 * net, high, low)),
            receiver: IpAddr::V4(Ipv4Addr::new(10, 2 + 2 * net, high, low)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_first_addresses_are_easy_to_read_and_all_differ() {
        assert_eq!(PairAddresses::of(0).sender.to_string(), "10.1.0.1");
        assert_eq!(PairAddresses::of(1).receiver.to_string(), "10.2.0.2");
        assert_eq!(PairAddresses::of(254).sender.to_string(), "10.1.1.1");
        assert_eq!(PairAddresses::of(PER_NET).sender.to_string(), "10.3.0.1");
        let all: BTreeSet<IpAddr> = (0..200_000)
            .flat_map(|i| [PairAddresses::of(i).sender, PairAddresses::of(i).receiver])
            .collect();
        assert_eq!(all.len(), 400_000);
    }
}
