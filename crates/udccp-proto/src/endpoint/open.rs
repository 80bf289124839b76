//! Opens listeners and connections.

use core::net::SocketAddr;

use udccp_base::{Instant, Payload};

use super::Endpoint;
use crate::config::{ConnectOptions, ConnectionConfig, ListenConfig};
use crate::connection::Connection;
use crate::count::count;
use crate::error::{ConfigError, ConnectError, ListenError};
use crate::event::{Event, EventKind};
use crate::features::{Negotiator, Role};
use crate::ids::{ConnectionId, ListenerId};
use crate::tuple::FourTuple;

impl Endpoint {
    /// Serves `config.services` on DCCP port `port`: on all addresses if `local` is `None`,
    /// otherwise on `local` only, of which an unspecified IP address stands for all addresses of
    /// its IP version.
    ///
    /// # Errors
    /// A service code is taken on this port or invalid, or a setting is invalid.
    pub fn listen(
        &mut self,
        local: Option<SocketAddr>,
        port: u16,
        config: ListenConfig,
    ) -> Result<ListenerId, ListenError> {
        self.check_registered(&config.connection)?;
        self.listeners.add(local, port, config, None)
    }

    /// Stops listening. Handshakes in progress and connections that were not accepted are reset;
    /// accepted connections stay open.
    pub fn unlisten(&mut self, now: Instant, listener: ListenerId) {
        if self.listeners.get_mut(listener).is_none() {
            return;
        }
        for index in self.slots.indices() {
            let Some((connection, mut ctx)) = self.connection_at(now, index) else { continue };
            if connection.who.listener == Some(listener) {
                connection.abort(&mut ctx);
                connection.release(&mut ctx);
                self.make_ready(index);
            }
        }
        self.listeners.remove(listener);
        self.note_rare_wake();
    }

    /// Returns the next connection of a client whose handshake is complete. Its events are reported
    /// from now on; messages that arrived before can be read. If it has ended already, its first
    /// event is `Closed`.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId> {
        let entry = self.listeners.get_mut(listener)?;
        let id = entry.ready.pop_front()?;
        entry.pending -= 1;
        if entry.invitation.is_some() {
            // An invitation is for one connection.
            self.listeners.remove(listener);
            self.note_rare_wake();
        }
        if let Some(reason) = self.slots.get_mut(id)?.accept() {
            let closed = Event { id, kind: EventKind::Closed(reason) };
            self.events.iter_mut().for_each(|events| events.push_back(closed));
        }
        Some(id)
    }

    /// Starts a connection. `Connected` or `Closed` reports the result. Messages can be queued at
    /// once.
    ///
    /// # Errors
    /// Addresses, ports or settings are invalid, or in use.
    pub fn connect(
        &mut self,
        now: Instant,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        self.connect_with_data(now, options, Payload::EMPTY)
    }

    /// As [`Self::connect`], with data in the Request, which arrives a round-trip time earlier if
    /// the server accepts it. `PeerDropped` reports that it did not; `MessageDropped`, that the
    /// handshake failed. Empty data is the same as none.
    ///
    /// # Errors
    /// As [`Self::connect`]; [`ConnectError::DataTooLong`].
    pub fn connect_with_data(
        &mut self,
        now: Instant,
        options: ConnectOptions,
        data: Payload,
    ) -> Result<ConnectionId, ConnectError> {
        check_addresses(&options)?;
        //= 4340-8.1.2-1
        //= 4340-8.1.2-2
        //= 5595-2.2-1
        //= 5595-2.5-2
        //= 5595-3.1-1
        //= 5595-3.3-2
        if !options.service.is_valid() {
            return Err(ConnectError::InvalidService);
        }
        let preferences = options.config.preferences()?;
        self.check_registered(&options.config)?;
        if options.config.quick_start.request.is_some() && options.remote.port() != 0 {
            return Err(ConfigError::QuickStartOverUdp.into());
        }
        if self.is_full() {
            return Err(ConnectError::TooManyConnections);
        }
        let tuple = self.choose_tuple(now, &options)?;
        let features = Negotiator::new(Role::Client, preferences);
        let who = self.identity(tuple, Role::Client, options.service, None);
        let id = who.id;
        let iss = self.secrets.initial_seqno(now, &tuple);
        let mut connection = Connection::new(who, options.config, features, iss, now);
        if connection.wants_quick_start() {
            connection.set_quick_start_numbers(self.secrets.quick_start(now, &tuple));
        }
        if !data.is_empty() {
            let (len, max) = (data.len(), connection.request_data_max());
            if len > max {
                return Err(ConnectError::DataTooLong { len, max });
            }
            connection.set_request_data(data);
        }
        self.admit(now, connection);
        count!(self.counters, connects += 1);
        Ok(id)
    }

    /// Whether all CCIDs in these settings are registered.
    pub(super) fn check_registered(&self, config: &ConnectionConfig) -> Result<(), ConfigError> {
        let mut ccids = config.tx_ccids.iter().chain(&config.rx_ccids);
        let unknown = ccids.find(|&&ccid| self.ccids.get(ccid).is_none());
        unknown.map_or(Ok(()), |&ccid| Err(ConfigError::UnknownCcid(ccid)))
    }

    fn choose_tuple(
        &mut self,
        now: Instant,
        options: &ConnectOptions,
    ) -> Result<FourTuple, ConnectError> {
        self.table.expire(now);
        let mut tuple = FourTuple {
            local: options.local,
            local_port: options.local_port.unwrap_or(0),
            remote: options.remote,
            remote_port: options.remote_port,
        };
        if options.local_port.is_some() {
            let taken = self.table.is_taken(&self.slots, &tuple);
            return if taken { Err(ConnectError::InUse) } else { Ok(tuple) };
        }
        let (table, slots, listeners) = (&self.table, &self.slots, &self.listeners);
        let is_free = |local_port| {
            let candidate = FourTuple { local_port, ..tuple };
            !table.is_taken(slots, &candidate) && !listeners.is_port_open(tuple.local, local_port)
        };
        let range = self.ephemeral_ports;
        //= 4340-5.1-1
        let port = self.secrets.ephemeral_port(&tuple, range, is_free);
        tuple.local_port = port.ok_or(ConnectError::NoFreePort)?;
        Ok(tuple)
    }
}

fn check_addresses(options: &ConnectOptions) -> Result<(), ConnectError> {
    let (local, remote) = (options.local, options.remote);
    if local.is_ipv4() != remote.is_ipv4() {
        return Err(ConnectError::FamilyMismatch);
    }
    let unspecified = local.ip().is_unspecified() || remote.ip().is_unspecified();
    if unspecified || remote.ip().is_multicast() {
        return Err(ConnectError::BadAddress);
    }
    Ok(())
}
