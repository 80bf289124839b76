//! The errors of an agent, each with a hint what to do about it.

use std::io;
use std::net::SocketAddr;

/// An error of an agent. The message says what happened; [`AgentError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The specification is invalid.
    #[error("the agent's task is invalid: {why}")]
    Spec {
        /// What is wrong.
        why: String,
    },
    /// The scenario uses something that only the simulator offers.
    #[error("{what}: only a simulation can run that")]
    SimulationOnly {
        /// The part.
        what: String,
    },
    /// No Linux kernel has this protocol.
    #[error("no Linux kernel has {protocol}")]
    NotInLinux {
        /// The protocol as scenarios name it.
        protocol: String,
    },
    /// This kernel lacks the congestion control.
    #[error("this kernel has no TCP congestion control \"{name}\"")]
    NoCongestion {
        /// Its name.
        name: String,
        /// The congestion controls that the kernel has.
        available: Vec<String>,
    },
    /// This user may not choose the congestion control.
    #[error("this user may not choose the TCP congestion control \"{name}\"")]
    CongestionDenied {
        /// Its name.
        name: String,
    },
    /// The kernel has no DCCP.
    #[error("this kernel has no DCCP sockets: {source}")]
    NoDccp {
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The user lacks a permission.
    #[error("no permission: {what}")]
    Denied {
        /// What was tried.
        what: String,
    },
    /// The port is taken.
    #[error("port {} on {} is in use", .address.port(), .address.ip())]
    PortInUse {
        /// The address to bind.
        address: SocketAddr,
    },
    /// The address does not belong to this host.
    #[error("{} is not an address of this host", .address.ip())]
    AddressNotLocal {
        /// The address to bind.
        address: SocketAddr,
    },
    /// The peer does not listen on the port.
    #[error("{peer} refused the connection")]
    Refused {
        /// The peer.
        peer: SocketAddr,
    },
    /// No route to the peer.
    #[error("{peer} cannot be reached: {source}")]
    Unreachable {
        /// The peer.
        peer: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// An error of our DCCP.
    #[error(transparent)]
    Dccp(#[from] udccp::Error),
    /// The orchestrator has died.
    #[error("the process that started this agent has ended")]
    Orphaned,
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl AgentError {
    /// The kind of error as one word. Words never change their meaning.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Spec { .. } => "spec",
            Self::SimulationOnly { .. } => "simulation-only",
            Self::NotInLinux { .. } => "not-in-linux",
            Self::NoCongestion { .. } => "no-congestion-control",
            Self::CongestionDenied { .. } => "congestion-control-denied",
            Self::NoDccp { .. } => "no-dccp",
            Self::Denied { .. } => "denied",
            Self::PortInUse { .. } => "port-in-use",
            Self::AddressNotLocal { .. } => "address-not-local",
            Self::Refused { .. } => "refused",
            Self::Unreachable { .. } => "unreachable",
            Self::Dccp(_) => "dccp",
            Self::Orphaned => "orphaned",
            Self::Io { .. } => "io",
        }
    }

    /// The exit code of the agent's process, from the table in `udccp --help`.
    pub const fn exit_code(&self) -> u8 {
        use udccp::Error as E;
        match self {
            Self::Orphaned | Self::Io { .. } => 1,
            Self::Spec { .. } | Self::SimulationOnly { .. } => 4,
            Self::Unreachable { .. } => 5,
            Self::Refused { .. } => 6,
            Self::PortInUse { .. } | Self::AddressNotLocal { .. } => 7,
            Self::NotInLinux { .. }
            | Self::NoCongestion { .. }
            | Self::CongestionDenied { .. }
            | Self::NoDccp { .. }
            | Self::Denied { .. } => 10,
            Self::Dccp(e) => match e {
                E::PortInUse { .. }
                | E::ServiceInUse { .. }
                | E::BindDenied { .. }
                | E::AddressNotLocal { .. } => 7,
                E::RawDenied => 10,
                E::Refused { .. }
                | E::BadServiceCode { .. }
                | E::CcidNotOffered { .. }
                | E::PortClosed { .. }
                | E::TooBusy { .. } => 6,
                E::Unreachable { .. } | E::NoAnswer { .. } => 5,
                E::Lost(_) | E::Closed => 8,
                E::Connect(_) | E::Config(_) => 4,
                _ => 1,
            },
        }
    }

    /// What to do about it, in one sentence.
    pub fn hint(&self) -> String {
        match self {
            Self::Spec { .. } => "agents are started by `udccp emu` and `udccp linux`".to_owned(),
            Self::SimulationOnly { .. } => "run it with `udccp sim`, or remove it".to_owned(),
            Self::NotInLinux { .. } => {
                "run it with `udccp sim`, or choose another protocol".to_owned()
            }
            Self::NoCongestion { name, available } => {
                let have = if available.is_empty() {
                    String::new()
                } else {
                    format!("; it has {}", available.join(", "))
                };
                format!(
                    "load it as root (modprobe tcp_{name}), or run `udccp linux`, whose kernel has \
                     all{have}"
                )
            }
            Self::CongestionDenied { name } => format!(
                "as root: sysctl net.ipv4.tcp_allowed_congestion_control=\"reno cubic {name}\""
            ),
            Self::NoDccp { .. } => {
                "Linux has DCCP up to 6.15, if built so (modprobe dccp_ipv4): run `udccp linux`"
                    .to_owned()
            }
            Self::Denied { .. } => {
                "run it as root; `udccp doctor` shows what else works".to_owned()
            }
            Self::PortInUse { .. } => "stop the program that uses it".to_owned(),
            Self::AddressNotLocal { .. } => "add the address to this host first".to_owned(),
            Self::Refused { .. } => "start the receiver before the sender".to_owned(),
            Self::Unreachable { .. } => "check addresses and routes of both hosts".to_owned(),
            Self::Dccp(e) => e.advice().to_owned(),
            Self::Orphaned => "start it again".to_owned(),
            Self::Io { .. } => "see the system's error".to_owned(),
        }
    }

    /// The error for a socket that could not be bound.
    pub(crate) fn bind(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortInUse { address },
            io::ErrorKind::AddrNotAvailable => Self::AddressNotLocal { address },
            io::ErrorKind::PermissionDenied => Self::Denied { what: format!("bind {address}") },
            _ => Self::Io { what: "cannot bind a socket", source },
        }
    }

    /// The error for a connection that could not be opened.
    pub(crate) fn connect(peer: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused { peer },
            io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::TimedOut => Self::Unreachable { peer, source },
            _ => Self::Io { what: "cannot connect", source },
        }
    }
}
