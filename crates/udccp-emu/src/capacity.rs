//! Compares a scenario's packet rate with what this machine can forward.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use udccp_base::{DataRate, DataSize};
use udccp_scenario::schema::{CodecName, Direction, Flow, Link, Scenario, Traffic};
use udccp_sim::PairAddresses;

use crate::clock::Clock;
use crate::host_namespace::HostNamespace;
use crate::tun::Tun;

/// Packets sent for the measurement, in bursts that fit into every buffer.
const BURSTS: u32 = 20;
const BURST: u32 = 50;
/// Share of a processor that the devices may use, in percent. The rest is needed for the network,
/// for precise waiting, and for the kernel's side of the devices.
const SHARE_PERCENT: u64 = 40;
/// The port of the measurement.
const PORT: u16 = 9;

/// The packets per second that this machine can forward between two devices.
///
/// # Errors
/// Packets do not arrive.
pub(crate) fn forwarding_rate(
    namespaces: &[HostNamespace; 2],
    at: PairAddresses,
    packet: DataSize,
) -> io::Result<u64> {
    // IP and UDP headers.
    let headers = if at.sender.is_ipv4() { 28 } else { 48 };
    let data = vec![0; packet.bytes() as usize - headers];
    let (from, to) = (at.sender, at.receiver);
    let source = namespaces[0].host.run(move || {
        let socket = UdpSocket::bind((from, PORT))?;
        socket.connect((to, PORT))?;
        Ok(socket)
    })?;
    let _sink = namespaces[1].host.run(move || UdpSocket::bind((to, PORT)))?;
    let mut buffer = vec![0; 65_535];
    let clock = Clock::in_future(udccp_base::Duration::ZERO);
    // Use the best burst: another process may have used the processor during the others.
    let mut best = 0;
    for _ in 0..BURSTS {
        for _ in 0..BURST {
            source.send(&data)?;
        }
        let begun = clock.now();
        let moved = pass_on(&namespaces[0].tun, &namespaces[1].tun, &mut buffer)?;
        let spent = clock.now().saturating_since(begun);
        best = best.max(moved * 1_000_000_000 / spent.as_nanos().max(1));
    }
    if best == 0 {
        return Err(io::Error::other("packets do not come through the TUN devices"));
    }
    Ok(best * SHARE_PERCENT / 100)
}

/// Forwards all packets that wait at one device to the other.
fn pass_on(from: &Arc<Tun>, to: &Arc<Tun>, buffer: &mut [u8]) -> io::Result<u64> {
    let mut moved = 0;
    while let Some(len) = from.read(buffer)? {
        to.write([&buffer[..len], &[], &[]])?;
        moved += 1;
    }
    Ok(moved)
}

/// The most packets per second that a scenario moves: for every link between routers and each
/// direction, what the link or its flows can carry, plus one acknowledgement for every second
/// packet.
pub(crate) fn required_packet_rate(scenario: &Scenario) -> u64 {
    let last = scenario.topology.routers() as u64;
    let mut packets = 0;
    for (hop, (forward, reverse)) in scenario.topology.hops().enumerate() {
        for direction in [Direction::Forward, Direction::Reverse] {
            let link = match direction {
                Direction::Forward => forward,
                Direction::Reverse => reverse.unwrap_or(forward),
            };
            let crosses = |flow: &&Flow| {
                let (enters, leaves) = (flow.enters.unwrap_or(1), flow.leaves.unwrap_or(last));
                flow.direction == direction && (enters..leaves).contains(&(hop as u64 + 1))
            };
            packets += over(link, scenario.flows.iter().filter(crosses));
        }
    }
    packets * 3 / 2
}

/// Packets a second over one link.
fn over<'a>(link: &Link, flows: impl Iterator<Item = &'a Flow>) -> u64 {
    let (mut room, mut packets) = (link.rate.bits_per_sec(), 0);
    let mut offers: Vec<(u64, u64)> = flows.map(max_offered_rate).collect();
    // Small packets first, which gives the upper bound of the number of packets.
    offers.sort_unstable_by_key(|(_, bits)| *bits);
    for (rate, bits) in offers {
        let taken = rate.min(room);
        room -= taken;
        packets += taken / bits.max(1);
    }
    packets
}

/// The most bits per second that a flow offers, and the bits of a packet.
fn max_offered_rate(flow: &Flow) -> (u64, u64) {
    // IP, UDP and DCCP headers.
    let framed = |size: DataSize| (size.bytes() + 52) * 8;
    let messages = |rate: DataRate, size: DataSize| {
        (rate.bits_per_sec() / (size.bytes() * 8).max(1) * framed(size), framed(size))
    };
    match &*flow.traffic {
        Traffic::ConstantRate { rate, size } | Traffic::OnOff { rate, size, .. } => {
            messages(*rate, *size)
        }
        Traffic::Voip { codec, packet, .. } => {
            let bytes_a_second = match codec {
                CodecName::G711 => 8_000,
                CodecName::G729 => 1_000,
            };
            let size = DataSize::from_bytes(bytes_a_second * packet.as_millis() / 1_000);
            messages(DataRate::from_bytes_per_sec(bytes_a_second), size)
        }
        _ => (u64::MAX, flow.packet.bytes() * 8),
    }
}
