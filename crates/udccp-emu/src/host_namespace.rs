//! A host: a namespace with a TUN device, configured for one end of a flow.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use udccp_netns::{Host, TcpMetrics};
use udccp_scenario::schema::{Flow, TcpOptions, TcpProfile};

use crate::tun::{Card, NAME, Tun};

/// Limit of TCP's buffers unless a flow sets one: twice the largest path of 1 Gbit/s and 200 ms.
/// The kernel's default limit (4 to 6 MB) would restrict long fast paths.
const TCP_BUFFER: u64 = 64 << 20;

/// A host of the network.
#[derive(Debug)]
pub(crate) struct HostNamespace {
    pub(crate) host: Host,
    pub(crate) tun: Arc<Tun>,
}

impl HostNamespace {
    /// Creates a host for one end of a flow, with this address.
    pub(crate) fn new(flow: &Flow, address: IpAddr) -> io::Result<Self> {
        let card = card(flow, address)?;
        let host = Host::new()?;
        let tun = Arc::new(host.run(move || Tun::open(&card))?);
        Ok(Self { host, tun })
    }

    /// Packets that the kernel dropped because the emulator did not read them in time.
    pub(crate) fn unread(&self) -> io::Result<u64> {
        Tun::dropped(&self.host.read_net("dev")?)
    }
}

fn card(flow: &Flow, address: IpAddr) -> io::Result<Card> {
    let mtu = u32::try_from(flow.packet.bytes()).map_err(io::Error::other)?;
    // IP and TCP headers.
    let segment = mtu.saturating_sub(if address.is_ipv4() { 40 } else { 60 });
    let metrics = metrics(&flow.tcp, segment);
    let mut settings = settings(&flow.tcp);
    settings.extend(ipv6_settings(address.is_ipv6()));
    Ok(Card { address, mtu, metrics, settings })
}

/// TCP options of a scenario that a route can set.
fn metrics(tcp: &TcpOptions, segment: u32) -> TcpMetrics {
    let millis = tcp.min_rto.map(|least| u32::try_from(least.as_millis()).unwrap_or(u32::MAX));
    TcpMetrics {
        initial_window: tcp.initial_window.map(|window| window.0.packets(segment)),
        quick_ack: tcp.delayed_ack == Some(false),
        least_rto_ms: millis,
        max_window: tcp.max_window.map(|most| most.0),
    }
}

/// Settings of a host. Its namespace is new, so the settings affect nothing else, and TCP has no
/// cached metrics of earlier connections.
fn settings(tcp: &TcpOptions) -> Vec<(String, String)> {
    let most = |own: Option<udccp_base::DataSize>| own.map_or(TCP_BUFFER, |size| size.bytes());
    let range = |most: u64| format!("4096 {} {most}", most.min(131_072));
    // They apply to TCP over IPv6 too.
    vec![
        ("ipv4/tcp_rmem".to_owned(), range(most(tcp.receive_buffer))),
        ("ipv4/tcp_wmem".to_owned(), range(most(tcp.send_buffer))),
        ("ipv4/tcp_ecn".to_owned(), u8::from(tcp.ecn == Some(true)).to_string()),
    ]
}

/// Only the flows' traffic may be on the path: disables router solicitation, and address
/// configuration, which neighbours would see.
fn ipv6_settings(is_used: bool) -> Vec<(String, String)> {
    let of = |device: &str, key: &str, value: u8| {
        (format!("ipv6/conf/{device}/{key}"), value.to_string())
    };
    if !is_used {
        return vec![of("all", "disable_ipv6", 1)];
    }
    vec![
        of("all", "disable_ipv6", 0),
        of(NAME, "accept_ra", 0),
        of(NAME, "router_solicitations", 0),
        // Mode 1: no automatic addresses.
        of(NAME, "addr_gen_mode", 1),
    ]
}

/// TCP options of a flow that cannot be set in a kernel, each as a sentence.
pub(crate) fn gaps(flow: &Flow) -> Vec<String> {
    let TcpOptions {
        profile,
        ack_counting,
        window_reduction,
        loss_detection,
        window_cut,
        initial_ssthresh,
        timestamps,
        small_queues,
        ..
    } = &*flow.tcp;
    let keys = [
        ("profile", *profile != TcpProfile::Modern),
        ("ack_counting", ack_counting.is_some()),
        ("window_reduction", window_reduction.is_some()),
        ("loss_detection", loss_detection.is_some()),
        ("window_cut", window_cut.is_some()),
        ("initial_ssthresh", initial_ssthresh.is_some()),
        ("timestamps", timestamps.is_some()),
        ("small_queues", *small_queues == Some(false)),
    ];
    let set = keys.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(key, _)| format!("flow \"{}\": tcp.{key} is the kernel's own", flow.name)).collect()
}
