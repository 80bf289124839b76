//! Raw IP: peers without UDP ports, and DCCP ports that are shared with other programs.

use std::net::SocketAddr;

use udccp_base::{Datagram, Instant};
use udccp_proto::{ConnectError, ConnectOptions, FourTuple};

use super::Shared;
use super::core::Core;
use crate::address::of_packets;
use crate::io::Io;
use crate::{Address, Error};

impl Shared {
    /// The peer as this socket reaches it: over raw IP a UDP port says nothing.
    pub(super) fn peer(&self, mut peer: Address) -> Result<Address, Error> {
        peer.udp = of_packets(peer.udp, self.io.local_addr());
        match (self.io.is_raw(), peer.is_raw()) {
            (true, _) => Ok(Address::raw(peer.ip(), peer.port).in_scope_of(peer.udp)),
            (false, false) => Ok(peer),
            (false, true) => Err(Error::Connect(ConnectError::BadAddress)),
        }
    }
}

impl Core {
    /// Sees to it that the local port of a connection is ours, and picks one where none is given.
    pub(super) fn claim_to_connect(
        &mut self,
        io: &Io,
        options: &mut ConnectOptions,
    ) -> Result<(), Error> {
        let Some(claims) = &mut self.claims else { return Ok(()) };
        match options.local_port {
            Some(port) => claims.claim(port)?,
            None => {
                let (first, last) = self.ephemeral_ports;
                let endpoint = &self.endpoint;
                let fits = |local_port| {
                    !endpoint.is_in_use(&FourTuple {
                        local: options.local,
                        local_port,
                        remote: options.remote,
                        remote_port: options.remote_port,
                    })
                };
                options.local_port = Some(claims.claim_any(first..=last, fits)?);
            }
        }
        io.want_packets_of(claims)
    }

    /// Has the kernel pass on what is for this endpoint.
    pub(super) fn want_packets(&self, io: &Io) -> Result<(), Error> {
        self.claims.as_ref().map_or(Ok(()), |claims| io.want_packets_of(claims))
    }

    /// Sees to it that a port is ours to listen at; port 0 picks one.
    pub(super) fn claim_to_listen(&mut self, io: &Io, port: u16) -> Result<u16, Error> {
        let Some(claims) = &mut self.claims else { return Ok(port) };
        let port = match port {
            0 => {
                let (first, last) = self.ephemeral_ports;
                // Not one that a connection of ours goes out from.
                claims.claim_new(first..=last)?
            }
            port => {
                claims.claim(port)?;
                port
            }
        };
        claims.listens();
        io.want_packets_of(claims)?;
        Ok(port)
    }

    /// Whether a packet is for this endpoint. Over raw IP those for other programs arrive as well.
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
    /// The same address on the link that `other` names (IPv6 link-local addresses need it).
    fn in_scope_of(mut self, other: SocketAddr) -> Self {
        if let (SocketAddr::V6(own), SocketAddr::V6(other)) = (&mut self.udp, other) {
            own.set_scope_id(other.scope_id());
        }
        self
    }
}
