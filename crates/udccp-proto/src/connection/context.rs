//! Lends a connection parts of its endpoint while it acts.

use std::collections::VecDeque;

use udccp_base::Instant;

use super::Arena;
use crate::ccid::CcidRegistry;
use crate::event::Event;

/// The endpoint's part in an action of a connection.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    /// The time.
    pub(crate) now: Instant,
    /// Events for the driver.
    pub(crate) events: &'a mut VecDeque<Event>,
    /// Where headers are written.
    pub(crate) arena: &'a mut Arena,
    /// The CCIDs that exist here.
    pub(crate) registry: &'a CcidRegistry,
}
