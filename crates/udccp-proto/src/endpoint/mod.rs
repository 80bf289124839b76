//! All connections and listeners of one host.

mod bulk;
mod commands;
mod cookie;
mod counters;
mod ends;
mod held_acks;
mod invite;
mod listeners;
mod live;
mod machine;
mod numbers;
mod open;
mod out_of_the_blue;
mod path_report;
mod quick_start;
mod ready;
mod resets;
mod slots;
mod stall;
mod stateless;
mod steps;
mod table;
mod timers;
mod timewait;
mod trains;

use udccp_base::{Datagram, Instant, MaybeInstant};

use crate::ccid::CcidRegistry;
use crate::config::EndpointConfig;
use crate::connection::Pressure;
use crate::connection::{Arena, Connection, Ctx};
use crate::event::Events;
use crate::ids::ConnectionId;

use counters::Counters;
pub use invite::ListenerState;
use listeners::Listeners;
use numbers::Secrets;
use out_of_the_blue::Answers;
pub use path_report::PathReport;
use ready::Ready;
use resets::Resets;
use slots::Slots;
use table::Table;
use timers::Timers;
pub use trains::Train;

/// All connections and listeners of one host: a pure [`udccp_base::Machine`] driven by `now`,
/// datagrams and commands. The crate's front page shows a run loop.
///
/// Fields used for every packet come first and are adjacent: with many hosts in one process, an
/// endpoint is rarely in a cache when its turn comes.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Endpoint {
    slots: Slots,
    timers: Timers,
    /// Connections that may have something to send, in order of their turns.
    ready: Ready,
    /// `None` if the driver wants none.
    events: Events,
    /// Answers to packets that belong to no connection.
    answers: Answers,
    /// The first time at which the quiet time or a TIMEWAIT ends, or an invitation is due. Most
    /// endpoints have none, and these are far apart in memory.
    rare_wake: MaybeInstant,
    /// No packet is sent before this time (RFC 4340 section 7.3).
    quiet_until: MaybeInstant,
    /// The connection that sent the last packet.
    last_sender: u32,
    outside: Pressure,
    /// A setting of [`EndpointConfig`], as `ccids` and the last few fields.
    receive_checksum_offload: bool,
    counters: Counters,
    table: Table,
    ccids: CcidRegistry,
    arena: Arena,
    listeners: Listeners,
    /// Connections whose acknowledgements wait for application data.
    #[expect(clippy::box_collection, reason = "drivers of many endpoints delay none")]
    held_acks: Option<Box<Vec<u32>>>,
    secrets: Secrets,
    resets: Resets,
    max_connections: u32,
    max_timewaits: u32,
    resets_per_sec: u32,
    ephemeral_ports: (u16, u16),
}

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(config: EndpointConfig) -> Self {
        let limit = |most: usize| u32::try_from(most).unwrap_or(u32::MAX);
        Self {
            secrets: Secrets::new(config.secret),
            slots: Slots::default(),
            table: Table::new(),
            listeners: Listeners::default(),
            timers: Timers::default(),
            ready: Ready::new(),
            held_acks: None,
            events: Some(Box::default()),
            answers: Answers::default(),
            resets: Resets::default(),
            rare_wake: config.quiet_until.into(),
            quiet_until: config.quiet_until.into(),
            outside: Pressure::None,
            receive_checksum_offload: config.receive_checksum_offload,
            last_sender: 0,
            arena: Arena::default(),
            counters: Counters::default(),
            ccids: config.ccids,
            max_connections: limit(config.max_connections),
            max_timewaits: limit(config.max_timewaits),
            resets_per_sec: config.out_of_the_blue_resets_per_sec,
            ephemeral_ports: config.ephemeral_ports,
        }
    }

    /// A connection, for any change, and the parts of the endpoint that it uses.
    fn connection_at(&mut self, now: Instant, index: u32) -> Option<(&mut Connection, Ctx<'_>)> {
        let (events, arena) = (&mut self.events, &mut self.arena);
        let ctx = Ctx { now, events, arena, registry: &self.ccids };
        self.slots.at(index).map(|connection| (connection, ctx))
    }

    /// The same for a caller that keeps to what `Connection::find_usual` expects.
    #[inline(always)]
    fn as_usual_at(&mut self, now: Instant, index: u32) -> Option<(&mut Connection, Ctx<'_>)> {
        let (events, arena) = (&mut self.events, &mut self.arena);
        let ctx = Ctx { now, events, arena, registry: &self.ccids };
        let connection = self.slots.slot(index)?.connection.as_deref_mut()?;
        Some((connection, ctx))
    }

    fn connection(&mut self, now: Instant, id: ConnectionId) -> Option<(&mut Connection, Ctx<'_>)> {
        let (events, arena) = (&mut self.events, &mut self.arena);
        let ctx = Ctx { now, events, arena, registry: &self.ccids };
        self.slots.get_mut(id).map(|connection| (connection, ctx))
    }

    /// Marks a connection as ready: it may have something to send, or a new timer.
    #[inline(never)]
    fn make_ready(&mut self, index: u32) {
        if let Some(slot) = self.slots.slot(index) {
            if !core::mem::replace(&mut slot.is_ready, true) {
                self.ready.push_back(index);
            }
        }
    }

    //= 6773-3.8-12
    /// Whether the endpoint has `max_connections` connections.
    fn is_full(&self) -> bool {
        self.table.connections() >= self.max_connections as usize
    }

    /// Queues an answer that belongs to no connection, unless too many are queued already.
    fn answer(&mut self, answer: Datagram) {
        if !self.answers.push(answer) {
            self.counters.rare().answers_dropped += 1;
        }
    }

    /// Adds a new connection.
    fn admit(&mut self, now: Instant, mut connection: Connection) -> u32 {
        connection.start(now);
        let tuple = *connection.tuple();
        let index = self.slots.insert(connection);
        self.table.insert(&self.secrets, &self.slots, &tuple, index);
        self.make_ready(index);
        index
    }
}
