//! Ends a whole endpoint.

use udccp_base::Instant;

use super::Endpoint;

impl Endpoint {
    /// Connections that are not over yet: in handshake, open, closing, or with a last Reset that
    /// has not left. Those in TIMEWAIT are over.
    pub fn live_connections(&self) -> usize {
        self.slots.all().filter(|c| c.is_alive() || c.has_reset_to_send()).count()
    }

    /// Closes everything: listeners first, which resets what they never gave to an application,
    /// then every connection in order, each within its own `close_linger`.
    pub fn close_all(&mut self, now: Instant) {
        for listener in self.listeners.ids() {
            self.unlisten(now, listener);
        }
        for index in self.slots.indices() {
            if let Some((connection, mut ctx)) = self.connection_at(now, index) {
                connection.close(&mut ctx);
                self.make_ready(index);
            }
        }
    }

    /// Ends every connection at once with Reset, Aborted.
    pub fn abort_all(&mut self, now: Instant) {
        for index in self.slots.indices() {
            if let Some((connection, mut ctx)) = self.connection_at(now, index) {
                connection.abort(&mut ctx);
                self.make_ready(index);
            }
        }
    }
}
