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
use core::ops::Deref;

use udccp_base::{Seed, Transport};
use udccp_cc::Algorithm;
use udccp_proto::SharedConfig;
use udccp_sim::PairAddresses;
use udccp_tcp::SharedTcpConfig;

use crate::protocol::Family;
use crate::schema::Flow;

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

/// Settings that consecutive flows share where they are equal.
#[derive(Debug, Default)]
pub(crate) struct Configs {
    dccp: Shared<SharedConfig>,
    tcp: Shared<SharedTcpConfig>,
}

/// The settings of the last flow.
#[derive(Debug)]
pub(crate) struct Shared<S>(Option<S>);

impl<S> Default for Shared<S> {
    fn default() -> Self {
        Self(None)
    }
}

impl<S: Deref<Target: PartialEq + Sized> + From<S::Target> + Clone> Shared<S> {
    /// These settings, shared with the last flow if they are equal.
    pub(crate) fn of(&mut self, config: S::Target) -> S {
        match &mut self.0 {
            Some(last) if **last == config => last.clone(),
            last => last.insert(config.into()).clone(),
        }
    }
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
    configs: &mut Configs,
) -> Result<Ends, String> {
    match flow.protocol.family {
        Family::Dccp => dccp::build(flow, at, seed, algorithm, &mut configs.dccp),
        Family::Tcp => tcp::build(flow, at, seed, algorithm, &mut configs.tcp),
        Family::Udp if algorithm.is_some() => Err("UDP has no window to control".to_owned()),
        Family::Udp => Ok(udp::build(at)),
    }
}

/// An address without a UDP encapsulation port.
fn raw(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 0)
}
