//! Raw IP: peers without UDP ports, and DCCP ports that are shared with other programs.

use std::collections::VecDeque;
use std::net::SocketAddr;

use udccp_base::{Datagram, Duration, Instant};
use udccp_proto::{ConnectError, ConnectOptions, FourTuple};

use super::Shared;
use super::core::Core;
use crate::address::of_packets;
use crate::io::Io;
use crate::{Address, Error};

/// How long the receiver of a Reset blocks the addresses and ports of a connection (RFC 4340
/// section 8.3).
const TIMEWAIT: Duration = Duration::from_secs(240);
/// Most connections in the list. Each may cost a port, which is a descriptor.
const MAX_LATELY: usize = 256;

/// Recent outgoing connections and, for those that are over, until when their peers may be in
/// TIMEWAIT. The sender of a Reset keeps no state, but its receiver does, and refuses another
/// connection from the same port.
#[derive(Debug, Default)]
pub(super) struct RecentConnections(VecDeque<(FourTuple, Option<Instant>)>);

impl RecentConnections {
    /// Finds out which of them are over, and removes those that their peers no longer hold.
    fn expire(&mut self, now: Instant, is_in_use: impl Fn(&FourTuple) -> bool) {
        for (tuple, until) in &mut self.0 {
            if until.is_none() && !is_in_use(tuple) {
                *until = Some(now + TIMEWAIT);
            }
        }
        self.0.retain(|(_, until)| until.is_none_or(|until| now < until));
    }

    fn contains(&self, tuple: &FourTuple) -> bool {
        self.0.iter().any(|(known, _)| known == tuple)
    }

    /// Adds a new one.
    fn note(&mut self, tuple: FourTuple) {
        if self.0.len() == MAX_LATELY {
            self.0.pop_front();
        }
        self.0.push_back((tuple, None));
    }
}

impl Shared {
    /// The peer's address as this socket uses it: over raw IP the UDP port is ignored.
    pub(super) fn peer(&self, mut peer: Address) -> Result<Address, Error> {
        peer.udp = of_packets(peer.udp, self.io.local_addr());
        match (self.io.is_raw(), peer.is_raw()) {
            (true, _) => Address::raw(peer.ip(), peer.port).in_scope_of(peer.udp).named(),
            (false, false) => Ok(peer),
            (false, true) => peer.named().and(Err(Error::Connect(ConnectError::BadAddress))),
        }
    }
}

impl Core {
    /// Claims the local port of a connection, and picks one if none is given.
    pub(super) fn claim_to_connect(
        &mut self,
        io: &Io,
        now: Instant,
        options: &mut ConnectOptions,
    ) -> Result<(), Error> {
        let Some(claims) = &mut self.claims else { return Ok(()) };
        match options.local_port {
            Some(port) => claims.claim(port)?,
            None => {
                let (first, last) = self.ephemeral_ports;
                let (local, remote, remote_port) =
                    (options.local, options.remote, options.remote_port);
                let from = |local_port| FourTuple { local, local_port, remote, remote_port };
                let (endpoint, lately) = (&self.endpoint, &mut self.lately);
                lately.expire(now, |tuple| endpoint.is_in_use(tuple));
                let is_free = |port| !endpoint.is_in_use(&from(port));
                let port = claims
                    .claim_any(first..=last, |port| is_free(port) && !lately.contains(&from(port)))
                    // If no other port is left, the peer may no longer hold this one in any case.
                    .or_else(|_| claims.claim_any(first..=last, is_free))?;
                lately.note(from(port));
                options.local_port = Some(port);
            }
        }
        io.set_packet_filter(claims)
    }

    /// Makes the kernel pass on the packets for this endpoint.
    pub(super) fn update_packet_filter(&self, io: &Io) -> Result<(), Error> {
        self.claims.as_ref().map_or(Ok(()), |claims| io.set_packet_filter(claims))
    }

    /// Claims a port to listen on; port 0 picks one.
    pub(super) fn claim_to_listen(&mut self, io: &Io, port: u16) -> Result<u16, Error> {
        let Some(claims) = &mut self.claims else {
            // By default both ports are the same number.
            return Ok(if port == 0 { io.local_addr().port() } else { port });
        };
        let port = match port {
            0 => {
                let (first, last) = self.ephemeral_ports;
                // Not one from which a connection of ours goes out.
                claims.claim_new(first..=last)?
            }
            port => {
                claims.claim(port)?;
                port
            }
        };
        claims.listens();
        io.set_packet_filter(claims)?;
        Ok(port)
    }

    /// Whether a packet is for this endpoint. Over raw IP, packets for other programs arrive too.
    #[inline]
    pub(super) fn is_ours(&mut self, now: Instant, datagram: &Datagram) -> bool {
        let Some(claims) = &mut self.claims else { return true };
        match *datagram.header {
            [_, _, high, low, ..] => claims.is_ours(now, u16::from_be_bytes([high, low])),
            _ => false,
        }
    }
}

impl Address {
    /// The same address on the link of `other`, which IPv6 link-local addresses need.
    fn in_scope_of(mut self, other: SocketAddr) -> Self {
        if let (SocketAddr::V6(own), SocketAddr::V6(other)) = (&mut self.udp, other) {
            own.set_scope_id(other.scope_id());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_port(local_port: u16) -> FourTuple {
        let at = "127.0.0.1:0".parse().unwrap();
        FourTuple { local: at, local_port, remote: at, remote_port: 5004 }
    }

    #[test]
    fn port_is_not_reused_while_the_peer_may_be_in_timewait() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut lately = RecentConnections::default();
        [1, 2].into_iter().for_each(|port| lately.note(from_port(port)));
        lately.expire(at(1000), |_| true);
        // From here on, one of them is over.
        lately.expire(at(1001), |tuple| tuple.local_port == 2);
        let mut known = |seconds| {
            lately.expire(at(seconds), |tuple| tuple.local_port == 2);
            [1, 2].map(|port| lately.contains(&from_port(port)))
        };
        assert_eq!(known(1240), [true, true]);
        assert_eq!(known(1241), [false, true]);
    }

    #[test]
    fn number_of_recent_connections_is_bounded() {
        let mut lately = RecentConnections::default();
        (0..1000).for_each(|port| lately.note(from_port(port)));
        assert_eq!(lately.0.len(), MAX_LATELY);
        assert!(lately.contains(&from_port(999)) && !lately.contains(&from_port(0)));
    }
}
