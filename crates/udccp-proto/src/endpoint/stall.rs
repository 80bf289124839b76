//! Checks, for tests, that no message waits for ever.

use udccp_base::{Duration, Instant, Machine};

use super::Endpoint;
use crate::ids::ConnectionId;

/// No timer that lets a message leave is set for later: the slowest sender sends a packet in 64
/// seconds (RFC 5348 section 4.3), and timers back off to as much (RFC 4340 section 6.6.3).
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

impl Endpoint {
    /// A connection in OPEN that has a message to send, cannot send it, and has set no timer that
    /// would let it leave if nothing ever arrived; `None` is as it has to be. Ask it after a drain.
    /// For tests, which ask after every event.
    #[doc(hidden)]
    pub fn stalled(&self, now: Instant) -> Option<ConnectionId> {
        let wakes = self.poll_timeout();
        let is_stalled = |until: Option<Instant>| match (until, wakes) {
            (Some(until), Some(wakes)) => wakes > until || until > now + LONGEST_WAIT,
            _ => true,
        };
        self.slots.all().find_map(|connection| {
            let until = connection.message_waits_until()?;
            is_stalled(until).then_some(connection.who.id)
        })
    }
}
