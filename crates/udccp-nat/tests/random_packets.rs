//! Passes random packets through a NAT in both directions and checks its invariants.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use udccp_base::{Datagram, Duration, Ecn, Instant, Payload, Rng, Seed};
use udccp_nat::{Filtering, Nat, NatConfig, NatStats, Side};
use udccp_wire::{
    Emitter, Header, HeaderKind, PacketType, PacketView, PseudoHeader, ResetCode, Seqno,
    ServiceCode,
};

const TYPES: [PacketType; 11] = [
    PacketType::Request,
    PacketType::Response,
    PacketType::Data,
    PacketType::Ack,
    PacketType::DataAck,
    PacketType::CloseReq,
    PacketType::Close,
    PacketType::Reset,
    PacketType::Sync,
    PacketType::SyncAck,
    PacketType::Listen,
];

/// The addresses of the NAT, of internal hosts and of external hosts, all of one family.
struct World {
    external: IpAddr,
    inside: Vec<IpAddr>,
    outside: Vec<IpAddr>,
}

fn world(is_v6: bool) -> World {
    let ips = |all: &[&str]| all.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
    let (external, inside, outside) = match is_v6 {
        false => (["192.0.2.1"], ["10.0.0.2", "10.0.0.3"], ["198.51.100.7", "203.0.113.9"]),
        true => (["2001:db8::1"], ["fd00::2", "fd00::3"], ["2001:db8:5::7", "2001:db8:6::9"]),
    };
    World { external: ips(&external)[0], inside: ips(&inside), outside: ips(&outside) }
}

fn any<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

/// A packet of random type between two ends, native or inside UDP.
fn packet(rng: &mut Rng, src: SocketAddr, dst: SocketAddr, is_udp: bool) -> Datagram {
    let reset = (ResetCode::Closed, [0; 3]);
    let kind = HeaderKind::of(any(rng, &TYPES), Seqno::new(7), ServiceCode(1));
    let header = Header {
        src_port: if is_udp { 7 } else { src.port() },
        dst_port: if is_udp { 8 } else { dst.port() },
        ccval: 0,
        cscov: rng.below(4) as u8,
        x: true,
        seq: Seqno::new(rng.below(1 << 48)),
        kind: kind.with_reset(reset.0, reset.1),
    };
    let data: Vec<u8> = (0..rng.below(60)).map(|_| rng.below(256) as u8).collect();
    let mut bytes = BytesMut::new();
    let emitter = Emitter::new(&mut bytes, &header);
    emitter.finish(&PseudoHeader::new(src.ip(), dst.ip()), &data, 0);
    bytes.extend_from_slice(&data);
    let end = |at: SocketAddr| SocketAddr::new(at.ip(), if is_udp { at.port() } else { 0 });
    Datagram {
        src: end(src),
        dst: end(dst),
        protocol: Datagram::DCCP,
        ecn: Ecn::Ect0,
        header: bytes.freeze().into(),
        payload: Payload::EMPTY,
    }
}

/// A Port Unreachable about a packet, from the packet's destination.
fn unreachable(about: &Datagram) -> Option<Datagram> {
    let mut host = Nat::new(NatConfig::new(about.dst.ip()));
    host.handle_datagram(Instant::ZERO, Side::Outside, about.clone());
    host.handle_timeout(host.poll_timeout()?);
    host.poll_transmit().map(|(_, icmp)| icmp)
}

/// Checks that a packet goes to the right host and that valid checksums stay valid.
fn check(world: &World, nat: &Nat, (side, d): &(Side, Datagram), seed: u64) {
    let is_inside = |ip: IpAddr| world.inside.contains(&ip);
    match side {
        Side::Inside => assert!(is_inside(d.dst.ip()) && !is_inside(d.src.ip()), "{seed}: {d:?}"),
        Side::Outside => {
            assert_eq!(d.src.ip(), world.external, "seed {seed}");
            assert!(world.outside.contains(&d.dst.ip()), "seed {seed}: {d:?}");
        }
    }
    if d.protocol != Datagram::DCCP {
        for part in [&d.header[..], &d.header[8..28]] {
            let mut sum = udccp_wire::checksum::Sum::new();
            sum.add(part);
            assert!(sum.is_valid(), "seed {seed}");
        }
        return;
    }
    let view = PacketView::new(&d.header, d.transport_len()).unwrap();
    if d.src.port() != 0 {
        return;
    }
    let pseudo = PseudoHeader::new(d.src.ip(), d.dst.ip());
    assert!(view.verify_checksum(&pseudo, &[], 0), "seed {seed}");
    if *side == Side::Inside {
        let internal = SocketAddr::new(d.dst.ip(), view.dst_port());
        assert!(nat.external_of(internal).is_some(), "seed {seed}: {internal} has a mapping");
    }
}

fn total(stats: NatStats) -> u64 {
    stats.outbound + stats.inbound + stats.hairpinned + stats.filtered + stats.dropped
}

fn run_case(seed: u64) {
    let mut rng: Rng = Seed(seed).stream("life");
    let world = world(rng.chance(0.3));
    let config = NatConfig {
        ports: (4000, 4000 + rng.below(6) as u16),
        filtering: any(
            &mut rng,
            &[
                Filtering::EndpointIndependent,
                Filtering::AddressDependent,
                Filtering::AddressAndPortDependent,
            ],
        ),
        ..NatConfig::new(world.external)
    };
    let ports = config.ports;
    let mut nat = Nat::new(config);
    let mut now = Instant::ZERO;
    let mut seen: Vec<Datagram> = Vec::new();
    for _ in 0..400 {
        now += match rng.below(40) {
            0 => Duration::from_secs(rng.below(9000)),
            1..=4 => Duration::from_secs(rng.below(10)),
            _ => Duration::from_millis(rng.below(100)),
        };
        if nat.poll_timeout().is_some_and(|due| due <= now) {
            nat.handle_timeout(now);
            assert!(nat.poll_timeout().is_none_or(|due| due > now), "seed {seed}");
        }
        let from = any(&mut rng, &[Side::Inside, Side::Outside]);
        let mut end =
            |ips: &[IpAddr]| SocketAddr::new(any(&mut rng, ips), 3999 + rng.below(8) as u16);
        let (own, far, us) = (end(&world.inside), end(&world.outside), end(&[world.external]));
        let is_udp = rng.chance(0.2);
        let (src, dst) = match from {
            Side::Inside => (own, if rng.chance(0.3) { us } else { far }),
            Side::Outside => (far, us),
        };
        let about = rng.chance(0.2).then(|| seen.last().and_then(unreachable)).flatten();
        let is_icmp = about.is_some();
        let datagram = about.unwrap_or_else(|| packet(&mut rng, src, dst, is_udp));
        // An error comes from the side of its packet's destination.
        let from = match world.inside.contains(&datagram.src.ip()) {
            true => Side::Inside,
            false => Side::Outside,
        };
        let before = total(nat.stats());
        nat.handle_datagram(now, from, datagram);
        if !is_icmp {
            assert_eq!(total(nat.stats()) - before, 1, "seed {seed}: one packet, one fate");
        }
        while let Some(out) = nat.poll_transmit() {
            check(&world, &nat, &out, seed);
            seen.push(out.1);
        }
        let mut external = BTreeMap::new();
        for ip in &world.inside {
            for port in 3999..4008 {
                let internal = SocketAddr::new(*ip, port);
                if let Some(at) = nat.external_of(internal) {
                    assert!((ports.0..=ports.1).contains(&at.port()), "seed {seed}");
                    assert_eq!(external.insert(at, internal), None, "seed {seed}: shared");
                }
            }
        }
    }
    // Native mappings, and those of UDP.
    assert!(nat.mappings() <= 2 * 6, "seed {seed}");
}

/// Failure messages contain the seed.
#[test]
fn nat_state_stays_consistent_under_random_packets() {
    for seed in 0..300 {
        run_case(seed);
    }
}
