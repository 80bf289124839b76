//! Holds the listeners, and finds the one for a Request.

use core::net::SocketAddr;
use core::ops::{Deref, DerefMut};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use udccp_base::{Duration, Instant};
use udccp_wire::ServiceCode;

use super::invite::Invitation;
use crate::config::{InitCookies, ListenConfig};
use crate::error::ListenError;
use crate::features::FeaturePreferences;
use crate::ids::{ConnectionId, ListenerId};
use crate::shared_config::SharedConfig;
use crate::tuple::FourTuple;

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
    pub(super) config: SharedConfig,
    pub(super) preferences: Arc<FeaturePreferences>,
    /// The invitation, if the listener serves one client only.
    pub(super) invitation: Option<Box<Invitation>>,
}

impl Listener {
    fn is_at(&self, at: SocketAddr) -> bool {
        self.local.is_none_or(|local| covers(local, at))
    }

    /// Whether a packet with this tuple may be for this listener.
    fn is_for(&self, tuple: &FourTuple) -> bool {
        match &self.invitation {
            Some(invitation) => invitation.tuple == *tuple,
            None => self.is_at(tuple.local),
        }
    }

    /// How to handle a Request now.
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

    /// Service codes served here.
    pub(super) fn services(&self) -> &[ServiceCode] {
        &self.services
    }

    /// Whether too many connections wait for `accept`.
    pub(super) fn is_accept_queue_full(&self) -> bool {
        self.ready.len() >= self.backlog
    }
}

/// Whether a listener at `local` serves the address `at`. An unspecified address stands for all of
/// its IP version.
fn covers(local: SocketAddr, at: SocketAddr) -> bool {
    local == at
        || local.ip().is_unspecified()
            && local.is_ipv4() == at.is_ipv4()
            && local.port() == at.port()
}

/// How to handle a Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    /// Create a connection.
    Keep,
    /// Answer with an Init Cookie, without keeping state.
    Cookie,
    /// Refuse the Request.
    Full,
}

impl Intake {
    const fn full_or(is_full: bool, otherwise: Self) -> Self {
        if is_full { Self::Full } else { otherwise }
    }
}

/// Result of looking for the listener of a Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// This listener.
    By(ListenerId),
    /// The port is open, but not for this service code.
    BadService,
    /// Nobody listens there.
    Nobody,
}

/// The listeners of an endpoint. A client has none, and needs no memory for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Listeners(Option<Box<ListenerTable>>);

static NONE: ListenerTable =
    ListenerTable { by_id: Vec::new(), by_port: Vec::new(), invitations: BTreeSet::new(), next: 0 };

impl Deref for Listeners {
    type Target = ListenerTable;

    fn deref(&self) -> &ListenerTable {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Listeners {
    fn deref_mut(&mut self) -> &mut ListenerTable {
        self.0.get_or_insert_default()
    }
}

/// All listeners.
#[derive(Clone, Debug, Default)]
pub(super) struct ListenerTable {
    /// In order of their ids, which is that of their creation. Most endpoints have one at most, for
    /// which a map would take 150 bytes, and another by port 300.
    by_id: Vec<(ListenerId, Box<Listener>)>,
    /// Ports and who listens there, in order.
    by_port: Vec<(u16, ListenerId)>,
    /// Invitations by the time of their next step.
    invitations: BTreeSet<(Instant, ListenerId)>,
    next: u32,
}

impl ListenerTable {
    /// All listeners.
    pub(super) fn ids(&self) -> Vec<ListenerId> {
        self.by_id.iter().map(|(id, _)| *id).collect()
    }

    /// Adds a listener.
    pub(super) fn add(
        &mut self,
        local: Option<SocketAddr>,
        port: u16,
        config: ListenConfig,
        invitation: Option<Invitation>,
    ) -> Result<ListenerId, ListenError> {
        let preferences = config.connection.preferences()?;
        let services = &config.services;
        self.check_services(local, port, services, services.iter(), invitation.as_ref())?;
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
            preferences,
            config: config.connection,
            invitation: invitation.map(Box::new),
        };
        if let Some(at) = invitation.and_then(|invitation| invitation.next()) {
            self.invitations.insert((at, id));
        }
        if self.by_id.is_empty() {
            self.by_id.reserve_exact(1);
            self.by_port.reserve_exact(1);
        }
        self.by_id.push((id, Box::new(listener)));
        let at = self.by_port.partition_point(|entry| *entry < (port, id));
        self.by_port.insert(at, (port, id));
        Ok(id)
    }

    /// The place of a listener.
    fn place_of(&self, id: ListenerId) -> Option<usize> {
        self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    /// All listeners at this port, whatever their addresses.
    fn at_port(&self, port: u16) -> impl Iterator<Item = (ListenerId, &Listener)> {
        let first = self.by_port.partition_point(|(at, _)| *at < port);
        let there = self.by_port[first..].iter().take_while(move |(at, _)| *at == port);
        there.filter_map(|(_, id)| Some((*id, self.get(*id)?)))
    }

    fn is_taken(
        &self,
        local: Option<SocketAddr>,
        port: u16,
        service: ServiceCode,
        invitation: Option<&Invitation>,
    ) -> bool {
        let client = invitation.map(|invitation| invitation.tuple);
        self.at_port(port).any(|(_, other)| {
            let meets = match (local, other.local) {
                (Some(a), Some(b)) => covers(a, b) || covers(b, a),
                _ => true,
            };
            // A listener for one client does not conflict with a listener for all.
            let same_clients =
                other.invitation.as_ref().map(|invitation| invitation.tuple) == client;
            meets && same_clients && other.services.contains(&service)
        })
    }

    /// Replaces the service codes of a listener.
    pub(super) fn set_services(
        &mut self,
        id: ListenerId,
        services: Vec<ServiceCode>,
    ) -> Result<(), ListenError> {
        let Some(listener) = self.get(id) else { return Ok(()) };
        let (local, port, invitation) = (listener.local, listener.port, &listener.invitation);
        let new = services.iter().filter(|service| !listener.services.contains(service));
        self.check_services(local, port, &services, new, invitation.as_deref())?;
        if let Some(listener) = self.get_mut(id) {
            listener.services = services;
        }
        Ok(())
    }

    //= 4340-8.1.2-1
    //= 4340-8.1.2-3
    //= 5595-2.2-1
    //= 5595-3.3-3
    //= 5595-3.3-4
    //= 5595-3.3-6
    /// Checks that a listener may serve these service codes. No other may serve the `new` ones.
    fn check_services<'a>(
        &self,
        local: Option<SocketAddr>,
        port: u16,
        services: &[ServiceCode],
        mut new: impl Iterator<Item = &'a ServiceCode>,
        invitation: Option<&Invitation>,
    ) -> Result<(), ListenError> {
        if services.is_empty() {
            return Err(ListenError::NoService);
        }
        //= 5595-2.5-2
        if services.iter().any(|service| !service.is_valid()) {
            return Err(ListenError::InvalidService);
        }
        //= 5595-3.3-1
        let taken = new.find(|&&service| self.is_taken(local, port, service, invitation));
        taken.map_or(Ok(()), |&service| Err(ListenError::InUse { port, service }))
    }

    /// Removes a listener.
    pub(super) fn remove(&mut self, id: ListenerId) -> Option<Listener> {
        let (_, listener) = self.by_id.remove(self.place_of(id)?);
        if let Some(at) = listener.invitation.as_ref().and_then(|invitation| invitation.next()) {
            self.invitations.remove(&(at, id));
        }
        if let Ok(at) = self.by_port.binary_search(&(listener.port, id)) {
            self.by_port.remove(at);
        }
        Some(*listener)
    }

    /// The listener with this id.
    pub(super) fn get(&self, id: ListenerId) -> Option<&Listener> {
        self.place_of(id).map(|at| self.by_id[at].1.as_ref())
    }

    /// The invitation whose next step is due first.
    pub(super) fn next_invitation(&self) -> Option<(Instant, ListenerId)> {
        self.invitations.first().copied()
    }

    /// The invitation of this listener.
    pub(super) fn invitation_mut(&mut self, id: ListenerId) -> Option<&mut Invitation> {
        self.get_mut(id)?.invitation.as_deref_mut()
    }

    /// The step `done` of an invitation is done, and the next one is due at `next`.
    pub(super) fn move_invitation(&mut self, done: (Instant, ListenerId), next: Option<Instant>) {
        self.invitations.remove(&done);
        self.invitations.extend(next.map(|at| (at, done.1)));
    }

    /// The client of an invitation has connected: no more Listen packets are sent.
    pub(super) fn end_invitation(&mut self, id: ListenerId) {
        let ended = self.invitation_mut(id).and_then(Invitation::take_next);
        if let Some(at) = ended {
            self.invitations.remove(&(at, id));
        }
    }

    /// The listener with this id.
    pub(super) fn get_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.place_of(id).map(|at| self.by_id[at].1.as_mut())
    }

    //= 5595-2.4-1
    //= 5595-2.5-1
    //= 5595-3.3.1-3
    /// Finds the listener for a Request for `service` with this tuple. A listener for this very
    /// client goes before one for all.
    pub(super) fn find(&self, tuple: &FourTuple, service: ServiceCode) -> Served {
        let mut answer = Served::Nobody;
        for (id, listener) in self.at_port(tuple.local_port) {
            if !listener.is_for(tuple) {
                continue;
            }
            if !service.is_valid() || !listener.services.contains(&service) {
                if answer == Served::Nobody {
                    answer = Served::BadService;
                }
                continue;
            }
            answer = Served::By(id);
            if listener.invitation.is_some() {
                break;
            }
        }
        answer
    }

    /// Whether anybody listens at `at` on DCCP port `port`.
    pub(super) fn is_port_open(&self, at: SocketAddr, port: u16) -> bool {
        self.at_port(port).any(|(_, listener)| listener.is_at(at))
    }
}
