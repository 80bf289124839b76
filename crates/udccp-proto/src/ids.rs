//! Names connections and listeners of an endpoint.

/// A connection of an endpoint. Ids are not reused within 2^32 connections in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnectionId {
    /// Its place among the endpoint's connections, which are few numbers from 0 on; one of those
    /// that the application has not released has it to itself.
    pub const fn place(self) -> usize {
        self.index as usize
    }
}

/// A listener of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) u32);
