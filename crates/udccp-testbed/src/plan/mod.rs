//! A plan for a kernel: namespaces, wires, traffic control, changes over time, agents, and what to
//! watch.

mod network;
mod scenario;
mod shaper;
#[cfg(test)]
mod tests;

use core::net::IpAddr;

use serde::{Deserialize, Serialize};
use udccp_agent::AgentSpec;

pub(crate) use network::{IpStep, RouteMetrics, Wire, WireEnd};
pub use scenario::{Built, DccpStack, PlanOptions, plan};

/// Version of plans and observations.
pub const SCHEMA: u32 = 1;

/// A whole run. Times count from the scenario's time zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: u32,
    pub(crate) duration_ns: u64,
    /// Time between two samples of the queues.
    pub(crate) look_ns: u64,
    /// Settings of the kernel.
    pub(crate) files: Vec<Setting>,
    pub(crate) namespaces: Vec<Namespace>,
    /// The connections between namespaces.
    pub(crate) wires: Vec<Wire>,
    pub(crate) steps: Vec<Step>,
    /// Devices whose packets are recorded.
    pub(crate) taps: Vec<Tap>,
    /// Devices whose queues are watched.
    pub(crate) queues: Vec<Device>,
    pub(crate) agents: Vec<Agent>,
}

/// A file below `/proc/sys` and the value to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) path: String,
    pub(crate) value: String,
}

/// A host or a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) files: Vec<Setting>,
    /// Its devices, addresses and routes.
    pub(crate) ip: Vec<IpStep>,
    /// Lines for `tc -batch`.
    pub(crate) tc: Vec<String>,
}

/// A change of traffic control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) at_ns: u64,
    pub(crate) namespace: usize,
    pub(crate) tc: Vec<String>,
}

/// A device in a namespace, which is given by its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) namespace: usize,
    pub(crate) name: String,
}

/// A host's device on which packets are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tap {
    pub(crate) device: Device,
    /// The host's address: packets with this source address are outgoing.
    pub(crate) address: IpAddr,
    /// Whether UDP datagrams contain DCCP packets.
    pub(crate) encapsulated: bool,
}

/// A program in a namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    pub(crate) namespace: usize,
    pub(crate) spec: AgentSpec,
}

impl Setting {
    pub(crate) fn new(path: impl Into<String>, value: impl ToString) -> Self {
        Self { path: path.into(), value: value.to_string() }
    }
}

impl Plan {
    /// A small network without programs, to test what every plan needs of a kernel.
    pub fn trial() -> Self {
        let space = |name: &str, kind: &str| Namespace {
            name: name.into(),
            ip: vec![IpStep::up("lo", true), IpStep::up("v", false)],
            tc: vec![
                "qdisc add dev v root handle 1: stab overhead -14 linklayer ethernet netem limit \
                 1000 delay 5ms loss random 1%"
                    .into(),
                "qdisc add dev v parent 1:1 handle 2: tbf rate 10mbit burst 1500 limit 10000"
                    .into(),
                format!("qdisc add dev v parent 2:1 handle 3: {kind}"),
            ],
            ..Namespace::default()
        };
        let spaces = [
            space("a", "pfifo limit 10"),
            space("b", "fq_codel limit 10"),
            space("c", "codel limit 10"),
            space("d", "pie limit 10"),
            space("e", "red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 bandwidth 10mbit"),
            space("f", "pfifo_head_drop limit 10"),
        ];
        let wire = |ends: [&str; 2]| {
            let [a, b] = ends.map(|space| WireEnd {
                name: "v".into(),
                namespace: space.into(),
                hardware: None,
                mtu: None,
            });
            Wire::Cable(a, b)
        };
        Self {
            schema: SCHEMA,
            duration_ns: 200_000_000,
            look_ns: 50_000_000,
            files: Vec::new(),
            namespaces: spaces.to_vec(),
            wires: [["a", "b"], ["c", "d"], ["e", "f"]].map(wire).to_vec(),
            steps: Vec::new(),
            taps: Vec::new(),
            queues: vec![Device { namespace: 0, name: "v".into() }],
            agents: Vec::new(),
        }
    }
}
