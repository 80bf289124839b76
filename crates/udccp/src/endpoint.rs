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
/// [`Connection::connect`] and [`Listener::bind`] open one for themselves; an endpoint of one's
/// own shares a port among many. Clones are handles of the same endpoint. It lives until the last
/// handle, listener and connection is gone and every close has run its course.
#[derive(Clone, Debug)]
pub struct Endpoint {
    handle: Handle,
}

impl Endpoint {
    /// Binds a UDP address; port 0 picks a free port, a wildcard IPv6 address serves IPv4 too.
    /// Must be called within a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    /// [`Error::PortInUse`] and its like, or no runtime.
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

    /// Takes a UDP socket of your own, bound and not connected: one that a service manager handed
    /// over, or with options that are not offered here. The endpoint sets what it needs (ECN, Don't
    /// Fragment, error reports, buffers) and reads everything that arrives there.
    ///
    /// # Errors
    /// [`Error::Io`]: the socket is not bound, or is connected.
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

    /// Connects to a service. The Request leaves before this is first awaited to its end; the
    /// call gives the connection once data can flow. Dropping the future cancels the handshake.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::PortClosed`], [`Error::BadServiceCode`],
    /// [`Error::CcidNotOffered`], [`Error::TooBusy`], [`Error::Unreachable`] or
    /// [`Error::NoAnswer`] where the peer or the network says no or nothing; a setting that cannot
    /// be used.
    pub async fn connect(
        &self,
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Connection, Error> {
        self.start_connect(peer, service, options)?.await
    }

    /// Starts to connect to a service: the Request leaves, and the handshake is there to wait for,
    /// to watch or to cancel.
    ///
    /// # Errors
    /// [`Error::Unreachable`] where there is no route; a setting that cannot be used.
    pub fn start_connect(
        &self,
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Connecting, Error> {
        Ok(Connecting::new(self.handle.connect(peer.into(), service, options)?))
    }

    /// Serves one or more service codes on DCCP port `port` of this socket. Port 0 stands for the
    /// number of its UDP port; over raw IP it picks one that no program of this host has.
    ///
    /// # Errors
    /// [`Error::ServiceInUse`], [`Error::NoService`], or a setting that cannot be used.
    pub fn listen(
        &self,
        port: u16,
        services: impl Into<Vec<ServiceCode>>,
        options: &Options,
    ) -> Result<Listener, Error> {
        Ok(Listener::new(self.handle.listen(port, services.into(), options)?))
    }

    /// Waits for one client, known beforehand, and tells it so: what `connect` is on the other
    /// side, for a server behind a NAT or firewall (RFC 5596). `peer` is the client's UDP and DCCP
    /// port as they look from here, agreed on by other means, and `port` the DCCP port that the
    /// client asks for. Packets of type Listen leave up to three times and open the way for the
    /// client's Request; a client that asked before is made to ask again at once.
    ///
    /// Waits until the client comes. Dropping the future takes the invitation back, and resets a
    /// client that is in handshake.
    ///
    /// # Errors
    /// [`Error::ServiceInUse`] where this client is invited already, or a setting that cannot be
    /// used.
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

    /// The next STUN message that arrived on this UDP port, and where it came from: hosts behind
    /// NATs learn their own addresses that way, and keep their mappings alive. Such messages never
    /// reach DCCP. Of those that nobody reads, the newest 64 are kept.
    ///
    /// Cancel safe: a message is taken only where it is returned.
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
    /// The message is no STUN message ([`crate::is_stun`]), or the system refuses to send it.
    pub fn send_stun(&self, message: &[u8], to: SocketAddr) -> Result<(), Error> {
        self.handle.send_stun(message, to)
    }

    /// CCIDs that connections of this endpoint can use, ascending
    /// (`DCCP_SOCKOPT_AVAILABLE_CCIDS`).
    pub fn available_ccids(&self) -> Vec<u8> {
        self.handle.shared().ccids.clone()
    }

    /// What the endpoint counts outside its connections.
    pub fn stats(&self) -> EndpointStats {
        self.handle.endpoint_stats()
    }

    /// Waits until every connection is over: those that were dropped or closed have delivered what
    /// they accepted, and the peer has confirmed the close, or was asked often enough
    /// ([`Options::close_retries`] says how long that takes). Call it before the runtime ends.
    ///
    /// Cancel safe: it only waits.
    pub async fn wait_idle(&self) {
        let mut call = self.handle.call(Place::Idle);
        std::future::poll_fn(|cx| call.poll(cx, Handle::poll_idle)).await;
    }

    /// What waits for the socket to take it, and how often that happened.
    pub fn io_stats(&self) -> IoStats {
        self.handle.io_stats()
    }

    /// What the system grants this socket.
    pub fn io_info(&self) -> IoInfo {
        IoInfo::of(self.handle.shared())
    }
}
