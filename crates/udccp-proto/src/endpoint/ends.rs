//! Ends a whole endpoint.

use udccp_base::Instant;

use super::Endpoint;

impl Endpoint {
    /// Connections that are not over yet: in handshake, open, closing, or with a last Reset that
    /// has not left. Those in TIMEWAIT are over.
    pub fn live_connections(&self) -> usize {
        self.slots.all().filter(|c| c.is_alive() || c.has_reset_to_send()).count()
    }

    /// Whether all connections are over and have said all, so that, unless something arrives,
    /// nothing happens here any more but the end of at most one TIMEWAIT.
    pub fn is_spent(&self) -> bool {
        let timers = self.timers.peek().map(|(at, _)| at);
        let timewait = self.table.next_end();
        let is_one = timers.is_none() || timewait.is_none() || timers == timewait;
        let are_few = self.slots.all().count() <= 1 && self.table.timewaits().len() <= 1;
        let others = self.quiet_until.or(self.listeners.next_invitation().map(|(at, _)| at));
        !self.may_transmit()
            && others.is_none()
            && (is_one && are_few)
            && self.slots.all().all(|connection| connection.state().is_over())
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
