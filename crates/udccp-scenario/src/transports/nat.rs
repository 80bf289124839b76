//! Hosts behind NATs.

use core::net::{IpAddr, Ipv4Addr};

use udccp_base::Transport;
use udccp_nat::{Filtering, HostBehindNat, Nat, NatConfig};
use udccp_sim::PairAddresses;

use super::Ends;
use crate::schema::{Flow, NatPlace};

/// The internal addresses of a flow's hosts, and their external ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct NatAddresses {
    outside: PairAddresses,
    /// The sender's own address.
    pub(super) sender: IpAddr,
    /// The receiver's own address.
    pub(super) receiver: IpAddr,
}

/// The internal address of a host behind a NAT; it may be equal behind different NATs.
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 2));

impl NatAddresses {
    /// The addresses of a flow's hosts.
    pub(super) fn of(flow: &Flow, outside: PairAddresses) -> Self {
        let own = |is_inside: bool, address| if is_inside { PRIVATE } else { address };
        let nat = flow.dccp.nat;
        Self {
            outside,
            sender: own(matches!(nat, Some(NatPlace::Sender | NatPlace::Both)), outside.sender),
            receiver: own(
                matches!(nat, Some(NatPlace::Receiver | NatPlace::Both)),
                outside.receiver,
            ),
        }
    }

    /// The two ends, behind their NATs.
    pub(super) fn ends(self, sender: Box<dyn Transport>, receiver: Box<dyn Transport>) -> Ends {
        Ends {
            sender: behind(sender, self.sender, self.outside.sender),
            receiver: behind(receiver, self.receiver, self.outside.receiver),
        }
    }
}

/// A host at `own` that the network sees at `external`.
fn behind(host: Box<dyn Transport>, own: IpAddr, external: IpAddr) -> Box<dyn Transport> {
    if own == external {
        return host;
    }
    let filtering = Filtering::AddressAndPortDependent;
    let config = NatConfig { filtering, ..NatConfig::new(external) };
    Box::new(HostBehindNat::new(host, Nat::new(config)))
}
