//! Ids of connections and listeners.

/// The id of a connection of an endpoint. An id recurs only after 2^32 connections in the same
/// slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnectionId {
    /// The slot of the connection, a small number from 0. No two connections that the application
    /// has not released share a slot.
    pub const fn place(self) -> usize {
        self.index as usize
    }
}

/// The id of a listener of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) u32);
