//! Who is willing to be connected to.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use udccp_wire::ServiceCode;

use super::ConnectionId;
use crate::config::{ConnectionConfig, ListenConfig, ListenerId};
use crate::connection::preferences;
use crate::error::{ConfigError, ListenError};
use crate::features::FeaturePreferences;

/// One listener.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    local: Option<SocketAddr>,
    port: u16,
    services: Vec<ServiceCode>,
    backlog: usize,
    /// Connections in handshake, and connections that wait for `accept`.
    pub(super) pending: usize,
    /// Connections that wait for `accept`.
    pub(super) ready: VecDeque<ConnectionId>,
    pub(super) config: Arc<ConnectionConfig>,
    pub(super) preferences: FeaturePreferences,
}

impl Listener {
    fn is_at(&self, at: SocketAddr) -> bool {
        self.local.is_none_or(|local| local == at)
    }

    /// Whether no further connection is taken for now.
    pub(super) fn is_full(&self) -> bool {
        self.pending >= self.backlog
    }
}

/// Who serves a Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// This listener.
    By(ListenerId),
    /// The port is open, but not for this service code.
    BadService,
    /// Nobody listens there.
    Nobody,
}

/// All listeners.
#[derive(Clone, Debug, Default)]
pub(super) struct Listeners {
    by_id: BTreeMap<ListenerId, Listener>,
    by_port: BTreeMap<u16, Vec<ListenerId>>,
    next: u32,
}

impl Listeners {
    /// Adds a listener.
    pub(super) fn add(
        &mut self,
        local: Option<SocketAddr>,
        port: u16,
        config: ListenConfig,
    ) -> Result<ListenerId, ListenError> {
        config.connection.check()?;
        //= 4340-8.1.2-1
        //= 4340-8.1.2-3
        if config.services.is_empty() {
            return Err(ListenError::NoService);
        }
        for &service in &config.services {
            if !service.is_valid() {
                return Err(ListenError::InvalidService);
            }
            if self.is_taken(local, port, service) {
                return Err(ListenError::InUse { port, service });
            }
        }
        let id = ListenerId(self.next);
        self.next += 1;
        let listener = Listener {
            local,
            port,
            services: config.services,
            backlog: config.backlog,
            pending: 0,
            ready: VecDeque::new(),
            preferences: preferences(&config.connection).map_err(|_| ConfigError::CcidList)?,
            config: Arc::new(config.connection),
        };
        self.by_id.insert(id, listener);
        self.by_port.entry(port).or_default().push(id);
        Ok(id)
    }

    fn is_taken(&self, local: Option<SocketAddr>, port: u16, service: ServiceCode) -> bool {
        let mut there = self.by_port.get(&port).into_iter().flatten();
        there.any(|id| {
            let other = &self.by_id[id];
            let meets = match (local, other.local) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            };
            meets && other.services.contains(&service)
        })
    }

    /// Removes a listener.
    pub(super) fn remove(&mut self, id: ListenerId) -> Option<Listener> {
        let listener = self.by_id.remove(&id)?;
        if let Some(there) = self.by_port.get_mut(&listener.port) {
            there.retain(|other| *other != id);
            if there.is_empty() {
                self.by_port.remove(&listener.port);
            }
        }
        Some(listener)
    }

    /// The listener with this id.
    pub(super) fn get_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.by_id.get_mut(&id)
    }

    /// Who serves a Request for `service` that came to `at` and DCCP port `port`.
    pub(super) fn find(&self, at: SocketAddr, port: u16, service: ServiceCode) -> Served {
        let mut answer = Served::Nobody;
        for id in self.by_port.get(&port).into_iter().flatten() {
            let listener = &self.by_id[id];
            if !listener.is_at(at) {
                continue;
            }
            if service.is_valid() && listener.services.contains(&service) {
                return Served::By(*id);
            }
            answer = Served::BadService;
        }
        answer
    }

    /// Whether anybody listens at `at` on DCCP port `port`.
    pub(super) fn is_port_open(&self, at: SocketAddr, port: u16) -> bool {
        let mut there = self.by_port.get(&port).into_iter().flatten();
        there.any(|id| self.by_id[id].is_at(at))
    }
}
