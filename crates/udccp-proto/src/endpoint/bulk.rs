//! Sends and reads for a driver that needs only counts: one lookup for many messages.

use udccp_base::Instant;

use super::Endpoint;
use crate::connection::Ctx;
use crate::ids::ConnectionId;

impl Endpoint {
    /// Queues messages of `bytes` zero bytes each (`None`: the maximum size) while one of the
    /// maximum size would fit, at most `most`. Returns how many were queued, and the bytes of each.
    pub fn fill(
        &mut self,
        now: Instant,
        id: ConnectionId,
        bytes: Option<u32>,
        most: u32,
    ) -> (u32, u32) {
        let Some(connection) = self.slots.queues_of(id) else { return (0, 0) };
        let (events, arena) = (&mut self.events, &mut self.arena);
        let mut ctx = Ctx { now, events, arena, registry: &self.ccids };
        let bytes = bytes.unwrap_or(connection.max_message_size() as u32);
        if !connection.has_room() {
            return (0, bytes);
        }
        // Behind messages that wait for the window, one more changes nothing.
        let only_waits = connection.is_blocked(now);
        let taken = connection.fill(&mut ctx, bytes, most);
        if taken.is_none_or(|taken| taken > 0 && !only_waits) {
            self.make_ready(id.index);
        }
        (taken.unwrap_or(0), bytes)
    }

    /// Takes all received messages and returns the sum of their bytes.
    #[inline]
    pub fn take_received(&mut self, id: ConnectionId) -> u64 {
        let Some(connection) = self.slots.queues_of(id) else { return 0 };
        match connection.take_received_zeros() {
            Some(bytes) => bytes,
            None => self.take_any_received(id),
        }
    }

    #[inline(never)]
    fn take_any_received(&mut self, id: ConnectionId) -> u64 {
        let Some(connection) = self.slots.queues_of(id) else { return 0 };
        let (bytes, resumes) = connection.take_received();
        if resumes {
            self.make_ready(id.index);
        }
        bytes
    }
}
