//! Stores connections by index.

use crate::connection::Connection;
use crate::ids::ConnectionId;
use crate::tuple::FourTuple;

/// A place that holds one connection after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    generation: u32,
    /// Whether the connection is in the ready queue.
    pub(super) is_ready: bool,
    pub(super) connection: Option<Box<Connection>>,
}

/// Connections by index. A generation per index makes old ids invalid.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Allocated when the first connection is removed.
    #[expect(clippy::box_collection, reason = "few endpoints remove any, and there are many")]
    free: Option<Box<Vec<u32>>>,
}

impl Slots {
    /// The id that the next `insert` will use.
    pub(super) fn next_id(&self) -> ConnectionId {
        let free = self.free.as_ref().and_then(|free| free.last());
        let index = free.copied().unwrap_or(self.slots.len() as u32);
        let generation = self.slots.get(index as usize).map_or(0, |s| s.generation);
        ConnectionId { index, generation }
    }

    /// Inserts a connection, with the id that `next_id` returned.
    pub(super) fn insert(&mut self, connection: Connection) -> u32 {
        let free = self.free.as_mut().and_then(|free| free.pop());
        let index = free.unwrap_or_else(|| {
            if self.slots.is_empty() {
                // Most endpoints have one connection only.
                self.slots.reserve_exact(1);
            }
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[index as usize].connection = Some(Box::new(connection));
        index
    }

    /// Removes a connection, which makes its id invalid.
    pub(super) fn remove(&mut self, index: u32) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(index as usize)?;
        let connection = slot.connection.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.get_or_insert_default().push(index);
        Some(connection)
    }

    /// The connection with this id.
    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.index as usize)?;
        slot.connection.as_deref().filter(|_| slot.generation == id.generation)
    }

    /// The connection with this id, for any change.
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let connection = self.queues_of(id)?;
        connection.forget_usual();
        Some(connection)
    }

    /// The connection with this id, to change nothing but its queues of messages without deadlines.
    #[inline]
    pub(super) fn queues_of(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        slot.connection.as_deref_mut()
    }

    /// The connection at this index, for reading.
    pub(super) fn look(&self, index: u32) -> Option<&Connection> {
        self.slots.get(index as usize)?.connection.as_deref()
    }

    /// The slot at this index.
    #[inline]
    pub(super) fn slot(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)
    }

    /// The connection at this index, for any change.
    pub(super) fn at(&mut self, index: u32) -> Option<&mut Connection> {
        let connection = self.slot(index)?.connection.as_deref_mut()?;
        connection.forget_usual();
        Some(connection)
    }

    /// Addresses and ports of the connection at this index.
    #[inline]
    pub(super) fn tuple(&self, index: u32) -> Option<&FourTuple> {
        Some(self.look(index)?.tuple())
    }

    /// All connections.
    pub(super) fn all(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|slot| slot.connection.as_deref())
    }

    /// Indices of all connections, ascending.
    pub(super) fn indices(&self) -> Vec<u32> {
        let used = self.slots.iter().enumerate().filter(|(_, s)| s.connection.is_some());
        used.map(|(i, _)| i as u32).collect()
    }
}
