//! Blocking endpoints and listeners.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use udccp_proto::EndpointStats;
use udccp_wire::ServiceCode;

use super::{Connecting, Connection, driver, wait, wait_for};
use crate::methods::as_fd_by_readiness;
use crate::shared::{Handle, ListenHandle, Place, Shared};
use crate::{Address, EndpointOptions, Error, IoInfo, IoStats, Options};

/// A UDP or raw socket that carries any number of DCCP connections; see [`crate::Endpoint`].
#[derive(Clone, Debug)]
pub struct Endpoint {
    handle: Handle,
}

impl Endpoint {
    /// Binds a UDP address. Port 0 picks a free port; the address `[::]` serves IPv4 too.
    ///
    /// # Errors
    /// [`Error::PortInUse`], [`Error::BindDenied`], [`Error::AddressNotLocal`] or [`Error::Io`].
    pub fn bind(addr: SocketAddr) -> Result<Self, Error> {
        Self::bind_with(addr, &EndpointOptions::default())
    }

    pub(super) fn of(handle: Handle) -> Self {
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

    /// Connects to a service, and waits for the handshake, for at most `timeout` if given. A
    /// timeout cancels the handshake.
    ///
    /// # Errors
    /// As [`crate::Endpoint::connect`]; [`Error::TimedOut`].
    pub fn connect(
        &self,
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
        timeout: Option<Duration>,
    ) -> Result<Connection, Error> {
        self.start_connect(peer, service, options)?.wait(timeout)
    }

    /// Starts to connect to a service: sends the Request and returns the handshake, which can be
    /// waited for, watched or cancelled.
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
    /// As [`crate::Endpoint::listen`].
    pub fn listen(
        &self,
        port: u16,
        services: impl Into<Vec<ServiceCode>>,
        options: &Options,
    ) -> Result<Listener, Error> {
        Ok(Listener { handle: self.handle.listen(port, services.into(), options)? })
    }

    /// Waits for one client whose address is known, for at most `timeout` if given; see
    /// [`crate::Endpoint::invite`]. A timeout withdraws the invitation.
    ///
    /// # Errors
    /// As [`crate::Endpoint::invite`]; [`Error::TimedOut`].
    pub fn invite(
        &self,
        port: u16,
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
        timeout: Option<Duration>,
    ) -> Result<Connection, Error> {
        let listener = self.handle.invite(port, peer.into(), service, options)?;
        wait(timeout, |cx| listener.poll_accept(cx.into())).map(Connection::new)
    }

    /// Receives the next STUN message, waiting for at most `timeout` if given; see
    /// [`crate::Endpoint::recv_stun`].
    ///
    /// # Errors
    /// As that method; [`Error::TimedOut`].
    pub fn recv_stun(
        &self,
        timeout: Option<Duration>,
    ) -> Result<(bytes::Bytes, SocketAddr), Error> {
        wait_for(timeout, self.handle.call(Place::Stun), Handle::poll_stun)
    }

    /// Sends a STUN message from this UDP port; see [`crate::Endpoint::send_stun`].
    ///
    /// # Errors
    /// As that method.
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

    /// Waits until every connection has ended, for at most `timeout` if given; see
    /// [`crate::Endpoint::wait_idle`].
    ///
    /// # Errors
    /// [`Error::TimedOut`].
    pub fn wait_idle(&self, timeout: Option<Duration>) -> Result<(), Error> {
        let call = self.handle.call(Place::Idle);
        wait_for(timeout, call, |handle, waiter| handle.poll_idle(waiter).map(Ok))
    }

    /// Packets that wait because the socket's send buffer is full; see
    /// [`crate::Endpoint::io_stats`].
    pub fn io_stats(&self) -> IoStats {
        self.handle.io_stats()
    }

    /// What the system offers this socket: offloads and buffer size.
    pub fn io_info(&self) -> IoInfo {
        IoInfo::of(self.handle.shared())
    }
}

/// Serves one or more service codes on a DCCP port; see [`crate::Listener`].
#[derive(Debug)]
pub struct Listener {
    handle: ListenHandle,
}

impl Listener {
    /// Listens on the DCCP port and the UDP port of `addr`, on an endpoint of its own.
    ///
    /// # Errors
    /// As [`Endpoint::bind`] and [`Endpoint::listen`].
    pub fn bind(addr: SocketAddr, service: ServiceCode) -> Result<Self, Error> {
        Self::bind_with(addr, vec![service], &Options::default())
    }

    /// Listens with several service codes and with settings for the accepted connections.
    ///
    /// # Errors
    /// As [`Self::bind`]; [`Error::Config`] if a setting is invalid.
    pub fn bind_with(
        addr: SocketAddr,
        services: impl Into<Vec<ServiceCode>>,
        options: &Options,
    ) -> Result<Self, Error> {
        let endpoint = Endpoint::bind(addr)?;
        endpoint.listen(endpoint.local_addr().port(), services, options)
    }

    /// Accepts the next connection whose handshake is complete.
    ///
    /// # Errors
    /// [`Error::Io`] if the socket's thread has ended.
    pub fn accept(&self) -> Result<Connection, Error> {
        self.accept_within(None)
    }

    /// Accepts the next connection, waiting for at most `timeout` if given.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::Io`] if the socket's thread has ended.
    pub fn accept_within(&self, timeout: Option<Duration>) -> Result<Connection, Error> {
        let accepted = wait_for(timeout, self.handle.call(), ListenHandle::poll_accept);
        accepted.map(Connection::new)
    }

    /// Accepts a connection if one is waiting, without waiting itself.
    ///
    /// # Errors
    /// [`Error::Io`] if the socket's thread has ended.
    pub fn try_accept(&self) -> Result<Option<Connection>, Error> {
        Ok(self.handle.try_accept()?.map(Connection::new))
    }

    /// [`Self::accept`] for hand-written futures, on any runtime.
    pub fn poll_accept(&self, cx: &mut std::task::Context<'_>) -> Poll<Result<Connection, Error>> {
        self.handle.poll_accept(cx.into()).map_ok(Connection::new)
    }

    /// Stops waking the task of this waker; see [`crate::Listener::remove_waker`].
    pub fn remove_waker(&self, waker: &std::task::Waker) {
        self.handle.remove_waker(waker);
    }

    /// A descriptor that is readable whenever [`Self::accept`] would not wait.
    ///
    /// # Errors
    /// As [`crate::Connection::readiness`].
    #[cfg(unix)]
    pub fn readiness(&self) -> Result<crate::Readiness, Error> {
        self.handle.readiness(None).cloned()
    }

    /// Makes `early` the descriptor that [`Self::readiness`] returns. If there is one already, it
    /// stays, and `early` hangs up.
    ///
    /// # Errors
    /// Only if the socket's driver has ended.
    #[cfg(unix)]
    pub fn set_readiness(&self, early: crate::EarlyReadiness) -> Result<(), Error> {
        self.handle.readiness(Some(early)).map(drop)
    }

    /// The service codes served, in the order in which they were given.
    pub fn services(&self) -> Vec<ServiceCode> {
        self.handle.services()
    }

    /// Serves other service codes from now on. Existing connections are not affected.
    ///
    /// # Errors
    /// [`Error::NoService`] or [`Error::ServiceInUse`]; nothing has changed then.
    pub fn set_services(&self, services: impl Into<Vec<ServiceCode>>) -> Result<(), Error> {
        self.handle.set_services(services.into())
    }

    /// The bound UDP address; over raw IP, the IP address with the DCCP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local_addr()
    }

    /// The endpoint that carries this listener.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::of(self.handle.handle.clone())
    }

    /// The DCCP port.
    pub fn port(&self) -> u16 {
        self.handle.port
    }
}

as_fd_by_readiness!(Listener: handle);

#[cfg(test)]
mod tests {
    use super::*;

    /// Many threads may each wait briefly on one socket.
    #[test]
    fn timed_out_wait_leaves_no_registration() {
        let at = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(at, ServiceCode(7)).unwrap();
        let client = Connection::connect(listener.local_addr(), ServiceCode(7)).unwrap();
        let (server, endpoint) = (listener.accept().unwrap(), listener.endpoint());
        let soon = Some(Duration::from_millis(2));
        server.set_read_timeout(soon);
        let is_over = |error: Option<Error>| assert!(matches!(error, Some(Error::TimedOut)));
        is_over(listener.accept_within(soon).err());
        is_over(endpoint.recv_stun(soon).err());
        is_over(endpoint.wait_idle(soon).err());
        is_over(server.recv().err());
        is_over(server.recv_with_meta().err());
        is_over(server.recv_batch(&mut Vec::new(), 9).err());
        is_over(server.peek().err());
        is_over(server.readable(soon).err());
        is_over(server.closed(soon).err());
        is_over(server.event(soon).err());
        assert!(!endpoint.handle.shared().has_waiters());
        drop(client);
    }
}
