//! All connections and listeners of one host.

use core::net::SocketAddr;

use udccp_base::{Datagram, Instant, Machine, Message, Payload};
use udccp_wire::ServiceCode;

use crate::config::{ConnectOptions, EndpointConfig, ListenConfig, ListenerId};
use crate::connection::State;
use crate::error::{ConnectError, ListenError, RecvError, SendError};
use crate::event::Event;
use crate::stats::{ConnectionStats, EndpointStats};

/// A connection of an endpoint. Ids are not reused within 2^32 connections in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Addresses and ports of a connection, as one side sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FourTuple {
    /// Our IP address, and our UDP encapsulation port (0 over raw IP).
    pub local: SocketAddr,
    /// Our DCCP port.
    pub local_port: u16,
    /// The peer's IP address, and its UDP encapsulation port (0 over raw IP).
    pub remote: SocketAddr,
    /// The peer's DCCP port.
    pub remote_port: u16,
}

/// What an ICMP message said about a packet that we sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathReport {
    /// Packet too big: the path takes IP packets up to this many bytes.
    PathMtu(u16),
    /// Host, protocol or port unreachable, or administratively prohibited. Ends a handshake;
    /// an open connection goes on.
    Unreachable,
}

/// All connections and listeners of one host: a pure [`Machine`] driven by `now`, datagrams
/// and commands. See the crate's front page for a run loop.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    stats: EndpointStats,
}

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(config: EndpointConfig) -> Self {
        Self { config, stats: EndpointStats::default() }
    }

    /// Serves `config.services` on DCCP port `port`, at `local` only or (`None`) everywhere.
    ///
    /// # Errors
    /// A service code taken on this port, or settings that cannot be used.
    pub fn listen(
        &mut self,
        local: Option<SocketAddr>,
        port: u16,
        config: ListenConfig,
    ) -> Result<ListenerId, ListenError> {
        let _ = (local, port, config, &self.config);
        Err(ListenError::NoService)
    }

    /// Stops listening. Handshakes in progress and connections never accepted are reset;
    /// accepted connections live on.
    pub fn unlisten(&mut self, now: Instant, listener: ListenerId) {
        let _ = (now, listener);
    }

    /// The next connection whose handshake a client finished.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId> {
        let _ = listener;
        None
    }

    /// Starts a connection; `Connected` or `Closed` tells the outcome. Messages may be queued
    /// at once.
    ///
    /// # Errors
    /// Addresses, ports or settings that cannot be used.
    pub fn connect(
        &mut self,
        now: Instant,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        let _ = (now, options);
        Err(ConnectError::NoFreePort)
    }

    /// Queues a message. It leaves when congestion control allows, or is reported with
    /// `MessageDropped`: an accepted message is never dropped silently.
    ///
    /// # Errors
    /// The message comes back when the queue is full, it is too large, or the connection is over.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: Message,
    ) -> Result<(), SendError> {
        let _ = (now, id);
        Err(SendError::NotOpen(message))
    }

    /// The next received message; `Ok(None)` where none is there yet.
    ///
    /// # Errors
    /// The connection ended and everything was read.
    pub fn recv(&mut self, now: Instant, id: ConnectionId) -> Result<Option<Payload>, RecvError> {
        let _ = (now, id);
        Err(RecvError::UnknownConnection)
    }

    /// Whether a message of the maximum size would be taken now.
    pub fn is_writable(&self, id: ConnectionId) -> bool {
        let _ = id;
        false
    }

    /// Messages that the send queue would still take.
    pub fn send_queue_free(&self, id: ConnectionId) -> usize {
        let _ = id;
        0
    }

    /// Whether `recv` would give a message or the end.
    pub fn is_readable(&self, id: ConnectionId) -> bool {
        let _ = id;
        false
    }

    /// Closes: delivers what is queued within `close_linger`, then closes in order. Received
    /// data can still be read.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        let _ = (now, id);
    }

    /// Ends the connection at once with Reset, Aborted. Queued messages are dropped.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        let _ = (now, id);
    }

    /// The application reads no more: what is queued is dropped and the peer is told
    /// (Drop Code 1, RFC 4340 section 11.7).
    pub fn stop_listening(&mut self, now: Instant, id: ConnectionId) {
        let _ = (now, id);
    }

    /// The application lets go of the id: an open connection is closed, and the state is
    /// freed when the protocol allows. The id is invalid from here on.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        let _ = (now, id);
    }

    /// The next event, in order of occurrence.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// Numbers of one connection.
    pub fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        let _ = id;
        None
    }

    /// Numbers of the endpoint.
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.stats
    }

    /// Addresses and ports of a connection.
    pub fn tuple(&self, id: ConnectionId) -> Option<FourTuple> {
        let _ = id;
        None
    }

    /// The service code of a connection.
    pub fn service(&self, id: ConnectionId) -> Option<ServiceCode> {
        let _ = id;
        None
    }

    /// Largest payload in bytes that fits in one packet now.
    pub fn mps(&self, id: ConnectionId) -> Option<usize> {
        let _ = id;
        None
    }

    /// State of a connection.
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        let _ = id;
        None
    }

    /// An ICMP message about a packet that we sent from `local` to `remote`; `quoted` is the
    /// DCCP header that it quotes (at least 12 bytes). It is believed only if the quoted sequence
    /// number is of a packet in flight (RFC 4340 section 14).
    pub fn handle_path_report(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        quoted: &[u8],
        report: PathReport,
    ) {
        let _ = (now, local, remote, quoted, report);
    }

    /// Sets the path MTU of a connection, in bytes with the IP header.
    pub fn set_path_mtu(&mut self, now: Instant, id: ConnectionId, mtu: u16) {
        let _ = (now, id, mtu);
    }
}

impl Machine for Endpoint {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        let _ = (now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let _ = now;
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
