//! Protocols in the simulator: each flow becomes a sending and a receiving transport.

mod dccp;
mod host_model;
mod nat;
mod old_ack_vector;
mod send_buffer;
mod tcp;
#[cfg(test)]
mod tests;
mod timers;
mod udp;

use core::net::{IpAddr, SocketAddr};

use udccp_base::{Seed, Transport};
use udccp_cc::Algorithm;
use udccp_sim::PairAddresses;

use crate::protocol::Family;
use crate::schema::Flow;

pub(crate) use dccp::DccpConfigs;
pub use dccp::{SERVICE, dccp_config};

/// The port that receivers serve.
const SERVER_PORT: u16 = 5001;
/// The port that senders use.
const CLIENT_PORT: u16 = 49_200;

/// The two ends of a flow.
pub(crate) struct Ends {
    /// The active end.
    pub(crate) sender: Box<dyn Transport>,
    /// The passive end.
    pub(crate) receiver: Box<dyn Transport>,
}

/// Builds both ends of a flow; `seed` is the flow's own. `algorithm` replaces the window algorithm
/// of its protocol.
///
/// # Errors
/// Settings that contradict each other, as text.
pub(crate) fn build(
    flow: &Flow,
    at: PairAddresses,
    seed: Seed,
    algorithm: Option<&Algorithm>,
    configs: &mut DccpConfigs,
) -> Result<Ends, String> {
    match flow.protocol.family {
        Family::Dccp => dccp::build(flow, at, seed, algorithm, configs),
        Family::Tcp => tcp::build(flow, at, seed, algorithm),
        Family::Udp if algorithm.is_some() => Err("UDP has no window to control".to_owned()),
        Family::Udp => Ok(udp::build(at)),
    }
}

/// An address without a UDP encapsulation port.
fn raw(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 0)
}
