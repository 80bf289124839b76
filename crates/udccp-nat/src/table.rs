//! Mappings, and the connections that keep them.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use udccp_base::Instant;
use udccp_wire::PacketType;

use crate::config::{Filtering, NatConfig};
use crate::packet::Ports;

/// The phase of a connection, judged by its packet types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Established,
    Closing,
}

/// A connection of a mapping.
#[derive(Clone, Copy, Debug)]
struct Session {
    phase: Phase,
    last: Instant,
}

/// The external port of an internal endpoint, with its connections.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) external: u16,
    ports: Ports,
    /// Keyed by the address and port of the other end.
    sessions: BTreeMap<SocketAddr, Session>,
}

//= 5597-4.1-1
//= 5597-7.1-1
/// All mappings.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// One mapping per internal endpoint, whatever its peers.
    by_internal: BTreeMap<(Ports, SocketAddr), Mapping>,
    /// The endpoint of each external port.
    by_external: BTreeMap<(Ports, u16), SocketAddr>,
}

impl Session {
    /// Updates the phase. The end of a connection does not remove the mapping at once: the idle
    /// time decides about packets after a Reset.
    fn note(&mut self, now: Instant, ty: Option<PacketType>) {
        self.last = now;
        self.phase = match ty {
            Some(PacketType::Request | PacketType::Listen) => Phase::Opening,
            Some(PacketType::CloseReq | PacketType::Close | PacketType::Reset) => Phase::Closing,
            // Also after a Close or Reset: one that the other end did not believe, or a forged one,
            // ends no connection.
            Some(PacketType::Ack | PacketType::DataAck | PacketType::Data) => Phase::Established,
            _ => self.phase,
        };
    }
}

impl Mapping {
    //= 5597-5-1
    //= 5597-5-2
    //= 5597-5-3
    /// Removes connections that were idle for too long.
    fn expire(&mut self, now: Instant, config: &NatConfig) {
        let ports = self.ports;
        self.sessions.retain(|_, session| {
            let limit = match (ports, session.phase) {
                (Ports::Udp, _) => config.udp_idle,
                (Ports::Dccp, Phase::Established) => config.established_idle,
                (Ports::Dccp, Phase::Opening | Phase::Closing) => config.transitory_idle,
            };
            now.saturating_since(session.last) < limit
        });
    }

    fn note(&mut self, now: Instant, remote: SocketAddr, ty: Option<PacketType>) {
        let new = Session { phase: Phase::Opening, last: now };
        self.sessions.entry(remote).or_insert(new).note(now, ty);
    }

    /// Whether a packet from `remote` may come in.
    fn accepts(&self, remote: SocketAddr, filtering: Filtering) -> bool {
        match filtering {
            Filtering::EndpointIndependent => true,
            Filtering::AddressDependent => self.sessions.keys().any(|at| at.ip() == remote.ip()),
            Filtering::AddressAndPortDependent => self.sessions.contains_key(&remote),
        }
    }
}

impl Table {
    /// Number of mappings.
    pub(crate) fn len(&self) -> usize {
        self.by_internal.len()
    }

    /// The external port of an endpoint that sends to `remote`; `None` if none is free.
    pub(crate) fn outbound(
        &mut self,
        now: Instant,
        config: &NatConfig,
        ports: Ports,
        (internal, remote): (SocketAddr, SocketAddr),
        ty: Option<PacketType>,
    ) -> Option<u16> {
        let key = (ports, internal);
        if !self.by_internal.contains_key(&key) {
            self.expire(now, config);
            let external = self.free_port(config, ports, internal.port())?;
            let mapping = Mapping { external, ports, sessions: BTreeMap::new() };
            self.by_internal.insert(key, mapping);
            self.by_external.insert((ports, external), internal);
        }
        let mapping = self.by_internal.get_mut(&key)?;
        mapping.expire(now, config);
        mapping.note(now, remote, ty);
        Some(mapping.external)
    }

    /// The endpoint of an external port, if `remote` may reach it.
    pub(crate) fn inbound(
        &mut self,
        now: Instant,
        config: &NatConfig,
        ports: Ports,
        (external, remote): (u16, SocketAddr),
        ty: Option<PacketType>,
    ) -> Option<SocketAddr> {
        let internal = *self.by_external.get(&(ports, external))?;
        let mapping = self.by_internal.get_mut(&(ports, internal))?;
        mapping.expire(now, config);
        if mapping.sessions.is_empty() {
            self.forget(ports, internal);
            return None;
        }
        if !mapping.accepts(remote, config.filtering) {
            return None;
        }
        mapping.note(now, remote, ty);
        Some(internal)
    }

    /// The endpoint of an external port, without changing anything.
    pub(crate) fn peek_internal(&self, ports: Ports, external: u16) -> Option<SocketAddr> {
        self.by_external.get(&(ports, external)).copied()
    }

    /// The external port of an endpoint, without changing anything.
    pub(crate) fn peek_external(&self, ports: Ports, internal: SocketAddr) -> Option<u16> {
        self.by_internal.get(&(ports, internal)).map(|mapping| mapping.external)
    }

    /// The internal port number if it is free externally, otherwise the next free one.
    fn free_port(&self, config: &NatConfig, ports: Ports, wished: u16) -> Option<u16> {
        let (first, last) = config.ports;
        let start = if (first..=last).contains(&wished) { wished } else { first };
        let mut candidates = (start..=last).chain(first..start);
        candidates.find(|&port| !self.by_external.contains_key(&(ports, port)))
    }

    /// Removes unused mappings.
    fn expire(&mut self, now: Instant, config: &NatConfig) {
        let by_external = &mut self.by_external;
        self.by_internal.retain(|&(ports, _), mapping| {
            mapping.expire(now, config);
            let is_used = !mapping.sessions.is_empty();
            if !is_used {
                by_external.remove(&(ports, mapping.external));
            }
            is_used
        });
    }

    fn forget(&mut self, ports: Ports, internal: SocketAddr) {
        if let Some(mapping) = self.by_internal.remove(&(ports, internal)) {
            self.by_external.remove(&(ports, mapping.external));
        }
    }
}
