//! Waiting for clients.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use udccp_wire::ServiceCode;

use crate::coop;
use crate::methods::as_fd_by_readiness;
use crate::shared::ListenHandle;
use crate::{Connection, Endpoint, Error, Options};

/// Serves one or more service codes on a DCCP port. Dropping it stops listening. Connections that
/// were accepted stay open; those not yet accepted are reset.
#[derive(Debug)]
pub struct Listener {
    handle: ListenHandle,
}

impl Listener {
    /// Listens on the DCCP port and the UDP port that `addr` names, on an endpoint of its own (see
    /// [`Address`](crate::Address) for the two ports). Port 0 picks a free one.
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

    pub(crate) fn new(handle: ListenHandle) -> Self {
        Self { handle }
    }

    /// Accepts the next connection whose handshake is complete.
    ///
    /// Cancel safe: a connection is taken only when it is returned.
    ///
    /// # Errors
    /// Only if the runtime that drives the socket has shut down.
    pub async fn accept(&self) -> Result<Connection, Error> {
        let mut call = self.handle.call();
        let mut accept = |cx: &mut Context<'_>| call.poll(cx, ListenHandle::poll_accept);
        poll_fn(|cx| coop::counted(cx, &mut accept)).await.map(Connection::new)
    }

    /// [`Self::accept`] for hand-written futures.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Result<Connection, Error>> {
        self.handle.poll_accept(cx.into()).map_ok(Connection::new)
    }

    /// Stops waking the task of this waker, which called [`Self::poll_accept`]. Without this call,
    /// its waker is kept until it is woken.
    pub fn remove_waker(&self, waker: &std::task::Waker) {
        self.handle.remove_waker(waker);
    }

    /// Accepts a connection if one is waiting, without waiting itself.
    ///
    /// # Errors
    /// As [`Self::accept`].
    pub fn try_accept(&self) -> Result<Option<Connection>, Error> {
        Ok(self.handle.try_accept()?.map(Connection::new))
    }

    /// A descriptor that is readable whenever [`Self::accept`] would not wait.
    ///
    /// # Errors
    /// As [`Connection::readiness`].
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

    /// The endpoint that carries this listener: for its counters, to connect from the same port, or
    /// to wait until every connection has ended.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::of(self.handle.handle.clone())
    }

    /// The DCCP port.
    pub fn port(&self) -> u16 {
        self.handle.port
    }
}

as_fd_by_readiness!(Listener: handle);
