//! The calls of endpoints and listeners as poll functions. The async sockets await them; the
//! blocking ones park a thread on them.

use std::io;
use std::net::IpAddr;
use std::task::{Poll, Waker};

use udccp_base::Payload;
use udccp_proto as proto;
use udccp_proto::{EndpointStats, ListenConfig};
use udccp_wire::ServiceCode;

use super::fitted::fit_to_system;
use super::handle::{ConnHandle, Handle, ListenHandle};
use super::waiters::{Conn, Listening, Place, WaitFor, Waiter};
use crate::{Address, Error, IoStats, Options};

impl Handle {
    /// Starts a connection. `poll_connected` waits for the outcome.
    pub(crate) fn connect(
        &self,
        peer: Address,
        service: ServiceCode,
        options: &Options,
    ) -> Result<ConnHandle, Error> {
        let shared = self.shared();
        shared.check_process()?;
        let peer = shared.peer(peer)?;
        let now = shared.clock.now();
        let route = shared.io.route_to(now, peer.udp).map_err(|e| unroutable(e, peer))?;
        //= 4340-14.1-2
        let most = options.config.path_mtu;
        let path_mtu = most.min(route.mtu.unwrap_or(u16::MAX));
        let config = shared.fitted.of(&options.config, path_mtu, &shared.io);
        shared.note_linger(config.close_linger);
        let interface_mtu = route.mtu;
        tracing::debug!(%peer, %service, path_mtu_bytes = path_mtu, interface_mtu, "connecting");
        let data = Payload::Bytes(options.request_data.clone());
        let mut options = proto::ConnectOptions {
            local: route.source,
            local_port: options.local_port,
            remote: peer.udp,
            remote_port: peer.port,
            service,
            config,
        };
        let (id, tuple) = shared.with(|core, io, now| {
            core.claim_to_connect(io, now, &mut options)?;
            let id = core.endpoint.connect_with_data(now, options, data);
            let id = id.map_err(Error::connect)?;
            core.conns.insert(id, Conn::default());
            core.flush_change(io, now);
            let tuple = core.endpoint.tuple(id);
            tuple.map(|t| (id, t)).ok_or(Error::Unreachable { peer })
        })??;
        let conn = ConnHandle::new(self.clone(), id, tuple, service, most);
        self.start()?;
        Ok(conn)
    }

    /// Serves `services` on DCCP port `port`.
    pub(crate) fn listen(
        &self,
        port: u16,
        services: Vec<ServiceCode>,
        options: &Options,
    ) -> Result<ListenHandle, Error> {
        let mut connection = (*options.config).clone();
        fit_to_system(&mut connection, &self.shared().io);
        let path_mtu = connection.path_mtu;
        self.shared().note_linger(connection.close_linger);
        let config = ListenConfig {
            services,
            backlog: options.backlog,
            init_cookies: options.init_cookies,
            cookie_lifetime: options.cookie_lifetime,
            connection: connection.into(),
        };
        let (id, port) = self.shared().with(|core, io, _| {
            let port = core.claim_to_listen(io, port)?;
            let at = |ip: IpAddr| (ip.to_canonical(), io.local_addr().port()).into();
            let local = options.local_ip.map(at);
            let id = core.endpoint.listen(local, port, config).map_err(Error::listen)?;
            core.listeners.insert(id, Listening::default());
            Ok::<_, Error>((id, port))
        })??;
        let listener = ListenHandle::new(self.clone(), id, port, path_mtu);
        self.start()?;
        Ok(listener)
    }

    pub(crate) fn endpoint_stats(&self) -> EndpointStats {
        self.shared().with(|core, _, _| core.endpoint.endpoint_stats()).unwrap_or_default()
    }

    /// Waits until there are no connections.
    pub(crate) fn poll_idle(&self, waiter: Waiter<'_>) -> Poll<()> {
        let idle = self.shared().poll_at(Place::Idle, waiter, |core, _, _| {
            if core.driver.stopped || core.is_idle() {
                return Poll::Ready(Ok(()));
            }
            core.idle_waiters.add(WaitFor::Other, waiter);
            Poll::Pending
        });
        // A forked child has no connections.
        idle.map(|_| ())
    }

    pub(crate) fn io_stats(&self) -> IoStats {
        self.shared().with(|core, _, _| core.io_stats()).unwrap_or_default()
    }
}

impl ListenHandle {
    /// The service codes served.
    pub(crate) fn services(&self) -> Vec<ServiceCode> {
        let shared = self.handle.shared();
        shared.with(|core, _, _| core.endpoint.services(self.id).to_vec()).unwrap_or_default()
    }

    /// Serves other service codes.
    pub(crate) fn set_services(&self, services: Vec<ServiceCode>) -> Result<(), Error> {
        let shared = self.handle.shared();
        shared
            .with(|core, _, _| core.endpoint.set_services(self.id, services))?
            .map_err(Error::listen)
    }

    /// Accepts a connection if one is waiting.
    pub(crate) fn try_accept(&self) -> Result<Option<ConnHandle>, Error> {
        match self.poll_accept(Waiter { waker: Waker::noop(), call: None, caller_driver: None }) {
            Poll::Ready(accepted) => accepted.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// Accepts the next connection, or makes the task wait for it.
    pub(crate) fn poll_accept(&self, waiter: Waiter<'_>) -> Poll<Result<ConnHandle, Error>> {
        let place = Place::Listener(self.id);
        let accepted = self.handle.shared().poll_at(place, waiter, |core, _, _| {
            core.signals.touch_listener(self.id);
            while let Some(id) = core.endpoint.accept(self.id) {
                let found = (core.endpoint.tuple(id), core.endpoint.service(id));
                if let (Some(tuple), Some(service)) = found {
                    if core.conns.get(id).is_none() {
                        core.conns.insert(id, Conn::default());
                    }
                    if let Some(conn) = core.conns.get_mut(id) {
                        conn.connected = true;
                        conn.queued_at = None;
                    }
                    return Poll::Ready(Ok((id, tuple, service)));
                }
                core.conns.remove(id);
            }
            if core.driver.stopped {
                return Poll::Ready(Err(stopped()));
            }
            if let Some(listening) = core.listeners.get_mut(&self.id) {
                listening.waiting.add(WaitFor::Other, waiter);
            }
            Poll::Pending
        });
        accepted.map_ok(|(id, tuple, service)| {
            let conn = ConnHandle::new(self.handle.clone(), id, tuple, service, self.path_mtu);
            conn.fit_to_route();
            conn
        })
    }
}

pub(super) fn stopped() -> Error {
    let source = io::Error::new(io::ErrorKind::BrokenPipe, "its runtime has shut down");
    Error::Io { what: "the driver of the socket has stopped", source }
}

pub(super) fn unroutable(source: io::Error, peer: Address) -> Error {
    match source.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            Error::Unreachable { peer }
        }
        _ => Error::NoRoute { peer, source },
    }
}
