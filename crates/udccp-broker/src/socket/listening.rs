//! Listening sockets. Sockets that all have SO_REUSEPORT share a listener.

use std::future::{Future, poll_fn};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;

use rustix::io::Errno;
use udccp::{Connection, Listener, ServiceCode};

use super::Socket;
use crate::endpoints::ListenRequest;
use crate::pair::Pair;
use crate::settings::Transport;
use crate::{address, errno};

/// Most connections that wait for a program that does not accept, while other programs do.
const MOST_ACCEPTED: usize = 128;

/// The listeners of one socket, each with the UDP address of its endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Listening(Vec<(Arc<Listener>, SocketAddr)>);

impl Listening {
    /// Whether one of the listeners is at the endpoint with this address.
    pub(super) fn is_at(&self, at: SocketAddr) -> bool {
        self.0.iter().any(|(_, its)| *its == at)
    }

    fn has(&self, listener: &Arc<Listener>) -> bool {
        self.0.iter().any(|(its, _)| Arc::ptr_eq(its, listener))
    }

    /// Replaces the service codes.
    pub(super) fn set_services(&self, services: &[ServiceCode]) -> Result<(), Errno> {
        for (listener, _) in &self.0 {
            listener.set_services(services).map_err(|_| Errno::INVAL)?;
        }
        Ok(())
    }

    /// Accepts the next connection of any of the listeners.
    async fn accept(&self) -> Result<(&Arc<Listener>, Connection), udccp::Error> {
        let mut all: Vec<_> =
            self.0.iter().map(|(listener, _)| (listener, Box::pin(listener.accept()))).collect();
        poll_fn(|cx| {
            for (listener, accept) in &mut all {
                if let Poll::Ready(accepted) = accept.as_mut().poll(cx) {
                    return Poll::Ready(accepted.map(|connection| (*listener, connection)));
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl Socket {
    /// Listens at every endpoint where packets for the socket's address arrive.
    pub(super) fn start_listening(
        &self,
        local: SocketAddr,
        backlog: i32,
    ) -> Result<Listening, Errno> {
        let refused = |e: udccp::Error| errno::of(&e).unwrap_or(Errno::IO);
        let (wanted, services, options, shares_port) = {
            let inner = self.inner();
            let options = &inner.options;
            let (is_v6_only, device) = (options.is_v6_only(), options.device());
            let transport = self.settings.transport;
            let connection = options.connection(transport == Transport::Raw);
            let wanted = ListenRequest { transport, local, is_v6_only, device };
            (wanted, options.service_codes(), connection, options.shares_port())
        };
        let mut options = options.backlog(usize::try_from(backlog).unwrap_or(0).clamp(1, 4096));
        let serves_both = wanted.serves(true) && wanted.serves(false);
        // Sockets that share a port may have different addresses: `route` selects the socket.
        if !shares_port && !serves_both {
            options = options.local_ip(local.ip());
        }
        let endpoints = self.broker.endpoints.lock().expect("never poisoned").of(&wanted)?;
        let mut listeners = Vec::with_capacity(endpoints.len());
        for endpoint in endpoints {
            let at = endpoint.local_addr();
            let shared = self.listener_to_share(at, local.port(), &services);
            let new = || endpoint.listen(local.port(), &*services, &options).map(Arc::new);
            listeners.push((shared.map_or_else(new, Ok).map_err(refused)?, at));
        }
        Ok(Listening(listeners))
    }

    /// The listener of other sockets that this one shares, if all of them allow sharing.
    fn listener_to_share(
        &self,
        at: SocketAddr,
        port: u16,
        services: &[ServiceCode],
    ) -> Option<Arc<Listener>> {
        if !self.inner().options.shares_port() {
            return None;
        }
        self.broker.find_map(|other| {
            let inner = other.inner();
            let (listener, _) = inner.listening.0.iter().find(|(_, its)| *its == at)?;
            let shares = inner.options.shares_port() && inner.options.service_codes() == services;
            let is_same = inner.bound.is_some_and(|bound| bound.port() == port);
            (is_same && shares).then(|| Arc::clone(listener))
        })
    }

    /// Passes new connections to programs; those for this socket go through its pair.
    pub(super) async fn serve(&self, listening: &Listening, pair: &Pair) {
        loop {
            while let Some(connection) = self.next_accepted() {
                if let Err(e) = self.hand_over(connection, pair).await {
                    tracing::warn!("an accepted connection is lost: {e}");
                }
            }
            tokio::select! {
                accepted = listening.accept() => match accepted {
                    Ok((listener, connection)) => self.route(listener, connection),
                    Err(_) => return,
                },
                () = self.changed.notified() => {}
            }
        }
    }

    fn next_accepted(&self) -> Option<Connection> {
        self.inner().accepted.pop_front()
    }

    /// Passes a connection to the socket with the most specific address. Among equals, a hash of
    /// the peer's address decides.
    fn route(&self, listener: &Arc<Listener>, connection: Connection) {
        let peer = connection.peer_addr();
        let local = address::unmap_ipv4(connection.local_addr().udp).ip();
        let from = address::unmap_ipv4(peer.udp).ip();
        let mut fitting = self.broker.filter_map(|socket| {
            let is_of_it = socket.inner().listening.has(listener);
            let fit = socket.match_rank(local, from).filter(|_| is_of_it)?;
            Some((fit, Arc::clone(socket)))
        });
        let best = fitting.iter().map(|(fit, _)| *fit).max();
        fitting.retain(|(fit, _)| Some(*fit) == best);
        fitting.sort_by_key(|(_, socket)| socket.cookie);
        let mut hasher = DefaultHasher::new();
        (peer.udp, peer.port).hash(&mut hasher);
        let chosen = hasher.finish().checked_rem(fitting.len() as u64);
        match chosen.map(|n| &fitting[n as usize].1) {
            Some(socket) if socket.inner().accepted.len() < MOST_ACCEPTED => {
                socket.inner().accepted.push_back(connection);
                socket.changed.notify_one();
            }
            _ => connection.abort(),
        }
    }

    /// How specifically the socket's address matches a connection, or `None` if it does not. A
    /// single address ranks above the wildcard, and the connection's IP version above both
    /// versions.
    fn match_rank(&self, local: IpAddr, peer: IpAddr) -> Option<(bool, bool)> {
        let inner = self.inner();
        let only = inner.bound.map(|bound| bound.ip()).filter(|ip| !ip.is_unspecified());
        let is_mine = only.is_none_or(|ip| ip == local || local.is_unspecified());
        let is_family =
            if self.is_v6 { peer.is_ipv6() || !inner.options.is_v6_only() } else { peer.is_ipv4() };
        (is_mine && is_family).then_some((only.is_some(), self.is_v6 == peer.is_ipv6()))
    }

    async fn hand_over(&self, connection: Connection, pair: &Pair) -> Result<(), Errno> {
        let options = self.inner().options.clone();
        let (child, own, programs) = Self::make(&self.broker, self.is_v6, self.settings, options)?;
        {
            let mut inner = child.inner();
            inner.is_server = true;
            inner.options.set_service(connection.service_code().0);
            inner.bound = self.inner().bound;
        }
        // Publish the connection first, so that the program's first calls find it connected.
        child.publish_connection(&connection);
        let slot = (child.slot as i32).to_ne_bytes();
        tokio::spawn(Arc::clone(&child).carry(connection, own));
        pair.send_descriptor(&slot, &programs).await.map_err(errno::of_io)
    }
}
