//! Closes a whole endpoint.

use udccp_base::{Instant, Machine as _};

use super::Endpoint;

impl Endpoint {
    /// Number of connections that have not ended: in the handshake, open, closing, or with a final
    /// Reset that was not sent yet. Those in TIMEWAIT have ended.
    pub fn live_connections(&self) -> usize {
        self.slots.all().filter(|c| c.is_alive() || c.has_reset_to_send()).count()
    }

    /// Whether all connections have ended and have nothing more to send. Unless something arrives,
    /// nothing then happens except the end of at most one TIMEWAIT.
    pub fn is_spent(&self) -> bool {
        let timers = self.timers.peek().map(|(at, _)| at);
        let timewait = self.table.next_end();
        let is_one = timers.is_none() || timewait.is_none() || timers == timewait;
        let are_few = self.slots.all().count() <= 1 && self.table.timewaits() <= 1;
        let others = self.quiet_until.get().or(self.listeners.next_invitation().map(|(at, _)| at));
        !self.may_transmit()
            && others.is_none()
            && (is_one && are_few)
            && self.slots.all().all(|connection| connection.state().is_over())
    }

    /// Closes everything: first the listeners, which resets connections that were not accepted,
    /// then every connection in order, within its own `close_linger`.
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

    /// Ends every connection at once with a Reset of code Aborted.
    pub fn abort_all(&mut self, now: Instant) {
        for index in self.slots.indices() {
            if let Some((connection, mut ctx)) = self.connection_at(now, index) {
                connection.abort(&mut ctx);
                self.make_ready(index);
            }
        }
    }
}
