//! The Quick-Start option of IP beside the datagrams (RFC 5634).

use udccp_base::QuickStart;

use super::Endpoint;

impl Endpoint {
    /// The Quick-Start option of the datagram that `poll_transmit` gave last. A driver that can
    /// send IP options asks for it; over UDP there never is one.
    pub fn poll_quick_start(&mut self) -> Option<QuickStart> {
        self.slots.at(self.last_sender)?.take_quick_start_option()
    }

    /// The next datagram handed in has this Quick-Start option, and this time to live.
    pub fn handle_quick_start(&mut self, option: QuickStart, ttl: u8) {
        self.arrived_option = Some((option, ttl));
    }
}
