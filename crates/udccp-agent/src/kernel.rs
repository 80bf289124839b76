//! Checks which congestion controls and protocols this kernel has, and selects them on a socket.

use udccp_scenario::schema::{Flow, TcpOptions, TcpProfile};

use crate::error::AgentError;

/// The kernel's name for the congestion control of a TCP protocol, or `None` if Linux has no
/// equivalent. The kernel has only one CUBIC (RFC 9438 with HyStart), so every variant maps to it.
pub fn kernel_congestion(protocol: &str) -> Option<&'static str> {
    Some(match protocol {
        "tcp/newreno" => "reno",
        "tcp/bic" => "bic",
        "tcp/cubic" | "tcp/cubic-rfc9438" => "cubic",
        "tcp/highspeed" => "highspeed",
        "tcp/htcp" => "htcp",
        "tcp/hybla" => "hybla",
        "tcp/illinois" => "illinois",
        "tcp/lp" => "lp",
        "tcp/scalable" => "scalable",
        "tcp/vegas" => "vegas",
        "tcp/veno" => "veno",
        "tcp/westwood" => "westwood",
        "tcp/yeah" => "yeah",
        "tcp/bbr" => "bbr",
        _ => return None,
    })
}

/// The congestion controls that are loaded in this kernel, by the kernel's names.
pub fn available_congestion() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Checks whether this user's sockets may use a congestion control.
///
/// # Errors
/// The error that [`crate::serve`] would return.
pub fn check_congestion(name: &str) -> Result<(), AgentError> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .map_err(|source| AgentError::Io { what: "cannot open a TCP socket", source })?;
    set_congestion(&socket, name)
}

pub(crate) fn set_congestion(socket: &socket2::Socket, name: &str) -> Result<(), AgentError> {
    socket.set_tcp_congestion(name.as_bytes()).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOENT) => {
            AgentError::NoCongestion { name: name.to_owned(), available: available_congestion() }
        }
        Some(libc::EPERM) => AgentError::CongestionDenied { name: name.to_owned() },
        _ => AgentError::Io { what: "cannot choose a congestion control", source },
    })
}

/// Whether this kernel has DCCP sockets.
pub fn has_dccp() -> bool {
    crate::socket::linux::socket(core::net::Ipv4Addr::LOCALHOST.into()).is_ok()
}

/// The TCP options of a scenario's flow that a kernel socket cannot honour, each as a sentence.
pub fn unsupported_tcp_options(flow: &Flow) -> Vec<String> {
    let TcpOptions {
        profile,
        delayed_ack,
        ack_counting,
        window_reduction,
        loss_detection,
        initial_window,
        window_cut,
        max_window,
        initial_ssthresh,
        min_rto,
        timestamps,
        offload,
        small_queues,
        ecn,
        receive_buffer: _,
        send_buffer: _,
    } = &*flow.tcp;
    let keys = [
        ("profile", *profile != TcpProfile::Modern),
        ("delayed_ack", delayed_ack.is_some()),
        ("ack_counting", ack_counting.is_some()),
        ("window_reduction", window_reduction.is_some()),
        ("loss_detection", loss_detection.is_some()),
        ("initial_window", initial_window.is_some()),
        ("window_cut", window_cut.is_some()),
        ("max_window", max_window.is_some()),
        ("initial_ssthresh", initial_ssthresh.is_some()),
        ("min_rto", min_rto.is_some()),
        ("timestamps", timestamps.is_some()),
        // A testbed's links carry single packets.
        ("offload", *offload == Some(true)),
        ("small_queues", *small_queues == Some(false)),
        ("ecn", ecn.is_some()),
    ];
    let set = keys.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(key, _)| format!("tcp.{key} is the kernel's own")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tcp_of_a_scenario_but_compound_is_in_linux() {
        let tcp =
            udccp_scenario::PROTOCOLS.iter().filter(|p| p.family == udccp_scenario::Family::Tcp);
        let absent: Vec<&str> =
            tcp.map(|p| p.name).filter(|name| kernel_congestion(name).is_none()).collect();
        assert_eq!(absent, ["tcp/compound"]);
    }
}
