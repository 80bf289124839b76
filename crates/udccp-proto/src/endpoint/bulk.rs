//! Sends and reads for a driver that wants numbers, not messages, with one look-up for many.

use udccp_base::{Instant, Message, Payload};

use super::Endpoint;
use crate::ids::ConnectionId;

impl Endpoint {
    /// Queues messages of `bytes` zero bytes each for as long as one of the maximum size would be
    /// taken, at most `most` of them. Returns how many were queued.
    pub fn fill(&mut self, now: Instant, id: ConnectionId, bytes: u32, most: u32) -> u32 {
        let Some((connection, mut ctx)) = self.connection(now, id) else { return 0 };
        let (mut taken, mut is_news) = (0, false);
        while taken < most && connection.is_writable() {
            // Behind others that wait for the window, one more changes nothing.
            let only_waits = connection.is_blocked(now);
            let sent = connection.send(&mut ctx, Message::new(Payload::Zeros(bytes)));
            is_news |= !only_waits || sent.is_err();
            if sent.is_err() {
                break;
            }
            taken += 1;
        }
        if is_news {
            self.make_ready(id.index);
        }
        taken
    }

    /// Takes all received messages; returns the sum of their bytes.
    pub fn take_received(&mut self, id: ConnectionId) -> u64 {
        let Some(connection) = self.slots.get_mut(id) else { return 0 };
        let (mut bytes, mut is_news) = (0, false);
        while connection.is_readable() {
            let (message, resumes) = connection.recv();
            is_news |= resumes;
            let Ok(Some(message)) = message else { break };
            bytes += message.payload.len() as u64;
        }
        if is_news {
            self.make_ready(id.index);
        }
        bytes
    }
}
