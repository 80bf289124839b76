//! Lends a connection parts of its endpoint while it acts.

use udccp_base::Instant;

use super::Arena;
use crate::ccid::CcidRegistry;
use crate::event::Events;

/// Parts of the endpoint that a connection uses while it acts.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    /// Current time.
    pub(crate) now: Instant,
    /// Events for the driver; `None` if it wants none.
    pub(crate) events: &'a mut Events,
    /// Memory in which headers are written.
    pub(crate) arena: &'a mut Arena,
    /// The available CCIDs.
    pub(crate) registry: &'a CcidRegistry,
}
