//! Selects the ns-2 agent for a flow, and its settings.

use udccp_base::{DataRate, Duration};
use udccp_cc::InitialWindow;
use udccp_link::{LinkConfig, QueueLimit};
use udccp_scenario::schema::{Flow, Scenario, TcpProfile, Traffic};
use udccp_scenario::{Family, hop_configs, routers_of};

/// Bytes of TCP and IP header, and of the timestamps that ns-2 adds to data packets.
const TCP_HEADER_BYTES: u64 = 40;
const TCP_TIMESTAMP_BYTES: u64 = 10;
/// Header of a DCCP data packet in ns-2. It has no IP header.
const DCCP_HEADER_BYTES: u64 = 16;
/// Headers of UDP and IP, which ns-2 does not add.
const UDP_HEADER_BYTES: u64 = 28;
/// Largest Ack Vector that one option holds, in bytes.
const ACK_VECTOR_BYTES: u64 = 253;
/// Packets assumed for an unlimited queue where windows are derived from it.
const UNLIMITED_PACKETS: u64 = 1000;
/// Slow start of CCID 2, where it must be limited, ends at this fraction of the path's capacity.
const SLOW_START_PART: u64 = 4;

/// The ns-2 agent that runs a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Player {
    /// `Agent/TCP/Sack1`: NewReno with SACK, ns-2's own.
    Sack,
    /// `Agent/TCP/Linux` with a congestion control of Linux 2.6.
    Linux(&'static str),
    /// `Agent/DCCP/TCPlike`.
    Ccid2,
    /// `Agent/DCCP/TFRC`.
    Ccid3,
    /// `Agent/UDP`.
    Udp,
}

/// The agent for a flow; `None` if ns-2 has none.
pub(crate) fn player(flow: &Flow) -> Option<Player> {
    Some(match flow.protocol.name {
        "tcp/newreno" if flow.tcp.profile == TcpProfile::Rfc => Player::Sack,
        "tcp/newreno" => Player::Linux("reno"),
        "tcp/bic" => Player::Linux("bic"),
        "tcp/cubic" => Player::Linux("cubic"),
        "tcp/highspeed" => Player::Linux("highspeed"),
        "tcp/htcp" => Player::Linux("htcp"),
        "tcp/hybla" => Player::Linux("hybla"),
        "tcp/illinois" => Player::Linux("illinois"),
        "tcp/lp" => Player::Linux("lp"),
        "tcp/scalable" => Player::Linux("scalable"),
        "tcp/vegas" => Player::Linux("vegas"),
        "tcp/veno" => Player::Linux("veno"),
        "tcp/westwood" => Player::Linux("westwood"),
        "tcp/yeah" => Player::Linux("yeah"),
        "tcp/compound" => Player::Linux("compound"),
        "dccp/ccid2" => Player::Ccid2,
        "dccp/ccid3" => Player::Ccid3,
        "udp" => Player::Udp,
        _ => return None,
    })
}

/// Payload bytes of each data packet.
pub(crate) fn payload_bytes(flow: &Flow) -> u64 {
    match *flow.traffic {
        Traffic::ConstantRate { size, .. } => size.bytes(),
        _ => flow.packet.bytes().saturating_sub(header_bytes(flow)),
    }
}

/// The value of `packetSize_`, to which ns-2 adds its own headers.
pub(crate) fn packet_size(flow: &Flow) -> u64 {
    match flow.protocol.family {
        Family::Udp => payload_bytes(flow) + UDP_HEADER_BYTES,
        Family::Dccp | Family::Tcp => payload_bytes(flow),
    }
}

fn header_bytes(flow: &Flow) -> u64 {
    match flow.protocol.family {
        Family::Tcp if timestamps(flow) => TCP_HEADER_BYTES + TCP_TIMESTAMP_BYTES,
        Family::Tcp => TCP_HEADER_BYTES,
        Family::Dccp => DCCP_HEADER_BYTES,
        Family::Udp => UDP_HEADER_BYTES,
    }
}

/// Whether TCP uses timestamps; all profiles do.
pub(crate) fn timestamps(flow: &Flow) -> bool {
    flow.tcp.timestamps.unwrap_or(true)
}

/// Whether TCP delays acknowledgements; all profiles do.
pub(crate) fn delays_acks(flow: &Flow) -> bool {
    flow.tcp.delayed_ack.unwrap_or(true)
}

/// Initial window of a TCP flow in packets.
pub(crate) fn initial_window(flow: &Flow) -> u32 {
    let segment = u32::try_from(flow.packet.bytes().saturating_sub(TCP_HEADER_BYTES));
    let own = match flow.tcp.profile {
        TcpProfile::Linux2622 => InitialWindow::Rfc3390,
        TcpProfile::Modern | TcpProfile::Rfc => InitialWindow::Rfc6928,
    };
    let window = flow.tcp.initial_window.map_or(own, |window| window.0);
    window.packets(segment.unwrap_or(u32::MAX))
}

/// Lower bound of TCP's retransmission timeout.
pub(crate) fn min_rto(flow: &Flow) -> Duration {
    let own = match flow.tcp.profile {
        TcpProfile::Rfc => Duration::from_secs(1),
        TcpProfile::Modern | TcpProfile::Linux2622 => Duration::from_millis(200),
    };
    flow.tcp.min_rto.unwrap_or(own)
}

/// Largest window of a TCP flow in packets, from buffers and limits.
pub(crate) fn max_window(scenario: &Scenario, flow: &Flow, player: Player) -> u64 {
    // Three quarters of 4 MiB in Linux 2.6.22.
    let (receive, send) = match flow.tcp.profile {
        TcpProfile::Linux2622 => (3 << 20, 4 << 20),
        TcpProfile::Modern | TcpProfile::Rfc => (16 << 20, 64 << 20),
    };
    let receive = flow.tcp.receive_buffer.map_or(receive, |size| size.bytes());
    let send = flow.tcp.send_buffer.map_or(send, |size| size.bytes());
    let buffers = receive.min(send) / payload_bytes(flow).max(1);
    let limit = flow.tcp.max_window.map_or(u64::MAX, |window| window.0.into());
    let window = buffers.min(limit).max(1);
    match player {
        // These retransmit endlessly after a slow start that overshoots by much.
        Player::Linux("bic" | "cubic") => window.min(held_packets(scenario, flow) * 5 / 4),
        _ => window,
    }
}

/// The slow start threshold of CCID 2, if slow start must end early.
pub(crate) fn ccid2_threshold(scenario: &Scenario, flow: &Flow) -> Option<u64> {
    let held = held_packets(scenario, flow);
    (held > ACK_VECTOR_BYTES).then_some(held / SLOW_START_PART)
}

/// Packets that the path and the bottleneck's queue can hold.
fn held_packets(scenario: &Scenario, flow: &Flow) -> u64 {
    let link = bottleneck(scenario, flow);
    let bytes = flow.packet.bytes().max(1);
    let rate = link.rate.unwrap_or(DataRate::from_mbps(1));
    let path = rate.bytes_in(scenario.topology.rtt()).bytes() / bytes;
    let queue = match link.limit {
        QueueLimit::Unlimited => UNLIMITED_PACKETS,
        QueueLimit::Packets(packets) => packets.into(),
        QueueLimit::Bytes(limit) => limit / bytes,
    };
    (path + queue).max(2)
}

/// The link between the routers in the flow's direction.
fn bottleneck(scenario: &Scenario, flow: &Flow) -> LinkConfig {
    let (enters, leaves) = routers_of(scenario, flow);
    let hop = hop_configs(scenario).swap_remove(0);
    if enters < leaves { hop.forward } else { hop.reverse }
}
