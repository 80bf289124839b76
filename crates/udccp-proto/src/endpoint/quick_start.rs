//! Receives and returns the Quick-Start options of IP datagrams (RFC 5634).

use udccp_base::{Datagram, Instant, QuickStart};

use super::Endpoint;

impl Endpoint {
    /// The Quick-Start option of the datagram that `poll_transmit` returned last. A driver that can
    /// send IP options asks for it; over UDP there is none.
    pub fn poll_quick_start(&mut self) -> Option<QuickStart> {
        self.slots.at(self.last_sender)?.take_quick_start_option()
    }

    /// Processes a datagram that arrived with this Quick-Start option and time to live.
    pub fn handle_with_quick_start(
        &mut self,
        now: Instant,
        datagram: Datagram,
        option: QuickStart,
        ttl: u8,
    ) {
        self.take_datagram(now, &datagram, Some((option, ttl)));
    }
}
