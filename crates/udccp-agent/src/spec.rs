//! The specification of an agent: one end of one flow.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use udccp_base::{DataSize, Duration, Seed};
use udccp_scenario::schema::{DccpOptions, Flow, Scenario, Traffic};
use udccp_scenario::{Family, SERVICE};

use crate::error::AgentError;
use crate::kernel::kernel_congestion;

/// Version of the protocol between agent and orchestrator.
pub const SCHEMA: u64 = 1;

/// One end of one flow on one host. Times count from the scenario's time zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// [`SCHEMA`].
    pub schema: u64,
    /// The flow's name.
    pub flow: String,
    /// Which end.
    pub role: Role,
    /// The protocol, and which implementation runs it.
    pub protocol: AgentProtocol,
    /// The address of this host.
    pub local: IpAddr,
    /// The address of the other host.
    pub remote: IpAddr,
    /// The port that the receiver listens on.
    pub port: u16,
    /// What the application sends.
    pub traffic: Traffic,
    /// For traffic that follows a trace: the frame sizes. `traffic` has only the trace's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<u32>,
    /// Largest IP packet in bytes.
    pub packet_bytes: u64,
    /// Read data as soon as they arrive, at the cost of a system call each time. Otherwise they may
    /// wait for some milliseconds, during which a kernel's TCP acknowledges less often.
    #[serde(default)]
    pub prompt: bool,
    /// The flow's seed. The source draws from its stream `source`, as in simulation.
    pub source_seed: u64,
    /// When the sender opens the flow.
    pub start_ns: u64,
    /// When the source stops and the sender closes; absent means never.
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// When the agent ends.
    pub duration_ns: u64,
    /// Length of a sample.
    pub every_ns: u64,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Opens the flow and sends.
    Sender,
    /// Listens on the port and receives.
    Receiver,
}

impl Role {
    /// The role as a word for messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// A protocol, and which implementation runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum AgentProtocol {
    /// The kernel's TCP.
    Tcp {
        /// The congestion control, by the kernel's name.
        congestion: String,
        /// Size of the send buffer in bytes; absent means that the kernel adapts it.
        #[serde(default)]
        send_buffer: Option<u64>,
        /// Size of the receive buffer in bytes; absent means that the kernel adapts it.
        #[serde(default)]
        receive_buffer: Option<u64>,
    },
    /// The kernel's UDP.
    Udp,
    /// DCCP.
    Dccp {
        /// Which DCCP implementation.
        stack: DccpStack,
    },
}

/// A DCCP implementation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum DccpStack {
    /// The sockets of crate `udccp`.
    Ours {
        /// How packets travel.
        transport: DccpTransport,
        /// The protocol by its name in scenarios (`dccp/ccid2`).
        protocol: String,
        /// The options of the flow.
        #[serde(default)]
        options: Box<DccpOptions>,
        /// Pass many datagrams to the kernel at once (UDP GSO). Devices on the path may see them as
        /// one packet, so enable this only if the first device splits them.
        #[serde(default)]
        offload: bool,
    },
    /// The sockets of a Linux kernel before 6.16.
    Linux {
        /// The CCID of both half-connections: 2 or 3.
        ccid: u8,
        /// How many packets the kernel queues for non-bulk traffic; absent means the kernel's
        /// default (5). The send buffer limits bulk traffic instead.
        #[serde(default)]
        tx_queue: Option<u32>,
        /// The service code.
        #[serde(default = "service")]
        service: u32,
    },
}

/// How packets of our DCCP travel, with the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum DccpTransport {
    /// In UDP datagrams (RFC 6773).
    UdpEncap {
        /// The receiver's UDP port.
        port: u16,
    },
    /// As IP protocol 33.
    Raw,
}

/// Which implementation runs the DCCP flows of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DccpImplementation {
    /// Crate `udccp`.
    Ours {
        /// How packets travel; the UDP port is the flow's.
        transport: OurTransport,
        /// Pass many datagrams to the kernel at once, as in [`DccpStack::Ours`].
        offload: bool,
    },
    /// The kernel's DCCP.
    Linux,
}

/// How packets of our DCCP travel, before a port is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OurTransport {
    /// In UDP datagrams; the UDP port is the flow's.
    UdpEncap,
    /// As IP protocol 33.
    Raw,
}

const fn service() -> u32 {
    SERVICE.0
}

impl AgentSpec {
    /// The specifications of both ends of a flow for a run with this seed, the sender first. `at`
    /// gives their addresses, and `port` is the port that the receiver listens on. Random choices
    /// (starting phase, source) equal those of a simulation.
    ///
    /// # Errors
    /// The flow cannot run on a real network.
    pub fn pair(
        scenario: &Scenario,
        flow: &Flow,
        seed: Seed,
        [sender, receiver]: [IpAddr; 2],
        port: u16,
        dccp: DccpImplementation,
    ) -> Result<[Self; 2], AgentError> {
        let frames = match &*flow.traffic {
            Traffic::VideoTrace { trace, .. } => trace.bytes.to_vec(),
            _ => Vec::new(),
        };
        let one = Self {
            schema: SCHEMA,
            flow: flow.name.clone(),
            role: Role::Sender,
            protocol: AgentProtocol::of(flow, port, dccp)?,
            local: sender,
            remote: receiver,
            port,
            traffic: Traffic::clone(&flow.traffic),
            frames,
            packet_bytes: flow.packet.bytes(),
            prompt: false,
            source_seed: seed.derive("flow").derive(&flow.name).0,
            start_ns: start_of(scenario, flow, seed).as_nanos(),
            stop_ns: flow.stop.map(Duration::as_nanos),
            duration_ns: scenario.time.duration.as_nanos(),
            every_ns: scenario.time.measure.every.as_nanos(),
        };
        let other = Self { role: Role::Receiver, local: receiver, remote: sender, ..one.clone() };
        Ok([one, other])
    }

    /// Parses the line that starts an agent.
    ///
    /// # Errors
    /// The line is not a specification, or has another version.
    pub fn parse(line: &str) -> Result<Self, AgentError> {
        let spec: Self =
            serde_json::from_str(line).map_err(|e| AgentError::Spec { why: e.to_string() })?;
        if spec.schema != SCHEMA {
            let why = format!("it has version {}, this program reads {SCHEMA}", spec.schema);
            return Err(AgentError::Spec { why });
        }
        if spec.every_ns == 0 || spec.duration_ns == 0 {
            return Err(AgentError::Spec { why: "a time is zero".to_owned() });
        }
        Ok(spec)
    }

    /// What the application sends, with the frames of its trace.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = self.traffic.clone();
        if let Traffic::VideoTrace { trace, .. } = &mut traffic {
            trace.bytes = self.frames.as_slice().into();
        }
        traffic
    }
}

impl AgentProtocol {
    /// The protocol and implementation for a flow with this `port`.
    ///
    /// # Errors
    /// The implementation does not have the flow's protocol or one of its options.
    pub fn of(flow: &Flow, port: u16, dccp: DccpImplementation) -> Result<Self, AgentError> {
        match flow.protocol.family {
            Family::Udp => Ok(Self::Udp),
            Family::Tcp => {
                let name = flow.protocol.name;
                let congestion = kernel_congestion(name)
                    .ok_or_else(|| AgentError::NotInLinux { protocol: name.to_owned() })?;
                Ok(Self::Tcp {
                    congestion: congestion.to_owned(),
                    send_buffer: flow.tcp.send_buffer.map(DataSize::bytes),
                    receive_buffer: flow.tcp.receive_buffer.map(DataSize::bytes),
                })
            }
            Family::Dccp => Ok(Self::Dccp { stack: DccpStack::of(flow, port, dccp)? }),
        }
    }
}

impl DccpStack {
    fn of(flow: &Flow, port: u16, dccp: DccpImplementation) -> Result<Self, AgentError> {
        let options = &flow.dccp;
        let absent = [
            ("nat", options.nat.is_some()),
            ("invite", options.invite == Some(true)),
            ("quick_start", options.quick_start.is_some()),
        ];
        if let Some((option, _)) = absent.into_iter().find(|(_, is_set)| *is_set) {
            let what = format!("flow \"{}\" has dccp.{option}", flow.name);
            return Err(AgentError::SimulationOnly { what });
        }
        let protocol = flow.protocol.name;
        Ok(match dccp {
            DccpImplementation::Ours { transport, offload } => Self::Ours {
                transport: match transport {
                    OurTransport::UdpEncap => DccpTransport::UdpEncap { port },
                    OurTransport::Raw => DccpTransport::Raw,
                },
                protocol: protocol.to_owned(),
                options: Box::new(options.as_ref().clone()),
                offload,
            },
            DccpImplementation::Linux => Self::Linux {
                ccid: match flow.protocol.ccid {
                    Some(ccid @ (2 | 3)) => ccid,
                    _ => return Err(AgentError::NotInLinux { protocol: protocol.to_owned() }),
                },
                tx_queue: options.send_queue.map(|queue| queue.0),
                service: options.service.map_or(SERVICE.0, |service| service.0.0),
            },
        })
    }
}

/// When a flow starts in a run with this seed: its `start`, plus the phase that the simulator draws
/// from the same seed.
pub fn start_of(scenario: &Scenario, flow: &Flow, seed: Seed) -> Duration {
    let phase = match (scenario.time.phase.as_nanos(), &*flow.traffic) {
        // The phase of random transfers is drawn with their arrivals.
        (0, _) | (_, Traffic::Poisson { .. }) => 0,
        (phase, _) => seed.stream(&format!("phase/{}", flow.name)).below(phase),
    };
    flow.start + Duration::from_nanos(phase)
}
