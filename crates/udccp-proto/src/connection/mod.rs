//! Drives one connection, from its first Request to TIMEWAIT.
//!
//! An arriving packet passes the steps of RFC 4340 section 8.5, one file per step ([`steps`]).
//! Packets to send are noted in the [`outbox::Outbox`], and written when the endpoint is drained
//! ([`transmit`]).
//!
//! Most state is in parts with private fields, whose methods take the time and return an outcome.
//! [`Connection`] turns outcomes into events, timers and packets. Only the steps and the packet
//! writer use several parts.

mod ack_state;
mod acks;
mod app;
mod arena;
mod ccids;
mod close;
mod congestion;
mod context;
mod counters;
mod credit;
mod ending;
mod handshake;
pub(crate) mod limiter;
mod negotiation;
mod options;
mod outbox;
mod path_changes;
mod path_mtu;
mod quick_start;
mod received;
mod recv_side;
mod report;
mod request_data;
mod send_side;
mod seq;
#[cfg(test)]
mod sizes;
mod stall;
mod steps;
mod timeouts;
mod timers;
mod timing;
mod transmit;
mod unreachable;
mod usual;

use udccp_base::Instant;
use udccp_wire::{IP_PROTOCOL, PseudoHeader, Seqno, ServiceCode};

use crate::event::{Event, EventKind, Events};
use crate::features::{Negotiator, Role};
use crate::ids::{ConnectionId, ListenerId};
use crate::shared_config::SharedConfig;
use crate::state::State;
use crate::tuple::FourTuple;

use ack_state::AckState;
pub(crate) use arena::Arena;
use congestion::CongestionControl;
pub(crate) use context::Ctx;
use counters::Counters;
pub(crate) use credit::Credit;
use ending::Ending;
use handshake::Handshake;
use limiter::Limits;
use negotiation::Negotiation;
pub(crate) use negotiation::preferences;
use outbox::Outbox;
pub(crate) use path_mtu::MIN_MTU;
use path_mtu::PathMtu;
use quick_start::QuickStartState;
pub(crate) use received::{Arrival, Handled, Received};
pub use recv_side::Delivery;
pub(crate) use recv_side::Pressure;
use recv_side::RecvSide;
use send_side::SendSide;
use seq::Sequence;
use timers::Timers;
use timing::Timing;
use usual::Usual;

/// Sequence Window of a new connection (RFC 4340 section 7.5.2).
const INITIAL_SEQUENCE_WINDOW: u64 = 100;

/// Identity of a connection: what its endpoint knows before the first packet.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) id: ConnectionId,
    pub(crate) tuple: FourTuple,
    pub(crate) role: Role,
    pub(crate) service: ServiceCode,
    /// The listener, until the application has accepted the connection from it.
    pub(crate) listener: Option<ListenerId>,
}

/// One connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) who: Identity,
    config: SharedConfig,
    /// Sum of the pseudo-header of outgoing packets, with a length of 0.
    addresses: u16,
    // Fields that most packets use.
    state: State,
    usual: Usual,
    seq: Sequence,
    acks: AckState,
    cc: CongestionControl,
    send: SendSide,
    recv: RecvSide,
    outbox: Outbox,
    timers: Timers,
    timing: Timing,
    path: PathMtu,
    /// How much may be sent before the peer's address is validated.
    credit: Credit,
    counters: Counters,
    // Fields that few packets use.
    negotiation: Negotiation,
    handshake: Handshake,
    /// Present if Quick-Start is requested or allowed.
    quick_start: Option<Box<QuickStartState>>,
    limits: Limits,
    ending: Ending,
}

impl Connection {
    /// A connection whose first packet will have the number `iss`; in REQUEST or RESPOND.
    pub(crate) fn new(
        who: Identity,
        config: SharedConfig,
        features: Negotiator,
        iss: Seqno,
        now: Instant,
    ) -> Self {
        let (state, credit) = match who.role {
            Role::Client => (State::Request, Credit::UNLIMITED),
            Role::Server => (State::Respond, Credit::NONE),
        };
        let (c, tuple) = (&config, &who.tuple);
        let mut seq = Sequence::new(iss, INITIAL_SEQUENCE_WINDOW);
        seq.window_local = c.sequence_window.max(INITIAL_SEQUENCE_WINDOW);
        let pseudo = PseudoHeader::new(tuple.local.ip(), tuple.remote.ip());
        Self {
            path: PathMtu::new(tuple, c),
            addresses: pseudo.sum(IP_PROTOCOL, 0).number(),
            state,
            usual: Usual::default(),
            seq,
            negotiation: Negotiation::new(features, c.sequence_window),
            cc: CongestionControl::default(),
            acks: AckState::new(c.ecn),
            send: SendSide::new(c),
            recv: RecvSide::new(c),
            outbox: Outbox::default(),
            credit,
            timers: Timers::new(),
            timing: Timing::new(now),
            limits: Limits::default(),
            handshake: Handshake::default(),
            quick_start: QuickStartState::of(&c.quick_start),
            ending: Ending::default(),
            counters: Counters::default(),
            config,
            who,
        }
    }

    /// The state.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    fn is_server(&self) -> bool {
        self.who.role == Role::Server
    }

    /// Follows a transition of the state diagram.
    fn become_state(&mut self, next: State) {
        debug_assert!(self.state.may_become(next), "{} to {next}", self.state);
        self.state = next;
    }

    /// The pseudo-header that checksums outside UDP cover besides the packet.
    #[inline]
    fn pseudo_header(&self) -> PseudoHeader {
        PseudoHeader::new(self.who.tuple.local.ip(), self.who.tuple.remote.ip())
    }

    fn emit(&self, ctx: &mut Ctx<'_>, kind: EventKind) {
        self.emit_here(ctx.events, kind);
    }

    /// Inlined version of `emit`, for events of most packets.
    #[inline(always)]
    fn emit_here(&self, events: &mut Events, kind: EventKind) {
        let Some(events) = events else { return };
        // The application does not know the id before it has accepted.
        let is_known = self.who.listener.is_none() || matches!(kind, EventKind::Incoming(_));
        if is_known && !self.ending.is_released() {
            events.push_back(Event { id: self.who.id, kind });
        }
    }
}
