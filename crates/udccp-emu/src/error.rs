//! Why a scenario could not be emulated.

use std::io;

use udccp_scenario::RunError;
use udccp_testbed::Error as TestbedError;

/// Why a scenario could not be emulated. Everything that was set up has been removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmuError {
    /// The device for creating TUN devices does not exist, or may not be opened.
    #[error("cannot open {}: {error}", crate::tun::DEVICE)]
    Tun {
        /// The system's error.
        error: io::Error,
    },
    /// The user may not create network namespaces, and there are no user namespaces.
    #[error("this user can create neither a network namespace nor a user namespace: {error}")]
    UserNamespace {
        /// The system's error.
        error: io::Error,
    },
    /// The kernel has no network namespaces, or its limit is reached.
    #[error("cannot create a network namespace: {error}")]
    Namespaces {
        /// The system's error.
        error: io::Error,
    },
    /// A host could not be set up.
    #[error("cannot set up the {role} of flow \"{flow}\": {error}")]
    Host {
        /// The name of the flow.
        flow: String,
        /// Sender or receiver.
        role: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The kernel lacks the congestion control of a flow.
    #[error("flow \"{flow}\": this kernel has no congestion control {wanted} (for {protocol})")]
    CongestionControl {
        /// The name of the flow.
        flow: String,
        /// The flow's protocol.
        protocol: &'static str,
        /// The kernel's name for it.
        wanted: String,
        /// The congestion controls that the kernel has.
        there: Vec<String>,
    },
    /// A flow that real programs cannot run.
    #[error("flow \"{flow}\" cannot be emulated: {why}")]
    Flow {
        /// The name of the flow.
        flow: String,
        /// The reason.
        why: String,
    },
    /// The kernel has no IPv6.
    #[error("this kernel has no IPv6")]
    NoIpv6,
    /// Packets of a flow are smaller than the MTU that IPv6 requires.
    #[error(
        "flow \"{flow}\" has packets of at most {bytes} B; devices with IPv6 carry at least \
         {least} B"
    )]
    ShortPackets {
        /// The name of the flow.
        flow: String,
        /// Its largest packet.
        bytes: u64,
        /// The smallest MTU of IPv6.
        least: u64,
    },
    /// The scenario has more hosts than there can be namespaces.
    #[error("the scenario has {hosts} hosts; the emulator has room for {limit}")]
    TooManyHosts {
        /// Hosts of the scenario.
        hosts: usize,
        /// The limit.
        limit: usize,
    },
    /// The scenario sends more packets than this machine can move.
    #[error(
        "the scenario sends {wanted} packets a second over its links; this machine can move about \
         {}",
        rounded(*able)
    )]
    TooFast {
        /// Packets per second at the configured rates.
        wanted: u64,
        /// Packets per second that this machine moves.
        able: u64,
    },
    /// What the kernel's traffic control cannot do, each as a clause.
    #[error("traffic control cannot build the path of this scenario: {}", .0.join("; "))]
    NotForTc(Vec<String>),
    /// The kernel lacks features that the path needs.
    #[error("Linux {release} has no {}", words(lacks))]
    KernelLacks {
        /// Release of the kernel.
        release: String,
        /// The missing features, and what each is used for.
        lacks: Vec<(&'static str, &'static str)>,
    },
    /// The scenario could not be run in the kernel.
    #[error(transparent)]
    Testbed(TestbedError),
    /// A program that runs an end of a flow failed.
    #[error("the {role} of flow \"{flow}\": {message}")]
    Agent {
        /// The name of the flow.
        flow: String,
        /// Sender or receiver.
        role: &'static str,
        /// Its message.
        message: String,
        /// Its hint.
        hint: Option<String>,
        /// Its exit code.
        code: u8,
    },
    /// The run was stopped before its end.
    #[error("the run was ended early")]
    Stopped,
    /// The network could not be set up or run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// What was being done.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl EmuError {
    /// Whether the machine lacks something, so that the scenario might run on another.
    pub fn is_of_machine(&self) -> bool {
        matches!(
            self,
            Self::Tun { .. }
                | Self::UserNamespace { .. }
                | Self::Namespaces { .. }
                | Self::CongestionControl { .. }
                | Self::NoIpv6
                | Self::KernelLacks { .. }
                | Self::Testbed(TestbedError::Program(_))
                | Self::TooFast { .. }
        )
    }

    /// Whether the scenario asks for something impossible.
    pub fn is_of_scenario(&self) -> bool {
        matches!(
            self,
            Self::Flow { .. }
                | Self::ShortPackets { .. }
                | Self::NotForTc(_)
                | Self::TooManyHosts { .. }
                | Self::Run(RunError::Flow { .. })
        )
    }

    /// The exit code of the agent that failed, if one did.
    pub const fn agent_code(&self) -> Option<u8> {
        match self {
            Self::Agent { code, .. } => Some(*code),
            Self::Testbed(TestbedError::Agent(error)) => Some(error.exit_code()),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<String> {
        Some(match self {
            Self::Tun { error } if error.kind() == io::ErrorKind::PermissionDenied => {
                "run as root, or: sudo chmod 0666 /dev/net/tun (the default of most distributions)"
                    .to_owned()
            }
            Self::Tun { .. } => "sudo modprobe tun; in a container, give it --device /dev/net/tun \
                                 and --cap-add NET_ADMIN"
                .to_owned(),
            Self::UserNamespace { error } if error.kind() == io::ErrorKind::InvalidInput => {
                "run as root; a program with threads cannot enter a user namespace".to_owned()
            }
            Self::UserNamespace { .. } => "run as root, or allow user namespaces: sudo sysctl -w \
                 user.max_user_namespaces=1000 (and kernel.unprivileged_userns_clone=1, \
                 kernel.apparmor_restrict_unprivileged_userns=0 where these exist)"
                .to_owned(),
            Self::Namespaces { .. } => {
                "sudo sysctl -w user.max_net_namespaces=1000, or a kernel with CONFIG_NET_NS"
                    .to_owned()
            }
            Self::CongestionControl { wanted, there, .. } => {
                format!("available: {}; sudo modprobe tcp_{wanted} may add it", there.join(", "))
            }
            Self::NoIpv6 => "boot without ipv6.disable=1, or run it without --ipv6".to_owned(),
            Self::ShortPackets { least, .. } => {
                format!("packet = \"{least} B\" or more, or IPv4")
            }
            Self::TooManyHosts { .. } => {
                "fewer flows (each has two hosts), or udccp sim".to_owned()
            }
            Self::TooFast { .. } => {
                "a lower rate, larger packets, a faster machine, or udccp sim".to_owned()
            }
            Self::NotForTc(_) => "leave out --path: the emulator's own links support it".to_owned(),
            Self::KernelLacks { lacks, .. } => lacks_advice(lacks),
            Self::Testbed(error) => return error.hint().map(str::to_owned),
            Self::Agent { hint, .. } => return hint.clone(),
            Self::Flow { .. } => "udccp sim runs it in simulation".to_owned(),
            _ => return None,
        })
    }
}

/// Rounds to two digits: measurements vary from run to run.
fn rounded(n: u64) -> u64 {
    let unit = 10_u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    n / unit * unit
}

/// The missing features in words.
fn words(lacks: &[(&str, &str)]) -> String {
    let one = |(name, serves): &(&str, &str)| format!("{name} (for: {serves})");
    lacks.iter().map(one).collect::<Vec<_>>().join(", no ")
}

/// Kernel modules are named after the feature; those of queues have a prefix.
fn lacks_advice(lacks: &[(&str, &str)]) -> String {
    let module = |name: &str| match name {
        "veth" | "ifb" => name.to_owned(),
        "matchall" => format!("cls_{name}"),
        "mirred" => format!("act_{name}"),
        "pfifo" | "bfifo" | "pfifo_head_drop" => "sch_fifo".to_owned(),
        _ => format!("sch_{name}"),
    };
    let modules: Vec<String> = lacks.iter().map(|(name, _)| module(name)).collect();
    format!(
        "sudo modprobe -a {}, if the kernel has modules for it; without --path, the emulator's \
         own links need no such modules, and the kernel of udccp linux has them all",
        modules.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_capacity_is_reported_to_two_digits() {
        assert_eq!([0, 7, 42, 105_272, 99_858].map(rounded), [0, 7, 42, 100_000, 99_000]);
    }

    #[test]
    fn missing_kernel_features_are_reported_with_their_modules() {
        let lacks = vec![("netem", "delay"), ("ifb", "reordering")];
        let error = EmuError::KernelLacks { release: "6.18".to_owned(), lacks };
        let text = error.to_string();
        assert_eq!(text, "Linux 6.18 has no netem (for: delay), no ifb (for: reordering)");
        assert!(error.advice().unwrap().starts_with("sudo modprobe -a sch_netem ifb, "));
        assert!(error.is_of_machine() && !error.is_of_scenario());
    }
}
