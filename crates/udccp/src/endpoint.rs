//! One socket that carries any number of connections.

use std::net::SocketAddr;
use std::sync::Arc;

use udccp_wire::ServiceCode;

use crate::shared::{Handle, Place, Shared};
use crate::{
    Address, Connecting, Connection, EndpointOptions, EndpointStats, Error, IoInfo, IoStats,
    Listener, Options, driver,
};

/// A UDP socket, or a raw one ([`EndpointOptions::raw_ip`]), that carries any number of DCCP
/// connections, outgoing and incoming.
///
/// [`Connection::connect`] and [`Listener::bind`] open an endpoint each; an endpoint of your own
/// lets many connections share a port. Clones are handles of the same endpoint. It lives until its
/// last handle, listener and connection is dropped and every close has finished.
#[derive(Clone, Debug)]
pub struct Endpoint {
    handle: Handle,
}

impl Endpoint {
    /// Binds a UDP address. Port 0 picks a free port; the address `[::]` serves IPv4 too. Must be
    /// called within a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    /// [`Error::PortInUse`], [`Error::BindDenied`], [`Error::AddressNotLocal`], or [`Error::Io`],
    /// also if there is no runtime.
    pub fn bind(addr: SocketAddr) -> Result<Self, Error> {
        Self::bind_with(addr, &EndpointOptions::default())
    }

    pub(crate) fn of(handle: Handle) -> Self {
        Self { handle }
    }

    /// Binds with settings.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn bind_with(addr: SocketAddr, options: &EndpointOptions) -> Result<Self, Error> {
        let shared = Shared::bind(addr, options)?;
        let handle = Handle::new(Arc::clone(&shared));
        driver::prepare(&shared)?;
        if options.answers_before_it_listens() {
            handle.answer_for_host()?;
        }
        Ok(Self { handle })
    }

    /// Uses a UDP socket of yours, which is bound and not connected: one that a service manager
    /// passed, or one with options that are not offered here. The endpoint sets what it needs on
    /// the socket (ECN, Don't Fragment, error reports, buffers) and reads everything that arrives
    /// on it.
    ///
    /// # Errors
    /// [`Error::Io`] if the socket is not bound, or is connected.
    pub fn from_socket(
        socket: std::net::UdpSocket,
        options: &EndpointOptions,
    ) -> Result<Self, Error> {
        let shared = Shared::adopt(socket, options)?;
        let handle = Handle::new(Arc::clone(&shared));
        driver::prepare(&shared)?;
        Ok(Self { handle })
    }

    /// The bound UDP address; over raw IP the port is 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.shared().io.local_addr()
    }

    /// Connects to a service; ready once data can flow. The Request is sent when the future is
    /// first polled. Dropping the future cancels the handshake.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::PortClosed`], [`Error::BadServiceCode`],
    /// [`Error::CcidNotOffered`] or [`Error::TooBusy`] if the peer refuses; [`Error::Unreachable`],
    /// [`Error::NoRoute`] or [`Error::NoAnswer`] if it cannot be reached; [`Error::Config`] or
    /// [`Error::Connect`] if a setting is invalid.
    pub async fn connect(
        &self,
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Connection, Error> {
        self.start_connect(peer, service, options)?.await
    }

    /// Starts to connect to a service: sends the Request and returns the handshake, which can be
    /// awaited, watched or cancelled.
    ///
    /// # Errors
    /// [`Error::Unreachable`] or [`Error::NoRoute`] if there is no route; [`Error::Config`] or
    /// [`Error::Connect`] if a setting is invalid.
    pub fn start_connect(
        &self,
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Connecting, Error> {
        Ok(Connecting::new(self.handle.connect(peer.into(), service, options)?))
    }

    /// Serves one or more service codes on DCCP port `port` of this socket. Port 0 stands for the
    /// number of its UDP port; over raw IP, for a port that no other program of this host has.
    ///
    /// # Errors
    /// [`Error::ServiceInUse`] if another listener of this endpoint serves one of them there;
    /// [`Error::NoService`] if there is no service code, or an invalid one; over raw IP,
    /// [`Error::DccpPortInUse`]; [`Error::Config`] if a setting is invalid.
    pub fn listen(
        &self,
        port: u16,
        services: impl Into<Vec<ServiceCode>>,
        options: &Options,
    ) -> Result<Listener, Error> {
        Ok(Listener::new(self.handle.listen(port, services.into(), options)?))
    }

    /// Waits for one client whose address is known, and opens the way for it: the server's part of
    /// a connection through a NAT or firewall (RFC 5596). `peer` has the client's UDP and DCCP
    /// ports as they are seen from here, which both sides have to agree on by other means; `port`
    /// is the DCCP port that the client connects to. Up to three Listen packets are sent, so that
    /// middleboxes let the client's Request through. A client that has sent its Request before
    /// sends it again at once.
    ///
    /// Ready when the client has connected. Dropping the future withdraws the invitation, and
    /// resets a client whose handshake is in progress.
    ///
    /// # Errors
    /// [`Error::ServiceInUse`] if this client is invited already; [`Error::Config`] if a setting is
    /// invalid.
    pub async fn invite(
        &self,
        port: u16,
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Connection, Error> {
        let listener = self.handle.invite(port, peer.into(), service, options)?;
        std::future::poll_fn(|cx| listener.poll_accept(cx.into())).await.map(Connection::new)
    }

    /// Receives the next STUN message that arrived on this UDP port, and its sender. Hosts behind
    /// NATs use STUN to learn their public addresses and to keep their mappings alive. STUN
    /// messages never reach DCCP. If nobody reads them, the newest 64 are kept.
    ///
    /// Cancel safe: a message is taken only when it is returned.
    ///
    /// # Errors
    /// Only if the driver of the socket has ended, or cannot start.
    pub async fn recv_stun(&self) -> Result<(bytes::Bytes, SocketAddr), Error> {
        let mut call = self.handle.call(Place::Stun);
        std::future::poll_fn(|cx| call.poll(cx, Handle::poll_stun)).await
    }

    /// Sends a STUN message from this UDP port. Like any datagram it may be lost.
    ///
    /// # Errors
    /// [`Error::Io`] if `message` is no STUN message ([`crate::is_stun`]), the endpoint uses raw
    /// IP, or the system refuses to send it.
    pub fn send_stun(&self, message: &[u8], to: SocketAddr) -> Result<(), Error> {
        self.handle.send_stun(message, to)
    }

    /// The CCIDs that connections of this endpoint can use, in ascending order
    /// (`DCCP_SOCKOPT_AVAILABLE_CCIDS`).
    pub fn available_ccids(&self) -> Vec<u8> {
        self.handle.shared().ccids.clone()
    }

    /// Counters of the endpoint, apart from those of its connections.
    pub fn stats(&self) -> EndpointStats {
        self.handle.endpoint_stats()
    }

    /// Waits until every connection has ended: those that were dropped or closed have delivered
    /// what was queued, and the peer has confirmed, or has not answered as many Closes as
    /// [`Options::close_retries`] allows. Call it before the runtime ends.
    ///
    /// Cancel safe: it only waits.
    pub async fn wait_idle(&self) {
        let mut call = self.handle.call(Place::Idle);
        std::future::poll_fn(|cx| call.poll(cx, Handle::poll_idle)).await;
    }

    /// Packets that wait because the socket's send buffer is full, and how often that happened.
    pub fn io_stats(&self) -> IoStats {
        self.handle.io_stats()
    }

    /// What the system offers this socket: offloads and buffer size.
    pub fn io_info(&self) -> IoInfo {
        IoInfo::of(self.handle.shared())
    }
}
