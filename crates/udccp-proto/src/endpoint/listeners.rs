//! Who is willing to be connected to.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use udccp_base::Duration;
use udccp_wire::ServiceCode;

use super::ConnectionId;
use crate::config::{ConnectionConfig, InitCookies, ListenConfig, ListenerId};
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
    init_cookies: InitCookies,
    pub(super) cookie_lifetime: Duration,
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

    /// What becomes of a Request now.
    pub(super) fn intake(&self) -> Intake {
        let is_crowded = match self.init_cookies {
            InitCookies::Never => {
                return Intake::full_or(self.pending >= self.backlog, Intake::Keep);
            }
            InitCookies::UnderLoad => self.pending * 2 >= self.backlog,
            InitCookies::Always => true,
        };
        let otherwise = if is_crowded { Intake::Cookie } else { Intake::Keep };
        Intake::full_or(self.is_accept_queue_full(), otherwise)
    }

    /// Whether too many connections wait for `accept`.
    pub(super) fn is_accept_queue_full(&self) -> bool {
        self.ready.len() >= self.backlog
    }
}

/// What becomes of a Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    /// It makes a connection.
    Keep,
    /// It is answered with an Init Cookie, and forgotten.
    Cookie,
    /// It is refused.
    Full,
}

impl Intake {
    const fn full_or(is_full: bool, otherwise: Self) -> Self {
        if is_full { Self::Full } else { otherwise }
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
            init_cookies: config.init_cookies,
            cookie_lifetime: config.cookie_lifetime,
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
