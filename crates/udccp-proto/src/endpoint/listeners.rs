//! Holds the listeners, and finds the one for a Request.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
    pub(super) invitation: Option<Invitation>,
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

/// All listeners.
#[derive(Clone, Debug, Default)]
pub(super) struct Listeners {
    /// In boxes, since each node of the map has room for eleven values, even if there is one.
    by_id: BTreeMap<ListenerId, Box<Listener>>,
    by_port: BTreeMap<u16, Vec<ListenerId>>,
    /// Invitations by the time of their next step.
    invitations: BTreeSet<(Instant, ListenerId)>,
    next: u32,
}

impl Listeners {
    /// All listeners.
    pub(super) fn ids(&self) -> Vec<ListenerId> {
        self.by_id.keys().copied().collect()
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
            invitation,
        };
        if let Some(at) = invitation.and_then(|invitation| invitation.next()) {
            self.invitations.insert((at, id));
        }
        self.by_id.insert(id, Box::new(listener));
        self.by_port.entry(port).or_default().push(id);
        Ok(id)
    }

    fn is_taken(
        &self,
        local: Option<SocketAddr>,
        port: u16,
        service: ServiceCode,
        invitation: Option<&Invitation>,
    ) -> bool {
        let client = invitation.map(|invitation| invitation.tuple);
        let mut there = self.by_port.get(&port).into_iter().flatten();
        there.any(|id| {
            let other = &self.by_id[id];
            let meets = match (local, other.local) {
                (Some(a), Some(b)) => covers(a, b) || covers(b, a),
                _ => true,
            };
            // A listener for one client does not conflict with a listener for all.
            let same_clients = other.invitation.map(|invitation| invitation.tuple) == client;
            meets && same_clients && other.services.contains(&service)
        })
    }

    /// Replaces the service codes of a listener.
    pub(super) fn set_services(
        &mut self,
        id: ListenerId,
        services: Vec<ServiceCode>,
    ) -> Result<(), ListenError> {
        let Some(listener) = self.by_id.get(&id) else { return Ok(()) };
        let (local, port, invitation) = (listener.local, listener.port, listener.invitation);
        let new = services.iter().filter(|service| !listener.services.contains(service));
        self.check_services(local, port, &services, new, invitation.as_ref())?;
        if let Some(listener) = self.by_id.get_mut(&id) {
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
        let listener = self.by_id.remove(&id)?;
        if let Some(at) = listener.invitation.and_then(|invitation| invitation.next()) {
            self.invitations.remove(&(at, id));
        }
        if let Some(there) = self.by_port.get_mut(&listener.port) {
            there.retain(|other| *other != id);
            if there.is_empty() {
                self.by_port.remove(&listener.port);
            }
        }
        Some(*listener)
    }

    /// The listener with this id.
    pub(super) fn get(&self, id: ListenerId) -> Option<&Listener> {
        self.by_id.get(&id).map(Box::as_ref)
    }

    /// The invitation whose next step is due first.
    pub(super) fn next_invitation(&self) -> Option<(Instant, ListenerId)> {
        self.invitations.first().copied()
    }

    /// The invitation of this listener.
    pub(super) fn invitation_mut(&mut self, id: ListenerId) -> Option<&mut Invitation> {
        self.by_id.get_mut(&id)?.invitation.as_mut()
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
        self.by_id.get_mut(&id).map(Box::as_mut)
    }

    //= 5595-2.4-1
    //= 5595-2.5-1
    //= 5595-3.3.1-3
    /// Finds the listener for a Request for `service` with this tuple. A listener for this very
    /// client goes before one for all.
    pub(super) fn find(&self, tuple: &FourTuple, service: ServiceCode) -> Served {
        let mut answer = Served::Nobody;
        for id in self.by_port.get(&tuple.local_port).into_iter().flatten() {
            let listener = &self.by_id[id];
            if !listener.is_for(tuple) {
                continue;
            }
            if !service.is_valid() || !listener.services.contains(&service) {
                if answer == Served::Nobody {
                    answer = Served::BadService;
                }
                continue;
            }
            answer = Served::By(*id);
            if listener.invitation.is_some() {
                break;
            }
        }
        answer
    }

    /// Whether anybody listens at `at` on DCCP port `port`.
    pub(super) fn is_port_open(&self, at: SocketAddr, port: u16) -> bool {
        let mut there = self.by_port.get(&port).into_iter().flatten();
        there.any(|id| self.by_id[id].is_at(at))
    }
}
